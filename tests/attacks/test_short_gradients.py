"""What a short gradient counts, alone and together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.attacks.short_gradients import NOISE, counts_alone

STEPS, RECORDS, SPARE = 64, 200, 20


def sums(rng, count=lambda part: 1.0, noise=NOISE):
    """Released sums: records of lengths .2 to .9 that take part at rate .05; ``count`` scales them by the batch."""
    part = rng.random((STEPS, RECORDS)) < 0.05
    found = noise * rng.standard_normal((STEPS, RECORDS + SPARE))
    found[:, :RECORDS] += part * rng.uniform(0.2, 0.9, RECORDS) * count(part)
    return found


@pytest.mark.parametrize("repeats", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_level_holds_without_rounding_and_with_it(repeats, monkeypatch):
    rng = np.random.default_rng(1)
    monkeypatch.setattr("reticent.attacks.short_gradients.ROUNDING", 0.0)
    exact = np.array([counts_alone(sums(rng), RECORDS, NOISE).p_value for _ in range(repeats)])
    for level in (0.01, 0.05, 0.2, 0.5, 0.8):
        low, high = stats.binom.ppf([0.005, 0.995], repeats, level)
        assert low <= (exact <= level).sum() <= high, level
    monkeypatch.undo()
    rounded = sums(rng)
    rounded[:, :RECORDS] *= 1.0 + 2.0**-9 * rng.choice([-1.0, 1.0], (STEPS, RECORDS))
    assert counts_alone(rounded, RECORDS, NOISE).p_value > 0.5


def test_what_the_batch_decides_is_found():
    rng = np.random.default_rng(2)
    by_size = sums(rng, lambda part: 10.0 / np.maximum(part.sum(axis=1, keepdims=True), 1))
    found = counts_alone(by_size, RECORDS, NOISE)
    assert found.p_value < 1e-12
    assert "on average" in found.finding
    odd = sums(rng, lambda part: 1.0 + 0.02 * (part.sum(axis=1, keepdims=True) % 2))
    assert counts_alone(odd, RECORDS, NOISE).p_value < 1e-6
    # What a record counts is its own affair, as long as it stays so.
    assert counts_alone(sums(rng, lambda part: np.linspace(0.3, 1.1, RECORDS)), RECORDS, NOISE).p_value > 0.01


def test_where_nothing_can_be_told_it_says_so():
    rng = np.random.default_rng(3)
    assert "told" in counts_alone(sums(rng, noise=5 * NOISE), RECORDS, NOISE).finding
    assert "twice" in counts_alone(NOISE * rng.standard_normal((STEPS, 220)), RECORDS, NOISE).finding
