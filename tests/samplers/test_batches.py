"""Batches are drawn as the ledger says."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy import stats

from reticent.kernel.errors import ParameterError
from reticent.kernel.samplers import Poisson, Sampler
from reticent.samplers import FixedSize, TruncatedPoisson
from reticent.training.randomness import SeededSource, Stream, SystemSource


def masks(sampler: Sampler, steps: int, size: int = 40, rate: float = 0.15, batch: int | None = None, source=None):
    source = source or SeededSource(7, Stream.SAMPLING)
    rows = np.zeros((steps, size), dtype=bool)
    for row, indices in zip(rows, islice(sampler.batches(source, size, rate, batch), steps), strict=True):
        assert np.all(np.diff(indices) > 0)
        row[indices] = True
    return rows


@pytest.mark.parametrize("source", [SeededSource(7, Stream.SAMPLING), SystemSource()], ids=["seeded", "system"])
def test_poisson_records_are_independent(source):
    steps, size, rate = 20_000, 40, 0.15
    drawn = masks(Poisson(), steps, size, rate, source=source)
    counts = drawn.sum(axis=0)
    frequency = np.sum((counts - steps * rate) ** 2) / (steps * rate * (1 - rate))
    assert stats.chi2.sf(frequency, size) > 1e-9
    centred = (drawn - rate) / np.sqrt(rate * (1 - rate))
    covariance = centred.T @ centred / steps
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 6.5 / np.sqrt(steps)
    assert np.abs(centred[1:].T @ centred[:-1] / steps).max() < 6.5 / np.sqrt(steps)
    # The size is binomial: a fixed size would have no variance, shuffled epochs hardly any.
    observed = np.bincount(drawn.sum(axis=1), minlength=size + 1)
    expected = steps * stats.binom.pmf(np.arange(size + 1), size, rate)
    keep = expected > 20
    assert stats.chi2.sf(np.sum((observed - expected)[keep] ** 2 / expected[keep]), keep.sum()) > 1e-9


class Fixed:
    """A source that returns what it is told."""

    def __init__(self, values) -> None:
        self.values = np.asarray(values)

    def uniform(self, size: int) -> np.ndarray:
        assert size == len(self.values)
        return self.values


@pytest.mark.parametrize("rate", [1e-7, 1e-4, 0.15])
def test_poisson_rates_are_not_rounded_to_single_precision(rate):
    """Uniforms in float32 know 2^24 values, which moves a rate of 1e-7 by up to a half."""
    source = Fixed([rate * (1 - 1e-12), rate * (1 + 1e-12)])
    assert next(Poisson().batches(source, 2, rate, None)).tolist() == [0]


@pytest.mark.parametrize("source", [SeededSource(1, Stream.SAMPLING), SystemSource()], ids=["seeded", "system"])
def test_uniforms_have_more_than_single_precision(source):
    assert np.mean((source.uniform(1_000) * 2.0**40) % 1.0 != 0.0) > 0.99


def test_poisson_with_rate_one_takes_everybody():
    assert masks(Poisson(), 3, rate=1.0).all()


def test_samplers_that_the_loop_does_not_draw_are_refused():
    with pytest.raises(
        ParameterError, match="sampler must be one of poisson, fixed-size, random-allocation, shuffled, cyclic"
    ):
        TruncatedPoisson(9).batches(SystemSource(), 40, 0.1, 4)


@pytest.mark.parametrize("batch", [None, 0, 41])
def test_a_batch_larger_than_the_data_is_refused(batch):
    with pytest.raises(ParameterError, match="batch_size must be a whole number from 1 to 40"):
        FixedSize().batches(SystemSource(), 40, 0.1, batch)
