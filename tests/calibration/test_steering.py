"""What steers a search: few certified answers are computed, and each answer is one of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from reticent.adversaries import Mixed, Relaxed
from reticent.adversaries.relaxed.sign import Part, unknown_sign
from reticent.calibration import (
    Advantage,
    EpsilonAtDelta,
    NoiseMultiplier,
    NoiseScale,
    Steps,
    Target,
    TprAtFpr,
    calibrate,
)
from reticent.calibration.claims import Attack
from reticent.calibration.estimates import chained, epsilon_allowed
from reticent.calibration.search import Edge
from reticent.calibration.steer import steering
from reticent.kernel.adversaries import Adversary, Method, WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import Selection
from reticent.pairs import Geometric
from reticent.samplers import FixedSize, TruncatedPoisson
from tests.conftest import some

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
TWO = DPSGD(1.0, 0.01, 300, records_per_user=2)
OFTEN = DPSGD(1.0, 0.2, 100)
RARE = DPSGD(1.0, 4.39e-5, 313)
CUT = DPSGD(1.0, 0.01, 100, batch_size=10, dataset_size=1000, sampler=TruncatedPoisson(20))
BEST = Selection(Gaussian(2.0), Geometric(10))


@pytest.fixture
def certified(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The releases of which something was claimed while searching."""
    asked: list[object] = []
    claim = Attack.claim

    def counted(self: Attack, release: Mechanism, target: Target):
        asked.append(release)
        return claim(self, release, target)

    monkeypatch.setattr(Attack, "claim", counted)
    return asked


@pytest.mark.parametrize(
    ("run", "who", "relation", "target", "most"),
    some(
        [
            (TWO, WorstCase(), REPLACE, Advantage(0.1), 1),
            (BEST, WorstCase(), ADD, EpsilonAtDelta(1.0, 1e-6), 1),
            (CUT, WorstCase(), ADD, EpsilonAtDelta(2.0, 1e-5), 1),
            (DPSGD(1.0, 0.01, 30, sampler=FixedSize()), WorstCase(), REPLACE, Advantage(0.1), 2),
            (RARE, WorstCase(), REPLACE, EpsilonAtDelta(5.84, 2.25e-8), 2),
            (TWO, WorstCase(), REPLACE, TprAtFpr(0.2, 0.01), 1),
            (OFTEN, Mixed(0.5), ADD, Advantage(0.1), 2),
            (OFTEN, Relaxed(dimension=1), REPLACE, Advantage(0.1), 2),
            (DPSGD(1.0, 1e-3, 1000), Relaxed(), ADD, EpsilonAtDelta(1.0, 1e-5), 3),
        ],
        *range(4),
    ),
    ids=str,
)
def test_few_answers_are_certified(
    run: Mechanism, who: Adversary, relation: Neighbouring, target: Target, most: int, certified: list[object]
) -> None:
    answer = calibrate(run, NoiseMultiplier(), target, who, relation)
    assert len(certified) <= most
    assert answer.mechanism in certified
    again = target.of(who.assess(answer.mechanism, relation, answer.method))
    assert target.met_by(again.value)
    assert (answer.achieved.lower, answer.achieved.upper) == pytest.approx((again.lower, again.upper), rel=1e-4, abs=0)
    assert answer.slack <= 5e-4
    if isinstance(who, WorstCase):
        louder = answer.unknown.put(run, answer.value * (1.0 - 1e-4))
        assert not target.met_by(target.of(who.assess(louder, relation)).value)


@pytest.mark.usefixtures("coarse")  # this one and all that follow
def test_steps_of_a_lattice_are_steered(certified: list[object]) -> None:
    """The last number of steps that meets the target, and the first that does not, are all that is certified."""
    target = EpsilonAtDelta(1.5, 1e-5)
    answer = calibrate(CUT, Steps(), target)
    assert {release.steps for release in certified} <= {answer.value - 1, answer.value, answer.value + 1}
    assert target.met_by(target.of(WorstCase().assess(answer.mechanism, ADD)).value)


