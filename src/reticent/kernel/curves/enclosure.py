"""What encloses the truth: two curves around a curve, two numbers around a number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from reticent.kernel.curves import GaussianTradeOff, TradeOff, from_advantage
from reticent.kernel.curves.polygon import safest
from reticent.kernel.messages import Message
from reticent.kernel.text import Short

_ROUNDING = 1e-9  # by which, relative, a lower end may exceed an upper one without a contradiction
_LEAST = 1e-15  # log rates carry this much, absolute
_NET = np.concatenate([[0.0], np.geomspace(1e-6, 1e-2, 41), np.linspace(0.02, 2.0, 100), np.geomspace(2.02, 2e3, 300)])
CONTRADICTION = (
    "Two computations of the worst case contradicted each other near epsilon {:.4g}: "
    "the larger risk is claimed, and no lower end is."
)


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its enclosure: ``lower <= truth <= upper``; ``value`` is what is claimed.

    An end is infinite where nothing is proven on that side.
    """

    lower: float
    value: float
    upper: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """A route to a curve that was tried.

    Attributes:
        name: for people.
        width: between its own bounds on the advantage; infinite where it failed.
        failure: why it could not answer, or left tails out; empty where it answered in full.
    """

    name: str
    width: float = math.inf
    failure: str = ""


@dataclass(frozen=True, repr=False)
class Enclosure(Short):
    """An enclosure of a trade-off curve: optimistic >= truth >= pessimistic, as functions of alpha.

    Where the two curves come from two computations, ``checked`` makes one that cannot contradict itself.

    Attributes:
        pessimistic: an attacker at least as strong as the true one: the safe side, used for claims.
        optimistic: an attacker at most as strong.
        notes: what went wrong on the way, for people.
        trace: the routes that were tried, in order; empty where the curve is known in closed form.
    """

    pessimistic: TradeOff
    optimistic: TradeOff
    notes: tuple[Message | str, ...] = field(default=())
    trace: tuple[Attempt, ...] = field(default=())

    @classmethod
    def exact(cls, curve: TradeOff) -> Enclosure:
        """A curve known up to rounding."""
        return cls(pessimistic=curve, optimistic=curve)

    @classmethod
    def from_above(cls, curve: TradeOff, notes: tuple[Message | str, ...] = ()) -> Enclosure:
        """A bound from which nothing is known on the other side: that end is perfect privacy.

        Args:
            curve: of an attacker at least as strong as the true one.
        """
        return cls(pessimistic=curve, optimistic=GaussianTradeOff(0.0), notes=notes)

    @classmethod
    def checked(
        cls,
        pessimistic: TradeOff,
        optimistic: TradeOff,
        notes: tuple[Message | str, ...] = (),
        trace: tuple[Attempt, ...] = (),
    ) -> Enclosure:
        """An enclosure whose two curves do not cross: delta is compared over a net of thresholds of both signs.

        Where the optimistic curve claims more risk than the pessimistic one, one of them is wrong. Then the
        larger risk of both is claimed, nothing is claimed from below, and a note says so.

        Args:
            pessimistic, optimistic: the two curves, symmetric or not.
        """
        crossing = _crossing(pessimistic, optimistic)
        if crossing is None:
            return cls(pessimistic, optimistic, notes, trace)
        notes = (*notes, CONTRADICTION.format(crossing))
        return cls(safest([pessimistic, optimistic]), from_advantage(0.0), notes, trace)


def _crossing(pessimistic: TradeOff, optimistic: TradeOff) -> float | None:
    """The first threshold at which the optimistic curve has the larger delta, by more than rounding."""
    for sign, one, other in ((1.0, pessimistic, optimistic), (-1.0, pessimistic.reversed, optimistic.reversed)):
        upper, lower = np.exp(one.log_delta(_NET)), np.exp(other.log_delta(_NET))
        crossed = ~(lower <= upper * (1.0 + _ROUNDING) + _LEAST)
        if np.any(crossed):
            return float(sign * _NET[np.argmax(crossed)])
    return None
