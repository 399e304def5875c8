"""Does a gradient below the clip norm count the same whoever else is in the batch? An exact test, with a p-value.

A loss that is divided by the batch's size, items or class weights before gradients are clipped couples the records:
one of them changes what all others count. Clipping hides this where gradients are long, so these are short, and the
noise is a thousandth of a clip norm. What a record counts is left open (it may be normalised, or clipped more
strongly); it must be the same each time.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats

from reticent.attacks.participation import SPARE, Check, Plan
from reticent.attacks.white_box import Layers, dirac_records, square_layers
from reticent.kernel.mechanisms import DPSGD

NOISE = 0.001
"""Noise multiplier of the run."""
STEPS = 128
NAME = "short gradients"
_NORMS = 0.2, 0.9
_TAKES_PART = 20.0
ROUNDING = 2.0**-8
"""Of a count: what sixteen bits round away."""


def short_gradients(claim: DPSGD, plan: Plan) -> tuple[Layers, torch.Tensor, torch.Tensor]:
    """Layers, features and labels: two thirds of the records are short, each at its own coordinate.

    The others have no gradient and the other label.
    """
    layers, size = square_layers(len(plan.records) + SPARE), claim.dataset_size or 1
    rng = np.random.default_rng(1)
    loud = rng.random(len(plan.records)) < 2.0 / 3.0
    norms = claim.max_grad_norm * rng.uniform(*_NORMS, len(loud)) * loud
    features = dirac_records(layers, np.arange(len(norms)), norms, size, plan.records)
    labels = torch.zeros(size, dtype=torch.int64)
    labels[torch.from_numpy(plan.records[~loud])] = 1
    return layers, features, labels


def counts_alone(sums: np.ndarray, records: int, noise: float) -> Check:
    """Chi-square of what each record counts around its own mean.

    Args:
        sums: in clip norms, shape (steps, records + spare).
        records: how many are followed.
        noise: noise multiplier of this run.
    """
    seen, spare = sums[:, :records], sums[:, records:]
    level = float(np.sqrt((spare**2).mean()))
    if level > 2.0 * noise:
        return Check(NAME, 1.0, f"not tested: the noise is {level:.3g} clip norms where the loop was told {noise:.3g}")
    part = seen > _TAKES_PART * noise
    times = part.sum(axis=0)
    again = times > 1
    if not again.any():
        return Check(NAME, 1.0, "not tested: no record took part twice")
    part, seen, times = part[:, again], seen[:, again], times[again]
    usual = (seen * part).sum(axis=0) / times
    off = (seen - usual) * part
    p = float(stats.chi2.sf((off**2 / (noise**2 + (ROUNDING * usual) ** 2)).sum(), (times - 1).sum()))
    worst = np.unravel_index(int(np.abs(off / usual).argmax()), off.shape)
    words = f"a record counts {seen[worst]:.4g} in step {worst[0]}, and {usual[worst[1]]:.4g} on average"
    return Check(NAME, p, words)
