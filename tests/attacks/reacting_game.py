"""The attack that the condition of a conditional claim excludes, played to see whether the condition holds.

The relaxed attacker's curve is conditional on a gradient whose length does not depend on its direction. Where the
length or the sign follows from the weights (a perceptron's loss, an absolute error), the weights tell the attacker in
which half of the space the direction lies: the perceptron test adds up what each release says along the weights
before it. Its scores have an exact law without the record, because the weights are known before the noise is drawn.
When they refute the conditional curve, it is the condition that fails; the worst case holds all the same
(docs/theory/relaxed/reacting.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reticent.adversaries import Relaxed
from reticent.auditing import Design, Finding, Ranks, Scores, Verdict, audit_claim
from reticent.kernel.adversaries.base import Method
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.text import digits

Push = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From weights and directions, both (runs, dimension), to how far the record pushes along its direction, in [-1, 1]."""
_LEVELS = (0.05, 0.15, 0.3)


def perceptron(weights: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """A perceptron's loss: the record pushes while it lies on the side of the weights."""
    return (np.einsum("ij,ij->i", weights, directions) > 0.0).astype(float)


def absolute_error(weights: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """A head with one output under an absolute error, far from its target: the sign follows from the weights."""
    return np.sign(np.einsum("ij,ij->i", weights, directions))


def perceptron_scores(releases: np.ndarray, before: np.ndarray, noise_multiplier: float) -> np.ndarray:
    """What releases say along the weights before them: exactly standard normal where the record is absent.

    Args:
        releases: noisy sums without what other records add, in clip norms, (runs, steps, dimension).
        before: weights before each step, same shape.
        noise_multiplier: of the releases.
    """
    length = np.maximum(np.linalg.norm(before, axis=2), 1e-300)
    along = np.einsum("rtd,rtd->rt", releases, before) / length
    return np.asarray(along.sum(axis=1) / (noise_multiplier * np.sqrt(releases.shape[1])))


@dataclass(frozen=True)
class LearningGame:
    """Training on one record of random direction, many times, with and without it.

    Attributes:
        mechanism: what is run: Poisson sampling.
        dimension: of the space in which the direction is drawn.
        push: how the record reacts to the weights.
    """

    mechanism: DPSGD
    dimension: int
    push: Push = perceptron

    def scores(self, runs: int, rng: np.random.Generator) -> Scores:
        """The perceptron test's scores of ``runs`` games on each side."""
        member, other = (self._play(runs, rng, present) for present in (True, False))
        return Scores(member, other, {"attack": "perceptron test", "runs": runs}, Design.INDEPENDENT)

    def _play(self, runs: int, rng: np.random.Generator, present: bool) -> np.ndarray:
        run = self.mechanism
        direction = rng.standard_normal((runs, self.dimension))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        weights = 1e-9 * rng.standard_normal((runs, self.dimension))
        total = np.zeros(runs)
        for _ in range(run.steps):
            release = run.noise_multiplier * rng.standard_normal((runs, self.dimension))
            if present:
                drawn = rng.random(runs) < run.sample_rate
                release += (drawn * self.push(weights, direction))[:, None] * direction
            total += perceptron_scores(release[:, None], weights[:, None], run.noise_multiplier)
            weights += release
        return np.asarray(total / np.sqrt(run.steps))


@dataclass(frozen=True, slots=True)
class ConditionAudit:
    """Whether the condition of the relaxed attacker's curve was refuted.

    Attributes:
        verdict: on the conditional curve.
        scores: of the perceptron test.
        reason: one sentence for people.
    """

    verdict: Verdict
    scores: Scores
    reason: str

    @property
    def refuted(self) -> bool:
        """Whether the condition does not hold, at the verdict's confidence."""
        return self.verdict.finding is Finding.INCONSISTENT


def audit_direction_condition(
    game: LearningGame, runs: int, rng: np.random.Generator, confidence: float = 0.99
) -> ConditionAudit:
    """Test "the length of the gradient does not depend on its direction" by the attack that it excludes.

    Args:
        game: the model whose reaction is in question.
        runs: games on each side.
        rng: of the games.
        confidence: of a refutation, in (0, 1).
    """
    curve = Relaxed(dimension=game.dimension).assess(game.mechanism, Neighbouring.ADD_REMOVE, Method.EXACT).curve
    scores = game.scores(runs, rng)
    verdict = audit_claim(scores, curve, Ranks(_LEVELS), confidence)
    if verdict.finding is not Finding.INCONSISTENT:
        return ConditionAudit(verdict, scores, "The perceptron test found nothing that the condition excludes.")
    limits = np.quantile(scores.non_member, 1.0 - np.array(_LEVELS))
    found = (scores.member[:, None] > limits).mean(axis=0)
    allowed = 1.0 - curve.beta(np.array(_LEVELS))
    worst = int(np.argmax(found - allowed))
    reason = (
        "The length of the gradient depends on its direction: the perceptron test found "
        f"{digits(float(found[worst]), 3)} of the members at a false positive rate of {_LEVELS[worst]:g}, where the "
        f"condition allows {digits(float(allowed[worst]), 3)}."
    )
    return ConditionAudit(verdict, scores, reason)
