"""Sums in blocks: the roundings that are stated are counted by machine, in the order that has the most of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from reticent.kernel.curves.sums import products, roundings, running, running_roundings, weighted

LENGTHS = [1, 2, 63, 64, 65, 128, 129, 200, 1023, 1024, 1100, 5000]


@dataclass(frozen=True)
class Rounded:
    """A number that remembers in how many roundings its most rounded term took part."""

    count: int = 0

    def __mul__(self, other: Rounded) -> Rounded:
        return Rounded(max(self.count, other.count) + 1)

    def __add__(self, other: Rounded) -> Rounded:
        return Rounded(max(self.count, other.count) + 1)


def rounded(*shape: int) -> np.ndarray:
    found = np.empty(shape, dtype=object)
    found[...] = Rounded()
    return found


@pytest.mark.parametrize("terms", LENGTHS)
def test_no_term_takes_part_in_more_roundings_than_stated(terms: int) -> None:
    """Of objects the products are added one after the other, which is the worst order within a block."""
    found = max(one.count for one in products(rounded(2, terms), rounded(3, terms)).ravel())
    assert found <= roundings(terms) <= found + 1
    assert max(one.count for one in weighted(rounded(2, terms), rounded(terms))) == found
    assert roundings(terms, parts=2) >= 2 * min(terms, 64)


@pytest.mark.parametrize("terms", LENGTHS)
def test_running_sums_take_part_in_no_more_than_stated(terms: int) -> None:
    """Python's sum of objects in the blocks that ``running`` makes: ``np.cumsum`` adds one after the other."""
    found = max(one.count for one in running(rounded(terms)))
    assert found <= running_roundings(terms) <= found + 2


def test_few_roundings_for_many_terms() -> None:
    assert roundings(10_000) <= 200
    assert running_roundings(2**20) <= 2100


@pytest.mark.parametrize("terms", [65, 1100])
def test_they_are_the_sums(terms: int) -> None:
    rng = np.random.default_rng(terms)
    left, right = rng.standard_normal((4, terms)), rng.standard_normal((3, terms))
    exact = [[sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)) for b in right] for a in left]
    size = np.abs(left) @ np.abs(right).T
    off = np.abs(products(left, right) - np.array(exact, dtype=float))
    assert np.all(off <= (0.5 * roundings(terms) + 1.0) * 2.0**-52 * size)
    assert weighted(left, right[0]) == pytest.approx(products(left, right)[:, 0], rel=1e-12, abs=0)
    positive = np.abs(left[0])
    assert running(positive) == pytest.approx(np.cumsum(positive), rel=1e-12, abs=0)


def test_several_laws_at_once() -> None:
    rng = np.random.default_rng(3)
    rows, weights = rng.standard_normal((5, 4, 70)), rng.standard_normal((5, 70))
    assert weighted(rows, weights) == pytest.approx(np.einsum("lmn,ln->lm", rows, weights), rel=1e-11, abs=0)
