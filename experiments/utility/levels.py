"""Noise at levels of mu for GDP and membership privacy, and for one pass: ``python -m experiments.utility.levels``.

Published: Corollary 4 of Dong et al. for GDP; for GMIP the smaller of it and Eq. (9) with Eq. (10). Ours: epsilon at
delta 1e-5 is at most that of mu-GDP for the true run, under replacement; data that are used again give the membership
game no relief, so this is its noise too. One pass over shuffled data does: harmonic rule against worst case.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from experiments.utility.settings import DELTA, RESULTS, STUDIES
from reticent.calibrate import Advantage, EpsilonAtDelta, Mu, NoiseMultiplier, calibrate
from reticent.mechanism import DPSGD, Neighbouring, Sampler
from reticent.risk import advantage, epsilon_at_delta
from reticent.tasks import write_json
from reticent.threat import MembershipGame, Method, WorstCase, assess
from reticent.tradeoff import GaussianTradeOff

LEVELS = np.geomspace(0.4, 50, 20)[:11:5]


def gdp_noise(mu: float, run: DPSGD) -> float:
    """Corollary 4 of Dong et al.; replacement moves the sum by two clip norms."""

    def excess(step: float) -> float:
        inside = np.exp(step**2) * ndtr(1.5 * step) + 3 * ndtr(-step / 2) - 2
        return run.sample_rate * np.sqrt(2 * run.steps * max(inside, 0.0)) - mu

    return 2 / brentq(excess, 1e-3, 12)


def published_noise(mu: float, run: DPSGD) -> float:
    """The minimum rule; 0 where the formula asks for no noise at all."""
    answer = calibrate(run, NoiseMultiplier(), Mu(mu), MembershipGame(), Neighbouring.REPLACE, Method.PUBLISHED)
    return answer.value if answer.achieved.value > 0.999 * mu else 0.0


def row(rule: str, key: str, value: float, noise: float, run: DPSGD) -> dict[str, object]:
    """Noise, and the worst case under replacement there; None where no noise leaves no bound."""
    found = {"rule": rule, key: value, "noise": noise, "worst_advantage": 1.0, "worst_epsilon": None}
    if noise:
        used = DPSGD(noise, run.sample_rate, run.steps, sampler=run.sampler)
        (worst,) = assess(used, (WorstCase(),), Neighbouring.REPLACE)
        found["worst_advantage"] = worst.measure(advantage).value
        found["worst_epsilon"] = worst.measure(lambda curve: epsilon_at_delta(curve, DELTA)).value
    print(found, flush=True)
    return found


def many_passes() -> list[dict[str, object]]:
    """Three rules at every level of mu."""
    study, rows = STUDIES["adult-random"], []
    size = round(study.sample_rate * study.private)
    run = DPSGD(1.0, study.sample_rate, study.steps, num_parameters=study.parameters, batch_size=size)
    for mu in LEVELS:
        same = EpsilonAtDelta(float(epsilon_at_delta(GaussianTradeOff(mu), DELTA)), DELTA)
        sound = calibrate(run, NoiseMultiplier(), same, WorstCase(), Neighbouring.REPLACE).value
        noises = {"GDP, published": gdp_noise(mu, run), "GMIP, published": published_noise(mu, run), "sound": sound}
        rows += [row(rule, "mu", float(mu), noise, run) for rule, noise in noises.items()]
    return rows


def one_pass() -> list[dict[str, object]]:
    """Membership game and worst case at equal advantage, each record used once."""
    study, rows = STUDIES["adult-once"], []
    size = round(study.sample_rate * study.private)
    run = DPSGD(
        1.0, study.sample_rate, study.steps, sampler=Sampler.SHUFFLED, num_parameters=study.parameters, batch_size=size
    )
    for target in study.targets:
        for rule, who in (("worst case", WorstCase()), ("membership game", MembershipGame())):
            noise = calibrate(run, NoiseMultiplier(), Advantage(target), who, Neighbouring.REPLACE).value
            rows.append(row(rule, "target", target, noise, run))
    return rows


if __name__ == "__main__":
    write_json(RESULTS / "levels-adult-random.json", {"rows": many_passes()})
    write_json(RESULTS / "levels-adult-once.json", {"rows": one_pass()})
