"""A stream cipher in counter mode, ChaCha20 (RFC 8439), by OpenSSL and by torch's operations: equal keys, equal bits.

``cipher_triton`` has the same stream on a GPU. A key counts 2^32 blocks of sixteen words and no further.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field

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
PIECE = 1 << 16
"""Numbers that a processor makes at once; they stay in its cache."""


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A key and a nonce; by default of the operating system."""

    secret: bytes = field(default_factory=lambda: os.urandom(32))
    nonce: bytes = field(default_factory=lambda: os.urandom(12))

    def words(self) -> tuple[int, ...]:
        """Eight words of the key and three of the nonce, as signed numbers of 32 bits."""
        return struct.unpack("<11i", self.secret + self.nonce)


def checked(first: int, blocks: int) -> None:
    """Raises ParameterError where the counter would come back to a block that it has been at."""
    if first + blocks > BLOCKS:
        raise ParameterError("blocks", first + blocks, "2^32 or fewer: a key counts no further")


class Stream:
    """The stream of a key on the processor, from a block on."""

    def __init__(self, key: Key, first: int = 0) -> None:
        self._left = (BLOCKS - first) * NUMBERS
        self._cipher = Cipher(algorithms.ChaCha20(key.secret, struct.pack("<I", first) + key.nonce), None).encryptor()

    def read(self, words: np.ndarray) -> np.ndarray:
        """Fill an array with the next words of 64 bits; ``PIECE`` or fewer, as no more are ready to be encrypted."""
        if len(words) > PIECE:
            raise ParameterError("words", len(words), f"{PIECE} or fewer at once")
        self._left -= len(words)
        checked(0, BLOCKS - self._left // NUMBERS)
        self._cipher.update_into(_ZEROS[: words.nbytes], words.view(np.uint8).data)
        return words


_ZEROS = memoryview(bytes(8 * PIECE))


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
