"""The stream and the numbers of ``reticent.training.normals`` on a GPU, by Triton: one launch a call."""

from __future__ import annotations

import math
import struct

import torch
import triton
import triton.language as tl

from reticent.training.cipher import CONSTANT, NUMBERS, SCALE, Key, checked

_LANES = 256
"""Blocks of the cipher that one program of the grid makes."""
_SCALE, _TURN = tl.constexpr(SCALE), tl.constexpr(2.0 * math.pi * SCALE)
_C0, _C1, _C2, _C3 = map(tl.constexpr, CONSTANT)


def by_triton(drawn: torch.Tensor, key: Key, deviation: float) -> None:
    """Fill an even number of places of a device. Key and deviation travel as arguments of the kernel: nobody waits."""
    blocks = triton.cdiv(len(drawn), NUMBERS)
    checked(0, blocks)
    bits = struct.unpack("<2i", struct.pack("<d", deviation))  # an argument that is a number has 32 bits
    with torch.cuda.device_of(drawn):
        normal_kernel[(triton.cdiv(blocks, _LANES),)](
            drawn, len(drawn), *key.words(), *bits, LANES=_LANES, HALF=drawn.element_size() < 4
        )


@triton.jit(do_not_specialize=["count", *(f"k{i}" for i in range(8)), "n0", "n1", "n2", "low", "high"])
def normal_kernel(
    drawn, count, k0, k1, k2, k3, k4, k5, k6, k7, n0, n1, n2, low, high, LANES: tl.constexpr, HALF: tl.constexpr
):
    """Normal numbers of the blocks from 0 on, eight of each."""
    i = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    deviation = _joined(low.to(tl.uint32, bitcast=True), high.to(tl.uint32, bitcast=True)).to(tl.float64, bitcast=True)
    x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15 = block(
        i.to(tl.uint32), k0, k1, k2, k3, k4, k5, k6, k7, n0, n1, n2
    )
    _pair(drawn, count, 8 * i, x0, x1, x2, x3, deviation, HALF)
    _pair(drawn, count, 8 * i + 2, x4, x5, x6, x7, deviation, HALF)
    _pair(drawn, count, 8 * i + 4, x8, x9, x10, x11, deviation, HALF)
    _pair(drawn, count, 8 * i + 6, x12, x13, x14, x15, deviation, HALF)


@triton.jit
def block(counter, k0, k1, k2, k3, k4, k5, k6, k7, n0, n1, n2):
    """The sixteen words of each block."""
    k0, k1, k2, k3 = _word(counter, k0), _word(counter, k1), _word(counter, k2), _word(counter, k3)
    k4, k5, k6, k7 = _word(counter, k4), _word(counter, k5), _word(counter, k6), _word(counter, k7)
    n0, n1, n2, zero = _word(counter, n0), _word(counter, n1), _word(counter, n2), tl.zeros_like(counter)
    x0, x1, x2, x3, x4, x5, x6, x7 = zero + _C0, zero + _C1, zero + _C2, zero + _C3, k0, k1, k2, k3
    x8, x9, x10, x11, x12, x13, x14, x15 = k4, k5, k6, k7, counter, n0, n1, n2
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    x0, x1, x2, x3, x4, x5, x6, x7 = x0 + _C0, x1 + _C1, x2 + _C2, x3 + _C3, x4 + k0, x5 + k1, x6 + k2, x7 + k3
    x8, x9, x10, x11, x12, x13 = x8 + k4, x9 + k5, x10 + k6, x11 + k7, x12 + counter, x13 + n0
    return x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14 + n1, x15 + n2


@triton.jit
def _word(counter, word):
    """A word of the state for each block."""
    return tl.zeros_like(counter) + word.to(tl.uint32, bitcast=True)


@triton.jit
def _quarter(a, b, c, d):
    a += b
    d = _turned(d ^ a, 16)
    c += d
    b = _turned(b ^ c, 12)
    a += b
    d = _turned(d ^ a, 8)
    c += d
    b = _turned(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _turned(x, bits: tl.constexpr):
    return (x << bits) | (x >> (32 - bits))


@triton.jit
def _joined(low, high):
    return (high.to(tl.uint64) << 32) | low.to(tl.uint64)


@triton.jit
def _pair(drawn, count, place, a, b, c, d, deviation, HALF: tl.constexpr):
    """Two uniform numbers of 53 bits, and from them two normal ones (BOX1958)."""
    radius = (_joined(a, b) >> 11).to(tl.float64)
    angle = (_joined(c, d) >> 11).to(tl.float64) * _TURN
    radius = tl.sqrt(-2.0 * tl.log((radius + 1.0) * _SCALE)) * deviation
    _store(drawn, count, place, radius * tl.cos(angle), HALF)
    _store(drawn, count, place + 1, radius * tl.sin(angle), HALF)


@triton.jit
def _store(drawn, count, place, value, HALF: tl.constexpr):
    if HALF:  # as torch does; Triton 3.2 knows no other way
        value = value.to(tl.float32)
    tl.store(drawn + place, value.to(drawn.dtype.element_ty), mask=place < count)
