"""Noise of every cell of the image experiments, on a processor: ``python -m experiments.images.noise``.

``noise.json`` is all that ``experiments.images.train`` knows of privacy. For each number of steps: the worst case, the
relaxed adversary (d = 1, one unknown sign for the whole run) and the published rule (each release by itself), at
(1, 1e-5) under add/remove; and the published rules of GDP and GMIP at 20 levels of mu, under replacement. Of the last
layer of a ResNet-56 (650 parameters) also the noise that keeps epsilon of mu-GDP at 1e-5 in the true run.
"""

from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from experiments.utility.levels import gdp_noise
from experiments.utility.settings import DELTA, LEVELS
from reticent.adversaries import NormOnly, Relaxed
from reticent.calibration import EpsilonAtDelta, NoiseMultiplier, calibrate
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import epsilon_at_delta
from reticent.tasks import write_json

RATE, STEPS, EPSILON = 0.05, (200, 300, 400, 600, 800, 1000), 1.0
NETWORK = 2_440_266
HEAD = DPSGD(1.0, 0.01, 1000, num_parameters=650, batch_size=400)


def published_relaxed(run: DPSGD, top: float) -> float:
    """Noise at which the releases' own curves, amplified and composed one by one, reach the target."""

    def excess(log_noise: float) -> float:
        at = DPSGD(float(np.exp(log_noise)), run.sample_rate, run.steps)
        return float(epsilon_at_delta(NormOnly().assess(at).curve, DELTA)) - EPSILON

    return float(np.exp(brentq(excess, np.log(0.2 * top), np.log(top), xtol=1e-3)))


def gmip_noise(dp: float, run: DPSGD) -> float:
    """The published minimum rule: Eq. (10) for the level of a step, Eq. (9) with tau > 0 for the noise."""
    level = 2 / dp  # of one step, from Corollary 4 of Dong et al.
    raw = np.sqrt(max(0.0, run.num_parameters / level**2 - 0.5 - run.batch_size))
    return float(min(dp, raw))


def published_levels(run: DPSGD) -> list[dict[str, float]]:
    """Noise of GDP, of GMIP, and of epsilon of mu-GDP at 1e-5 in the true run, at 20 levels of mu."""
    rows = []
    for mu in LEVELS:
        dp = gdp_noise(mu, run)
        same = EpsilonAtDelta(float(epsilon_at_delta(GaussianTradeOff(mu), DELTA)), DELTA)
        true = calibrate(run, NoiseMultiplier(), same, WorstCase(), Neighbouring.REPLACE).value
        rows.append({"mu": mu, "GDP": dp, "GMIP": gmip_noise(dp, run), "true run": true})
    return rows


def main() -> None:
    """Writes the table; five minutes."""
    target = EpsilonAtDelta(EPSILON, DELTA)
    table = {"rate": RATE, "epsilon": EPSILON, "delta": DELTA, "relaxed": {}, "levels": {}}
    file = Path(__file__).parent / "noise.json"
    for steps in STEPS:
        run = DPSGD(1.0, RATE, steps, num_parameters=NETWORK, batch_size=2000)
        worst = calibrate(run, NoiseMultiplier(), target, WorstCase()).value
        sound = calibrate(run, NoiseMultiplier(), target, Relaxed()).value
        noises = {"worst case": worst, "relaxed, d = 1": sound, "relaxed, as published": published_relaxed(run, worst)}
        table["relaxed"][str(steps)] = noises
        short, rows = DPSGD(1.0, RATE, steps // 2, num_parameters=NETWORK, batch_size=2000), []
        for mu in LEVELS:
            dp = gdp_noise(mu, short)
            rows.append({"mu": mu, "GDP": dp, "GMIP": gmip_noise(dp, short)})
        table["levels"][str(steps)] = rows
        print(steps, noises, flush=True)
        write_json(file, table)
    write_json(file, table | {"head": published_levels(HEAD)})


if __name__ == "__main__":
    main()
