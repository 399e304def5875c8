"""The best of several runs: what tuning of settings releases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from reticent import pairs
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.base import Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Condition, Status, condition
from reticent.pairs.runs import Runs

OF_SELECTION = ("independent-runs", "hidden-runs", "best-only", "counted-scores")
"""Keys of conditions that every selection rests on."""


@dataclass(frozen=True, slots=True, repr=False)
class Selection(Mechanism):
    """The best of several runs of one mechanism, and nothing of the others.

    Each run draws its setting from the same list, by itself, and releases its result with a score. How many there are
    is drawn before the first. ``base`` is at least as revealing as each setting of the list, or a ``OneOf`` of them.

    Attributes:
        base: one run.
        runs: how many runs there are: ``Geometric``, ``NegativeBinomial``, ``Poisson`` or ``Fixed``.

    Raises:
        ParameterError: ``base`` is itself a selection, or ``runs`` is no law of a number of runs.

    Example:
        >>> import reticent as rt
        >>> tuned = rt.Selection(rt.Gaussian(2.0), rt.Geometric(10))
        >>> round(rt.epsilon_at_delta(tuned, 1e-6), 2)
        3.26
    """

    base: Mechanism = field()
    runs: Runs = field()

    name: ClassVar[str] = "selection"
    sentence: ClassVar[Message | str] = Message("mechanism.selection")

    def __post_init__(self) -> None:
        if not isinstance(self.base, Mechanism) or _selects(self.base):
            raise ParameterError("base", type(self.base).__name__, "a mechanism without a selection in it")
        if not isinstance(self.runs, Runs):
            raise ParameterError("runs", self.runs, "Geometric(20), or another law of the number of runs")

    def changed(self, name: str, value: float) -> Selection:
        """As of each run: the best then tells more or less as each does. ``mean_runs`` is how many there are."""
        if name == "mean_runs":
            return replace(self, runs=replace(self.runs, mean=float(value)))  # type: ignore[type-var]
        return replace(self, base=self.base.changed(name, value))

    def scaled(self, factor: float) -> Selection:
        return replace(self, base=self.base.scaled(factor))

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        one = self.base.parts_under(neighbouring, attained=attained)
        if not one:
            return ()
        keys = ("RETICENT:worst-order", "PAPERNOT2022:Corollary 3", *(key for part in one for key in part.theorems))
        return (Part(pairs.SelectedPair(one, self.runs, attained), 1, tuple(dict.fromkeys(keys))),)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those of one run, and how runs were drawn."""
        return (*self.base.conditions, *(condition(key, Status.DECLARED) for key in OF_SELECTION))

    def _followed(self) -> list[tuple[str, Any, str]]:
        return [
            ("runs", self.runs.name, "How the number of runs is drawn."),
            ("mean", self.runs.mean, "Runs on average."),
        ]


def _selects(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, Selection) or any(map(_selects, mechanism.inner))
