"""One epoch of random allocation by computations that share no code with the library; and grids that cost less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from reticent.pairs.allocated_sum import COARSE
from tests.conftest import forget


@contextmanager
def coarse_grids() -> Iterator[None]:
    """Where no width is the point: enclosures are as valid, and as narrow but for their tails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reticent.pairs.random_allocation.MEDIUM", COARSE)
        forget()
        yield
    forget()


def by_contour(noise: float, bins: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E (k - R)_+, P(R <= k) and Q(R <= k) by inverse Laplace transforms on a vertical line; nothing is certified.

    R is the mean of so many independent log-normals, so the transform of R - 1 is a power. Eleven digits, absolute.
    """
    deviation = 1.0 / noise
    z, step = np.linspace(-11.0, 12.0, 2001, retstep=True)
    weight, value = norm.pdf(z) * step, np.exp(deviation * z - 0.5 * deviation**2)
    spread = math.sqrt(math.expm1(deviation**2) / bins)
    nodes, end = 600, 20.0 / spread
    line = 1.0 / spread + 1j * (np.arange(nodes) + 0.5) * end / nodes
    falls = np.exp(-np.multiply.outer(line / bins, value - 1.0))
    one, tilted = falls @ weight, falls @ (weight * value)
    turned = np.exp(np.multiply.outer(at - 1.0, line)) * (end / nodes / math.pi)
    kinds = (one**bins / line**2, one**bins / line, tilted * one ** (bins - 1) / line)
    return tuple((turned @ kind).real for kind in kinds)  # type: ignore[return-value]


def of_blocks(noise: float, blocks: list[int], epsilon: float) -> tuple[float, float]:
    """delta in both directions where a record is in one step of each block.

    The likelihood ratio without the target by the mean of each block, which Black and Scholes have, and by what is
    orthogonal to it, for which Gauss and Hermite have nodes.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    weights = weights / weights.sum()
    rest, mass = np.zeros(1), np.ones(1)
    for steps in blocks:
        basis = np.linalg.svd(np.ones((1, steps)))[2][1:]  # of the deviations from the mean
        grid = np.array(list(product(range(24), repeat=steps - 1)), dtype=int).reshape(24 ** (steps - 1), steps - 1)
        ratios = np.exp(nodes[grid] @ basis / noise - 0.5 / noise**2).mean(axis=1)
        rest = np.add.outer(rest, np.log(ratios)).ravel()
        mass = np.multiply.outer(mass, weights[grid].prod(axis=1)).ravel()
    spread = math.sqrt(sum(1.0 / steps for steps in blocks)) / noise

    def call(log_strike: float) -> float:
        at = (rest - log_strike + spread**2) / spread
        priced = np.exp(rest + 0.5 * spread**2) * norm.cdf(at) - math.exp(log_strike) * norm.cdf(at - spread)
        return float(mass @ priced)

    return call(epsilon), math.exp(epsilon) * (call(-epsilon) - 1.0 + math.exp(-epsilon))


def ratios(x: np.ndarray, noise: float, members: list[float]) -> np.ndarray:
    """log of the density over that of noise alone; each member adds so much to a step of its own."""
    # Steps are drawn independently, but their sums may meet in one: every assignment is a component.
    total, bins = np.zeros(len(x)), x.shape[1]
    for places in product(range(bins), repeat=len(members)):
        moved = np.bincount(places, members, bins) if members else np.zeros(bins)
        total += np.exp((x @ moved) / noise**2 - (moved @ moved) / (2 * noise**2))
    return np.log(total / bins ** len(members))


def games(rng: np.random.Generator, count: int, bins: int, noise: float, members: list[float]) -> np.ndarray:
    """What is seen of one epoch, so often: the steps are drawn, and noise."""
    x = rng.normal(scale=noise, size=(count, bins))
    for size in members:
        x[np.arange(count), rng.integers(bins, size=count)] += size
    return x
