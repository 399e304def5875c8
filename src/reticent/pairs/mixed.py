"""One of two pairs, by a public coin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from reticent.kernel.curves import Mixture, TradeOff
from reticent.kernel.pairs.base import Pair


@dataclass(frozen=True)
class MixedPair(Pair):
    """One of two pairs, by a public coin that says nothing about the target.

    Attributes:
        first, second: the pairs; each has a curve.
        share: probability of the second, in (0, 1].
    """

    first: Pair
    second: Pair
    share: float

    @cached_property
    def curve(self) -> TradeOff | None:
        if self.first.curve is None or self.second.curve is None:
            return None
        return Mixture([self.first.curve, self.second.curve], [1.0 - self.share, self.share])

    @cached_property
    def curve_below(self) -> TradeOff | None:
        below = self.first.curve_below, self.second.curve_below
        exact = below[0] is self.first.curve and below[1] is self.second.curve
        if exact or below[0] is None or below[1] is None:
            return self.curve
        return Mixture([below[0], below[1]], [1.0 - self.share, self.share])

    @property
    def log_absent(self) -> float:
        """A mean of the two."""
        shares = (self.first.log_absent, 1.0 - self.share), (self.second.log_absent, self.share)
        absent = sum(share * math.exp(log) for log, share in shares)
        return math.log(absent) if absent > 0.0 else -math.inf

    @property
    def largest_losses(self) -> tuple[float, float]:
        """Of either."""
        ahead, back = zip(self.first.largest_losses, self.second.largest_losses, strict=True)
        return max(ahead), max(back)

    @property
    def unsampled_mu(self) -> float | None:
        """Of the worse one."""
        mus = self.first.unsampled_mu, self.second.unsampled_mu
        return None if mus[0] is None or mus[1] is None else max(mus[0], mus[1])

    @property
    def tail_mu(self) -> float:
        """Of the worse one: at rates near 0 a share of it makes no difference."""
        return max(self.first.tail_mu, self.second.tail_mu)