def test_an_answer_by_a_bound_is_read_off_the_curve_at_last() -> None:
    """While searching only the upper end is known; the answer has both."""
    answer = calibrate(OFTEN, NoiseMultiplier(), Advantage(0.1), Relaxed())
    assert unknown_sign(answer.mechanism, part=Part.CLAIM).optimistic.delta(0.0) == 0.0
    assert answer.achieved.lower < answer.achieved.upper == answer.achieved.value <= 0.1
    assert answer.achieved.upper == pytest.approx(0.1, rel=1e-4, abs=0)


@pytest.mark.parametrize("gap", [lambda u: math.expm1(u - 0.3), lambda u: 2.0 * (u - 0.3) + 1.5 * (u - 0.3) ** 2])
def test_the_last_step_to_a_root_is_not_looked_at(gap: Callable[[float], float]) -> None:
    edge = Edge(gap, -10.0, 10.0, 2e-6)
    edge.find(0.31, 1.5)
    assert edge.root == pytest.approx(0.3, rel=0, abs=2e-6)
    assert len(edge.seen) <= 3


def test_a_step_is_no_root() -> None:
    """Where the slope is only guessed, nothing follows from its not having changed."""
    edge = Edge(lambda u: -1.0 if u < 0.3 else 1.0, -10.0, 10.0, 2e-6)
    edge.find(0.0, 1.0)
    assert edge.root is None
    assert edge.safe is not None
    assert edge.safe[0] == pytest.approx(0.3, rel=0, abs=4e-6)


@pytest.mark.parametrize("who", [WorstCase(), Relaxed()], ids=str)
def test_a_step_of_the_estimate_is_no_edge_of_the_claim(who: Adversary) -> None:
    """A record that is never drawn shows nothing: here the target is met whatever the noise."""
    answer = calibrate(DPSGD(1.0, 2.68e-5, 15), NoiseMultiplier(), Advantage(0.0017949), who)
    assert answer.achieved.value == pytest.approx(-math.expm1(15 * math.log1p(-2.68e-5)), rel=1e-9, abs=0)
    assert (answer.value, answer.slack) == (0.0, 0.0)


def test_an_epsilon_is_found_where_the_estimate_has_the_delta() -> None:
    curve, target = GaussianTradeOff(0.4), EpsilonAtDelta(1.1, 1e-3)
    found = epsilon_allowed(curve.delta, target)
    assert found is not None
    assert float(curve.delta(found)) == pytest.approx(1e-3, rel=1e-3, abs=0)
    assert epsilon_allowed(curve.delta, EpsilonAtDelta(40.0, 1e-3)) is None


def test_two_steps_of_an_estimate_are_a_chain() -> None:
    delta = GaussianTradeOff(0.5).delta
    both = chained(delta)(np.array([0.0, 1.0]))
    assert both[0] == pytest.approx(2.0 * float(delta(0.0)), rel=1e-12, abs=0)
    assert both[1] == pytest.approx(float(GaussianTradeOff(1.0).delta(1.0)), rel=1e-9, abs=0)


@pytest.mark.parametrize("who", [WorstCase(), Relaxed(), Relaxed(dimension=30)], ids=["worst", "sign", "dimension"])
def test_a_factor_on_the_noise_is_steered_as_the_noise_is(who: Adversary) -> None:
    """Of one run; without an estimate the search claimed nine curves."""
    target, attack = Advantage(0.1), Attack(who, ADD, Method.EXACT)
    run = DPSGD(2.0, 0.05, 40)
    factor, noise = (steering(run, unknown, target, attack) for unknown in (NoiseScale(), NoiseMultiplier()))
    assert factor is not None
    assert noise is not None
    assert factor(0.7) == pytest.approx(noise(1.4), rel=1e-9, abs=0)
