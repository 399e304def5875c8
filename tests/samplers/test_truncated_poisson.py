"""Poisson batches that are cut: all draws enumerated, both orders; Google's example; what some data set attains.

Theorems: RETICENT:truncated-dominance.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from reticent.kernel.accountants import compose
from reticent.kernel.accountants.compose import both_directions
from reticent.kernel.accountants.steps import Step
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.pairs import AntipodalGaussianPair, GaussianPair, Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.pairs import MixedPair
from reticent.samplers import TruncatedPoisson
from reticent.samplers.truncated_poisson import saturation

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT


def cut(noise: float, rate: float, records: int, most: int, steps: int = 1) -> DPSGD:
    return DPSGD(noise, rate, steps, sampler=TruncatedPoisson(most), dataset_size=records)


class TestDominance:
    def test_the_probabilities(self) -> None:
        share, kept = saturation(0.3, 40, 15)
        others = np.arange(40)
        weights = binom.pmf(others, 39, 0.3)
        assert share == pytest.approx(weights[15:].sum(), rel=1e-12, abs=0)
        full = (0.3 * weights * 15 / (others + 1))[15:].sum() / weights[15:].sum()
        assert kept == pytest.approx(full, rel=1e-12, abs=0)
        assert saturation(0.3, 40, 40) == (0.0, 0.3)
        assert saturation(1.0, 40, 10) == (1.0, 0.25)

    def test_a_cut_that_is_never_made(self) -> None:
        plain = DPSGD(1.0, 0.1, 10)
        assert cut(1.0, 0.1, 100, 100, 10).parts_under(ADD)[0].pair == plain.parts_under(ADD)[0].pair

    def test_without_noise(self) -> None:
        run = cut(0.0, 0.5, 4, 2)
        assert advantage(compose(run, ADD).pessimistic) == pytest.approx(0.5 * 0.5 + 0.5 * 0.3125, rel=1e-12, abs=0)


def test_the_example_of_dp_accounting() -> None:
    """Three steps of one data set and two of another: its own, looser pair has its own value, 17.904330."""
    theirs = []
    for records, steps in ((4, 3), (3, 2)):
        share, rate = saturation(0.5, records, 2)
        pair = MixedPair(GaussianPair(1.0, 0.5, 1.0), AntipodalGaussianPair(0.5, rate), share)
        theirs.append(Step(pair, steps))
    found = both_directions(tuple(theirs), 0.0, False)
    low, high = (epsilon_at_delta(curve, 1e-6) for curve in (found.optimistic, found.pessimistic))
    assert low < 17.904330 < high
    assert high - low < 2e-5
    ours = compose(Ledger((cut(1.0, 0.5, 4, 2, 3), cut(1.0, 0.5, 3, 2, 2))), ADD).pessimistic
    assert epsilon_at_delta(ours, 1e-6) == pytest.approx(16.45651, abs=2e-5)
