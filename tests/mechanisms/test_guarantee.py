"""A stated epsilon and delta: the curve of randomised response, and compositions that are known.

Theorem: DONG2022:Proposition 2.5.
"""

from __future__ import annotations

import math

import mpmath
import pytest

from reticent.kernel.accountants import compose, mu_limits
from reticent.kernel.errors import ParameterError
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.mechanisms import Guarantee, OneOf, RandomisedResponse

ADD = Neighbouring.ADD_REMOVE


def test_one_release_is_what_was_stated() -> None:
    found = compose(Guarantee(1.0, 1e-3), ADD)
    assert float(found.pessimistic.delta(1.0)) == pytest.approx(1e-3, rel=1e-9, abs=0)
    assert epsilon_at_delta(found.pessimistic, 1.001e-3) == pytest.approx(1.0, rel=1e-4, abs=0)
    assert float(found.pessimistic.delta(0.0)) == pytest.approx(1e-3 + (1.0 - 1e-3) * math.tanh(0.5), rel=1e-12, abs=0)
    assert advantage(found.optimistic) == 0.0


def test_pure_releases_are_randomised_responses() -> None:
    """Nothing that is epsilon-DP is worse: flips of the same epsilon."""
    stated = compose(Guarantee(0.8, releases=5), ADD).pessimistic
    flips = compose(RandomisedResponse(1.0 / (1.0 + math.exp(0.8)), 5), ADD).optimistic
    for epsilon in (0.0, 0.5, 2.0, 3.9):
        assert float(stated.delta(epsilon)) == pytest.approx(float(flips.delta(epsilon)), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("delta", [1e-5, 3.3e-14, 1e-17, 1e-300])
def test_a_small_delta_is_not_rounded_away(delta: float) -> None:
    """1 - 3.3e-14 as a float states 3.297e-14, and 1 - 1e-17 states 0."""
    for epsilon in (0.03, 1.0, 40.0):
        found = compose(Guarantee(epsilon, delta), ADD).pessimistic
        assert float(found.delta(epsilon)) == pytest.approx(delta, rel=1e-12, abs=0)
        assert float(found.power(0.0)) == pytest.approx(delta, rel=1e-12, abs=0)


def _mu_where_both_errors_are(tail: mpmath.mpf) -> float:
    """2 Phi^-1(1 - tail), which 1 - 1e-16 has not in its digits."""
    wanted = mpmath.log(tail)
    half = mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(-z)) - wanted, (0.1, 12.0), solver="anderson", tol=1e-40)
    return float(2 * half)


@pytest.mark.parametrize("epsilon", [1.0, 25.0, 30.0, 34.0, 35.0, 36.3, 36.7, 40.0])
def test_mu_of_a_large_epsilon(epsilon: float) -> None:
    with mpmath.workdps(50):
        truth = _mu_where_both_errors_are(1 / (1 + mpmath.exp(mpmath.mpf(epsilon))))
    for release in (Guarantee(epsilon), RandomisedResponse(1.0 / (1.0 + math.exp(epsilon)))):
        assert mu_limits(release, ADD)[1] == pytest.approx(truth, rel=1e-9, abs=0)


@pytest.mark.parametrize("epsilons", [(36.76, 36.44), (31.0, 30.7), (2.0, 1.9)])
def test_mu_of_one_of_two_large_epsilons(epsilons: tuple[float, float]) -> None:
    """It is decided where both errors are the mean of those of the two."""
    with mpmath.workdps(50):
        truth = _mu_where_both_errors_are(sum(1 / (1 + mpmath.exp(mpmath.mpf(one))) for one in epsilons) / 2)
    found = mu_limits(OneOf(tuple(map(Guarantee, epsilons)), (1, 1)), ADD)[1]
    assert truth * (1.0 - 1e-12) <= found <= truth * (1.0 + 1e-4)


@pytest.mark.parametrize("fields", [(-1.0, 0.0), (math.nan, 0.0), (1.0, 1.0), (1.0, -0.1), (700.0, 0.0), (1.0, 0.0, 0)])
def test_bad_input(fields: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError):
        Guarantee(*fields)
