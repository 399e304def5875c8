"""Relaxed threat model, Figure 4: what the relaxed noise scale is worth; ResNet-9 on CIFAR-10 from stored runs."""

import json
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from experiments.gallery import Entry, Measured, Published
from reticent.adversaries import NormOnly, Relaxed
from reticent.calibration import EpsilonAtDelta, NoiseMultiplier, calibrate
from reticent.kernel.adversaries import WorstCase, assess
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.risk import epsilon_at_delta

TASKS = {
    "CIFAR-10": (1.0, 1e-5, DPSGD(1.0, 0.05, 200)),
    "SNLI": (1.0, 1.8e-6, DPSGD(1.0, 0.01, 300)),
    "ImageNet": (10.0, 1e-6, DPSGD(1.0, 0.0128, 7000)),
}
RULES = {
    "worst case": "worst case",
    "relaxed, sound for d = 1": "relaxed, d = 1",
    "relaxed": "relaxed, as published",
    "no noise": "none",
}
"""Our names, and those of the stored cells."""


def per_release(mechanism, epsilon, delta, top):
    """Noise as published: GLRT curves amplified and composed one by one reach the target."""

    def excess(log_noise):
        run = DPSGD(float(np.exp(log_noise)), mechanism.sample_rate, mechanism.steps)
        return epsilon_at_delta(NormOnly().assess(run).curve, delta) - epsilon

    return float(np.exp(brentq(excess, np.log(0.3 * top), np.log(top), xtol=1e-3)))


def noises(left):
    """Bars: noise over the worst case's noise; numbers: the worst-case epsilon at that noise."""
    ours, bars = {}, {}
    for task, (epsilon, delta, sampled) in TASKS.items():
        target = EpsilonAtDelta(epsilon, delta)
        for where, mechanism in (("no sampling", Gaussian(1.0)), ("sampled", sampled)):
            worst = calibrate(mechanism, NoiseMultiplier(), target, WorstCase()).value
            sound = calibrate(mechanism, NoiseMultiplier(), target, Relaxed())
            found = {"sound for d = 1": sound.value}
            if mechanism is sampled:
                found["published, release by release"] = per_release(sampled, epsilon, delta, worst)
            for rule, noise in found.items():
                used = Gaussian(noise) if mechanism is not sampled else DPSGD(noise, sampled.sample_rate, sampled.steps)
                true = assess(used, (WorstCase(),))[0].measure(lambda c, d=delta: epsilon_at_delta(c, d)).value
                ours[f"{task}, {where}, {rule}: noise ratio"] = Measured(noise / worst, drift=2e-3)
                ours[f"{task}, {where}, {rule}: worst-case epsilon"] = Measured(true, drift=0.01 * true)
                bars[f"{task}\n{where}\n{rule}"] = (noise / worst, true, epsilon)
    left.bar(range(len(bars)), [b[0] for b in bars.values()], color=["tab:blue", "tab:blue", "tab:red"] * 3)
    for k, (ratio, true, epsilon) in enumerate(bars.values()):
        left.text(k, ratio, f"true {true:.2f}\nfor {epsilon:g}", ha="center", va="bottom", fontsize=5)
    left.set_xticks(range(len(bars)), list(bars), fontsize=4, rotation=30)
    left.set(ylabel="noise over that of the worst case", ylim=(0, 1.25))
    return ours


def accuracies(right):
    """Accuracy of each rule at the learning rate that public images chose."""
    stored = json.loads((Path(__file__).parents[1] / "images" / "results" / "cells.json").read_text())
    cells = [c for c in stored["cells"] if c["part"] == "relaxed"]
    tuned = [c for c in cells if c["rule"] == "relaxed, d = 1" and c["seed"] == 0]
    rate, ours, means = max(tuned, key=lambda c: c["public"])["learning_rate"], {}, {}
    for place, (rule, kept) in enumerate(RULES.items()):
        found = np.array([c["test"] for c in cells if c["rule"] == kept and c["learning_rate"] == rate])
        about = f"{len(found)} seeds" if len(found) > 1 else ""
        ends = (found.min(), found.max(), about) if about else ()
        ours[f"accuracy, CIFAR-10, {rule}"] = Measured(found.mean(), *ends)
        means[rule] = found.mean()
        right.bar(place, found.mean(), yerr=found.std(ddof=1) if about else 0, capsize=3, color=f"C{place}")
    ours["gain in points, CIFAR-10"] = 100 * (means["relaxed"] - means["worst case"])
    right.set_xticks(range(len(RULES)), [rule.replace(", ", ",\n") for rule in RULES], fontsize=6)
    right.set(ylabel="test accuracy, ResNet-9", ylim=(0.4, 0.5))
    return ours


def run(figure):
    """Noise of three tasks on the left, accuracy of the first on the right."""
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    return noises(left) | accuracies(right)


ENTRY = Entry(
    id="relaxed-threat-model/figure-4",
    title="Deep learning with the relaxed noise scale",
    run=run,
    published=(
        Published("accuracy, CIFAR-10, relaxed", 0.81, "Figure 4 (a)", 0.01),
        Published("accuracy, CIFAR-10, worst case", 0.67, "Figure 4 (a)", 0.01),
        Published("gain in points, CIFAR-10", 14.0, "section 5: up to 14% higher on CIFAR-10", 1.0),
        Published("accuracy, SNLI, relaxed", 0.80, "Figure 4 (b)", 0.005),
        Published("accuracy, SNLI, worst case", 0.78, "Figure 4 (b)", 0.005),
        Published("accuracy, ImageNet, relaxed", 0.48, "Figure 4 (c)", 0.005),
        Published("accuracy, ImageNet, worst case", 0.46, "Figure 4 (c)", 0.005),
    ),
    reason="ResNet-9 from scratch gains 1.3 points by the noise that is sound for d = 1 and 1.7 by the published "
    "one, whose true epsilon is 2.4 for the stated 1; the paper has 14. Eight passes reach 0.467 without "
    "any noise, so what a GPU does in ten minutes is limited by the steps, and noise costs 2.4 points at "
    "most. With 1,000 steps of rate 0.05 the published rule would ask for 0.35 of the noise, at epsilon "
    "3.5.",
    needs="SNLI and ImageNet, and the paper's appendix (sampling rates, steps, learning rates)",
    settings={
        t: f"({e:g}, {d:g}); sampled: rate {m.sample_rate}, {m.steps} steps (ours)" for t, (e, d, m) in TASKS.items()
    }
    | {
        "trained": "ResNet-9 with 2,440,266 parameters from scratch on 40,000 images, clip norm 1, seeds 0 to 2, on a "
        "GPU in ten minutes (experiments/images/train.py; not computed again); learning rate 0.5 of 0.125 to 4 chosen "
        "on 10,000 public images of the training set"
    },
    inches=(10.0, 3.6),
)
