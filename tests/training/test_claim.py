"""The release is what the mechanism claims: a canary's projection, against the certified curve of one step."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from reticent.kernel.accountants import compose
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage
from reticent.training import Settings
from tests.training.small import stepped

CLIP, SIGMA, RATE, STEPS = 0.5, 0.8, 0.35, 300


def projections(recorder, present: bool) -> np.ndarray:
    """Released sums along the canary's direction, in clip norms: one number per step, weights frozen."""
    model = torch.nn.Linear(2, 2, bias=False)
    torch.nn.init.zeros_(model.weight)
    features = torch.zeros(10, 2)
    if present:
        features[4, 0] = 100.0
    settings, labels = Settings(SIGMA, CLIP, RATE, 3.5, STEPS), torch.zeros(10, dtype=torch.int64)
    stepped(model, settings, features, labels, recorder, seed=21 + present)
    direction = np.array([-1.0, 0.0, 1.0, 0.0]) / np.sqrt(2.0)
    return torch.stack([u.gradient for u in recorder.updates]).numpy() @ direction * 3.5 / CLIP


def test_one_step_is_the_claimed_pair(recorder):
    absent = projections(recorder, present=False)
    recorder.updates.clear()
    present = projections(recorder, present=True)

    def mixture(x):
        return (1 - RATE) * stats.norm.cdf(x, 0, SIGMA) + RATE * stats.norm.cdf(x, 1, SIGMA)

    assert stats.kstest(absent, lambda x: stats.norm.cdf(x, 0, SIGMA)).pvalue > 1e-9
    assert stats.kstest(present, mixture).pvalue > 1e-9
    assert present.mean() == pytest.approx(RATE, abs=6 * present.std() / np.sqrt(STEPS))
    assert present.var() == pytest.approx(SIGMA**2 + RATE * (1 - RATE), rel=6 * np.sqrt(2 / STEPS), abs=0)
    # The best test of one step thresholds the projection at 1/2; it attains the claimed advantage.
    found = np.mean(present > 0.5) - np.mean(absent > 0.5)
    claimed = advantage(compose(DPSGD(SIGMA, RATE, 1), Neighbouring.ADD_REMOVE).pessimistic)
    assert found == pytest.approx(claimed, abs=6 * np.sqrt(0.5 / STEPS))
    assert claimed == pytest.approx(RATE * (2 * stats.norm.cdf(0.5 / SIGMA) - 1), rel=1e-6, abs=0)
