"""Normal numbers from a stream cipher, drawn where they are wanted, with a key of the operating system for each call.

Two words of the cipher make a uniform number of 53 bits; two of these make two normal numbers by Box and Muller, in
double precision, and each is rounded once. The stream comes from OpenSSL on the processor, from Triton on a GPU, from
torch's own operations on a GPU without Triton. Equal keys give normal numbers that agree to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
import torch

from reticent.training.cipher import BLOCKS, NUMBERS, PIECE, SCALE, Key, Stream, stream_by_torch

_SHARE = 4 * PIECE
"""Numbers that are worth a thread."""
BATCH = 1 << 20
"""Blocks that torch's operations make at once, in 256 MiB."""


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


def on_processor(drawn: torch.Tensor, key: Key, deviation: float) -> None:
    """Fill an even number of places on the processor, in the threads that torch has where that is worth it."""
    shares = min(torch.get_num_threads(), -(-len(drawn) // _SHARE))
    share = -(-len(drawn) // (shares * PIECE)) * PIECE
    parts = drawn.split(share)
    firsts = [number * share // NUMBERS for number in range(len(parts))]
    with ThreadPoolExecutor(shares) if shares > 1 else nullcontext() as pool:
        list((pool.map if pool else map)(lambda part, first: _fill(part, key, first, deviation), parts, firsts))


def _fill(drawn: torch.Tensor, key: Key, first: int, deviation: float) -> None:
    """The numbers from a block on."""
    stream = Stream(key, first)
    size = min(PIECE, len(drawn))
    words, pairs = np.empty(size, dtype="<u8"), np.empty((3, size // 2))
    for part in drawn.split(PIECE):
        whole, (radius, angle, spare) = stream.read(words[: len(part)]), pairs[:, : len(part) // 2]
        np.right_shift(whole, 11, out=whole)
        np.copyto(radius, whole[::2], casting="unsafe")
        np.copyto(angle, whole[1::2], casting="unsafe")
        _to_normal(np, radius, angle, spare, deviation)
        part[::2].copy_(torch.from_numpy(radius))
        part[1::2].copy_(torch.from_numpy(angle))


def by_torch(drawn: torch.Tensor, key: Key, deviation: float) -> None:
    """Fill an even number of places by torch's operations, wherever they are."""
    for number, part in enumerate(drawn.split(BATCH * NUMBERS)):
        words = stream_by_torch(key, number * BATCH, -(-len(part) // NUMBERS), drawn.device)[: len(part)]
        whole = words >> 11 & (1 << 53) - 1
        radius, angle = whole.view(-1, 2).T.to(torch.float64)
        _to_normal(torch, radius, angle, torch.empty_like(angle), deviation)
        part[::2].copy_(radius)
        part[1::2].copy_(angle)


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
