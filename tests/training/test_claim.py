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
from reticent.training import Settings, fit
from reticent.training.randomness import SeededSource, Stream

CLIP, SIGMA, RATE, STEPS = 0.5, 0.8, 0.35, 300


def projections(make_context, recorder, present: bool) -> np.ndarray:
    """Released sums along the canary's direction, in clip norms: one number per step, weights frozen."""
    model = torch.nn.Linear(2, 2, bias=False)
    torch.nn.init.zeros_(model.weight)
    features = torch.zeros(10, 2)
    if present:
        features[4, 0] = 100.0
    settings = Settings(noise_multiplier=SIGMA, max_grad_norm=CLIP, sample_rate=RATE, divisor=3.5, steps=STEPS)
    fit(
        make_context(model, settings, train_features=features, train_labels=torch.zeros(10, dtype=torch.int64)),
        lambda p: torch.optim.SGD(p, lr=0.0),
        SeededSource(21 + present, Stream.SAMPLING),
        SeededSource(21 + present, Stream.NOISE),
        hooks=[recorder],
    )
    direction = np.array([-1.0, 0.0, 1.0, 0.0]) / np.sqrt(2.0)
    return torch.stack([u.gradient for u in recorder.updates]).numpy() @ direction * 3.5 / CLIP


def test_one_step_is_the_claimed_pair(make_context, recorder):
    absent = projections(make_context, recorder, present=False)
    recorder.updates.clear()
    present = projections(make_context, recorder, present=True)

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
