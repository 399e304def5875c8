"""Sums in blocks, so that each term takes part in few roundings in whatever order a library adds.

n terms that are added one by one take part in up to n roundings. BLAS may add them in any order, so no less can be
counted for it. Blocks of at least 64 and about sqrt(n) terms, summed each for itself and then added up, take part in
about 2 sqrt(n). A sum is off by at most half an eps for each counted rounding, times the sum of its terms' moduli.
"""

from __future__ import annotations

import math

import numpy as np

_BLOCK = 64  # terms, at least: shorter ones cost more calls than they save roundings


def _block(terms: int) -> int:
    return max(_BLOCK, math.isqrt(terms))


def roundings(terms: int, parts: int = 1) -> int:
    """Roundings that one term of ``products`` or ``weighted`` takes part in, at most, its own product included.

    Args:
        terms: how many are added.
        parts: real products for one term: 2 for either part of a complex sum.
    """
    block = _block(terms)
    return parts * min(terms, block) + max(-(-terms // block) - 1, 0)


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Rows times rows, summed over the last axis.

    Args:
        left: shape (..., m, n).
        right: shape (..., k, n).

    Returns:
        Shape (..., m, k).
    """
    terms, right = left.shape[-1], np.swapaxes(right, -1, -2)
    block = _block(terms)
    total: np.ndarray = np.matmul(left[..., :block], right[..., :block, :])
    for start in range(block, terms, block):
        end = start + block
        total += np.matmul(left[..., start:end], right[..., start:end, :])
    return total


def weighted(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rows times weights, summed over the last axis: shape (..., m) of (..., m, n) and (..., n)."""
    if weights.ndim == 1 and len(weights) <= _BLOCK:
        total: np.ndarray = rows @ weights  # one block
        return total
    return products(rows, weights[..., None, :])[..., 0]


def running(values: np.ndarray) -> np.ndarray:
    """Sums of all values up to each, as ``np.cumsum``; a term takes part in ``running_roundings`` roundings."""
    terms = len(values)
    block = _block(terms)
    whole = terms - terms % block
    blocks, rest = np.cumsum(values[:whole].reshape(-1, block), axis=1), np.cumsum(values[whole:])
    if whole:
        before = np.cumsum(blocks[:, -1])
        blocks[1:] += before[:-1, None]
        rest += before[-1]
    return np.concatenate([blocks.ravel(), rest])


def running_roundings(terms: int) -> int:
    """Roundings that one term of ``running`` takes part in, at most."""
    block = _block(terms)
    return min(terms, block) + terms // block
