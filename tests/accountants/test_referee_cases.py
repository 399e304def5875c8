"""Runs on which a referee found enclosures that crossed, lost tails, or took half a minute."""

from itertools import product

import numpy as np
import pytest

from reticent.accountants.bounds import CheapBounds, loudest_step
from reticent.accountants.compose import compose, worst_case
from reticent.accountants.lattice import Lattice
from reticent.accountants.one_direction import steps_of
from reticent.curves import GaussianTradeOff, Subsampled
from reticent.mechanisms import DPSGD, Laplace, Neighbouring
from reticent.risk import bayes_security, epsilon_at_delta, tpr_at_fpr
from tests.accountants.one_kind import steps
from tests.conftest import some

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
NET = np.concatenate([np.linspace(0.0, 60.0, 601), np.geomspace(61.0, 3000.0, 200)])


def test_epsilon_between_its_ends():
    bracket = compose(DPSGD(0.2, 0.001, 100), REPLACE)
    lower, upper = (epsilon_at_delta(curve, 1e-6) for curve in (bracket.optimistic, bracket.pessimistic))
    assert lower <= 38.51533 + 5e-6
    assert upper >= 38.51533 - 5e-6
    assert upper - lower < 0.01


def test_tails_of_an_ordinary_run():
    bracket = compose(DPSGD(1.56, 0.0302, 33), ADD)
    ends = bracket.optimistic, bracket.pessimistic
    assert [epsilon_at_delta(curve, 1e-5) for curve in ends] == pytest.approx([0.55639] * 2, abs=1e-5)
    assert [tpr_at_fpr(curve, 1e-6) for curve in ends] == pytest.approx([2.31748e-6] * 2, rel=1e-5, abs=0)
    assert [epsilon_at_delta(curve, 1e-14) for curve in ends] == pytest.approx([1.774078] * 2, rel=1e-5, abs=0)


@pytest.mark.parametrize(
    ("mechanism", "largest"),
    [
        (Laplace(0.5, 2), 4.0),
        (Laplace(1.0, 4), 4.0),
        (Laplace(1.0, 3, 0.2), 3 * float(np.log1p(0.2 * np.expm1(1.0)))),
    ],
)
def test_laplace_releases_end_at_their_pure_epsilon(mechanism, largest):
    bracket = compose(mechanism, ADD)
    assert epsilon_at_delta(bracket.pessimistic, 1e-14) <= largest * (1 + 1e-9)
    assert epsilon_at_delta(bracket.optimistic, 1e-5) > 0.7 * largest
    assert float(bracket.pessimistic.delta(largest * (1 + 1e-9))) == 0.0


NOTHING_HIDDEN = list(product([(0.2, 0.01, 10_000), (2.308, 0.1978, 46_796), (0.427, 0.0907, 8619)], [ADD, REPLACE]))


@pytest.mark.parametrize(("run", "neighbouring"), some(NOTHING_HIDDEN, 1, 2, 4))
def test_no_privacy_is_said_in_digits(monkeypatch, run, neighbouring):
    """Epsilon was known to lie in [1080, 1407]. Bayes security is far below the smallest gap."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a lattice was run")

    monkeypatch.setattr(Lattice, "answer", never)
    compose.cache_clear()
    bracket = worst_case(DPSGD(*run), neighbouring)
    for delta in (1e-5, 1e-6):
        lower, upper = (epsilon_at_delta(curve, delta) for curve in (bracket.optimistic, bracket.pessimistic))
        assert 0.0 <= upper - lower <= 1e-6 * upper
    secure = [bayes_security(curve) for curve in (bracket.pessimistic, bracket.optimistic)]
    assert secure[0] <= secure[1] <= secure[0] * (1.0 + 1e-6)


def test_loudest_step_keeps_rates_below_the_smallest_double_gap():
    """With 1 - alpha rounded to 1 it claimed false positive rate 0 at rates that attain 1e-20."""
    step = Subsampled(GaussianTradeOff(3.0), 1e-3)
    curve = loudest_step(steps(step, 10))
    for epsilon in (5.0, 15.0, 25.0):
        assert float(curve.delta(epsilon)) <= 10 * float(step.delta(epsilon)) * (1 + 1e-9)
    assert float(curve.delta(25.0)) > 0.0


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [
        (1.1, 0.01, 1000),
        (6.0, 1e-5, 50),
        pytest.param(1.0, 0.5, 4, marks=pytest.mark.slow),
        pytest.param(0.3, 0.001, 100, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_cheap_bounds_enclose(noise, rate, steps, relation):
    """From moments alone: above and below what composition encloses, and within a factor where it matters."""
    run = DPSGD(noise, rate, steps)
    kinds, _ = steps_of(run, relation)
    cheap = CheapBounds(kinds)
    bracket = compose(run, relation)
    truth = bracket.optimistic.log_delta(NET[:400])
    for curve in cheap.above():
        both = np.maximum(curve.log_delta(NET[:400]), curve.reversed.log_delta(NET[:400]))
        assert np.all(both >= truth - 1e-6)
    assert np.all(cheap.below().log_delta(NET[:400]) <= bracket.pessimistic.log_delta(NET[:400]) + 1e-6)
    deep = epsilon_at_delta(cheap.above()[0], 1e-12)
    assert deep < 2.0 * max(epsilon_at_delta(bracket.pessimistic, 1e-12), 1e-9)
