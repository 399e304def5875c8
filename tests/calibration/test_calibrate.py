"""Calibration: the answer is safe, its neighbour is not, and other libraries agree on the risk there."""

from __future__ import annotations

import math

import pytest

from reticent.adversaries import Membership, Relaxed
from reticent.calibration import (
    Advantage,
    BatchSize,
    BayesSecurity,
    EpsilonAtDelta,
    Mu,
    NoiseMultiplier,
    Ppv,
    Recovered,
    SampleRate,
    Secret,
    Steps,
    Success,
    Target,
    TprAtFpr,
    UnreachableError,
    calibrate,
)
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import RandomisedResponse

pytestmark = pytest.mark.usefixtures("coarse")

RUN = DPSGD(1.0, 0.01, 1000)
TARGETS = [
    Advantage(0.1),
    BayesSecurity(0.9),
    Success(0.6, 0.5),
    TprAtFpr(0.01, 0.001),
    EpsilonAtDelta(1.0, 1e-5),
    Mu(0.5),
    Recovered(0.05, 0.02),
    Ppv(0.35, 0.1, 0.01),
]


ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE


@pytest.mark.parametrize(
    ("run", "target", "relation"),
    [
        *((RUN, target, ADD) for target in (TARGETS[0], TARGETS[3], TARGETS[4], TARGETS[5], TARGETS[7])),
        *((RUN, target, REPLACE) for target in TARGETS[4:6]),
        (DPSGD(1.0, 0.05, 500), Success(0.85, 0.8), ADD),  # the best threshold is below 0
        (DPSGD(1.0, 0.004, 60), Advantage(0.02), ADD),  # few steps are sampled, and the curve answers
        (DPSGD(1.0, 0.3, 1000), BayesSecurity(1e-6), Neighbouring.ZERO_OUT),
        (RUN, Advantage(1e-5), ADD),
    ],
    ids=str,
)
def test_worst_case_targets_are_met_and_tight(run: DPSGD, target: Target, relation: Neighbouring) -> None:
    """The re-evaluated risk keeps the target, is enclosed by what was claimed, and a little less noise does not do."""
    answer = calibrate(run, NoiseMultiplier(), target, None, relation)
    again = target.of(WorstCase().assess(answer.mechanism, relation))
    assert target.met_by(again.value)
    assert again.value == pytest.approx(answer.achieved.value, rel=1e-4, abs=0)
    assert answer.achieved.lower <= again.upper
    assert again.lower <= answer.achieved.upper
    assert answer.slack <= 1e-4
    louder = NoiseMultiplier().put(run, answer.value * (1 - 1e-4))
    assert not target.met_by(target.of(WorstCase().assess(louder, relation)).value)


def test_replace_needs_more_noise() -> None:
    values = [calibrate(RUN, NoiseMultiplier(), Advantage(0.1), None, n).value for n in Neighbouring]
    assert values[1] > 1.5 * values[0]
    assert values[2] == values[0]


@pytest.mark.parametrize(
    ("rate", "steps", "target"),
    [
        (0.0011211702347493674, 46, Advantage(0.06038460515501551)),
        (0.0035181978412669617, 199, BayesSecurity(0.4499489384614017)),
    ],
)
def test_plateaus_of_small_noise_do_not_stop_the_search(rate: float, steps: int, target: Target) -> None:
    """Without noise the bound is 1 - (1-p)^T, within the target: the answer is the least noise allowed."""
    how = Membership(), REPLACE, Method.PROVEN
    answer = calibrate(DPSGD(1.0, rate, steps), NoiseMultiplier(), target, *how)
    assert answer.value == pytest.approx(NoiseMultiplier().low, rel=1e-9, abs=0)
    assert answer.slack == 0.0
    sampled = 1 - (1 - rate) ** steps
    assert target.met_by(sampled if isinstance(target, Advantage) else 1 - sampled)


def test_another_accountant_agrees() -> None:
    """dp_accounting's PLD at the calibrated noise gives the epsilon that was asked for."""
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    answer = calibrate(RUN, NoiseMultiplier(), EpsilonAtDelta(1.0, 1e-5))
    event = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(answer.value))
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_event.SelfComposedDpEvent(event, 1000))
    assert accountant.get_epsilon(1e-5) == pytest.approx(1.0, rel=1e-3, abs=0)


