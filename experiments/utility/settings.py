"""Data, models and rules of the utility experiment.

The last part of each training set is taken as public: hyperparameters are chosen and directions of gradients are
measured on it alone. The rest is private; only it is trained on for the results, and only the test set judges them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.where import results
from reticent import data
from reticent.data import Dataset
from reticent.training import TrainConfig, parse_config
from reticent.training.features import extracted

RESULTS = results(__file__)
SEEDS = range(5)
DELTA = 1e-5
LEVELS = tuple(float(mu) for mu in np.geomspace(0.4, 50, 20))
TRAINED = LEVELS[:11:5]
"""Levels of mu at which noise is computed, and at which models are trained too."""


@dataclass(frozen=True)
class Study:
    """One data set with its recipe.

    Attributes:
        data: of the configuration.
        private, public: numbers of training records; the last fifth of the public ones validates.
        sample_rate, steps: of every private run.
        parameters: trained.
        recipe: everything else of the configuration.
        targets: advantages that are allowed to the attacker.
    """

    data: dict[str, Any]
    private: int
    public: int
    sample_rate: float
    steps: int
    parameters: int
    recipe: dict[str, Any]
    targets: tuple[float, ...] = (0.1, 0.25, 0.5)

    def config(self, noise: float, seed: int, **changes: Any) -> TrainConfig:
        """The configuration of one run."""
        base = {"data": self.data, "noise_multiplier": noise, "seed": seed, "randomness": "reproducible"}
        size = {"sample_rate": self.sample_rate, "steps": self.steps, "divisor": self.sample_rate * self.private}
        return parse_config(base | size | self.recipe | changes)


SMOOTH = {"learning_rate_schedule": {"decay": "cosine"}, "physical_batch_size": 256}
SCATTERING = {"kind": "scattering", "scales": 2, "angles": 8, "cells": 4, "groups": 23}
STUDIES = {
    "cifar-10": Study(
        data={"name": "cifar-10", "features": SCATTERING},
        private=40_000,
        public=10_000,
        sample_rate=0.05,
        steps=100,
        parameters=18_410,
        recipe=SMOOTH | {"model": {"kind": "logistic"}, "momentum": 0.9, "learning_rate": 120.0, "max_grad_norm": 0.2},
        targets=(0.1,),
    ),
    "adult": Study(
        data={"name": "adult"},
        private=26_000,
        public=6_561,
        sample_rate=0.02,
        steps=250,
        parameters=7_106,
        recipe=SMOOTH
        | {"model": {"kind": "mlp", "widths": [64]}, "momentum": 0.9, "learning_rate": 1.35, "max_grad_norm": 1.0},
    ),
}
RANDOM = {"data": {"name": "adult", "features": {"kind": "random", "width": 512}}, "private": 26_000, "public": 6_561}
RANDOM |= {"sample_rate": 1 / 26, "parameters": 1_026}
LINEAR = SMOOTH | {"model": {"kind": "logistic"}, "momentum": 0.9, "learning_rate": 36.0, "max_grad_norm": 1.0}
STUDIES |= {
    "adult-random": Study(**RANDOM, steps=130, recipe=LINEAR),
    "adult-once": Study(**RANDOM, steps=26, recipe=LINEAR),
}
"""Sizes near those of the membership paper's Adult experiment: 1,026 parameters, batches of 1,000."""
PATCHES = {"kind": "patches", "width": 500, "size": 5, "stride": 2, "cells": 3, "threshold": 0.5}
HEAD = SMOOTH | {"model": {"kind": "logistic", "bias": False}, "momentum": 0.9, "average_last": 0.2}
HEAD |= {"max_grad_norm": 1.0, "learning_rate": 16.0, "physical_batch_size": 8192}
LARGE = {"sample_rate": 0.1, "steps": 150, "recipe": HEAD, "targets": (0.1,)}
STUDIES |= {
    "adult-linear": Study(data={"name": "adult"}, private=26_000, public=6_561, parameters=216, **LARGE),
    "cifar-10-linear": Study(
        data={"name": "cifar-10", "features": PATCHES},
        private=40_000,
        public=10_000,
        parameters=90_000,
        **(LARGE | {"recipe": HEAD | {"max_grad_norm": 0.25}}),
    ),
}
"""One linear layer without a bias: what is proven of it depends on how its gradients react (``reacting``)."""


def whole(name: str) -> Dataset:
    """The data set with its features; those of images are kept in $XDG_CACHE_HOME, because they take minutes."""
    config = STUDIES[name].config(1.0, 0).data
    if config.name != "cifar-10":
        return extracted(data.load(config.name), config.features)
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "reticent"
    kept = folder / f"{name}-features.npz"
    if not kept.exists():
        found = extracted(data.load(config.name), config.features)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(kept, features=found.features, labels=found.labels, notes=found.notes, origin=found.origin)
    with np.load(kept) as file:
        rows, labels, notes, origin = (file[key] for key in ("features", "labels", "notes", "origin"))
    test = np.arange(len(rows) - 10_000, len(rows))
    return Dataset(
        config.name,
        "features",
        rows,
        labels,
        10,
        test[0] - np.arange(test[0])[::-1] - 1,
        test,
        notes=tuple(map(str, notes)),
        origin=str(origin),
    )


def private_part(dataset: Dataset, study: Study) -> Dataset:
    """Private training records, judged by the test set."""
    return dataset.subset(study.private)


def public_part(dataset: Dataset, study: Study) -> Dataset:
    """Public records: four fifths to train on, one fifth to validate."""
    records = dataset.train[study.private : study.private + study.public]
    split = len(records) * 4 // 5
    return replace(dataset, train=records[:split].copy(), test=records[split:].copy())
