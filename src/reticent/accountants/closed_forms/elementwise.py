"""One number for each noise, rate and number of steps: arguments that broadcast, and kernels over blocks of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel.errors import ParameterError
from reticent.kernel.pairs import Neighbouring

Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray, Neighbouring], np.ndarray]
"""A formula for arrays of noise multipliers, sample rates and numbers of steps."""
Run = tuple[float, float, int]
"""Noise multiplier, sample rate and number of steps."""

_BLOCK = 8192  # elements at once: what fits the cache


def arguments(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three as arrays.

    Raises:
        ParameterError: a noise below 0, a rate outside (0, 1], a number of steps below 1, or one that is not finite.
    """
    if all(isinstance(x, float | int) for x in (noise_multiplier, sample_rate, steps)):
        # A search asks for one at a time: comparing plain numbers costs a tenth of comparing arrays.
        one = float(noise_multiplier), float(sample_rate), float(steps)  # type: ignore[arg-type]
        if 0.0 <= one[0] < math.inf and 0.0 < one[1] <= 1.0 and 1.0 <= one[2] < math.inf:
            return np.array(one[0]), np.array(one[1]), np.array(one[2])
    noise, rate, count = (np.asarray(x, dtype=float) for x in (noise_multiplier, sample_rate, steps))
    if not (np.all(noise >= 0.0) and np.all(np.isfinite(noise))):
        raise ParameterError("noise_multiplier", noise.tolist(), "finite numbers >= 0")
    if not np.all((rate > 0.0) & (rate <= 1.0)):
        raise ParameterError("sample_rate", rate.tolist(), "numbers in (0, 1]")
    if not (np.all(count >= 1.0) and np.all(np.isfinite(count))):
        raise ParameterError("steps", count.tolist(), "finite numbers >= 1")
    return noise, rate, count


def elementwise(
    kernel: Kernel, noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """``kernel`` on broadcast arguments, in blocks that fit the cache: temporaries in memory cost twice the time."""
    given = arguments(noise_multiplier, sample_rate, steps)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if max(x.size for x in given) <= _BLOCK:
            return np.asarray(kernel(*given, neighbouring))
        full = np.broadcast_arrays(*given)
        out = np.empty(full[0].shape)
        flat = out.reshape(-1)
        parts = [x if x.size == 1 else y.reshape(-1) for x, y in zip(given, full, strict=True)]
        for start in range(0, flat.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            noise, rate, count = (x if x.size == 1 else x[block] for x in parts)
            flat[block] = kernel(noise, rate, count, neighbouring)
    return out
