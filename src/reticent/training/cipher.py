"""Normal numbers from a stream cipher: ChaCha20 (RFC 8439), with a key of the operating system that nobody keeps.

Each call takes a new key and counts blocks from 0. Two words of 32 bits make a uniform number of 53 bits; two of
these make two normal numbers by Box and Muller, in double precision, and each is rounded once. The stream is drawn
where the numbers are wanted: by OpenSSL on the processor, by Triton on a GPU, by torch's own operations on a GPU
without Triton. Equal keys give equal bits on each of them, and normal numbers that agree to rounding.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from reticent.kernel.errors import ParameterError

BLOCKS = 1 << 32
"""Blocks of one key: the counter has 32 bits, and must not come back."""
NUMBERS = 8
"""Uniform numbers of a block, and normal ones."""
CONSTANT = struct.unpack("<4i", b"expand 32-byte k")
SCALE = 2.0**-53
_PIECE = 1 << 16
"""Numbers that a processor makes at once; they stay in its cache."""
_SHARE = 4 * _PIECE
"""Numbers that are worth a thread."""
BATCH = 1 << 20
"""Blocks that torch's operations make at once, in 256 MiB."""


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A key and a nonce; by default of the operating system."""

    secret: bytes = field(default_factory=lambda: os.urandom(32))
    nonce: bytes = field(default_factory=lambda: os.urandom(12))

    def words(self) -> tuple[int, ...]:
        """Eight words of the key and three of the nonce, as signed numbers of 32 bits."""
        return struct.unpack("<11i", self.secret + self.nonce)


def normal(
    shape: tuple[int, ...],
    deviation: float,
    dtype: torch.dtype,
    device: torch.device,
    key: Callable[[], Key] | None = None,
) -> torch.Tensor:
    """Independent normal numbers with mean 0 and this standard deviation.

    Args:
        shape: of the result.
        deviation: standard deviation.
        dtype: of the result.
        device: of the result.
        key: makes keys that are used once; by default those of the operating system.
    """
    count = math.prod(shape)
    there = device if device.type == "cuda" else torch.device("cpu")
    drawn = torch.empty(count + count % 2, dtype=dtype, device=there)
    for part in drawn.split(BLOCKS * NUMBERS) if count else ():
        way(there.type)(part, (key or Key)(), deviation)
    return drawn[:count].view(shape).to(device)


@cache
def way(device: str) -> Callable[[torch.Tensor, Key, float], None]:
    """How places of a kind of device are filled; Triton also needs a compiler for C, which some images lack."""
    if device == "cpu":
        return on_processor
    try:
        from reticent.training.cipher_triton import by_triton

        by_triton(torch.empty(2, device=device), Key(), 1.0)
    except Exception:
        return by_torch
    return by_triton


def checked(first: int, blocks: int) -> None:
    """Raises ParameterError where the counter would come back to a block that it has been at."""
    if first + blocks > BLOCKS:
        raise ParameterError("blocks", first + blocks, "2^32 or fewer: a key counts no further")


def on_processor(drawn: torch.Tensor, key: Key, deviation: float) -> None:
    """Fill an even number of places on the processor, in the threads that torch has where that is worth it."""
    shares = min(torch.get_num_threads(), -(-len(drawn) // _SHARE))
    share = -(-len(drawn) // (shares * _PIECE)) * _PIECE
    parts = drawn.split(share)
    firsts = [number * share // NUMBERS for number in range(len(parts))]
    with ThreadPoolExecutor(shares) if shares > 1 else nullcontext() as pool:
        list((pool.map if pool else map)(lambda part, first: _fill(part, key, first, deviation), parts, firsts))


def _fill(drawn: torch.Tensor, key: Key, first: int, deviation: float) -> None:
    """The numbers from a block on."""
    stream = Stream(key, first)
    size = min(_PIECE, len(drawn))
    words, pairs = np.empty(size, dtype="<u8"), np.empty((3, size // 2))
    for part in drawn.split(_PIECE):
        whole, (radius, angle, spare) = stream.read(words[: len(part)]), pairs[:, : len(part) // 2]
        np.right_shift(whole, 11, out=whole)
        np.copyto(radius, whole[::2], casting="unsafe")
        np.copyto(angle, whole[1::2], casting="unsafe")
        _to_normal(np, radius, angle, spare, deviation)
        part[::2].copy_(torch.from_numpy(radius))
        part[1::2].copy_(torch.from_numpy(angle))


class Stream:
    """The stream of a key on the processor, from a block on."""

    def __init__(self, key: Key, first: int = 0) -> None:
        self._left = (BLOCKS - first) * NUMBERS
        self._cipher = Cipher(algorithms.ChaCha20(key.secret, struct.pack("<I", first) + key.nonce), None).encryptor()

    def read(self, words: np.ndarray) -> np.ndarray:
        """Fill an array with the next words of 64 bits."""
        self._left -= len(words)
        checked(0, BLOCKS - self._left // NUMBERS)
        self._cipher.update_into(_ZEROS[: words.nbytes], words.view(np.uint8).data)
        return words


_ZEROS = memoryview(bytes(8 * _PIECE))


def by_torch(drawn: torch.Tensor, key: Key, deviation: float) -> None:
    """Fill an even number of places by torch's operations, wherever they are."""
    for number, part in enumerate(drawn.split(BATCH * NUMBERS)):
        words = stream_by_torch(key, number * BATCH, -(-len(part) // NUMBERS), drawn.device)[: len(part)]
        whole = words >> 11 & (1 << 53) - 1
        radius, angle = whole.view(-1, 2).T.to(torch.float64)
        _to_normal(torch, radius, angle, torch.empty_like(angle), deviation)
        part[::2].copy_(radius)
        part[1::2].copy_(angle)


def stream_by_torch(key: Key, first: int, blocks: int, device: torch.device) -> torch.Tensor:
    """Words of 64 bits of some blocks, by adding, xor and rotation of words of 32 bits."""
    checked(first, blocks)
    *secret, n0, n1, n2 = key.words()
    words = torch.tensor([*CONSTANT, *secret, 0, n0, n1, n2], dtype=torch.int32)
    start = words.to(device, non_blocking=True)[:, None].repeat(1, blocks)
    start[12] = torch.arange(first, first + blocks, device=device).to(torch.int32)
    a, b, c, d = start.view(4, 4, blocks).clone().unbind()
    for _ in range(10):
        b, d = _quarter(a, b, c, d)
        b, c, d = b.roll(-1, 0), c.roll(-2, 0), d.roll(-3, 0)
        b, d = _quarter(a, b, c, d)
        b, c, d = b.roll(1, 0), c.roll(2, 0), d.roll(3, 0)
    return torch.cat([a, b, c, d]).add_(start).T.flatten().view(torch.int64)


def _quarter(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A quarter round of four columns at once; ``a`` and ``c`` change in place, ``b`` and ``d`` are returned."""
    for far, near in ((16, 12), (8, 7)):
        d = _turned(d ^ a.add_(b), far)
        b = _turned(b ^ c.add_(d), near)
    return b, d


def _turned(word: torch.Tensor, bits: int) -> torch.Tensor:
    return word << bits | word >> 32 - bits & (1 << bits) - 1


def _to_normal(of: Any, radius: Any, angle: Any, share: Any, deviation: float) -> None:
    """Turn pairs of numbers of 53 bits into pairs of normal numbers, in place (BOX1958).

    With t = tan(a / 2), r cos a = 2 r / (1 + t^2) - r and r sin a = 2 r t / (1 + t^2).

    Args:
        of: numpy or torch, whichever has the numbers.
        radius, angle, share: in double precision; what the last holds does not matter.
        deviation: standard deviation.
    """
    radius += 1.0
    radius *= SCALE  # of a number in (0, 1]
    of.log(radius, out=radius)
    radius *= -2.0
    of.sqrt(radius, out=radius)
    radius *= deviation
    angle *= math.pi * SCALE
    of.tan(angle, out=angle)
    of.multiply(angle, angle, out=share)
    share += 1.0
    share *= 0.5
    of.divide(radius, share, out=share)
    of.subtract(share, radius, out=radius)
    angle *= share
