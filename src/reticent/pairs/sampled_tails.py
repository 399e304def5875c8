"""What a sampled Gaussian step leaves beyond an observation: bounds on the mass of P^(1-c) Q^c there, as logarithms.

Of one kind of step, or of several, as in ``sampled_gaussian``.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from reticent.pairs.gaussian_mixture import GaussianMixture, Numbers


def right_tail(pair: GaussianMixture, c: float | np.ndarray, high: Numbers) -> np.ndarray:
    """log of a bound on the mass above ``high``; c >= 1/2 if antipodal.

    With q the mixture ratio, q^c <= (1 - rate) + rate r^c for c outside (0, 1), the same with both
    weights to the power c inside, and q^c <= ((1 + k) rate r)^c with k = (1 - rate) / (rate r(high)).

    Args:
        pair: with one shift, of 1.
        c: exponents, along the last axis.
        high: an observation, or one for each kind.
    """
    s, log_rate, log_rest, c = pair.noise_multiplier, np.log(pair.weights[0]), np.log1p(-pair.weights[0]), np.asarray(c)
    power = np.where((c > 0.0) & (c < 1.0), c, 1.0)
    bend = 0.5 * c * (c - 1.0) / s**2 + _log_tail((high - c) / s)
    split: np.ndarray = np.logaddexp(power * log_rest + _log_tail(high / s), power * log_rate + bend)
    if np.all(c <= 1.0):
        return split
    excess = np.log1p(np.exp(np.minimum(log_rest - log_rate - (high - 0.5) / s**2, 600.0)))
    beyond = np.minimum(split, c * (log_rate + excess) + bend)
    return np.where(c > 1.0, beyond + ((1.0 - c) * log_rest if pair.antipodal else 0.0), split)


def left_tail(pair: GaussianMixture, c: float | np.ndarray, low: Numbers) -> np.ndarray:
    """log of a bound on the mass below ``low`` < 0; arguments as of ``right_tail``."""
    below, c = _log_tail(-low / pair.noise_multiplier), np.asarray(c)
    if pair.antipodal:
        return np.where(c < 1.0, np.maximum(right_tail(pair, 1.0 - c, -low), below), below)
    found: np.ndarray = below + np.minimum(c, 0.0) * np.log1p(-pair.weights[0])  # the ratio is below 1 there
    return found


def _log_tail(z: Numbers) -> np.ndarray:
    """log P(N > z); for z <= 0 a bound on any sum of nodes of the density, spacing at most 0.55 sd."""
    return np.where(z > 0.0, log_ndtr(-z), 0.25)