@pytest.mark.parametrize(
    ("release", "unknown", "target", "most"),
    [
        (RUN, Steps(), Advantage(0.1), 20),
        (DPSGD(1.0, 0.01, 1000, dataset_size=50_000), BatchSize(), Advantage(0.1), 20),
        (RUN, SampleRate(), Advantage(0.1), 20),
        (Gaussian(10.0), Steps(), EpsilonAtDelta(2.0, 1e-6), 20),
        # Far from the start, and nothing steers: 38 claims where the search doubled its steps and halved.
        (RandomisedResponse(0.4999), Steps(), Advantage(0.1), 10),
    ],
    ids=["steps", "batch", "rate", "releases", "far"],
)
def test_whole_numbers_stop_just_before_the_edge(release, unknown, target: Target, most: int) -> None:
    """And a rate at most so far before it."""
    answer = calibrate(release, unknown, target)
    assert answer.evaluations <= most
    assert answer.value == round(answer.value) or not unknown.whole
    for found in (answer.achieved, target.of(WorstCase().assess(answer.mechanism))):
        assert target.met_by(found.value)
    following = unknown.put(release, answer.value + 1 if unknown.whole else answer.value * (1 + 2e-4))
    assert not target.met_by(target.of(WorstCase().assess(following)).value)


def test_published_noise_is_too_small_and_the_exact_one_is_not() -> None:
    """CHERUBIN2024:B1 and CHERUBIN2024:B3: noise from Equation 4 leaves more risk than asked for."""
    run, target = DPSGD(1.0, 1e-3, 5000), BayesSecurity(0.96)
    printed, exact = (
        calibrate(run, NoiseMultiplier(), target, Membership(), REPLACE, how)
        for how in (Method.PUBLISHED, Method.EXACT)
    )
    assert target.of(WorstCase().assess(printed.mechanism, REPLACE)).upper < 0.96
    assert exact.value > printed.value
    assert exact.achieved.lower >= 0.96 - 1e-6


def test_unreachable_targets_say_what_is_closest() -> None:
    with pytest.raises(UnreachableError, match="out of reach") as caught:
        calibrate(Gaussian(0.5), Steps(), Advantage(0.1))
    assert caught.value.closest == 1
    assert caught.value.achieved == pytest.approx(float(GaussianTradeOff(2.0).delta(0.0)), rel=1e-12, abs=0)
    with pytest.raises(UnreachableError) as caught:
        calibrate(DPSGD(1.0, 0.1, 1000), NoiseMultiplier(low=0.5, high=2.0), Advantage(0.1))
    assert caught.value.closest == pytest.approx(2.0, rel=1e-6, abs=0)
    assert caught.value.achieved > 0.1


def test_targets_met_everywhere_return_the_end_of_the_range() -> None:
    answer = calibrate(Gaussian(20.0), Steps(high=20), Advantage(0.9))
    assert (answer.value, answer.slack) == (20, 0.0)


def test_what_has_no_bound_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="bounds nobody who guesses a secret or recovers a record"):
        calibrate(RUN, NoiseMultiplier(), Recovered(0.1, 0.01), Relaxed())
    with pytest.raises(UnsupportedError, match="sample_rate"):
        calibrate(Gaussian(1.0), SampleRate(), Advantage(0.1))
    with pytest.raises(ParameterError, match="dataset_size"):
        calibrate(RUN, BatchSize(), Advantage(0.1))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Advantage, (0.0,)),
        (BayesSecurity, (1.0,)),
        (Success, (0.5, 0.5)),
        (TprAtFpr, (0.01, 0.01)),
        (EpsilonAtDelta, (0.0, 1e-5)),
        (Mu, (-1.0,)),
        (Recovered, (0.01, 0.5)),
        (Ppv, (0.1, 0.1, 0.01)),
        (Ppv, (0.95, 0.1, 0.01)),
        (Ppv, (0.2, 0.1, 0.0)),
        (NoiseMultiplier, (2.0, 1.0)),
        (SampleRate, (0.1, 1.5)),
    ],
)
def test_limits_are_checked(kind: type, arguments: tuple) -> None:
    with pytest.raises(ParameterError):
        kind(*arguments)


@pytest.mark.parametrize(
    "target", [*TARGETS, Success(0.9, 0.55), EpsilonAtDelta(1.0, 0.01), Secret(0.01, 13.3, 10)], ids=str
)
def test_equivalent_mu_inverts_the_gaussian_risk(target: Target) -> None:
    for mu in (0.05, 0.4, 1.7, 8.0):
        achieved = target.measure(GaussianTradeOff(mu))
        assert target.of_mu(mu) == pytest.approx(achieved, rel=1e-9, abs=0)
        if 0.0 < achieved < math.inf:
            assert target.equivalent_mu(achieved) == pytest.approx(mu, rel=1e-8, abs=0)
