"""Power of GLiR on real gradients beside theory and a loss-based attack: five seeds, one and five noise-free steps.

    python -m experiments.gaussian_mip.power               # writes results/power.json

Set-ups after Table 3 of LEEMANN2023, as far as the data at hand allow:

* CIFAR-10: a frozen feature extractor (64 random 6x6 filters, rectified, pooled 2x2, PCA to 64 fitted on 2,000
  images that take part in nothing else; no pretrained network is at hand) and a softmax layer: 650 parameters, n = 500;
* Adult: 512 random rectified features and a softmax layer: 1026 parameters, n = 790;
* Location-30: an MLP body (446-32) pretrained on 1,000 records that take part in nothing else, and a
  softmax layer: 990 parameters, n = 500.

Members are the one batch, used in every step (full batch, no noise, clip norm 10, learning rate of the script).
Non-members, held-out non-members and background are further records of the same data. The softmax makes 1/classes of
the coordinates redundant; they are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, relu

from experiments.gaussian_mip.exact_step import GaussianGradientTradeOff
from experiments.where import results
from reticent.adversaries.game import gmip
from reticent.attacks import glir_statistics as glir
from reticent.attacks.glir import Records, ReleasedStep, glir_attack
from reticent.attacks.gradients import GradientMap
from reticent.data import Dataset, load
from reticent.kernel.curves import GaussianTradeOff

RESULTS = results(__file__) / "power.json"
FPR = (0.001, 0.01, 0.1)
STEPS, CLIP, LEARNING_RATE = 5, 10.0, 0.5


@dataclass(frozen=True)
class Setup:
    """One data set after feature extraction.

    Attributes:
        name: the data set.
        batch: members, all in one batch.
        background, held_out, outsiders: numbers of other records.
        features: (rng) -> (features, labels, classes, rows not to be used as queries).
    """

    name: str
    batch: int
    background: int
    held_out: int
    outsiders: int
    features: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, int, np.ndarray]]


@lru_cache(maxsize=1)
def _loaded(name: str) -> Dataset:
    return load(name)


def cifar_features(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """Random patch filters, rectified and pooled, then PCA to 64 unit-variance components."""
    data = _loaded("cifar-10")
    chosen = rng.permutation(len(data.features))[:18_600]
    images = torch.from_numpy(data.features[chosen])
    filters = torch.from_numpy(rng.normal(size=(64, 3, 6, 6)).astype(np.float32)) / 108**0.5
    parts = [
        nn.functional.adaptive_avg_pool2d(relu(nn.functional.conv2d(x, filters, stride=2)), 2).flatten(1)
        for x in images.split(500)
    ]
    x = torch.cat(parts).numpy().astype(np.float64)
    fitted = np.arange(2_000)
    centred = x - x[fitted].mean(axis=0)
    _, s, vt = np.linalg.svd(centred[fitted], full_matrices=False)
    out = centred @ vt[:64].T / (s[:64] / len(fitted) ** 0.5)
    return out.astype(np.float32), data.labels[chosen], 10, fitted


def adult_features(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """512 random rectified features of the encoded attributes."""
    data = _loaded("adult")
    chosen = rng.permutation(len(data.features))[:22_000]
    x = data.features[chosen].astype(np.float64)
    weights = rng.normal(size=(x.shape[1], 512)) / x.shape[1] ** 0.5
    return np.maximum(x @ weights, 0.0).astype(np.float32), data.labels[chosen], 2, np.array([], dtype=int)


def location_features(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """The 32 hidden features of an MLP trained on 1,000 records that take part in nothing else."""
    data = _loaded("location-30")
    chosen = rng.permutation(len(data.features))
    x, y = torch.from_numpy(data.features[chosen]), torch.from_numpy(data.labels[chosen])
    torch.manual_seed(int(rng.integers(2**31)))
    body, head = nn.Linear(x.shape[1], 32), nn.Linear(32, data.classes)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        cross_entropy(head(torch.tanh(body(x[:1_000]))), y[:1_000]).backward()
        optimizer.step()
    with torch.no_grad():
        hidden = torch.tanh(body(x))
    return hidden.numpy(), data.labels[chosen], data.classes, np.arange(1_000)


SETUPS = (
    Setup("Location-30", 500, 2_000, 500, 1_000, location_features),
    Setup("Adult", 790, 10_000, 1_000, 5_000, adult_features),
    Setup("CIFAR-10", 500, 10_000, 1_000, 5_000, cifar_features),
)


def released(model: nn.Linear, gradients: GradientMap, members: Records) -> Iterator[ReleasedStep]:
    """Noise-free full-batch steps; the model moves in place."""
    for _ in range(STEPS):
        weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        total = gradients(weights, members.features, members.labels).sum(axis=0)
        yield ReleasedStep(weights, total)
        moved = weights - LEARNING_RATE * torch.from_numpy(total / len(members)).float()
        nn.utils.vector_to_parameters(moved, model.parameters())


def rates(member: np.ndarray, outsider: np.ndarray) -> dict[str, float]:
    """AUC, and TPR at fixed FPR with the threshold among non-members."""
    order = np.sort(outsider)
    below = np.searchsorted(order, member, side="left") + np.searchsorted(order, member, side="right")
    out = {"auc": float(below.mean() / (2 * len(order)))}
    for fpr in FPR:
        out[f"tpr_at_{fpr:g}"] = float(np.mean(member > np.quantile(outsider, 1.0 - fpr)))
    return out


def attack_once(setup: Setup, seed: int) -> dict[str, object]:
    """One seed of one set-up: GLiR after one and after five steps, and the loss after five."""
    rng = np.random.default_rng([seed, len(setup.name)])
    x, y, classes, fitted = setup.features(rng)
    free = rng.permutation(np.setdiff1d(np.arange(len(x)), fitted))
    bounds = np.cumsum([0, setup.batch, setup.outsiders, setup.held_out, setup.background])
    pick = [free[a:b] for a, b in pairwise(bounds)]
    members, outsiders, held, background = (Records(torch.from_numpy(x[i]), torch.from_numpy(y[i])) for i in pick)
    torch.manual_seed(seed)
    model = nn.Linear(x.shape[1], classes)
    gradients = GradientMap(model, CLIP, chunk=2_000)
    steps = list(released(model, gradients, members))
    queries = Records(torch.cat([members.features, outsiders.features]), torch.cat([members.labels, outsiders.labels]))
    design = glir.BatchDesign(float(setup.batch))
    one = glir_attack(steps[:1], gradients, queries, background, design, held)
    five = glir_attack(steps, gradients, queries, background, design, held)
    with torch.no_grad():
        logits = model(queries.features).double()
        loss = cross_entropy(logits, queries.labels, reduction="none").numpy()
        accuracy = float((logits.argmax(dim=1) == queries.labels)[setup.batch :].double().mean())
    n = setup.batch
    p = five.p_values()[n:]
    return {
        "seed": seed,
        "glir_one_step": rates(one.log_ratio[:n], one.log_ratio[n:]),
        "glir_five_steps": rates(five.log_ratio[:n], five.log_ratio[n:]),
        "loss_five_steps": rates(-loss[:n], -loss[n:]),
        "false_positives_at_p_0.05": float(np.mean(p <= 0.05)),
        "false_positives_at_p_0.01": float(np.mean(p <= 0.01)),
        "mean_susceptibility": float(np.mean(one.susceptibility[n:])),
        "largest_susceptibility": float(np.max(one.susceptibility[n:])),
        "accuracy": accuracy,
        "parameters": gradients.num_parameters,
        "warnings": list(five.warnings),
    }


def theory(parameters: int, classes_share: float, batch: int) -> dict[str, object]:
    """One step: limit at K = d and exact for Gaussian gradients, d without redundant coordinates; five as published."""
    d = round(parameters * (1.0 - classes_share))
    step = gmip.one_step_mu(d, d, batch)
    curves = {
        "limit": GaussianTradeOff(step),
        "gaussian_gradients": GaussianGradientTradeOff(d, float(batch)),
        "published_five_steps": GaussianTradeOff(STEPS**0.5 * step),
    }
    grid = (np.arange(4000) + 0.5) / 4000
    return {"d": d, "mu_step": step} | {
        name: {"auc": float(curve.power(grid).mean())} | {f"tpr_at_{fpr:g}": float(curve.power(fpr)) for fpr in FPR}
        for name, curve in curves.items()
    }


def summary(runs: list[dict[str, object]], attack: str) -> dict[str, list[float]]:
    """Mean, smallest and largest over seeds."""
    keys = runs[0][attack].keys()
    table = {key: np.array([run[attack][key] for run in runs]) for key in keys}
    return {key: [float(v.mean()), float(v.min()), float(v.max())] for key, v in table.items()}


def main() -> None:
    """Run every set-up and write the results."""
    parser = argparse.ArgumentParser(description="Power of the gradient attack on real data.")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    results = {}
    for setup in SETUPS:
        classes = {"CIFAR-10": 10, "Adult": 2, "Location-30": 30}[setup.name]
        runs = []
        for seed in range(args.seeds):
            runs.append(attack_once(setup, seed))
            print(setup.name, runs[-1], flush=True)
        results[setup.name] = {
            "batch": setup.batch,
            "theory": theory(runs[0]["parameters"], 1.0 / classes, setup.batch),
            "summary": {name: summary(runs, name) for name in ("glir_one_step", "glir_five_steps", "loss_five_steps")},
            "runs": runs,
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
