"""Bayes security of the stored attribute runs, over seeds and epochs, for the gallery."""

from __future__ import annotations

import json
from math import erfc, expm1, sqrt

import numpy as np

from experiments.gallery import Measured
from experiments.where import results
from experiments.worst_advantage import advantage
from reticent.kernel.pairs import Neighbouring

RESULTS = results(__file__)
COMMANDS = tuple(
    f"experiments.closed_form_bounds.attribute_runs {name} --seed {seed}"
    for name in ("adult", "generated-purchase-shape")
    for seed in range(5)
)


def over_seeds(name: str) -> dict[str, np.ndarray]:
    """Arrays (seeds, epochs) of accuracy and of Bayes security by each formula."""
    runs = [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"{name}-*.json"))]
    first = runs[0]
    membership = [
        1
        - advantage(
            first["noise_multiplier"], first["sample_rate"], e["epoch"] * first["steps_per_epoch"], Neighbouring.REPLACE
        )
        for e in first["epochs"]
    ]
    rows = [[_formulas(run, epoch) for epoch in run["epochs"]] for run in runs]
    found = {key: np.array([[cell[key] for cell in row] for row in rows]) for key in rows[0][0]}
    return found | {"membership": np.tile(membership, (len(runs), 1))}


def _formulas(run: dict, epoch: dict) -> dict[str, float]:
    """Corollary 10 with the exact maximum and the centroid; the proven form for the audited records."""
    rate, noise = run["sample_rate"], run["noise_multiplier"]
    change = epoch["batch_squared_change"]
    printed = {key: erfc(rate * sqrt(change[key]) / (2 * sqrt(2) * noise)) for key in ("exact", "centroid")}
    # log(1 - x) >= -x / (1 - largest x): the product of the steps' affinities from their sum
    scale = rate**2 / (8 * (1 - rate))
    log_affinity = -scale * epoch["audit_mask_term"] / (1 - scale * epoch["audit_largest_mask_term"])
    return printed | {"accuracy": epoch["accuracy"], "proven": 1 - sqrt(-expm1(2 * log_affinity))}


def spread(values: np.ndarray) -> Measured:
    """Mean with the smallest and the largest seed."""
    low, high = float(values.min()), float(values.max())
    return Measured(min(max(float(values.mean()), low), high), low, high, "over seeds")
