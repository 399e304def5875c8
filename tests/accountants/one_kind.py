"""Equal steps with a known curve, as routes take them."""

from __future__ import annotations

import math

from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.steps import Step
from reticent.kernel.curves import TradeOff
from reticent.kernel.curves.polygon import Sides
from reticent.kernel.pairs import CurvePair


def steps(curve: TradeOff, count: int, largest: tuple[float, float] = (math.inf, math.inf)) -> list[Step]:
    """``count`` steps with ``curve``; ``largest``: the largest loss and the largest of its negative."""
    return [Step(CurvePair(curve, largest), count)]


def latticed(curve: TradeOff, count: int, apart: float = 0.0, **aim: float) -> Sides:
    """The curves of a lattice; ``apart``: distance of the two atoms of the losses."""
    largest = (0.5 * apart, 0.5 * apart) if apart else (math.inf, math.inf)
    return Lattice(**aim).answer(steps(curve, count, largest)).sides
