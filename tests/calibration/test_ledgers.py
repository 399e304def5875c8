"""Steps that differ: one factor for all noise, and what each attacker says of a schedule."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import reticent as rt
from reticent.adversaries import Membership, MembershipGame, Relaxed
from reticent.calibration import Advantage, Mu, NoiseScale, UnreachableError
from reticent.calibration.solve import calibrate
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import Laplace, RandomisedResponse
from reticent.samplers import FixedSize

pytestmark = pytest.mark.usefixtures("coarse")

SCHEDULE = Ledger((DPSGD(1.0, 0.01, 300), DPSGD(1.2, 0.01, 300), DPSGD(1.5, 0.02, 400)))


def test_the_scale_meets_the_target_and_a_little_less_does_not() -> None:
    found, target = calibrate(SCHEDULE, NoiseScale(), Advantage(0.1)), Advantage(0.1)
    assert found.mechanism == Ledger(
        tuple(replace(part, noise_multiplier=part.noise_multiplier * found.value) for part in SCHEDULE.parts)
    )
    assert target.of(WorstCase().assess(found.mechanism)).value <= 0.1
    quieter = NoiseScale().put(SCHEDULE, 0.999 * found.value)
    assert target.of(WorstCase().assess(quieter)).value > 0.1
    # mu^2 = sum n / (scale noise)^2, so scale = sqrt(3 + 5/4) / mu.
    ledger = Ledger((Gaussian(1.0, 3), Gaussian(2.0, 5)))
    assert calibrate(ledger, NoiseScale(), Mu(0.5)).value == pytest.approx(math.sqrt(3 + 5 / 4) / 0.5, rel=1e-4, abs=0)


def test_equal_parts_have_the_scale_of_one_run() -> None:
    whole, halves = DPSGD(1.0, 0.01, 600), Ledger((DPSGD(1.0, 0.01, 200), DPSGD(1.0, 0.01, 400)))
    one, two = (calibrate(release, NoiseScale(), Advantage(0.1)).value for release in (whole, halves))
    assert one == pytest.approx(two, rel=2e-4, abs=0)
    assert one == pytest.approx(rt.calibrate(whole, advantage=0.1).value, rel=2e-4, abs=0)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((Gaussian(1.0), DPSGD(0.0, 0.1, 3)), "without noise"),
        ((Gaussian(1.0), RandomisedResponse(0.2)), "RandomisedResponse has no noise"),
        ((Gaussian(1.0), Gaussian(1.0)), "noise scale"),
    ],
)
def test_what_cannot_be_scaled_is_refused_by_name(parts: tuple, words: str) -> None:
    with pytest.raises((UnsupportedError, UnreachableError), match=words):
        calibrate(Ledger(parts), NoiseScale(high=1.0), Advantage(1e-3))


@pytest.mark.parametrize("neighbouring", [Neighbouring.ADD_REMOVE, Neighbouring.REPLACE])
def test_closed_forms_of_a_schedule_agree_with_equal_steps_and_with_exact(neighbouring) -> None:
    halves = Ledger((DPSGD(1.0, 0.01, 200), DPSGD(1.0, 0.01, 400)))
    exact = rt.advantage(WorstCase().assess(SCHEDULE, neighbouring).curve)
    for method in (Method.CLOSED_FORM, Method.CLT, Method.PROVEN):
        one = rt.advantage(Membership().assess(DPSGD(1.0, 0.01, 600), neighbouring, method).curve)
        two = rt.advantage(Membership().assess(halves, neighbouring, method).curve)
        assert two == pytest.approx(one, rel=1e-9, abs=0)
        of_schedule = rt.advantage(Membership().assess(SCHEDULE, neighbouring, method).curve)
        if method is Method.PROVEN:
            assert exact <= of_schedule <= 1.3 * exact
        elif method is Method.CLOSED_FORM:
            assert of_schedule == pytest.approx(exact, abs=2e-3)


def test_published_form_and_other_parts_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="equal steps only"):
        Membership().assess(SCHEDULE, method=Method.PUBLISHED)
    with pytest.raises(UnsupportedError, match="Poisson-sampled DP-SGD with noise in every part"):
        Membership().assess(Ledger((DPSGD(1.0, 0.01, 3), Gaussian(1.0))), method=Method.CLT)


@pytest.mark.parametrize(
    ("who", "release", "words"),
    [
        (MembershipGame(), SCHEDULE, "The answer is the worst case"),
        (Relaxed(), Ledger((DPSGD(1.0, 0.01, 3), Laplace(1.0))), "No relaxed curve"),
        (Relaxed(3), Ledger((DPSGD(1.0, 0.01, 3), DPSGD(1.0, 0.01, 3, sampler=FixedSize()))), "No relaxed curve"),
    ],
    ids=["game", "Laplace", "fixed size"],
)
def test_attackers_without_a_proof_say_so_and_answer_the_worst_case(who, release, words) -> None:
    found, worst = who.assess(release, who.relation), WorstCase().assess(release, who.relation)
    assert any(words in note for note in found.notes)
    assert rt.advantage(found.curve) == pytest.approx(rt.advantage(worst.curve), rel=1e-12, abs=0)


def test_relaxed_follows_one_sign_through_a_schedule() -> None:
    """Between its floor and the worst case; a stated dimension is no help; equal parts are one run."""
    found, worst, stated = (who.assess(SCHEDULE) for who in (Relaxed(), WorstCase(), Relaxed(dimension=50)))
    values = found.measure(rt.advantage)
    assert values.upper / values.lower - 1.0 < 2e-3
    assert values.value < 0.8 * rt.advantage(worst.curve)
    assert "one unknown sign, the same in all of them" in " ".join(map(str, found.notes))
    assert rt.advantage(stated.curve) == pytest.approx(values.value, rel=1e-9, abs=0)
    assert stated.measure(rt.advantage).lower == 0.0
    halves = Ledger((DPSGD(2.0, 0.2, 20), DPSGD(2.0, 0.2, 40)))
    assert Relaxed(dimension=50).assess(halves).curve is Relaxed(dimension=50).assess(DPSGD(2.0, 0.2, 60)).curve
    assert any("No relaxed curve" in note for note in Relaxed().assess(SCHEDULE, Neighbouring.REPLACE).notes)
