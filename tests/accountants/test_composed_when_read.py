"""A worst case costs what is read of it: one number does not compose the curve, and composing it changes no number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks._rows import forget
from reticent.accountants.transform import SpectralComposition
from reticent.adversaries import Membership, Relaxed
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.kernel import risk
from reticent.kernel.accountants import Composed, certified_advantage, compose, worst_case
from reticent.kernel.accountants.one_direction import one_direction
from reticent.kernel.adversaries import WorstCase, assess
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.text import digits
from reticent.mechanisms import Laplace

RELATIONS = (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)
RUN = DPSGD(1.1, 0.02, 300)


@pytest.fixture
def nothing_is_composed(monkeypatch):
    """Composing a curve fails."""

    def fail(*_):
        raise AssertionError("the curve was composed")

    worst_case.cache_clear()
    monkeypatch.setitem(compose.__wrapped__.__globals__, "compose", fail)
    yield
    worst_case.cache_clear()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("attacker", [WorstCase(), Membership()])
def test_one_number_composes_nothing(nothing_is_composed, attacker, relation) -> None:
    lower, upper = certified_advantage(1.1, 0.02, 300, relation)
    found = attacker.assess(RUN, relation)
    advantage, security = found.measure(risk.advantage), found.measure(risk.bayes_security)
    assert (advantage.lower, advantage.value) == pytest.approx((lower, upper), rel=1e-12, abs=0)
    assert (security.value, security.upper) == pytest.approx((1.0 - upper, 1.0 - lower), rel=1e-12, abs=0)
    assert found.measure(lambda curve: risk.success(curve, 0.5)).value == pytest.approx(0.5 + 0.5 * upper, abs=1e-13)
    assert found.mu().value == pytest.approx(math.sqrt(300) / 1.1, rel=1e-12, abs=0)
    assert digits(upper, up=True) in repr(found)
    (alone,) = assess(RUN, [WorstCase()], relation)
    assert alone.measure(risk.advantage) == advantage


def test_a_calibration_and_its_worst_case_compose_nothing(nothing_is_composed) -> None:
    found = calibrate(RUN, NoiseMultiplier(), Advantage(0.1))
    assert found.worst_case() == found.achieved
    relaxed = calibrate(RUN, NoiseMultiplier(), Advantage(0.1), Membership())
    assert 0.1 * (1.0 - 1e-4) < relaxed.worst_case().value <= 0.1


def test_the_same_number_again_is_remembered(monkeypatch) -> None:
    """A report reads one power for itself and for what follows from it."""
    found = WorstCase().assess(RUN, Neighbouring.ADD_REMOVE)
    asked = ((risk.tpr_at_fpr, 1e-3), (risk.epsilon_at_delta, 1e-5), (risk.delta_at_epsilon, 1.0))
    first = [found.measure(number, at) for number, at in asked]

    def fail(*_):
        raise AssertionError("a contour was asked")

    monkeypatch.setattr(SpectralComposition, "delta", fail)
    monkeypatch.setattr(SpectralComposition, "points", fail)
    assert [found.measure(number, at) for number, at in asked] == first
    with pytest.raises(AssertionError, match="a contour"):
        found.measure(risk.tpr_at_fpr, 2e-3)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_number_depends_on_what_the_process_was_asked_before(relation) -> None:
    """A composed curve outlived the contours behind it: epsilon was known within 1e-6 then, and else within 1e-11."""
    asked = ((risk.epsilon_at_delta, 1e-5), (risk.tpr_at_fpr, 1e-3), (risk.delta_at_epsilon, 1.0), (risk.advantage,))

    def answers(order) -> list[float]:
        found = WorstCase().assess(RUN, relation)
        told = {number: found.measure(*number) for number in order}
        return [end for number in asked for end in (told[number].lower, told[number].upper)]

    forget()
    first = [*answers(asked), *Composed(RUN, relation).delta(1.0)]
    forget()
    compose(RUN, relation)
    for more in range(70):  # more than any cache holds
        Composed(DPSGD(3.0, 0.02, 10 + more), relation).delta(0.3)
    near = [Composed(RUN, relation).delta(epsilon) for epsilon in (0.9, 1.001, 1.0)]
    assert [*answers(asked[::-1]), *near[-1]] == pytest.approx(first, rel=1e-9, abs=0)


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_was_read_before_changes_no_number(relation) -> None:
    """The curve, once composed, encloses what was said without it; the advantage stays what it was."""
    worst_case.cache_clear()
    found = WorstCase().assess(RUN, relation)
    first = found.measure(risk.advantage)
    rate = found.measure(lambda curve: risk.tpr_at_fpr(curve, 0.01))
    assert found.measure(risk.advantage) == first
    curve = compose(RUN, relation)
    assert rate.value * (1.0 - 1e-12) <= risk.tpr_at_fpr(curve.pessimistic, 0.01) <= rate.value * (1.0 + 1e-5)
    assert rate.lower * (1.0 + 1e-12) >= risk.tpr_at_fpr(curve.optimistic, 0.01) >= rate.lower * (1.0 - 1e-5)
    polygon = float(curve.optimistic.delta(0.0)), float(curve.pessimistic.delta(0.0))
    assert polygon[0] <= first.lower <= first.value <= polygon[1] * (1.0 + 1e-9)
    assert found.notes == WorstCase().assess(RUN, relation).notes
    assert found.truth.trace == curve.trace


def test_the_point_at_threshold_zero_lies_on_the_curve() -> None:
    found = worst_case(RUN, Neighbouring.REPLACE).pessimistic
    rates = found.errors(np.zeros(2))
    alpha, beta = np.exp(rates.fpr), np.exp(rates.fnr)
    assert rates.fpr.shape == (2,)
    assert np.exp(rates.tpr) == pytest.approx(1.0 - beta, rel=1e-12, abs=0)
    assert 1.0 - alpha - beta == pytest.approx(found.delta(np.zeros(2)), rel=1e-13, abs=0)
    assert beta == pytest.approx(found.beta(alpha), rel=1e-7, abs=0)
    assert found.reversed.delta(0.0) == pytest.approx(found.delta(0.0), rel=1e-8, abs=0)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (DPSGD(0.04, 0.001, 100), "too little noise"),
        (DPSGD(0.5, 0.9, 50), ""),  # known to so few digits of its complement that the curve is better
        (Laplace(2.0, releases=3), ""),
    ],
)
def test_where_one_number_is_not_enough_the_curve_answers_and_says_why(run, reason) -> None:
    found, curve = worst_case(run, Neighbouring.ADD_REMOVE), compose(run, Neighbouring.ADD_REMOVE)
    assert getattr(found.pessimistic, "advantage", None) is None
    assert float(found.pessimistic.delta(0.0)) == pytest.approx(float(curve.pessimistic.delta(0.0)), rel=1e-9, abs=0)
    if reason:
        assert reason in found.trace[0].failure
        assert found.trace[1:] == curve.trace
    else:
        assert found.trace == curve.trace


def test_a_relaxed_risk_composes_the_worst_case_once(monkeypatch) -> None:
    """The attacker's own upper end and the worst case beside it are one composition."""
    run, calls = DPSGD(1.37, 0.013, 211), []
    names = one_direction.__wrapped__.__globals__
    enclosed = names["enclose"]
    monkeypatch.setitem(names, "enclose", lambda *a: calls.append(a) or enclosed(*a))
    for found in assess(run, [Relaxed()]):
        found.measure(lambda curve: risk.tpr_at_fpr(curve, 0.01))
        assert found.mu().upper >= 0.0
    assert len(calls) == 1
