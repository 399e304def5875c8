"""The best of several runs: what tuning of settings releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from reticent import pairs
from reticent.errors import ParameterError
from reticent.mechanisms.base import Mechanism
from reticent.mechanisms.ledger import parts_of
from reticent.mechanisms.one_of import OneOf
from reticent.mechanisms.units import Unit
from reticent.pairs import Neighbouring, Part
from reticent.pairs.selected import RUNS, Runs
from reticent.proofs import Condition, Status, condition
from reticent.text import one_of

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

    base: Mechanism
    runs: Runs

    name: ClassVar[str] = "selection"

    def __post_init__(self) -> None:
        if not isinstance(self.base, Mechanism) or _selects(self.base):
            raise ParameterError("base", type(self.base).__name__, "a mechanism without a selection in it")
        if not isinstance(self.runs, Runs):
            raise ParameterError("runs", self.runs, "Geometric(20), or another law of the number of runs")

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        one = self.base.parts_under(neighbouring, attained=attained)
        if not one:
            return ()
        keys = ("RETICENT:worst-order", "PAPERNOT2022:Corollary 3", *(key for part in one for key in part.theorems))
        return (Part(pairs.SelectedPair(one, self.runs, attained), 1, tuple(dict.fromkeys(keys))),)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.base.notes

    @property
    def work(self) -> float:
        return self.base.work

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those of one run, and how runs were drawn."""
        return (*self.base.conditions, *(condition(key, Status.DECLARED) for key in OF_SELECTION))

    @property
    def unit(self) -> Unit:
        """What one run protects: a client only where every part does."""
        units = {getattr(part, "unit", Unit.RECORD) for part in singles_of(self.base)}
        return Unit.CLIENT if units == {Unit.CLIENT} else Unit.RECORD

    @property
    def records_per_user(self) -> int | None:
        """How many records of a person one run protects together; None where some part does not state the same."""
        stated = {getattr(part, "records_per_user", None) for part in singles_of(self.base)}
        return stated.pop() if len(stated) == 1 else None

    def _followed(self) -> list[tuple[str, Any, str]]:
        return [
            ("runs", self.runs.name, "How the number of runs is drawn."),
            ("mean", self.runs.mean, "Runs on average."),
        ]

    def _repr_html_(self) -> str:
        return self.base._repr_html_() + Mechanism._repr_html_(self)


def runs_called(name: str) -> type[Runs]:
    """The law of a number of runs with this name.

    Raises:
        ParameterError: there is none.
    """
    if name not in RUNS:
        raise ParameterError("selection", name, one_of(name, RUNS))
    return RUNS[name]


def singles_of(mechanism: Mechanism) -> tuple[Mechanism, ...]:
    """The single mechanisms of one: those of a ledger, of a list of settings, and the run that a selection repeats."""
    inner = inner_of(mechanism)
    return inner if inner == (mechanism,) else tuple(one for part in inner for one in singles_of(part))


def _selects(mechanism: Mechanism) -> bool:
    if isinstance(mechanism, Selection):
        return True
    return any(_selects(part) for part in inner_of(mechanism) if part is not mechanism)


def inner_of(mechanism: Mechanism) -> tuple[Mechanism, ...]:
    """What a mechanism is made of: the parts of a ledger, the settings of a list, the run of a selection; or itself."""
    match mechanism:
        case Selection(base=base):
            return (base,)
        case OneOf(settings=settings):
            return settings
        case _:
            return parts_of(mechanism)
