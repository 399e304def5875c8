"""Noise for Opacus that nobody can predict: a stream cipher with a key from the operating system.

``torch.normal`` draws from a Mersenne twister, which 624 of its outputs give away, and from a seed that a program may
have set. Here bytes come from AES-256 in counter mode, with a new key for each call; each pair of 8 bytes makes
two normal numbers by Box and Muller, in double precision, which are then rounded to the type of the gradients. The
package ``torchcsprng``, which Opacus's ``secure_mode`` asks for, cannot be installed with today's torch.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from reticent.errors import ParameterError, UnsupportedError

_ROWS = 1 << 16
_SCALE = 2.0**-53


def secure_noise(optimizer: Any) -> Any:
    """Let a private optimizer of Opacus draw its noise from a stream cipher with keys of the operating system.

    Args:
        optimizer: that ``make_private`` returned.

    Returns:
        The optimizer.

    Raises:
        ParameterError: it is no private optimizer of Opacus.
        UnsupportedError: its clipping is adaptive, which draws noise elsewhere too.

    Example:
        >>> import reticent as rt
        >>> optimizer = rt.secure_noise(optimizer)  # doctest: +SKIP
    """
    from reticent.watching.optimisers import is_private

    if not is_private(optimizer):
        raise ParameterError("optimizer", type(optimizer).__name__, "the private one that make_private returned")
    own: Any = type(optimizer)
    if hasattr(own, "reticent_noise"):
        return optimizer
    if hasattr(optimizer, "target_unclipped_quantile"):
        raise UnsupportedError("secure_noise: adaptive clipping draws the noise of its count elsewhere")

    def add_noise(self: Any) -> None:
        with _Generating(own):
            own.add_noise(self)

    optimizer.__class__ = type(own.__name__, (own,), {"add_noise": add_noise, "reticent_noise": own})
    return optimizer


def normal(shape: tuple[int, ...], deviation: float, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Independent normal numbers with mean 0 and this standard deviation, from a new key."""
    count = math.prod(shape)
    stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
    drawn = torch.empty(count, dtype=dtype)
    for first in range(0, count, 2 * _ROWS):
        pairs = min(_ROWS, -(-(count - first) // 2))
        drawn[first : first + 2 * pairs] = _pairs(stream.update(bytes(16 * pairs)), deviation)[: count - first].to(
            dtype
        )
    return drawn.view(shape).to(device)


def _pairs(random: bytes, deviation: float) -> torch.Tensor:
    """Two normal numbers for each 16 bytes, in double precision (BOX1958)."""
    whole = torch.from_numpy((np.frombuffer(random, dtype=np.uint64) >> np.uint64(11)).astype(np.float64))
    radius, angle = whole.view(2, -1)
    radius = torch.log((radius + 1.0).mul_(_SCALE)).mul_(-2.0).sqrt_().mul_(deviation)  # of a number in (0, 1]
    angle = angle * (2.0 * math.pi * _SCALE)
    return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)])


class _Generating:
    """While this is entered, the modules of an optimizer's classes generate noise from here."""

    def __init__(self, kind: type) -> None:
        own = [vars(one)["add_noise"] for one in kind.__mro__ if "add_noise" in vars(one)]
        self._modules: list[Any] = [sys.modules[method.__module__] for method in own]
        self._before: list[tuple[Any, Any]] = []

    def __enter__(self) -> None:
        for module in self._modules:
            if hasattr(module, "_generate_noise") and module._generate_noise is not _generate:
                self._before.append((module, module._generate_noise))
                module._generate_noise = _generate

    def __exit__(self, *_: object) -> None:
        while self._before:
            module, own = self._before.pop()
            module._generate_noise = own


def _generate(std: float, reference: Any, generator: Any = None, secure_mode: bool = False) -> torch.Tensor:
    """As Opacus's function of this name; ``generator`` is not asked."""
    if std == 0:
        return torch.zeros_like(reference)
    return normal(tuple(reference.shape), float(std), reference.dtype, reference.device)
