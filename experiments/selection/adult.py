"""What private selection saves on real records: ``python -m experiments.selection.adult`` writes ``adult.json``.

Logistic regression on 2,000 records of Adult by DP-SGD, ten epochs, at epsilon 1 and delta 1e-5 for what is released.
The list has twenty settings. Scores are accuracies on 2,000 records of other people, and the accuracy that counts is
that on the rest of the test records. Four ways to spend this epsilon: no tuning; selection with a geometric number of
runs, 20 on average; all twenty settings and their composition; and the best of 20 runs with the claim of one, whose
true epsilon is computed.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

import reticent as rt
from reticent.data import Dataset, load

RECORDS, SCORED, RATE, STEPS, MEAN, REPEATS = 2000, 2000, 0.05, 200, 20, 60
SETTINGS = [(rate, clip) for rate in (0.03, 0.1, 0.3, 1.0, 3.0) for clip in (0.1, 0.3, 1.0, 3.0)]
GOAL = "epsilon=1@1e-5"


def train(
    x: np.ndarray, y: np.ndarray, noise: float, setting: tuple[float, float], rng: np.random.Generator
) -> np.ndarray:
    """Weights of one run; the learning rate is in units of the clip norm."""
    rate, clip = setting
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        drawn = rng.random(len(x)) < RATE
        slope = 1.0 / (1.0 + np.exp(-x[drawn] @ weights)) - y[drawn]
        gradients = slope[:, None] * x[drawn]
        norms = np.maximum(np.linalg.norm(gradients, axis=1) / clip, 1.0)
        total = (gradients / norms[:, None]).sum(axis=0) + noise * clip * rng.standard_normal(len(weights))
        weights -= rate * total / (clip * RATE * len(x))
    return weights


def trial(data: Dataset, features: np.ndarray, noise: dict[str, float], seed: int) -> dict[str, float]:
    """The accuracy of each way, on one draw of the records."""
    rng = np.random.default_rng(seed)
    train_on, others = rng.permutation(data.train)[:RECORDS], rng.permutation(data.test)
    x, y = features[train_on], data.labels[train_on].astype(float)

    def accuracy(weights: np.ndarray, where: np.ndarray) -> float:
        return float(np.mean((features[where] @ weights > 0.0) == data.labels[where]))

    def best(settings: list[tuple[float, float]], sigma: float) -> float:
        models = [train(x, y, sigma, setting, rng) for setting in settings]
        scores = [accuracy(model, others[:SCORED]) for model in models]
        return accuracy(models[int(np.argmax(scores))], others[SCORED:])

    def drawn(count: int) -> list[tuple[float, float]]:
        return [SETTINGS[k] for k in rng.integers(len(SETTINGS), size=count)]

    return {
        "no tuning": best(drawn(1), noise["one"]),
        "selection": best(drawn(rt.Geometric(MEAN).draw(rng)), noise["selection"]),
        "composition": best(SETTINGS, noise["all"]),
        "said nothing": best(drawn(MEAN), noise["one"]),
    }


def main() -> None:
    """Run everything and store the means."""
    data = load("adult")
    features = np.hstack([np.asarray(data.features, dtype=float), np.ones((len(data.labels), 1))])
    run, all_of = rt.DPSGD(1.0, RATE, STEPS), rt.DPSGD(1.0, RATE, STEPS * MEAN)
    noise = {"one": rt.calibrate(run, GOAL).value, "all": rt.calibrate(all_of, GOAL).value}
    noise["selection"] = rt.calibrate(rt.Selection(run, rt.Geometric(MEAN)), GOAL).value
    trials = [trial(data, features, noise, seed) for seed in range(REPEATS)]
    silent = rt.DPSGD(noise["one"], RATE, STEPS)
    accuracy = {}
    for name in trials[0]:
        values = [one[name] for one in trials]
        half = 2.0 * float(np.std(values, ddof=1)) / math.sqrt(REPEATS)
        accuracy[name] = {"mean": float(np.mean(values)), "half_width": half}
    true = {
        "only the best seen": rt.epsilon_at_delta(rt.Selection(silent, rt.Fixed(MEAN)), 1e-5),
        "all runs seen": rt.epsilon_at_delta(rt.DPSGD(noise["one"], RATE, STEPS * MEAN), 1e-5),
    }
    result = {"noise": noise, "true epsilon of saying nothing": true, "accuracy": accuracy}
    Path(__file__).with_name("adult.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
