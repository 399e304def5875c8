"""delta of the relaxed attacker far out, by importance sampling; it shares no code with the bounds.

The likelihood ratio is summed mask by mask. Addition: outcomes are drawn with more sampled steps and longer
contributions than in truth. Removal: with less noise, in all or in their mean, because there outcomes near 0 matter.
Both from a mixture, weighted by its own density.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammaln, ive, logsumexp

Run = tuple[float, float, int, int]
"""Noise over the clip norm, rate, steps, dimension."""

FAR = (1.5, 3.0, 4.5, 6.0, 7.5)  # how far one step, or the sum of all, is moved, in standard deviations
SHRUNK = (0.8, 0.6, 0.45, 0.33, 0.25, 0.18, 0.13)


@dataclass(frozen=True)
class Estimate:
    """Per threshold.

    Attributes:
        delta: means.
        error: their standard errors.
        effective: Kish's effective sample size of the terms, at most the number of draws.
    """

    delta: np.ndarray
    error: np.ndarray
    effective: np.ndarray

    @classmethod
    def of(cls, terms: np.ndarray) -> Estimate:
        """``terms``: shape (draws, thresholds)."""
        draws, mean, square = len(terms), terms.mean(axis=0), (terms**2).mean(axis=0)
        some = np.where(square > 0.0, square, 1.0)
        return cls(mean, np.sqrt(np.maximum(square - mean**2, 0.0) / draws), draws * mean**2 / some)


@cache
def _table(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    x, order = np.arange(1e-9, 400.0, 2e-3), 0.5 * dimension - 1.0
    return x, np.log(ive(order, x)) + x + gammaln(order + 1.0) - order * np.log(0.5 * x)


def log_mean(x: np.ndarray, dimension: int) -> np.ndarray:
    """log E exp(x <u, u'>) over uniform directions, to 1e-6."""
    return np.asarray(np.interp(x, *_table(dimension)))


def log_ratios(y: np.ndarray, noise: float, laws: list[tuple[float, float]]) -> np.ndarray:
    """Per (rate, length): log density of "present" over "absent"; y in noise scales, (draws, steps, dimension)."""
    steps, parts = y.shape[1], []
    for mask in itertools.product((0.0, 1.0), repeat=steps):
        size = sum(mask)
        norm = np.linalg.norm(np.einsum("t,ntd->nd", np.array(mask), y), axis=1)
        cache = {a: log_mean(a * norm / noise, y.shape[2]) for a in {a for _, a in laws}}
        parts.append([size * np.log(p) + (steps - size) * np.log1p(-p) + cache[a] - 0.5 * size * (a / noise) ** 2
                      for p, a in laws])  # fmt: skip
    return np.asarray(logsumexp(np.array(parts), axis=0))


def addition(run: Run, thresholds: np.ndarray, draws: int, rng: np.random.Generator) -> Estimate:
    """E (LR - e^l)_+ under "absent"."""
    noise, rate, steps, dimension = run
    laws = [(rate, 1.0)]  # the true one
    laws += [(r, far * noise / share) for r, share in ((1.0 / steps, 1.0), (0.95, np.sqrt(steps))) for far in FAR]
    kind = np.arange(draws) % len(laws)
    rates, moved = (np.array([law[part] for law in laws])[kind] for part in (0, 1))
    y = rng.normal(size=(draws, steps, dimension))
    y[:, :, 0] += (rng.random((draws, steps)) < rates[:, None]) * moved[:, None] / noise
    logs = log_ratios(y, noise, laws)
    weight = -(logsumexp(logs, axis=0) - np.log(len(laws)))
    gain = np.maximum(-np.expm1(thresholds - logs[0][:, None]), 0.0)
    return Estimate.of(np.exp(logs[0] + weight)[:, None] * gain)


def removal(run: Run, thresholds: np.ndarray, draws: int, rng: np.random.Generator) -> Estimate:
    """E (1 - e^l LR)_+ under "absent"."""
    noise, rate, steps, dimension = run
    whole, mean = (np.append(part, 1.0) for part in (SHRUNK + (1.0,) * len(SHRUNK), (1.0,) * len(SHRUNK) + SHRUNK))
    kind = np.arange(draws) % len(whole)
    y = whole[kind][:, None, None] * rng.normal(size=(draws, steps, dimension))
    y -= (1.0 - mean[kind])[:, None, None] * y.mean(axis=1, keepdims=True)
    log_ratio = log_ratios(y, noise, [(rate, 1.0)])[0]
    square, along = np.sum(y * y, axis=(1, 2)), np.sum(y.sum(axis=1) ** 2, axis=1) / steps
    density = -0.5 * (square * (whole**-2 - 1.0)[:, None] + along * (mean**-2 - 1.0)[:, None])
    density -= (steps * dimension * np.log(whole) + dimension * np.log(mean))[:, None]
    weight = np.exp(np.log(len(whole)) - logsumexp(density, axis=0))
    return Estimate.of(weight[:, None] * np.maximum(-np.expm1(thresholds + log_ratio[:, None]), 0.0))


def far_out(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds on the way to rare events, of addition and of removal; the latter ends where LR is least."""
    noise, rate, steps, _ = run
    last = -steps * np.log1p(rate * np.expm1(-0.5 / noise**2))
    return np.geomspace(0.05, 32.0, 240), last * (1.0 - np.geomspace(1e-4, 0.9, 120))


def rare(estimate: Estimate, low: float = 1e-10, high: float = 1e-4) -> np.ndarray:
    """Indices of about ten thresholds whose delta lies between ``low`` and ``high``, spread evenly in log delta."""
    inside = np.flatnonzero((estimate.delta >= low) & (estimate.delta <= high))
    logs = np.log(estimate.delta[inside])
    wanted = np.linspace(np.log(high), np.log(low), 10)
    return np.unique(inside[np.argmin(np.abs(logs[:, None] - wanted), axis=0)]) if len(inside) else inside
