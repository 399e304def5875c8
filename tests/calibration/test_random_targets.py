"""Random targets: what is returned keeps its target when evaluated again, and a little less noise would not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from reticent.accountants import closed_forms
from reticent.accountants.profile import WorstCaseProfile
from reticent.accountants.rough import rough_curve
from reticent.adversaries import Membership, Relaxed
from reticent.calibration import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Mu,
    NoiseMultiplier,
    Recovered,
    Success,
    Target,
    TprAtFpr,
    calibrate,
)
from reticent.kernel.accountants import Composed
from reticent.kernel.adversaries import Adversary, Method, WorstCase
from reticent.kernel.curves import GaussianTradeOff, from_advantage
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring

RELATIONS = [Neighbouring.ADD_REMOVE, Neighbouring.REPLACE]
FORMS = {
    Method.CLT: closed_forms.clt_mu,
    Method.CLOSED_FORM: closed_forms.rho_form_mu,
}


def random_target(rng: np.random.Generator) -> Target:
    """Any of the targets with a limit that some noise meets and little noise does not."""
    level = rng.uniform(0.02, 0.6)
    prior, fpr = rng.uniform(0.2, 0.8), 10 ** rng.uniform(-4, -1)
    return [
        Advantage(level),
        BayesSecurity(1 - level),
        Success(max(prior, 1 - prior) + (1 - max(prior, 1 - prior)) * level, prior),
        TprAtFpr(fpr + (1 - fpr) * level * 0.3, fpr),
        EpsilonAtDelta(10 ** rng.uniform(-0.7, 0.8), 10 ** rng.uniform(-7, -3)),
        Mu(10 ** rng.uniform(-1, 0.3)),
        Recovered(fpr + (1 - fpr) * level * 0.3, fpr),
    ][rng.integers(7)]


def random_run(rng: np.random.Generator, few: bool = True) -> DPSGD:
    """Any rate and number of steps; without ``few`` only such that the target is sampled ten times and more."""
    while True:
        run = DPSGD(1.0, 10 ** rng.uniform(-3.5, -0.5), int(10 ** rng.uniform(1.5, 4.5)))
        if few or run.sample_rate * run.steps >= 10.0:
            return run


def risk_again(run: DPSGD, target: Target, who: Adversary, relation: Neighbouring, how: Method) -> float:
    """The claimed risk from the whole curve, or for a closed form from the curve that it stands for."""
    arguments = run.noise_multiplier, run.sample_rate, run.steps, relation
    if how in FORMS:
        return target.measure(GaussianTradeOff(float(FORMS[how](*arguments))))
    if how is Method.PUBLISHED and not isinstance(target, Mu):
        return target.measure(from_advantage(float(closed_forms.published(*arguments))))
    if how is Method.PROVEN and not isinstance(target, Mu):
        return target.measure(from_advantage(closed_forms.proven_upper([arguments[:3]], relation)))
    return target.of(who.assess(run, relation, how)).value


def keeps_its_target(
    run: DPSGD, target: Target, who: Adversary, relation: Neighbouring, how: Method = Method.EXACT
) -> None:
    """When evaluated again; and a little less noise would not do."""
    answer = calibrate(run, NoiseMultiplier(), target, who, relation, how)
    said = f"{target!r} {relation.value} {how.value} {answer.mechanism}"
    assert target.met_by(risk_again(answer.mechanism, target, who, relation, how)), said
    if who.hidden and not answer.achieved.lower > 0.9 * answer.achieved.upper:
        return  # in many dimensions an upper end may jump with the noise
    assert answer.slack <= (5e-5 if how in FORMS else 1e-4), said
    if answer.value > 0.011:  # else the end of the range
        louder = replace(run, noise_multiplier=answer.value * (1 - 1e-4))
        assert not target.met_by(risk_again(louder, target, who, relation, how)), said


def by_closed_form(rng: np.random.Generator, count: int) -> None:
    """Random targets for the formulas; a bound on the advantage alone says little about other risks."""
    for index in range(count):
        method = [*FORMS, Method.PUBLISHED, Method.PROVEN][index % 4]
        target = random_target(rng)
        while isinstance(target, Recovered) or (
            method in (Method.PROVEN, Method.PUBLISHED) and not isinstance(target, Advantage | BayesSecurity)
        ):
            target = random_target(rng)
        keeps_its_target(random_run(rng), target, Membership(), RELATIONS[rng.integers(2)], method)


def test_random_targets_by_closed_form() -> None:
    by_closed_form(np.random.default_rng(3), 40)


@pytest.mark.parametrize("seed", [8, 9])
def test_random_targets_of_the_worst_case(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keeps_its_target(random_run(rng, few=False), random_target(rng), WorstCase(), RELATIONS[rng.integers(2)])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_targets(part: int) -> None:
    """By closed form, of the worst case, which may sample the target a few times only, and of the relaxed attacker."""
    rng = np.random.default_rng([17, part])
    by_closed_form(rng, 60)
    for index in range(35):
        run = random_run(rng, few=index % 10 == 0)
        keeps_its_target(run, random_target(rng), WorstCase(), RELATIONS[rng.integers(2)])
    for who in (Relaxed(), Relaxed(int(10 ** rng.uniform(0.5, 6)))):
        run = random_run(rng, few=False)
        keeps_its_target(run, TprAtFpr(0.1, 10 ** rng.uniform(-4, -2)), who, Neighbouring.ADD_REMOVE)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [(1.2, 0.01, 1000), (0.645, 0.00879, 64)],
)
def test_estimates_agree_with_enclosures(noise: float, rate: float, steps: int, relation: Neighbouring) -> None:
    """Both estimates of delta: the rough one to 1e-3, the other to 1e-7, or as far where few sampled steps matter."""
    run = DPSGD(noise, rate, steps)
    composed, profile = Composed(run, relation), WorstCaseProfile(noise, rate, steps, relation)
    rough = rough_curve(run, relation)
    for epsilon in (0.1, 0.4, 1.0):
        lower, upper = composed.delta(epsilon)
        if lower < 1e-6:
            continue
        assert math.log(rough.delta(epsilon) / upper) == pytest.approx(0.0, abs=1e-3)
        if profile.reliable:
            error = 1e-7 if profile.kurtosis < 0.5 else 1e-3
            assert profile.delta(np.array([epsilon]))[0] == pytest.approx(upper, rel=error, abs=0)
