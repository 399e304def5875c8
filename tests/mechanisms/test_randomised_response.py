"""Randomised response against the binomial laws that it comes down to.

Theorem: RETICENT:flipped-answer.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from reticent.kernel.accountants import compose
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ParameterError
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage
from reticent.mechanisms import RandomisedResponse


def binomial_delta(flip: float, releases: int, epsilon: float) -> float:
    """The number of yes answers is sufficient: sum of (Q - e^epsilon P)_+ over it, nothing else."""
    yes = np.arange(releases + 1)
    present, absent = binom.pmf(yes, releases, 1.0 - flip), binom.pmf(yes, releases, flip)
    return float(np.sum(np.maximum(present - np.exp(epsilon) * absent, 0.0)))


@pytest.mark.parametrize("relation", list(Neighbouring))
@pytest.mark.parametrize(("flip", "releases"), [(0.3, 1), (0.3, 2), (0.1, 5), (0.45, 40)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_it_is_the_binomial_experiment(flip, releases, epsilon, relation) -> None:
    bracket = compose(RandomisedResponse(flip, releases), relation)
    truth = binomial_delta(flip, releases, epsilon)
    lower, upper = float(bracket.optimistic.delta(epsilon)), float(bracket.pessimistic.delta(epsilon))
    assert lower - 1e-14 <= truth <= upper + 1e-14
    assert upper - lower < 1e-13
    assert bracket.notes == ()


def test_many_releases_are_composed_and_agree_with_the_binomial_law() -> None:
    bracket = compose(RandomisedResponse(0.49, 1500), Neighbouring.REPLACE)
    truth = binomial_delta(0.49, 1500, 0.5)
    assert float(bracket.optimistic.delta(0.5)) <= truth <= float(bracket.pessimistic.delta(0.5))


def test_the_ends_of_the_flip_probability() -> None:
    assert float(compose(RandomisedResponse(0.5, 9), Neighbouring.REPLACE).pessimistic.delta(0.0)) == 0.0
    assert float(compose(RandomisedResponse(0.0), Neighbouring.REPLACE).optimistic.delta(30.0)) == 1.0
    with pytest.raises(ParameterError, match="flip_probability"):
        RandomisedResponse(0.6)


@pytest.mark.parametrize("away", [5e-3, 1e-7, 5e-10, 1e-12, 1e-15, 1.2e-16])
@pytest.mark.parametrize("releases", [1, 7, 83])
def test_next_to_a_fair_coin_nothing_is_below_the_truth(away: float, releases: int) -> None:
    """The advantage is a difference of rates near 1/2 each: it was too small by 31% at the flip nearest to 1/2."""
    flip, found = 0.5 - away, WorstCase().assess(RandomisedResponse(0.5 - away, releases)).measure(advantage).value
    with mpmath.workdps(40):
        p, half = mpmath.mpf(flip), releases / 2
        more, n = (k for k in range(releases + 1) if k > half), releases
        exact = sum(mpmath.binomial(n, k) * ((1 - p) ** k * p ** (n - k) - p**k * (1 - p) ** (n - k)) for k in more)
        assert found / exact >= 1 - 1e-13
        assert away < 1e-9 or found / exact < 1 + 1e-6
