"""What a sampled Gaussian step leaves beyond an observation: bounds on the mass of P^(1-c) Q^c there.

Of one kind of step, or of several, as in ``sampled_gaussian``: observations are a number, or a column.
"""

from __future__ import annotations

from collections.abc import Sequence

from reticent.kernel.pairs.columns import Numbers, functions
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture


class SampledTails:
    """Those of one pair.

    Args:
        pair: with one shift, of 1.
    """

    def __init__(self, pair: GaussianMixture) -> None:
        self._of, self._s, self._antipodal = functions(pair.noise_multiplier), pair.noise_multiplier, pair.antipodal
        self._log_rate, self._log_rest = self._of.log(pair.weights[0]), self._of.log1p(-pair.weights[0])

    def right(self, c: float, high: Numbers) -> Numbers:
        """log of a bound on the mass above ``high``; c >= 1/2 if antipodal.

        With q the mixture ratio, q^c <= (1 - rate) + rate r^c for c outside (0, 1), the same with both
        weights to the power c inside, and q^c <= ((1 + k) rate r)^c with k = (1 - rate) / (rate r(high)).

        Args:
            c: the exponent.
            high: an observation, or one for each kind.
        """
        return self._right(c, high, self._of.log_tail(high / self._s))

    def _right(self, c: float, high: Numbers, normal: Numbers) -> Numbers:
        """``normal``: what the normal law has there."""
        of, log_rate, log_rest, power = self._of, self._log_rate, self._log_rest, c if 0.0 < c < 1.0 else 1.0
        bend = 0.5 * c * (c - 1.0) / self._s**2 + of.log_tail((high - c) / self._s)
        split = of.log_sum(power * log_rest + normal, power * log_rate + bend)
        if c <= 1.0:
            return split
        excess = of.log1p(of.exp(of.least(log_rest - log_rate - (high - 0.5) / self._s**2, 600.0)))
        split = of.least(split, c * (log_rate + excess) + bend)
        return split + (1.0 - c) * log_rest if self._antipodal else split

    def outside(self, exponents: Sequence[float], low: Numbers, high: Numbers) -> list[Numbers]:
        """For each exponent a bound on the mass below ``low`` < 0 and above ``high`` together."""
        of = self._of
        below, above = of.log_tail(-low / self._s), of.log_tail(high / self._s)
        found = []
        for c in exponents:
            left = below
            if self._antipodal and c < 1.0:
                left = of.most(self._right(1.0 - c, -low, below), below)
            elif not self._antipodal and c < 0.0:
                left = below + c * self._log_rest  # the ratio is below 1 there
            found.append(of.exp(of.least(left, 700.0)) + of.exp(of.least(self._right(c, high, above), 700.0)))
        return found
