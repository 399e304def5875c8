"""The attack that the condition of a conditional claim excludes, played to see whether the condition holds.

The relaxed attacker's curve is conditional on a gradient whose length does not depend on its direction. Where the
length or the sign follows from the weights (a perceptron's loss, an absolute error), the weights tell the attacker in
which half of the space the direction lies: the perceptron test adds up what each release says along the weights
before it. Its scores have an exact law without the record, because the weights are known before the noise is drawn.
When they refute the conditional curve, it is the condition that fails; the worst case holds all the same
(docs/theory/relaxed/reacting.md).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.adversaries import Relaxed
from reticent.auditing import Design, Finding, Ranks, Scores, audit_claim
from reticent.kernel.adversaries.base import Method
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring

RUN, ONE = (DPSGD(noise_multiplier=4.0, sample_rate=1.0, steps=steps) for steps in (60, 16))
PUSHES = {
    "fixed": np.ones_like,
    # A perceptron's loss: the record pushes while it lies on the side of the weights.
    "perceptron": lambda along: (along > 0.0).astype(float),
    # A head with one output under an absolute error, far from its target: the sign follows from the weights.
    "absolute error": np.sign,
}
"""How far the record pushes along its direction, in [-1, 1], from the product of weights and direction."""


def scores(run: DPSGD, dimension: int, push: str, runs: int, rng: np.random.Generator) -> Scores:
    """Training on one record of random direction, with and without it: what releases say along the weights before."""
    sides = []
    for present in (1.0, 0.0):
        direction = rng.standard_normal((runs, dimension))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        weights, total = 1e-9 * rng.standard_normal((runs, dimension)), np.zeros(runs)
        for _ in range(run.steps):
            along = np.einsum("ij,ij->i", weights, direction)
            release = present * PUSHES[push](along)[:, None] * direction
            release += run.noise_multiplier * rng.standard_normal((runs, dimension))
            length = np.maximum(np.linalg.norm(weights, axis=1), 1e-300)
            total += np.einsum("ij,ij->i", release, weights) / length / run.noise_multiplier
            weights += release
        sides.append(total / np.sqrt(run.steps))
    return Scores(*sides, design=Design.INDEPENDENT)


def refuted(run: DPSGD, dimension: int, push: str, runs: int) -> bool:
    """Whether the condition does not hold, at 99%."""
    curve = Relaxed(dimension=dimension).assess(run, Neighbouring.ADD_REMOVE, Method.EXACT).curve
    found = scores(run, dimension, push, runs, np.random.default_rng(1))
    return audit_claim(found, curve, Ranks((0.05, 0.15, 0.3)), 0.99).finding is Finding.INCONSISTENT


def test_without_the_record_the_scores_are_standard_normal():
    found = scores(RUN, 5, "absolute error", 2000, np.random.default_rng(0))
    assert stats.kstest(found.non_member, stats.norm.cdf).pvalue > 1e-4
    assert found.member.mean() > 0.5


def test_a_sign_that_follows_from_the_weights_refutes_the_condition():
    assert refuted(ONE, 1, "absolute error", 2000)
    assert refuted(ONE, 1, "perceptron", 30_000)
    assert not refuted(ONE, 1, "fixed", 2000)


@pytest.mark.slow
def test_in_ten_dimensions_too_and_a_perceptron_gives_away_less_than_the_curve_allows():
    assert refuted(RUN, 10, "absolute error", 8000)
    assert not refuted(RUN, 10, "fixed", 2000)
    assert not refuted(RUN, 10, "perceptron", 2000)
