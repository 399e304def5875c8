"""Where masks and noise come from.

torch's CPU generator keeps only 32 bits of the seed that it is given, so noise drawn from a freshly
seeded ``torch.Generator`` can be found by trying four billion seeds. Here fresh masks come byte by byte from
the operating system's cryptographic generator, fresh noise from a stream cipher with a key of it for each draw,
and nothing is kept; reproducible randomness comes from numpy's PCG64 with named, independent streams, and is no secret.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import torch

from reticent.kernel.samplers.base import Uniform
from reticent.training import normals
from reticent.training.cipher import Key


class Stream(IntEnum):
    """Independent streams of one seed."""

    INITIALISATION = 0
    SAMPLING = 1
    NOISE = 2


CPU = torch.device("cpu")


class Source(Uniform, Protocol):
    """Independent draws; float64."""

    def normal(self, size: int, device: torch.device = CPU) -> torch.Tensor:
        """``size`` standard normal numbers on a device."""
        ...


class SystemSource:
    """The operating system's secure generator, never repeated, never stored."""

    def uniform(self, size: int) -> np.ndarray:
        """Midpoints of 2^52 equal cells, byte by byte: 0 and 1 cannot occur."""
        words = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
        return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def normal(self, size: int, device: torch.device = CPU) -> torch.Tensor:
        """Drawn there, with a new key; below 8.6, which a true normal exceeds once in 10^17 draws."""
        return normals.normal((size,), 1.0, torch.float64, device)


class SeededSource:
    """Reproducible draws: anyone who knows ``seed`` knows them all."""

    def __init__(self, seed: int, stream: Stream) -> None:
        self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(stream),)))

    def state(self) -> dict[str, Any]:
        """The position in the stream; as public as the seed."""
        return dict(self._rng.bit_generator.state)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a ``state``."""
        self._rng.bit_generator.state = state

    def uniform(self, size: int) -> np.ndarray:
        """``size`` numbers in [0, 1)."""
        return self._rng.random(size)

    def normal(self, size: int, device: torch.device = CPU) -> torch.Tensor:
        """The same numbers on each device: drawn on the processor, and copied at once."""
        return torch.from_numpy(self._rng.standard_normal(size)).to(device, non_blocking=True)


class KeyedSource:
    """Reproducible noise that is drawn on its device; anyone who knows the seeds knows it."""

    def __init__(self, seeds: Sequence[int]) -> None:
        self._secret, self._drawn = hashlib.sha256(repr(list(seeds)).encode()).digest(), itertools.count()

    def normal(self, size: int, device: torch.device = CPU) -> torch.Tensor:
        """``size`` standard normal numbers, float32; on each device the same up to rounding."""
        return normals.normal((size,), 1.0, torch.float32, device, self._key)

    def _key(self) -> Key:
        return Key(self._secret, next(self._drawn).to_bytes(12, "little"))


def torch_seed(seed: int, *stream: int) -> int:
    """A seed for torch's own generator, for what needs no secrecy (initial weights)."""
    state = np.random.SeedSequence(seed, spawn_key=stream).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))
