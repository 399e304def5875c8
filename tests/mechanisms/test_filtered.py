"""The Gaussian filter against simulation, and the natural filter against enumeration.

Theorem: SMITH2022:Theorem 1.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.kernel.accountants import compose
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import FilteredGaussian, GaussianFilter, Laplace


def test_the_budget_is_a_sum_of_squares() -> None:
    keeper = GaussianFilter(1.0)
    assert keeper.admit(Gaussian(2.0, releases=3))
    assert not keeper.admit(Gaussian(1.9))
    assert keeper.least_noise == 2.0
    assert keeper.admit(Ledger((Gaussian(2.0),)))
    assert (keeper.left, keeper.least_noise) == (0.0, math.inf)
    assert keeper.mechanism == FilteredGaussian(1.0)


def test_no_rounding_spends_more_than_the_budget() -> None:
    """Summed as fractions, what was admitted is within the budget; the least noise fits, and less does not."""
    for budget in (0.1, 1.0, 1.0 / 3.0, 7e-9):
        keeper, spent = GaussianFilter(budget), Fraction(0)
        for noise in (math.sqrt(10.0 / budget), math.sqrt(3.0 / budget), 1.7 / math.sqrt(budget)):
            for _ in range(4):
                spent += 1 / Fraction(noise) ** 2 if keeper.admit(Gaussian(noise)) else 0
        least = keeper.least_noise
        assert not keeper.admit(Gaussian(least * (1.0 - 1e-15)))
        assert keeper.admit(Gaussian(least))
        assert 0.999999 * Fraction(budget) < spent + 1 / Fraction(least) ** 2 <= Fraction(budget)
    keeper = GaussianFilter(1.0)
    assert keeper.admit(Gaussian(1e25))  # costs less than any digit of a float beside 1
    assert not keeper.admit(Gaussian(1.0))


def test_what_everything_admitted_amounts_to() -> None:
    for relation in Neighbouring:
        one, many = compose(FilteredGaussian(0.25), relation), compose(Gaussian(4.0, 4), relation)
        np.testing.assert_allclose(one.pessimistic.delta([0.0, 1.0]), many.pessimistic.delta([0.0, 1.0]), rtol=1e-12)


def test_an_analyst_who_reacts_gains_nothing() -> None:
    """Simulated: after a promising first result the rest of the budget is spent at once, else never."""
    rng, runs = np.random.default_rng(7), 400_000
    loss = {}
    for present in (0.0, 1.0):
        first = present / 2.0 + rng.standard_normal(runs)  # noise 2: 1/4 of the budget 1
        spend = first > 0.3
        second = present * math.sqrt(0.75) + rng.standard_normal(runs)
        loss[present] = first / 2.0 - 0.125 + np.where(spend, second * math.sqrt(0.75) - 0.375, 0.0)
    for epsilon in (0.0, 0.5, 1.0):
        seen = np.mean(loss[1.0] > epsilon) - math.exp(epsilon) * np.mean(loss[0.0] > epsilon)
        assert seen < ndtr(0.5 - epsilon) - math.exp(epsilon) * ndtr(-0.5 - epsilon) + 0.005


def test_the_natural_filter_does_not_hold() -> None:
    """TRAN2026:F1: both plans keep delta at 1.1 below a limit; the choice by the first answer does not."""
    first = np.array([2.0, 1.0]) / 3.0, np.array([1.0, 2.0]) / 3.0  # absent, present: answers no, yes
    odds = math.exp(1.0)
    answer = np.array([odds, 1.0, 0.0]) / (1.0 + odds), np.array([1.0, odds, 0.0]) / (1.0 + odds)
    chance = np.array([0.9, 0.1, 0.0]), np.array([0.9, 0.0, 0.1])

    def delta(after_no, after_yes) -> float:
        total = 0.0
        for seen, second in enumerate((after_no, after_yes)):
            gain = first[1][seen] * second[1] - math.exp(1.1) * first[0][seen] * second[0]
            total += float(np.maximum(gain, 0.0).sum())
        return total

    plans = [delta(*plan) for plan in itertools.product((answer, chance), repeat=2)]
    fixed = max(delta(answer, answer), delta(chance, chance))
    assert delta(chance, answer) > 1.05 * fixed
    assert max(plans) == delta(chance, answer)


@pytest.mark.parametrize("release", [DPSGD(1.0, 0.01, 10), Laplace(2.0), Gaussian(0.0)], ids=lambda one: one.name)
def test_other_releases_are_refused_by_name(release) -> None:
    with pytest.raises(UnsupportedError, match=r"natural f-DP filter.*TRAN2026:F1"):
        GaussianFilter(1.0).admit(release)


def test_bad_budgets() -> None:
    for budget in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ParameterError):
            GaussianFilter(budget)
