"""A stated epsilon and delta: the curve of randomised response, and compositions that are known.

Theorem: DONG2022:Proposition 2.5.
"""

from __future__ import annotations

import math

import pytest

from reticent.accountants import compose
from reticent.errors import ParameterError
from reticent.mechanisms import Guarantee, Neighbouring, RandomisedResponse
from reticent.risk import advantage, epsilon_at_delta

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


def test_nothing_is_stated_to_be_shown() -> None:
    assert Guarantee(0.0).parts_under(ADD) == ()
    assert advantage(compose(Guarantee(0.0, 0.1), ADD).pessimistic) == pytest.approx(0.1, rel=1e-12, abs=0)


@pytest.mark.parametrize("fields", [(-1.0, 0.0), (math.nan, 0.0), (1.0, 1.0), (1.0, -0.1), (700.0, 0.0), (1.0, 0.0, 0)])
def test_bad_input(fields: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError):
        Guarantee(*fields)
