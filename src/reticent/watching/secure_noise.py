"""Noise for Opacus that nobody can predict: a stream cipher with a key from the operating system.

``torch.normal`` draws from a Mersenne twister, which 624 of its outputs give away, and from a seed that a program may
have set. Here bytes come from AES-256 in counter mode, with a new key for each call; each pair of 8 bytes makes
two normal numbers by Box and Muller, in double precision, which are then rounded to the type of the gradients. The
package ``torchcsprng``, which Opacus's ``secure_mode`` asks for, cannot be installed with today's torch.
"""

from __future__ import annotations

import math
import os
from types import MethodType
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function

from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.watching import optimisers
from reticent.watching.events import in_place_of

NORMAL = torch.normal
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
        UnsupportedError: its clipping is adaptive, which draws noise elsewhere too, or its ``add_noise`` was replaced.
            A class of the program may add noise by Opacus's method or by ``torch.normal``: a step fails that does not.

    Example:
        >>> import reticent as rt
        >>> optimizer = rt.secure_noise(optimizer)  # doctest: +SKIP
    """
    if not optimisers.is_private(optimizer):
        raise ParameterError("optimizer", type(optimizer).__name__, "the private one that make_private returned")
    if optimisers.is_secured(optimizer):
        return optimizer
    if hasattr(optimizer, "target_unclipped_quantile"):
        raise UnsupportedError("secure_noise: adaptive clipping draws the noise of its count elsewhere")
    own: Any = type(optimizer)
    before = vars(optimizer).get("add_noise")
    if optimisers.method_of(optimizer, "add_noise") is not own.add_noise:
        raise UnsupportedError(f"secure_noise: this {own.__name__} has an add_noise of its own")

    def add_noise(self: Any) -> None:
        with _Secure() as source:
            own.add_noise(self) if before is None else before()
        if not source.asked and self.noise_multiplier > 0.0 and not getattr(self, "rank", 0):
            raise UnsupportedError(f"secure_noise: add_noise of {own.__name__} uses neither Opacus's nor torch.normal")

    add_noise.reticent_noise = own.add_noise  # type: ignore[attr-defined]
    in_place_of(optimizer, "add_noise", MethodType(add_noise, optimizer))
    return optimizer


class _Secure(TorchFunctionMode):
    """Whoever asks torch for normal numbers gets others meanwhile."""

    asked = False
    """Whether anybody did."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is NORMAL:
            self.asked, function = True, _secure_normal
        return function(*args, **kwargs or {})


def _secure_normal(
    mean: Any, std: Any, size: Any = (), device: Any = None, dtype: Any = None, **_: Any
) -> torch.Tensor:
    """As ``torch.normal`` for numbers; a generator is not asked."""
    if isinstance(mean, torch.Tensor) or (isinstance(std, torch.Tensor) and std.ndim):
        raise UnsupportedError("secure_noise: add_noise asks torch.normal for numbers of several laws at once")
    kind = torch.get_default_dtype() if dtype is None else dtype
    where = torch.get_default_device() if device is None else torch.device(device)
    return drawn(normal(tuple(size), float(std), kind, where).add_(mean), std=float(std))


def drawn(noise: torch.Tensor, *, std: float) -> torch.Tensor:
    """This noise, which has this standard deviation: modes of torch see it here."""
    if has_torch_function((noise,)):
        noise = handle_torch_function(drawn, (noise,), noise, std=std)
    return noise


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
