"""The strongest attack on a field, simulated on the gradients of a traced run with the sampling unknown.

The attacker of the bound knows every other record, both completions, all weights; it subtracts what it
knows from each released sum and is left with b_t g_t + noise, b_t ~ Bernoulli(rate) unknown, g_t the
clipped gradient of the true completion. The Neyman-Pearson test adds the log likelihood ratios

    log((1 - p) + p e^{(z.g'_t - |g'_t|^2/2)/sigma^2}) - log((1 - p) + p e^{(z.g_t - |g_t|^2/2)/sigma^2})

over the steps. Only the projections of the release on g_t and g'_t enter, so a run is simulated in two
dimensions per step, with the gradients of the trace fixed: the attack on that trace, many times over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from reticent.errors import ParameterError

_BLOCK = 2_000_000
_ROUNDING, _LEAST = 1e-9, 1e-12  # relative and absolute, by which a distance may miss the triangle inequality


@dataclass(frozen=True, eq=False)
class PairTrace:
    """Clipped gradients of two completions of one record along a run, in units of the clip norm.

    Attributes:
        norm_a, norm_b: their norms, (steps,).
        distance: their distance, (steps,).

    Raises:
        ParameterError: shapes differ, or no vectors of these norms have such a distance.
    """

    norm_a: np.ndarray
    norm_b: np.ndarray
    distance: np.ndarray

    def __post_init__(self) -> None:
        a, b, r = self.norm_a, self.norm_b, self.distance
        if not (a.shape == b.shape == r.shape and a.ndim == 1 and len(a)):
            raise ParameterError("distance", r.shape, "as many numbers as norms, one per step")
        if np.any(r > (a + b) * (1 + _ROUNDING)) or np.any(r < np.abs(a - b) * (1 - _ROUNDING) - _LEAST):
            raise ParameterError("distance", float(r.max()), "a distance that vectors of these norms can have")

    @classmethod
    def constant(cls, steps: int, norm_a: float, norm_b: float, distance: float) -> PairTrace:
        """The same pair in each step.

        Args:
            steps: >= 1.
            norm_a, norm_b: over the clip norm, >= 0.
            distance: between the two, over the clip norm.
        """
        return cls(*(np.full(steps, float(v)) for v in (norm_a, norm_b, distance)))


@dataclass(frozen=True, eq=False)
class SimulatedAttack:
    """Scores of the likelihood-ratio attack, higher for value b, of independent runs.

    Attributes:
        scores_a: runs in which the record had value a, (runs,).
        scores_b: runs in which it had value b, (runs,).
    """

    scores_a: np.ndarray
    scores_b: np.ndarray

    def advantage(self) -> tuple[float, float]:
        """(estimate, standard error) of the total variation: E_a (1 - e^L)+ and E_b (1 - e^-L)+, averaged.

        Both are unbiased because the scores are exact log likelihood ratios: no threshold is chosen.
        """
        from_a = -np.expm1(np.minimum(self.scores_a, 0.0))
        from_b = -np.expm1(np.minimum(-self.scores_b, 0.0))
        error = np.sqrt(from_a.var() / len(from_a) + from_b.var() / len(from_b)) / 2.0
        return float(from_a.mean() + from_b.mean()) / 2.0, float(error)


def simulate(
    trace: PairTrace, noise_multiplier: float, sample_rate: float, runs: int, rng: np.random.Generator
) -> SimulatedAttack:
    """Attack ``runs`` runs with value a and as many with value b.

    Args:
        trace: gradients of the two completions.
        noise_multiplier: > 0.
        sample_rate: Poisson inclusion probability of the target, in (0, 1].
        runs: of each kind.
        rng: source of masks and noise.
    """
    scores: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    block = max(1, _BLOCK // len(trace.distance))
    for truth in (0, 1):
        for start in range(0, runs, block):
            some = min(block, runs - start)
            scores[truth].append(_scores(trace, noise_multiplier, sample_rate, some, truth, rng))
    return SimulatedAttack(np.concatenate(scores[0]), np.concatenate(scores[1]))


def _scores(trace: PairTrace, noise: float, rate: float, runs: int, truth: int, rng: np.random.Generator) -> np.ndarray:
    """Sum over steps of log Q/P, with the release expressed in the plane of the two gradients."""
    vectors = _plane(trace)
    released = noise * rng.standard_normal((runs, len(trace.distance), 2))
    released += np.where(rng.random((runs, len(trace.distance), 1)) < rate, vectors[truth], 0.0)
    logs = [_log_mixture(released, g, noise, rate) for g in vectors]
    return np.asarray((logs[1] - logs[0]).sum(axis=1))


def _plane(trace: PairTrace) -> tuple[np.ndarray, np.ndarray]:
    """The two gradients of each step in coordinates along and across the first, (steps, 2)."""
    a, b, r = trace.norm_a, trace.norm_b, trace.distance
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.clip(np.where(a * b > 0.0, (a * a + b * b - r * r) / (2.0 * a * b), 1.0), -1.0, 1.0)
    second = np.stack([b * cosine, b * np.sqrt(1.0 - cosine * cosine)], axis=1)
    return np.stack([a, np.zeros_like(a)], axis=1), second


def _log_mixture(released: np.ndarray, g: np.ndarray, noise: float, rate: float) -> np.ndarray:
    """log of (1 - p) N(0) + p N(g) over N(0), at the release."""
    exponent = ((released * g).sum(axis=2) - 0.5 * (g * g).sum(axis=1)) / noise**2
    if rate == 1.0:
        return exponent
    return np.logaddexp(np.log1p(-rate), np.log(rate) + exponent)


def published_advantage(trace: PairTrace, noise_multiplier: float, sample_rate: float) -> float:
    """What Corollary 10 of CHERUBIN2024 states for this record: erf(p ||R|| / (2 sqrt(2) sigma)).

    Args:
        trace: of the pair.
        noise_multiplier: > 0.
        sample_rate: in (0, 1].
    """
    length = float(np.linalg.norm(trace.distance))
    return float(erf(sample_rate * length / (2.0 * np.sqrt(2.0) * noise_multiplier)))
