"""Noise for Opacus that nobody can predict: a stream cipher with a key from the operating system.

``torch.normal`` draws from a Mersenne twister, which 624 of its outputs give away, and from a seed that a program may
have set. Here bytes come from AES-256 in counter mode, with a new key for each call; each pair of 8 bytes makes
two normal numbers by Box and Muller, in double precision, which are then rounded to the type of the gradients. The
package ``torchcsprng``, which Opacus's ``secure_mode`` asks for, cannot be installed with today's torch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from reticent.errors import ParameterError, UnsupportedError
from reticent.watching import optimisers

_ROWS = 1 << 16
_SCALE = 2.0**-53

_ASKED = frozenset({"add_noise", "_generate_noise"})
"""What a method of the program calls that leaves the noise to Opacus."""


def secure_noise(optimizer: Any) -> Any:
    """Let a private optimizer of Opacus draw its noise from a stream cipher with keys of the operating system.

    Args:
        optimizer: that ``make_private`` returned.

    Returns:
        The optimizer.

    Raises:
        ParameterError: it is no private optimizer of Opacus.
        UnsupportedError: its clipping is adaptive, which draws noise elsewhere too, or code of the program adds noise
            without Opacus's.

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
    method = own.add_noise
    if optimisers.method_of(optimizer, "add_noise") is not method or not all(map(_asks, optimisers.adding_noise(own))):
        raise UnsupportedError(f"secure_noise: {own.__name__} has an add_noise of its own, which does not use it")

    def add_noise(self: Any) -> None:
        with Generating(own, _securely):
            method(self)

    add_noise.reticent_noise = method  # type: ignore[attr-defined]
    optimizer.__class__ = type(own.__name__, (own,), {"add_noise": add_noise})
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


def _asks(method: Any) -> bool:
    """Whether a method that adds noise leaves it to Opacus's functions, as far as the names in its code tell."""
    names = getattr(getattr(method, "__code__", None), "co_names", ())
    return optimisers.by_opacus(method) or not _ASKED.isdisjoint(names)


class Generating:
    """While this is entered, the modules of an optimizer's classes generate noise by another function.

    Args:
        kind: the class.
        instead: makes that function of the one that is there.
    """

    def __init__(self, kind: type, instead: Callable[[Any], Any]) -> None:
        self._kind, self._instead = kind, instead
        self._before: list[tuple[Any, Any]] = []

    def __enter__(self) -> None:
        for module in optimisers.generating(self._kind):
            self._before.append((module, module._generate_noise))
            module._generate_noise = self._instead(module._generate_noise)

    def __exit__(self, *_: object) -> None:
        while self._before:
            module, own = self._before.pop()
            module._generate_noise = own


def _securely(own: Any) -> Any:
    """``generate`` in the place of ``own``; who looks on at that looks on at this."""
    return own.around(generate) if hasattr(own, "around") else generate


def generate(std: float, reference: Any, generator: Any = None, secure_mode: bool = False) -> torch.Tensor:
    """As Opacus's function of this name; ``generator`` is not asked."""
    if std == 0:
        return torch.zeros_like(reference)
    return normal(tuple(reference.shape), float(std), reference.dtype, reference.device)
