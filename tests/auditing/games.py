"""Scores of attacks that are known, and whether a curve can be the true one of an attack, by its band."""

from __future__ import annotations

import math

import numpy as np

from reticent.auditing import Design, EmpiricalTradeOff, Scores
from reticent.kernel.curves import TradeOff


def gaussian(rng: np.random.Generator, mu: float, members: int, others: int) -> Scores:
    """Independent scores of which members' are larger by ``mu``."""
    return Scores(rng.normal(mu, 1, members), rng.normal(0, 1, others), design=Design.INDEPENDENT)


def canaries(rng: np.random.Generator, number: int, mu: float) -> Scores:
    """The same of canaries of one run, each in it by a coin."""
    included = rng.random(number) < 0.5
    score = rng.normal(size=number) + mu * included
    return Scores(score[included], score[~included], design=Design.ONE_RUN)


def answers(
    members: tuple[int, ...],
    others: tuple[int, ...],
    values: tuple[float, ...] = (1.0, 0.0),
    design: Design = Design.INDEPENDENT,
) -> Scores:
    """How many of each side have each value."""
    return Scores(np.repeat(values, members), np.repeat(values, others), design=design)


def yes(epsilon: float) -> float:
    """How often members say yes in randomised response; others say no as often."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def contains(band: EmpiricalTradeOff, curve: TradeOff) -> bool:
    """Whether ``curve`` lies in the band at every alpha."""
    starts = np.clip(band.alpha + band.alpha_radius, 0.0, 1.0)
    below_upper = curve.beta(starts) <= band.upper(starts) + 1e-12
    ends = np.append((band.alpha - band.alpha_radius)[1:], 1.0)
    inside = ends > 0.0
    floor = np.maximum(band.beta - band.beta_radius, 0.0)[inside]
    above_lower = curve.beta(np.minimum(ends[inside], 1.0)) >= floor - 1e-12
    return bool(np.all(below_upper) and np.all(above_lower))
