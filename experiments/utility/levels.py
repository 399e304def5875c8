"""Noise at 20 levels of mu for GDP and membership privacy: ``python -m experiments.utility.levels adult-random``.

Published: Corollary 4 of Dong et al. for GDP; for GMIP the smaller of it and Eq. (9) with Eq. (10). Ours: epsilon at
delta 1e-5 is at most that of mu-GDP for the true run, under replacement; data that are used again give the membership
game no relief, so this is its noise too. One pass over shuffled data does (``adult-once``): harmonic rule against worst
case. A row is kept as soon as it is known; what is kept is not computed again.
"""

import json
import sys
from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from experiments.utility.settings import DELTA, LEVELS, RESULTS, STUDIES
from reticent.adversaries import MembershipGame
from reticent.calibration import Advantage, EpsilonAtDelta, Mu, NoiseMultiplier, calibrate
from reticent.kernel.adversaries import Method, WorstCase, assess
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.kernel.samplers import INDEPENDENT, Sampler
from reticent.samplers import Shuffled
from reticent.tasks import write_json


def gdp_noise(mu: float, run: DPSGD) -> float:
    """Corollary 4 of Dong et al.; replacement moves the sum by two clip norms."""

    def excess(step: float) -> float:
        inside = np.exp(step**2) * ndtr(1.5 * step) + 3 * ndtr(-step / 2) - 2
        return run.sample_rate * np.sqrt(2 * run.steps * max(inside, 0.0)) - mu

    return 2 / brentq(excess, 1e-3, 12)


def published_noise(mu: float, run: DPSGD) -> float:
    """The minimum rule; 0 where the formula asks for no noise at all."""
    return calibrate(run, NoiseMultiplier(), Mu(mu), MembershipGame(), Neighbouring.REPLACE, Method.PUBLISHED).value


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


def release(name: str, sampler: Sampler = INDEPENDENT) -> DPSGD:
    """The run of a study with noise 1."""
    study = STUDIES[name]
    size = round(study.sample_rate * study.private)
    return DPSGD(1.0, study.sample_rate, study.steps, sampler=sampler, num_parameters=study.parameters, batch_size=size)


def many_passes(name: str, known: set[tuple[str, float]]) -> Iterator[dict[str, object]]:
    """Three rules at every level of mu."""
    run = release(name)

    def sound_noise(mu: float, run: DPSGD) -> float:
        same = EpsilonAtDelta(float(epsilon_at_delta(GaussianTradeOff(mu), DELTA)), DELTA)
        return calibrate(run, NoiseMultiplier(), same, WorstCase(), Neighbouring.REPLACE).value

    rules = {"GDP, published": gdp_noise, "GMIP, published": published_noise, "sound": sound_noise}
    for mu in LEVELS:
        for rule, noise in rules.items():
            if (rule, mu) not in known:
                yield row(rule, "mu", mu, noise(mu, run), run)


def one_pass(name: str, known: set[tuple[str, float]]) -> Iterator[dict[str, object]]:
    """Membership game and worst case at equal advantage, each record used once."""
    run = release(name, Shuffled())
    for target in STUDIES[name].targets:
        for rule, who in (("worst case", WorstCase()), ("membership game", MembershipGame())):
            if (rule, target) not in known:
                noise = calibrate(run, NoiseMultiplier(), Advantage(target), who, Neighbouring.REPLACE).value
                yield row(rule, "target", target, noise, run)


def main(name: str) -> None:
    """Rows that are not stored yet."""
    once = name.endswith("once")
    file, key = RESULTS / f"levels-{name}.json", "target" if once else "mu"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    for found in (one_pass if once else many_passes)(name, {(r["rule"], r[key]) for r in rows}):
        rows = sorted([*rows, found], key=lambda r: r[key])
        write_json(file, {"rows": rows})


if __name__ == "__main__":
    main(sys.argv[1])
