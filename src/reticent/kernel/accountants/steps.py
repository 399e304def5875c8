"""What ran, as kinds of steps: each with its dominating pair, and how often it ran."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reticent.kernel.curves import TradeOff
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.pairs import CurvePair, Disclosure, GaussianPair, LossMasses, Neighbouring, Pair, Part


class Release(Protocol):
    """What accountants ask of a mechanism: the pairs that dominate its releases."""

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> Sequence[Part]:
        """The parts between such data sets; ``attained``: pairs that some two data sets have."""

    def __hash__(self) -> int:
        """Equal releases are composed once."""


@dataclass(frozen=True, slots=True)
class Known:
    """Parts under the one relation that they are asked for.

    Attributes:
        parts: what was released.
    """

    parts: tuple[Part, ...]

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """The parts, whatever is asked."""
        return self.parts


@dataclass(frozen=True, slots=True)
class Step:
    """A kind of noisy step.

    Attributes:
        pair: its dominating pair.
        count: number of such steps.
    """

    pair: Pair
    count: int

    @property
    def atoms_apart(self) -> float:
        """Distance between the two atoms of the losses; 0 where there are none."""
        apart = sum(self.pair.largest_losses)
        return apart if math.isfinite(apart) else 0.0

    @property
    def curve(self) -> TradeOff:
        """The curve of one step, H0 = absent.

        Raises:
            UnsupportedError: the pair knows none.
        """
        if (curve := self.pair.curve) is None:
            raise UnsupportedError(f"no trade-off curve is known for {self.pair!r}")
        return curve

    def losses(self, grid: np.ndarray) -> LossMasses:
        """The privacy loss distribution of one step on cells between the points of ``grid``."""
        return self.pair.losses(grid) or LossMasses.of(self.curve, grid)


Steps = Sequence[Step]


def weaker(steps: Steps) -> Steps:
    """The same with the curves below of those steps that are enclosed themselves.

    Args:
        steps: what is composed.
    """
    return [
        Step(CurvePair(step.pair.curve_below or step.curve, step.pair.largest_losses), step.count)
        if enclosed([step])
        else step
        for step in steps
    ]


def enclosed(steps: Steps) -> bool:
    """Whether the curve of a step is known from both sides only.

    Args:
        steps: what is composed.
    """
    return any(step.pair.curve_below is not step.pair.curve for step in steps)


def merged(parts: Iterable[tuple[Pair, int]]) -> tuple[tuple[Step, ...], float]:
    """The kinds of noisy steps, and the log of the probability that no noiseless one showed the target.

    Plain Gaussian releases are merged into one: their parameters add in squares. Equal steps are counted
    together; the order of parts is dropped, as the curve does not depend on it.

    Args:
        parts: pairs, and how often each was released.
    """
    counts: dict[Pair, int] = {}
    squared, unseen = 0.0, 0.0
    for pair, count in parts:
        if isinstance(pair, Disclosure):
            unseen += count * pair.log_absent
        elif pair.mu is not None:
            squared += count * pair.mu**2
        else:
            counts[pair] = counts.get(pair, 0) + count
    steps = [Step(pair, count) for pair, count in counts.items()]
    if squared > 0.0:
        steps.append(Step(GaussianPair(1.0, 1.0, math.sqrt(squared)), 1))
    return (tuple(sorted(steps, key=repr)) if len(steps) > 1 else tuple(steps)), unseen
