"""Calibration: the answer is safe, its neighbour is not, and other libraries agree on the risk there."""

from __future__ import annotations

import math
from dataclasses import replace

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
from reticent.mechanisms import Laplace, RandomisedResponse
from tests.conftest import some

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


def check(run: DPSGD, target: Target, neighbouring: Neighbouring) -> None:
    """The re-evaluated risk keeps the target, is enclosed by what was claimed, and a little less noise does not do."""
    answer = calibrate(run, NoiseMultiplier(), target, None, neighbouring)
    again = target.of(WorstCase().assess(answer.mechanism, neighbouring))
    assert target.met_by(again.value)
    assert again.value == pytest.approx(answer.achieved.value, rel=1e-4, abs=0)
    assert answer.achieved.lower <= again.upper
    assert again.lower <= answer.achieved.upper
    assert answer.achieved.upper - answer.achieved.lower <= 5e-5 * target.value
    assert answer.slack <= 1e-4
    louder = NoiseMultiplier().put(run, answer.value * (1 - 1e-4))
    assert not target.met_by(target.of(WorstCase().assess(louder, neighbouring)).value)


ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
EACH = [
    *((RUN, target, ADD) for target in TARGETS),
    *((RUN, target, REPLACE) for target in TARGETS[:7]),
    *((DPSGD(1.0, 0.05, 500), t, ADD) for t in (Success(0.85, 0.8), TprAtFpr(0.6, 0.4), Recovered(0.9, 0.3))),
    *((DPSGD(1.0, 0.004, 60), t, ADD) for t in (Advantage(0.02), EpsilonAtDelta(3.0, 1e-6), TprAtFpr(0.02, 0.001))),
]
"""In both relations; where the best threshold is below 0; where few steps are sampled, and the curve answers."""


@pytest.mark.parametrize(("run", "target", "relation"), some(EACH, 0, 3, 4, 5, 7, 12, 13, 15, 18), ids=str)
def test_worst_case_targets_are_met_and_tight(run: DPSGD, target: Target, relation: Neighbouring) -> None:
    check(run, target, relation)


def test_replace_needs_more_noise() -> None:
    values = [calibrate(RUN, NoiseMultiplier(), Advantage(0.1), None, n).value for n in Neighbouring]
    assert values[1] > 1.5 * values[0]
    assert values[2] == values[0]


@pytest.mark.parametrize(
    ("rate", "steps", "target"),
    [
        (0.0011211702347493674, 46, Advantage(0.06038460515501551)),
        (0.0021067717744601144, 131, BayesSecurity(0.7500824434377608)),
        (0.0035181978412669617, 199, BayesSecurity(0.4499489384614017)),
    ],
)
def test_plateaus_of_small_noise_do_not_stop_the_search(rate: float, steps: int, target: Target) -> None:
    """Without noise the bound is 1 - (1-p)^T, within the target: the answer is the least noise allowed."""
    answer = calibrate(
        DPSGD(1.0, rate, steps), NoiseMultiplier(), target, Membership(), Neighbouring.REPLACE, Method.PROVEN
    )
    assert answer.value == pytest.approx(NoiseMultiplier().low, rel=1e-9, abs=0)
    assert answer.slack == 0.0
    sampled = 1 - (1 - rate) ** steps
    assert target.met_by(sampled if isinstance(target, Advantage) else 1 - sampled)


