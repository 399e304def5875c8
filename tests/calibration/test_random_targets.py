"""Random targets: what is returned keeps its target when evaluated again, and a little less noise would not."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from reticent.accountants import Composed, closed_forms
from reticent.accountants.profile import WorstCaseProfile
from reticent.accountants.rough import rough_curve
from reticent.adversaries import Membership, Method, Relaxed, WorstCase
from reticent.calibration import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Mu,
    NoiseMultiplier,
    Reconstruction,
    Success,
    Target,
    TprAtFpr,
    calibrate,
)
from reticent.curves import GaussianTradeOff, from_advantage
from reticent.mechanisms import DPSGD, Neighbouring

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
        Reconstruction(fpr + (1 - fpr) * level * 0.3, fpr),
    ][rng.integers(7)]


def random_run(rng: np.random.Generator, few: bool = True) -> DPSGD:
    """Any rate and number of steps; without ``few`` only such that the target is sampled ten times and more."""
    while True:
        run = DPSGD(1.0, 10 ** rng.uniform(-3.5, -0.5), int(10 ** rng.uniform(1.5, 4.5)))
        if few or run.sample_rate * run.steps >= 10.0:
            return run


def risk_again(
    run: DPSGD, target: Target, who: WorstCase | Relaxed | Membership, relation: Neighbouring, how: Method
) -> float:
    """The claimed risk from the whole curve, or for a closed form from the curve that it stands for."""
    arguments = run.noise_multiplier, run.sample_rate, run.steps, relation
    if how in FORMS:
        return target.measure(GaussianTradeOff(float(FORMS[how](*arguments))))
    if how is Method.PUBLISHED and not isinstance(target, Mu):
        return target.measure(from_advantage(float(closed_forms.published(*arguments))))
    if how is Method.PROVEN and not isinstance(target, Mu):
        return target.measure(from_advantage(closed_forms.proven_upper([arguments[:3]], relation)))
    return target.of(who.assess(run, relation, how)).value


@dataclass
class Outcomes:
    """All failures, so that one does not hide the others; progress and CPU seconds for whoever watches."""

    planned: int
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    largest_slack: float = 0.0
    asked: int = 0

    def ask(
        self,
        kind: str,
        run: DPSGD,
        target: Target,
        who: WorstCase | Relaxed | Membership,
        relation: Neighbouring,
        how: Method = Method.EXACT,
    ) -> None:
        """Calibrate the noise and judge the answer."""
        start = time.process_time()
        answer = calibrate(run, NoiseMultiplier(), target, who, relation, how)
        self.seconds[kind].append(time.process_time() - start)
        assert isinstance(answer.mechanism, DPSGD)
        faults = []
        again = risk_again(answer.mechanism, target, who, relation, how)
        if not target.met_by(again):
            faults.append(f"{again!r} when evaluated again")
        self.largest_slack = max(self.largest_slack, answer.slack)
        if answer.slack > 1e-4:
            faults.append(f"slack {answer.slack:.1e}")
        if answer.value > 0.011:  # else the end of the range
            louder = replace(run, noise_multiplier=answer.value * (1 - 1e-4))
            if target.met_by(risk_again(louder, target, who, relation, how)):
                faults.append("met with 1e-4 less noise")
        if faults:
            text = f"{kind}: {target!r} {relation.value} {how.value} {answer.mechanism}: {', '.join(faults)}"
            self.failures.append(text)
            print(text, flush=True)
        self.asked += 1
        if self.asked % 50 == 0:
            print(f"{self.asked} of {self.planned}, {len(self.failures)} failures, {self.timing()}", flush=True)

    def timing(self) -> str:
        """Median CPU time of each kind."""
        return ", ".join(f"{kind} {1e3 * float(np.median(times)):.3g} ms" for kind, times in self.seconds.items())


def by_closed_form(rng: np.random.Generator, outcomes: Outcomes, count: int) -> None:
    """Random targets for the formulas; a bound on the advantage alone says little about other risks."""
    for index in range(count):
        method = [*FORMS, Method.PUBLISHED, Method.PROVEN][index % 4]
        target = random_target(rng)
        while isinstance(target, Reconstruction) or (
            method in (Method.PROVEN, Method.PUBLISHED) and not isinstance(target, Advantage | BayesSecurity)
        ):
            target = random_target(rng)
        outcomes.ask(
            f"closed form {method.value}",
            random_run(rng),
            target,
            Membership(),
            RELATIONS[rng.integers(2)],
            method,
        )


def test_random_targets_by_closed_form() -> None:
    outcomes = Outcomes(80)
    by_closed_form(np.random.default_rng(3), outcomes, outcomes.planned)
    assert not outcomes.failures
    assert outcomes.largest_slack <= 5e-5


def test_random_targets_of_the_worst_case() -> None:
    outcomes, rng = Outcomes(2), np.random.default_rng(8)
    for _ in range(outcomes.planned):
        target = random_target(rng)
        outcomes.ask(target.name, random_run(rng, few=False), target, WorstCase(), RELATIONS[rng.integers(2)])
    assert not outcomes.failures


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_2000_random_targets(part: int) -> None:
    """A hundred each: 37 of the worst case, 3 of the relaxed attacker, 60 by closed form.

    A tenth of the worst cases may sample the target a few times only, which takes seconds each.
    """
    outcomes, rng = Outcomes(100), np.random.default_rng([17, part])
    by_closed_form(rng, outcomes, 60)
    for index in range(37):
        target = random_target(rng)
        run = random_run(rng, few=index % 10 == 0)
        outcomes.ask(target.name, run, target, WorstCase(), RELATIONS[rng.integers(2)])
    for _ in range(3):
        target = random_target(rng)
        while isinstance(target, Reconstruction | Mu):
            target = random_target(rng)
        outcomes.ask("relaxed", random_run(rng, few=False), target, Relaxed(), Neighbouring.ADD_REMOVE)
    print(f"part {part}: largest slack {outcomes.largest_slack:.1e}, {outcomes.timing()}", flush=True)
    assert outcomes.asked == outcomes.planned
    assert not outcomes.failures


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [
        (1.2, 0.01, 1000),
        pytest.param(0.7, 0.003, 600, marks=pytest.mark.slow),
        (0.645, 0.00879, 64),
        pytest.param(0.45, 0.002, 60, marks=pytest.mark.slow),
    ],
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
