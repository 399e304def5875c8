"""The exact risk of two steps in two or three dimensions, and exact second moments; no code of the bounds is used."""

from __future__ import annotations

import itertools
from functools import reduce

import mpmath
import numpy as np
from scipy.special import i0
from scipy.stats import binom


def exact_deltas(
    noise: float, rate: float, dimension: int, thresholds: np.ndarray, radii: int = 100, records: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """delta of addition and of removal for two steps: norms r1, r2 and the angle between y1 and y2.

    ``records`` of one person, all in one direction: j and k of them in the two steps.
    """
    nodes, weights = np.polynomial.legendre.leggauss(radii)
    top = 9.0 + 2.0 * records / noise
    r, weight = 0.5 * top * (nodes + 1.0), 0.5 * top * weights
    weight = weight * r ** (dimension - 1) * np.exp(-0.5 * r * r)
    weight = weight / weight.sum()
    nodes, weights = np.polynomial.legendre.leggauss(100)
    angle, turn = 0.5 * np.pi * (nodes + 1.0), weights * np.sin(0.5 * np.pi * (nodes + 1.0)) ** (dimension - 2)
    turn = turn / turn.sum()

    def ratio(norm: np.ndarray, length: float) -> np.ndarray:
        z = norm / noise
        mean = i0(z) if dimension == 2 else np.where(z > 1e-9, np.sinh(z) / np.where(z > 1e-9, z, 1.0), 1.0)
        return mean * np.exp(-0.5 * length / noise**2)

    one, other, cosine = r[:, None, None], r[None, :, None], np.cos(angle)
    lr = np.zeros(())
    for j, k in itertools.product(range(records + 1), repeat=2):
        share = binom.pmf(j, records, rate) * binom.pmf(k, records, rate)
        square = (j * one) ** 2 + (k * other) ** 2 + (2.0 * j * k * one * other * cosine if j * k else 0.0)
        lr = lr + share * ratio(np.sqrt(np.maximum(square, 0.0)), j * j + k * k)
    mass = weight[:, None, None] * weight[None, :, None] * turn
    return of_law(lr, mass, thresholds)


def of_law(ratio: np.ndarray, mass: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """delta of addition and of removal, of a likelihood ratio at points with masses under "absent"."""
    add = [np.sum(mass * np.maximum(ratio - np.exp(t), 0.0)) for t in thresholds]
    remove = [np.sum(mass * np.maximum(1.0 - np.exp(t) * ratio, 0.0)) for t in thresholds]
    return np.array(add), np.array(remove)


def agree(deltas, thresholds: np.ndarray, bounds, curves, wrong: float) -> None:
    """Neither bounds on log delta of both directions nor an enclosure contradict exact deltas, ``wrong`` by so much."""
    for bound, exact in zip(bounds, deltas, strict=True):
        assert np.all(np.exp(bound) >= exact * (1.0 - wrong))
    truth = np.maximum(*deltas)
    assert np.all(curves.pessimistic.delta(thresholds) >= truth * (1.0 - wrong))
    assert np.all(curves.optimistic.delta(thresholds) <= truth * (1.0 + wrong) + 1e-9)


def exact_chi_square(noise: float, rate: float, steps: int, dimension: int, records: int, order: float) -> float:
    """The sum over the law of N = sum J_t J'_t, in 20 digits; of more than 500 steps and one record its first terms."""
    if records == 1:
        law = binom.pmf(np.arange(min(steps, 500) + 1), steps, rate**2)
    else:
        counts, mass = np.arange(records + 1), binom.pmf(np.arange(records + 1), records, rate)
        once = np.bincount(np.multiply.outer(counts, counts).ravel(), np.multiply.outer(mass, mass).ravel())
        law = reduce(np.convolve, [once] * steps)
    with mpmath.workdps(20):
        scale, half = (order - 1.0) / mpmath.mpf(noise) ** 2, mpmath.mpf(dimension) / 2
        means = (mass * (mpmath.hyp0f1(half, (n * scale) ** 2 / 4) - 1) for n, mass in enumerate(law.tolist()) if mass)
        return float(mpmath.log(mpmath.fsum(means)))
