"""One run whose setting was drawn from a list, by a draw that says nothing about the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from reticent import pairs
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.base import Mechanism
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Condition, Status, condition

_MOST = 64


@dataclass(frozen=True, slots=True, repr=False)
class OneOf(Mechanism):
    """One of several mechanisms, drawn at random before it ran; which one it was is released with it.

    Attributes:
        settings: the mechanisms, two to 64, none of them twice, of one unit and one number of records per person.
        weights: how often each is on the list; the draw is uniform over the list.

    Raises:
        ParameterError: they are not.

    Example:
        >>> import reticent as rt
        >>> run = OneOf((rt.Gaussian(2.0), rt.Gaussian(4.0)), (1, 3))
        >>> round(rt.WorstCase().assess(run).measure(rt.advantage).value, 4)
        0.124
    """

    settings: tuple[Mechanism, ...] = field()
    weights: tuple[int, ...] = field()

    name: ClassVar[str] = "one-of"

    def __post_init__(self) -> None:
        distinct = len(set(self.settings)) == len(self.settings)
        if not distinct or not 2 <= len(self.settings) <= _MOST:
            raise ParameterError("settings", len(self.settings), f"two to {_MOST} mechanisms, none of them twice")
        if len(self.weights) != len(self.settings):
            raise ParameterError("weights", self.weights, "one for each setting")
        for weight in self.weights:
            checks.count(weights=weight)
        for name in ("unit", "records_per_user"):
            if len({getattr(one, name) for one in self.settings}) > 1:
                raise ParameterError(name, "several", "the same in all settings")

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        cases = tuple(one.parts_under(neighbouring, attained=attained) for one in self.settings)
        if not any(cases):
            return ()
        keys = ("RETICENT:public-coin", *(key for case in cases for part in case for key in part.theorems))
        pair = pairs.OneOfPairs(cases, self.weights, attained)
        return (Part(pair, 1, tuple(dict.fromkeys(keys))),)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those of all settings, each once, and that chance drew the setting."""
        each = dict.fromkeys(found for one in self.settings for found in one.conditions)
        return (*each, condition("drawn-setting", Status.DECLARED))


def drawn_from(releases: Iterable[Mechanism]) -> Mechanism:
    """One run of which the setting is drawn from a list, uniformly.

    Args:
        releases: what each setting of the list releases; one and the same for all is that one.
    """
    counted = Counter(releases)
    return next(iter(counted)) if len(counted) == 1 else OneOf(tuple(counted), tuple(counted.values()))
