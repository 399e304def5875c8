"""LiRA on the loss against GLiR's models: ``python -m experiments.gaussian_mip.shadow`` writes ``results/shadow.json``.

``short``: the models of ``power``, five noise-free steps on one batch. ``long``: as many passes as in the utility
experiment (Adult 20, CIFAR-10 10; Location-30 in the place of Purchase 3) over half of the records, with its batches
and learning rate. Each shadow model
learns from a random half (``short``: from as many records as the target) and starts as the target does. All models of a
set are trained at once; ``lira_online`` of the library scores them.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import torch
from torch.nn.functional import one_hot

from experiments.gaussian_mip.power import CLIP, LEARNING_RATE, SETUPS, STEPS, Setup, rates, summary
from experiments.where import results
from reticent.attacks.shadow_scores import lira_online
from reticent.tasks import write_json

MODELS = {"short": 512, "long": 32}
LONG = {"Location-30": (21, 3, 1e-3), "Adult": (1000, 20, 2e-3), "CIFAR-10": (400, 10, 1e-3)}
"""Batch, passes and learning rate, after Table 4 and the paper's code; Location-30 in as many batches as Purchase."""


def gradient(weights: torch.Tensor, x: torch.Tensor, y: torch.Tensor, clip: float = math.inf) -> torch.Tensor:
    """Mean clipped gradient of each model: weights (models, features, classes), x (models, records, features)."""
    wrong = torch.bmm(x, weights).softmax(-1) - one_hot(y, weights.shape[2])
    wrong *= (clip / (wrong.norm(dim=-1) * x.norm(dim=-1))).clamp(max=1.0)[..., None]
    return torch.bmm(x.transpose(1, 2), wrong) / x.shape[1]


def short(x: torch.Tensor, y: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Five steps on the whole batch, clipped as in ``power``."""
    for _ in range(STEPS):
        for some in torch.arange(len(chosen)).split(32):
            weights[some] -= LEARNING_RATE * gradient(weights[some], x[chosen[some]], y[chosen[some]], CLIP)
    return weights


def long(x: torch.Tensor, y: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor, name: str) -> torch.Tensor:
    """Passes over shuffled records with Adam."""
    size, passes, rate = LONG[name]
    first, second, t = torch.zeros_like(weights), torch.zeros_like(weights), 0
    for _ in range(passes):
        order = torch.rand(chosen.shape).argsort(1)
        for part in order[:, : chosen.shape[1] // size * size].split(size, dim=1):
            here, t = chosen.gather(1, part), t + 1
            g = gradient(weights, x[here], y[here])
            first.lerp_(g, 0.1)
            second.lerp_(g.square(), 0.001)
            weights -= rate * (first / (1 - 0.9**t)) / ((second / (1 - 0.999**t)).sqrt() + 1e-8)
    return weights


def confidence(x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> np.ndarray:
    """log(p / (1 - p)) of the label for each model and record."""
    found = []
    for one in weights:
        logits = x @ one
        own = logits.gather(1, y[:, None])
        others = logits.scatter(1, y[:, None], -torch.inf).logsumexp(1)
        found.append((own[:, 0] - others).numpy())
    return np.array(found)


def attack(setup: Setup, kind: str, seed: int) -> dict[str, float]:
    """The target is the first model; members are its records."""
    rng = np.random.default_rng([seed, len(setup.name)])
    features, labels, classes, fitted = setup.features(rng)
    free = rng.permutation(np.setdiff1d(np.arange(len(features)), fitted))
    pool = free[: setup.batch + setup.outsiders] if kind == "short" else free
    size = setup.batch if kind == "short" else len(pool) // 2
    x = torch.from_numpy(np.hstack([features[pool], np.ones((len(pool), 1), np.float32)]))
    y, count = torch.from_numpy(labels[pool]), MODELS[kind] + 1
    # Of the pool, as many as the target has; for a few members, half of the shadow models have them all the same.
    chosen = torch.stack([torch.randperm(len(pool), generator=_seeded(seed, k))[:size] for k in range(count)])
    chosen[0] = torch.arange(size)
    torch.manual_seed(seed)
    start = (torch.rand(x.shape[1], classes) * 2 - 1) / x.shape[1] ** 0.5
    weights = start.expand(count, -1, -1).clone()
    weights = short(x, y, chosen, weights) if kind == "short" else long(x, y, chosen, weights, setup.name)
    included = np.zeros((count, len(pool)), dtype=bool)
    np.put_along_axis(included, chosen.numpy(), True, axis=1)
    found = confidence(x, y, weights)
    scores = lira_online(found[0], found[1:], included[1:])
    return rates(scores[included[0]], scores[~included[0]])


def _seeded(seed: int, k: int) -> torch.Generator:
    return torch.Generator().manual_seed(10_000 * seed + k)


def main() -> None:
    """Every set-up and seed, kept as soon as it is known."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    given, document = parser.parse_args(), {}
    for setup in SETUPS:
        for kind in MODELS:
            runs = [{"lira": attack(setup, kind, seed)} for seed in range(given.seeds)]
            document.setdefault(setup.name, {})[kind] = {"runs": runs, "summary": summary(runs, "lira")}
            print(setup.name, kind, document[setup.name][kind]["summary"], flush=True)
            write_json(results(__file__) / "shadow.json", document)


if __name__ == "__main__":
    main()
