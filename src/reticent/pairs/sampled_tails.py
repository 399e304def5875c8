"""What a sampled Gaussian step leaves beyond an observation: bounds on the mass of P^(1-c) Q^c there.

Of one kind of step, or of several, as in ``sampled_gaussian``: observations are a number, or a column.
"""

from __future__ import annotations

from reticent.pairs.columns import Numbers, functions
from reticent.pairs.gaussian_mixture import GaussianMixture


def right_tail(pair: GaussianMixture, c: float, high: Numbers) -> Numbers:
    """log of a bound on the mass above ``high``; c >= 1/2 if antipodal.

    With q the mixture ratio, q^c <= (1 - rate) + rate r^c for c outside (0, 1), the same with both
    weights to the power c inside, and q^c <= ((1 + k) rate r)^c with k = (1 - rate) / (rate r(high)).

    Args:
        pair: with one shift, of 1.
        c: the exponent.
        high: an observation, or one for each kind.
    """
    of, s = functions(high), pair.noise_multiplier
    log_rate, log_rest, power = of.log(pair.weights[0]), of.log1p(-pair.weights[0]), c if 0.0 < c < 1.0 else 1.0
    bend = 0.5 * c * (c - 1.0) / s**2 + of.log_tail((high - c) / s)
    split = of.log_sum(power * log_rest + of.log_tail(high / s), power * log_rate + bend)
    if c <= 1.0:
        return split
    excess = of.log1p(of.exp(of.least(log_rest - log_rate - (high - 0.5) / s**2, 600.0)))
    split = of.least(split, c * (log_rate + excess) + bend)
    return split + (1.0 - c) * log_rest if pair.antipodal else split


def left_tail(pair: GaussianMixture, c: float, low: Numbers) -> Numbers:
    """log of a bound on the mass below ``low`` < 0; arguments as of ``right_tail``."""
    of = functions(low)
    below = of.log_tail(-low / pair.noise_multiplier)
    if pair.antipodal:
        return of.most(right_tail(pair, 1.0 - c, -low), below) if c < 1.0 else below
    return below + min(c, 0.0) * of.log1p(-pair.weights[0])  # the ratio is below 1 there


def mass_outside(pair: GaussianMixture, c: float, low: Numbers, high: Numbers) -> Numbers:
    """A bound on the mass below ``low`` and above ``high`` together."""
    of = functions(low)
    return of.exp(of.least(left_tail(pair, c, low), 700.0)) + of.exp(of.least(right_tail(pair, c, high), 700.0))
