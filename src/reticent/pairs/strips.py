"""Lines beside the real one, for a sampled Gaussian step: where they lie, and how the likelihood ratio turns on them.

Noise and rate are numbers, or columns for several kinds of steps, as in ``sampled_gaussian``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from reticent.kernel.pairs.columns import Numbers, functions

_WIDEST, _SHARES = 0.92 * np.pi, np.array([0.3, 0.6, 0.8, 0.92]) / 0.92
_FURTHEST_ODDS = 600.0  # log of the odds beyond which their argument is the angle
_FURTHEST = 12.0  # standard deviations
_PLACES = np.linspace(0.0, _FURTHEST, 49)  # arguments increase, so those to the left are no larger
_HALF_SQUARES = 0.5 * _PLACES**2
_MARKS = np.sort(np.concatenate([np.geomspace(1e-4, 1.0, 9), np.linspace(0.0, 1.0, 13)]))  # where the rule is asked


def strips(noise_multiplier: Numbers, digits: Numbers) -> np.ndarray:
    """Angles in (0, pi), increasing: the trapezoid rule's error is bounded on the lines Im x = angle s^2.

    Beyond angle s = sqrt(2 digits) a wider strip needs more nodes for an error of e^-digits, not fewer.
    """
    widest = (2.0 * digits) ** 0.5 / noise_multiplier
    return np.multiply.outer(_SHARES, functions(widest).least(_WIDEST, widest))


def argument_reach(
    noise_multiplier: Numbers,
    rate: Numbers,
    antipodal: bool,
    variance: float,
    angles: np.ndarray,
) -> np.ndarray:
    """How far e^(t arg) outgrows the normal density and the composed decay e^(-t^2 variance / 2), in logs.

    ``angles``: shape (n, 1), of one kind or one for each; one value for each.
    """
    x = noise_multiplier * _PLACES
    turn = argument(odds_at(noise_multiplier, rate, x), angles)
    if antipodal:
        turn += argument(odds_at(noise_multiplier, rate, -x), angles)
    t = np.minimum(turn / variance, 10.0 / math.sqrt(variance))
    growth = t * (turn - 0.5 * variance * t) - _HALF_SQUARES
    found: np.ndarray = np.maximum.reduce(growth, axis=1) + 4.0  # at least 4, by the first place
    return found


def nowhere_turned(noise: float, rate: float, antipodal: bool, variance: float, angle: float) -> bool:
    """Whether ``argument_reach`` is below 5 for that angle, by the largest argument: one number is asked for."""
    turn = argument(odds_at(noise, rate, noise * _FURTHEST), angle) * (2.0 if antipodal else 1.0)
    return bool(turn * turn < 2.0 * variance)


def odds_at(noise_multiplier: Numbers, rate: Numbers, x: Numbers) -> np.ndarray:
    """Odds that the target took part, given x."""
    of = functions(rate)
    log_odds = of.log(rate) - of.log1p(-rate) + (x - 0.5) / noise_multiplier**2
    odds: np.ndarray = np.exp(np.minimum(log_odds, _FURTHEST_ODDS))
    return odds


def argument(odds: np.ndarray, angle: Numbers) -> np.ndarray:
    """arg(1 + odds e^(i angle)), increasing in odds."""
    return np.arctan2(odds * np.sin(angle), 1.0 + odds * np.cos(angle))


@lru_cache(maxsize=512)
def marked(frequencies: int) -> tuple[np.ndarray, np.ndarray]:
    """Of so many frequencies those at which the rule's error is bounded; and for each the next of them."""
    places = np.unique(np.ceil((frequencies - 1) * _MARKS).astype(int))
    return places, np.searchsorted(places, np.arange(frequencies))
