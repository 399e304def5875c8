"""What private selection saves on real records: ``python -m experiments.selection.adult`` writes ``adult.json``.

Logistic regression on 2,000 records of Adult by DP-SGD, ten epochs, at epsilon 1 and delta 1e-5 for whatever is released.
The list has twenty settings. Scores are accuracies on 2,000 records of other people, and the accuracy that counts is that
on the rest of the test records. Four ways to spend the same epsilon: no tuning; selection with a geometric number of runs;
all twenty settings and their composition; and tuning that says nothing, whose true epsilon is computed.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import reticent as rt
from reticent.data import load

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


def main() -> None:
    """Run everything and store the means."""
    data = load("adult")
    features = np.hstack([np.asarray(data.features, dtype=float), np.ones((len(data.labels), 1))])
    run = rt.DPSGD(1.0, RATE, STEPS)
    best_of, all_of = rt.Selection(run, rt.Geometric(MEAN)), rt.DPSGD(1.0, RATE, STEPS * MEAN)
    noise = {"one": rt.calibrate(run, GOAL).value, "all": rt.calibrate(all_of, GOAL).value}
    noise["selection"] = rt.calibrate(best_of, GOAL).value
    said_nothing = rt.Selection(rt.DPSGD(noise["one"], RATE, STEPS), rt.Fixed(MEAN))
    found: dict[str, list[float]] = {name: [] for name in ("no tuning", "selection", "composition", "said nothing")}
    for repeat in range(REPEATS):
        rng = np.random.default_rng(repeat)
        train_on = rng.permutation(data.train)[:RECORDS]
        others = rng.permutation(data.test)
        x, y = features[train_on], data.labels[train_on].astype(float)

        def accuracy(weights: np.ndarray, where: np.ndarray) -> float:
            return float(np.mean((features[where] @ weights > 0.0) == data.labels[where]))

        def best(settings: list[tuple[float, float]], sigma: float) -> float:
            models = [train(x, y, sigma, setting, rng) for setting in settings]
            scores = [accuracy(model, others[:SCORED]) for model in models]
            return accuracy(models[int(np.argmax(scores))], others[SCORED:])

        drawn = [SETTINGS[k] for k in rng.integers(len(SETTINGS), size=rt.Geometric(MEAN).draw(rng))]
        found["no tuning"].append(best([SETTINGS[int(rng.integers(len(SETTINGS)))]], noise["one"]))
        found["selection"].append(best(drawn, noise["selection"]))
        found["composition"].append(best(SETTINGS, noise["all"]))
        found["said nothing"].append(best(SETTINGS, noise["one"]))
    result = {
        "noise": noise,
        "true epsilon of saying nothing": {
            "best of 20, nothing else seen": rt.epsilon_at_delta(said_nothing, 1e-5),
            "all 20 seen": rt.epsilon_at_delta(rt.DPSGD(noise["one"], RATE, STEPS * MEAN), 1e-5),
        },
        "accuracy": {
            name: {"mean": float(np.mean(one)), "half_width": float(2.0 * np.std(one, ddof=1) / np.sqrt(REPEATS))}
            for name, one in found.items()
        },
    }
    Path(__file__).with_name("adult.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
