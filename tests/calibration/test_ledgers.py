"""Steps that differ: one factor for all noise, and what each attacker says of a schedule."""

from __future__ import annotations

import math

import pytest
from scipy.special import erf

import reticent as rt
from reticent.adversaries import Membership, MembershipGame, Relaxed
from reticent.calibration import Advantage, EpsilonAtDelta, Mu, NoiseScale, UnreachableError
from reticent.calibration.solve import calibrate
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import Laplace, RandomisedResponse
from reticent.samplers import FixedSize, Shuffled

pytestmark = pytest.mark.usefixtures("quick_documents")

SHORT = ((6.0, 0.2, 50), (4.0, 0.1, 60))  # (noise, rate, steps)
SCHEDULE = Ledger((DPSGD(1.0, 0.01, 300), DPSGD(1.2, 0.01, 300), DPSGD(1.5, 0.02, 400)))


@pytest.mark.parametrize(
    "target", [Advantage(0.1), pytest.param(EpsilonAtDelta(1.0, 1e-5), marks=pytest.mark.slow)], ids=str
)
def test_the_scale_meets_the_target_and_a_little_less_does_not(target) -> None:
    found = calibrate(SCHEDULE, NoiseScale(), target)
    assert isinstance(found.mechanism, Ledger)
    ratios = [
        new.noise_multiplier / old.noise_multiplier
        for new, old in zip(found.mechanism.parts, SCHEDULE.parts, strict=True)
    ]
    assert ratios == pytest.approx([found.value] * 3, rel=1e-12, abs=0)
    assert [p.sample_rate for p in found.mechanism.parts] == [p.sample_rate for p in SCHEDULE.parts]
    assert target.of(WorstCase().assess(found.mechanism)).value <= target.value
    quieter = NoiseScale().put(SCHEDULE, 0.999 * found.value)
    assert target.of(WorstCase().assess(quieter)).value > target.value


def test_the_scale_of_gaussian_releases_is_known_in_closed_form() -> None:
    """mu^2 = sum n / (scale noise)^2, so scale = sqrt(3 + 5/4) / mu."""
    ledger = Ledger((Gaussian(1.0, 3), Gaussian(2.0, 5)))
    assert calibrate(ledger, NoiseScale(), Mu(0.5)).value == pytest.approx(math.sqrt(3 + 5 / 4) / 0.5, rel=1e-4, abs=0)


def test_equal_parts_have_the_scale_of_one_run() -> None:
    whole, halves = DPSGD(1.0, 0.01, 600), Ledger((DPSGD(1.0, 0.01, 200), DPSGD(1.0, 0.01, 400)))
    found = [calibrate(release, NoiseScale(), Advantage(0.1)).value for release in (whole, halves)]
    assert found[0] == pytest.approx(found[1], rel=2e-4, abs=0)
    assert found[0] == pytest.approx(rt.calibrate(whole, advantage=0.1).value, rel=2e-4, abs=0)


def test_what_cannot_be_scaled_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="without noise"):
        calibrate(Ledger((Gaussian(1.0), DPSGD(0.0, 0.1, 3))), NoiseScale(), Advantage(0.1))
    with pytest.raises(UnsupportedError, match="RandomisedResponse has no noise"):
        calibrate(Ledger((Gaussian(1.0), RandomisedResponse(0.2))), NoiseScale(), Advantage(0.1))
    with pytest.raises(UnreachableError, match="noise scale"):
        calibrate(SCHEDULE, NoiseScale(high=1.0), Advantage(1e-3))


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


def test_relaxed_on_whole_batches_adds_up_the_squares() -> None:
    """Whole batches of noise 1 and 2 tell as much as Gaussian releases of one dimension."""
    whole = Ledger((DPSGD(1.0, 1.0, 2), DPSGD(2.0, 0.5, 8, sampler=Shuffled())))
    same = Ledger((Gaussian(1.0, 2), Gaussian(2.0, 4)))
    found = rt.advantage(Relaxed().assess(whole).curve)
    assert found == pytest.approx(rt.advantage(Relaxed().assess(same).curve), rel=1e-9, abs=0)
    worst = rt.advantage(WorstCase().assess(whole).curve)
    assert worst == pytest.approx(erf(math.sqrt(3.0 / 8.0)), rel=1e-6, abs=0)
    assert found < 0.9 * worst


def test_attackers_without_a_proof_say_so_and_answer_the_worst_case() -> None:
    mixed, fixed = Ledger((DPSGD(1.0, 0.01, 3), Laplace(1.0))), DPSGD(1.0, 0.01, 3, sampler=FixedSize())
    cases = [
        (MembershipGame(), SCHEDULE, "The answer is the worst case"),
        (Relaxed(), mixed, "No relaxed curve"),
        (Relaxed(dimension=3), Ledger((DPSGD(1.0, 0.01, 3), fixed)), "No relaxed curve"),
    ]
    for who, release, words in cases:
        found = who.assess(release, who.relation)
        assert any(words in note for note in found.notes)
        worst = WorstCase().assess(release, who.relation)
        assert rt.advantage(found.curve) == pytest.approx(rt.advantage(worst.curve), rel=1e-12, abs=0)
    replaced = Relaxed().assess(SCHEDULE, Neighbouring.REPLACE)
    assert any("No relaxed curve" in note for note in replaced.notes)


def test_relaxed_follows_one_sign_through_a_schedule() -> None:
    """Between its floor and the worst case; a stated dimension is no help; equal parts are one run."""
    found, worst = Relaxed().assess(SCHEDULE), WorstCase().assess(SCHEDULE)
    values = found.measure(rt.advantage)
    assert values.upper / values.lower - 1.0 < 2e-3
    assert values.value < 0.8 * rt.advantage(worst.curve)
    epsilons = [rt.epsilon_at_delta(one.curve, 1e-5) for one in (found, worst)]
    assert epsilons[1] - math.log(2.0) - 1e-3 <= epsilons[0] <= epsilons[1]
    assert "one unknown sign, the same in all of them" in " ".join(map(str, found.notes))
    stated = Relaxed(dimension=50).assess(SCHEDULE)
    assert rt.advantage(stated.curve) == pytest.approx(values.value, rel=1e-9, abs=0)
    assert stated.measure(rt.advantage).lower == 0.0
    halves = Ledger((DPSGD(2.0, 0.2, 20), DPSGD(2.0, 0.2, 40)))
    assert Relaxed(dimension=50).assess(halves).curve is Relaxed(dimension=50).assess(DPSGD(2.0, 0.2, 60)).curve


@pytest.mark.parametrize("target", [Advantage(0.05)], ids=str)
@pytest.mark.slow
def test_a_schedule_is_calibrated_against_one_unknown_sign(target) -> None:
    schedule = Ledger(tuple(DPSGD(n, p, t) for n, p, t in SHORT))
    found = calibrate(schedule, NoiseScale(), target, Relaxed())
    assert target.of(Relaxed().assess(found.mechanism)).value <= target.value
    assert target.of(Relaxed().assess(NoiseScale().put(schedule, 0.999 * found.value))).value > target.value
    assert found.value < 0.95 * calibrate(schedule, NoiseScale(), target).value