@pytest.mark.parametrize(
    ("run", "target", "relation"),
    [
        (DPSGD(1.0, 0.3, 1000), BayesSecurity(1e-6), Neighbouring.ZERO_OUT),
        (RUN, Advantage(1e-5), Neighbouring.ADD_REMOVE),
        pytest.param(RUN, TprAtFpr(1.001e-3, 1e-3), Neighbouring.ADD_REMOVE, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_targets_at_the_ends_of_their_range(run: DPSGD, target: Target, relation: Neighbouring) -> None:
    answer = calibrate(run, NoiseMultiplier(), target, None, relation)
    again = WorstCase().assess(answer.mechanism, relation).measure(target.measure).value
    assert target.met_by(again)
    louder = NoiseMultiplier().put(run, answer.value * (1 - 1e-4))
    assert not target.met_by(WorstCase().assess(louder, relation).measure(target.measure).value)


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
    ("run", "unknown", "target"),
    [
        (RUN, Steps(), Advantage(0.1)),
        pytest.param(DPSGD(1.0, 0.01, 1000, dataset_size=50_000), BatchSize(), Advantage(0.1), marks=pytest.mark.slow),
        (Gaussian(10.0), Steps(), EpsilonAtDelta(2.0, 1e-6)),
    ],
    ids=["steps", "batch", "releases"],
)
def test_whole_numbers_stop_just_before_the_edge(run, unknown, target: Target) -> None:
    answer = calibrate(run, unknown, target)
    assert answer.value == round(answer.value)
    assert target.met_by(answer.achieved.value)
    assert target.met_by(WorstCase().assess(answer.mechanism).measure(target.measure).value)
    following = WorstCase().assess(unknown.put(run, answer.value + 1)).measure(target.measure)
    assert not target.met_by(following.value)
    assert answer.mechanism == unknown.put(run, int(answer.value))


@pytest.mark.parametrize(("flip_probability", "allowed"), [(0.49, 0.2), (0.4999, 0.1)])
def test_whole_numbers_are_found_in_few_claims(flip_probability, allowed) -> None:
    """Far from the start, and nothing steers: 16 and 38 claims where the search doubled its steps and halved."""
    found = calibrate(RandomisedResponse(flip_probability), Steps(), Advantage(allowed))
    following = replace(found.mechanism, releases=round(found.value) + 1)
    assert found.evaluations <= 10
    assert found.achieved.value <= allowed < WorstCase().assess(following).measure(Advantage(allowed).measure).value


def test_sample_rate_is_the_largest_that_is_safe() -> None:
    answer = calibrate(RUN, SampleRate(), Advantage(0.1))
    above = WorstCase().assess(SampleRate().put(RUN, answer.value * (1 + 2e-4))).measure(Advantage(0.1).measure)
    assert answer.achieved.value <= 0.1 < above.value


def test_plain_releases_match_closed_forms() -> None:
    answer = calibrate(Gaussian(1.0, 4), NoiseMultiplier(), Mu(0.5))
    assert answer.value == pytest.approx(4.0, rel=1e-4, abs=0)
    assert answer.value >= 4.0
    answer = calibrate(Laplace(1.0), NoiseMultiplier(), Advantage(0.1))
    exact = 1 / (-2 * math.log(1 - 0.1))
    assert exact <= answer.value <= exact * (1 + 1e-4)


def test_published_noise_is_too_small_and_the_exact_one_is_not() -> None:
    """CHERUBIN2024:B1 and CHERUBIN2024:B3: noise from Equation 4 leaves more risk than asked for."""
    run = DPSGD(1.0, 1e-3, 5000)
    printed = calibrate(
        run, NoiseMultiplier(), BayesSecurity(0.96), Membership(), Neighbouring.REPLACE, Method.PUBLISHED
    )
    really = WorstCase().assess(printed.mechanism, Neighbouring.REPLACE).measure(BayesSecurity(0.96).measure)
    assert really.upper < 0.96
    exact = calibrate(run, NoiseMultiplier(), BayesSecurity(0.96), Membership(), Neighbouring.REPLACE)
    assert exact.value > printed.value
    assert exact.achieved.lower >= 0.96 - 1e-6


def test_relaxed_adversary_allows_less_noise_and_the_worst_case_is_reported() -> None:
    run = DPSGD(1.0, 0.02, 2000)
    answer = calibrate(run, NoiseMultiplier(), Advantage(0.1), Relaxed())
    assert answer.achieved.value <= 0.1
    assert answer.value < calibrate(run, NoiseMultiplier(), Advantage(0.1)).value
    assert answer.worst_case().value > 0.1


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
    """Without noise the record is seen if it is drawn at all: 1e-4 here, so no noise is needed for 1/2."""
    answer = calibrate(DPSGD(1.0, 1e-5, 10), NoiseMultiplier(), Advantage(0.5))
    assert (answer.value, answer.slack) == (0.0, 0.0)
    assert answer.achieved.value == pytest.approx(1.0 - (1.0 - 1e-5) ** 10, rel=1e-6, abs=0)
    answer = calibrate(DPSGD(1.0, 0.5, 10), Steps(high=20), Advantage(0.999999))
    assert answer.value == 20


def test_what_has_no_bound_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="bounds nobody who guesses a secret or recovers"):
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
