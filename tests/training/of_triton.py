"""Run where Triton is: its blocks against RFC 8439, its numbers against torch's operations. Interpreted, or on a GPU.

``TRITON_INTERPRET=1 python tests/training/of_triton.py cpu``
"""

from __future__ import annotations

import sys

import numpy as np
import torch
import triton
import triton.language as tl

from reticent.kernel.errors import ParameterError
from reticent.training import cipher, cipher_triton, normals
from reticent.training.cipher import Key

block = cipher_triton.block


@triton.jit(do_not_specialize=["first", *(f"k{i}" for i in range(8)), "n0", "n1", "n2"])
def words_kernel(out, first, k0, k1, k2, k3, k4, k5, k6, k7, n0, n1, n2, N: tl.constexpr):
    i = tl.arange(0, N)
    found = block((i + first).to(tl.uint32, bitcast=True), k0, k1, k2, k3, k4, k5, k6, k7, n0, n1, n2)
    for k in tl.static_range(16):
        tl.store(out + 16 * i + k, found[k].to(tl.int32, bitcast=True))


def words(key: Key, first: int, blocks: int, device: torch.device) -> np.ndarray:
    """Some blocks of the stream, a power of two."""
    out = torch.empty(16 * blocks, dtype=torch.int32, device=device)
    words_kernel[(1,)](out, int(np.uint32(first).astype(np.int32)), *key.words(), N=blocks)
    return out.cpu().numpy().view(np.uint64)


def main(device: torch.device) -> None:
    """Fails where a bit differs."""
    print(words(Key(bytes(range(32)), bytes.fromhex("000000090000004a00000000")), 1, 1, device).tobytes().hex())
    print(words(Key(bytes(range(32)), bytes.fromhex("000000000000004a00000000")), 1, 2, device).tobytes().hex())
    key, last = Key(), (1 << 32) - 4
    for first in (0, 4096, last):
        other = cipher.stream_by_torch(key, first, 4, device).cpu().numpy()
        assert np.array_equal(words(key, first, 4, device).view(np.int64), other), first
    for count in (2, 4098):
        drawn, other = (torch.empty(count, dtype=torch.float64, device=device) for _ in range(2))
        cipher_triton.by_triton(drawn, key, 3.0)
        normals.by_torch(other, key, 3.0)
        assert torch.allclose(drawn, other, rtol=0.0, atol=1e-13), float((drawn - other).abs().max())
        for kind in (torch.float32, torch.bfloat16, torch.float16):
            rounded = torch.empty(count, dtype=kind, device=device)
            cipher_triton.by_triton(rounded, key, 3.0)
            assert torch.allclose(rounded.double(), drawn, rtol=torch.finfo(kind).eps, atol=1e-13)
    cipher.BLOCKS = 4
    try:
        cipher_triton.by_triton(torch.empty(34, device=device), key, 1.0)
    except ParameterError:
        return
    raise AssertionError("a counter came back")


if __name__ == "__main__":
    main(torch.device(sys.argv[1]))
