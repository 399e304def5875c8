"""Two curves that enclose the true one."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.tradeoff import TradeOff


@dataclass(frozen=True)
class Bracket:
    """An enclosure of a trade-off curve: optimistic >= truth >= pessimistic, as functions of alpha.

    Attributes:
        pessimistic: an attacker at least as strong as the true one: the safe side, used for claims.
        optimistic: an attacker at most as strong.
    """

    pessimistic: TradeOff
    optimistic: TradeOff

    @classmethod
    def exact(cls, curve: TradeOff) -> Bracket:
        """A curve known up to rounding."""
        return cls(pessimistic=curve, optimistic=curve)
