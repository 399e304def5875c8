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

_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class PairTrace:
    """Clipped gradients of two completions of one record along a run, in units of the clip norm.

    Attributes:
        norm_a, norm_b: their norms, (steps,).
        distance: their distance, (steps,).
    """

    norm_a: np.ndarray
    norm_b: np.ndarray
    distance: np.ndarray

    @classmethod
    def constant(cls, steps: int, norm_a: float, norm_b: float, distance: float) -> PairTrace:
        """The same pair in each step."""
        return cls(*(np.full(steps, float(v)) for v in (norm_a, norm_b, distance)))


def simulate(trace: PairTrace, noise: float, rate: float, runs: int, rng: np.random.Generator) -> tuple[float, float]:
    """(estimate, standard error) of the advantage, of so many runs with either value.

    E_a (1 - e^L)+ and E_b (1 - e^-L)+, averaged: unbiased because scores are exact log likelihood ratios.
    """
    block = max(1, _BLOCK // len(trace.distance))
    means, variances = [], []
    for truth in (0, 1):
        blocks = [min(block, runs - start) for start in range(0, runs, block)]
        scores = np.concatenate([_scores(trace, noise, rate, some, truth, rng) for some in blocks])
        gain = -np.expm1(np.minimum(scores if truth == 0 else -scores, 0.0))
        means.append(gain.mean())
        variances.append(gain.var() / runs)
    return float(np.mean(means)), float(np.sqrt(sum(variances)) / 2.0)


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
