"""Gaussian MIP, Figure 3: accuracy at 20 levels of mu under GDP and under GMIP; from stored runs."""

import json
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from experiments.gallery import Entry, Measured, Published, Relation
from experiments.where import results

SETTINGS = {
    "CIFAR-10": (48000, 650, 400, 10, 500.0),
    "Purchase": (54855, 2580, 795, 3, 2000.0),
    "Adult": (43000, 1026, 1000, 20, 800.0),
}
LEVELS = np.geomspace(0.4, 50, 20)
LOOKS = {"GDP": "o-k", "GMIP": "x--r", "true run": "s-b"}
IMAGES = Path(__file__).parents[1] / "images"


def composed(mu_step, size, batch, epochs):
    """Equation (10): Corollary 4 of Dong et al. for uniform batches."""
    steps = epochs * size // batch
    inside = np.exp(mu_step**2) * ndtr(1.5 * mu_step) + 3 * ndtr(-mu_step / 2) - 2
    return batch / size * np.sqrt(2 * steps * max(inside, 0.0))


def noises(mu, size, d, batch, epochs, clip):
    """Noise on the mean gradient: DP, and MIP by the published minimum rule."""
    mu_step = brentq(lambda m: composed(m, size, batch, epochs) - mu, 1e-3, 12)
    dp = 2 * clip / (batch * mu_step)
    return dp, min(dp, clip / batch * np.sqrt(max(0.0, d / mu_step**2 - 0.5 - batch)))


def accuracy_of(axes, name, rows):
    """Draw the mean over the seeds of each rule; numbers at three levels, and where GMIP is the more accurate."""
    ours, of = {}, {rule: [r for r in rows if r["rule"] == rule] for rule in LOOKS}
    for rule, look in LOOKS.items():
        found = np.array([r["test"] for r in of[rule]])
        label = "least noise that keeps mu-GDP's epsilon" if rule == "true run" else rule
        axes.errorbar(LEVELS, found.mean(1), found.std(1, ddof=1), fmt=look, markersize=3, label=label)
        for at in (0, 5, 19):
            values = found[at]
            where = f"{name}, mu {LEVELS[at]:.3g}, {rule}: accuracy"
            ours[where] = Measured(values.mean(), values.min(), values.max(), f"{len(values)} seeds")
    gdp, gmip = (np.array([r["test"] for r in of[rule]]) for rule in ("GDP", "GMIP"))
    ours[f"{name}: levels at which every seed of GMIP is above every seed of GDP"] = float(
        (gmip.min(1) > gdp.max(1)).sum()
    )
    ours[f"{name}: GMIP over GDP, largest gain in points"] = 100 * float((gmip - gdp).mean(1).max())
    ours[f"{name}, mu 1.43, GMIP: noise"] = of["GMIP"][5]["noise"]
    return ours


def run(figure):
    """Accuracy over mu, and of Purchase the noise; below, the whole ResNet-9."""
    ours, panels = {}, dict(zip(SETTINGS, figure.subplots(1, 3), strict=True))
    for name, (size, d, batch, epochs, _) in SETTINGS.items():
        free = composed(np.sqrt(2 * d / (2 * batch + 1)), size, batch, epochs)
        ours[f"{name}: no noise from mu on"] = free
        ours[f"{name}: first of the 20 levels without noise"] = LEVELS[free < LEVELS][0]
        panels[name].set(title=name, xlabel="mu", ylabel="test accuracy", xscale="log")
    head = json.loads((IMAGES / "results" / "head.json").read_text())
    adult = json.loads((results(__file__) / "utility-adult.json").read_text())
    ours |= accuracy_of(panels["CIFAR-10"], "CIFAR-10", head["rows"]) | accuracy_of(
        panels["Adult"], "Adult", adult["rows"]
    )
    table = np.array([noises(mu, *SETTINGS["Purchase"]) for mu in LEVELS])
    for column, rule in zip(table.T, ("GDP", "GMIP"), strict=True):
        panels["Purchase"].plot(LEVELS, column, LOOKS[rule], markersize=3)
    panels["Purchase"].set(ylabel="noise on the mean gradient")
    whole = json.loads((IMAGES / "results" / "cells.json").read_text())
    levels = json.loads((IMAGES / "noise.json").read_text())["levels"][str(whole["steps"])]
    cells = sorted((c["mu"], c["test"]) for c in whole["cells"] if c["part"] == "levels")
    panels["CIFAR-10"].plot(*zip(*cells, strict=True), ".:", color="grey", label="ResNet-9, GDP and GMIP alike")
    panels["CIFAR-10"].legend()
    ours["ResNet-9: levels at which GMIP asks for less noise than GDP"] = float(
        sum(row["GMIP"] < row["GDP"] for row in levels)
    )
    ours["Adult, mu 1.43: advantage of the worst case at the noise of GMIP"] = float(adult_attacker(adult["rows"]))
    return ours


def adult_attacker(rows):
    """What an attacker reaches at the noise of GMIP, level 1.43; without noise everything."""
    from reticent.kernel.adversaries import WorstCase
    from reticent.kernel.mechanisms import DPSGD
    from reticent.kernel.pairs import Neighbouring
    from reticent.kernel.risk import advantage

    noise = [r["noise"] for r in rows if r["rule"] == "GMIP"][5]
    run = DPSGD(noise, 1000 / 43000, 860)
    return WorstCase().assess(run, Neighbouring.REPLACE).measure(advantage).value


ENTRY = Entry(
    id="gaussian-mip/figure-3",
    title="Utility under GDP and under GMIP",
    run=run,
    published=(
        Published("CIFAR-10: first of the 20 levels without noise", 0.86, "section 6.2", 0.005),
        *(
            Published(
                f"{name}: levels at which every seed of GMIP is above every seed of GDP",
                11.0,
                "section 6.2: higher accuracy for most values of mu",
                0.0,
                Relation.AT_LEAST,
            )
            for name in ("CIFAR-10", "Adult")
        ),
        Published(
            "Adult, mu 1.43: advantage of the worst case at the noise of GMIP",
            0.524,
            "section 6.2: the same attack success rates as mu-GDP, whose advantage this is",
            0.0005,
            Relation.AT_MOST,
        ),
    ),
    reason="As printed, GMIP is the more accurate from its threshold on: on CIFAR-10 at 16 of 20 levels, by up to "
    "20 points, on Adult at 15, by up to 5. It is so because no noise is added there, which rests on a "
    "composition that is no bound: at mu 1.43 the worst case reaches everything. Half of what GDP loses is "
    "the published formula: the least noise that keeps the epsilon of mu-GDP reaches 0.72 on CIFAR-10 at "
    "mu 1.43, where GDP's reaches 0.56. For all parameters of a ResNet-9 both rules ask for the same noise "
    "at every level.",
    needs="the Purchase data, and CIFAR-100, on which the paper's ResNet-56 was pretrained",
    stored=("experiments.gaussian_mip.last_layer",),
    settings={
        "levels of mu": "20 from 0.4 to 50",
        "seeds": "0 to 4",
        "sizes": "Table 4, of CIFAR-10 40,000 records",
        "CIFAR-10": "last layer of a ResNet-56 that learnt from 10,000 public images of the training set (one GPU, "
        "experiments/images/train.py; not computed again); ResNet-9 from scratch, one seed, 100 steps",
        "Adult": "512 random tanh features",
    },
    inches=(10.0, 3.4),
)
