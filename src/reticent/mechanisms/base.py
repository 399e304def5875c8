"""What a mechanism is: frozen data that knows, for each neighbouring relation, the pairs that dominate its releases.

Adding one takes a file in this folder and its line in ``__init__.pyi``; docs/development/extending.md shows how.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from reticent import _check
from reticent.errors import ParameterError
from reticent.mechanisms.units import Unit
from reticent.pairs import Neighbouring, Part
from reticent.proofs import Condition, Status, condition
from reticent.registry import Choice, Parameter, Registry, flat, gathered, parameters_of
from reticent.text import Short, html_table

SMALLEST, LARGEST = 1e-30, 1e30
"""Beyond these, squares and exponentials leave the range of floating point, and no answer means anything."""

OF_ALL_RELEASES = ("used-once", "public-preparation")
OF_NOISE = ("unpredictable-noise", "real-numbers")
"""Keys of conditions that nobody can check from parameters alone."""


class Mechanism(Choice, Short, ABC):
    """What was released, as frozen data. Nothing here says what follows from it.

    A subclass is a frozen dataclass whose fields are described by ``reticent.registry.described``; the first line
    of its docstring is shown to people.

    Attributes:
        name: as the command line and documents spell it.
        extras: what people may give instead of fields; see ``resolved``.
        notes: what a reader must know in addition to the conditions, one sentence or two each.
    """

    __slots__ = ()

    name: ClassVar[str]
    extras: ClassVar[tuple[Parameter, ...]] = ()

    @abstractmethod
    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """The releases as dominating pairs, for data sets that are neighbours in the sense of ``neighbouring``.

        Args:
            neighbouring: between which data sets.
            attained: give pairs that some two data sets have, instead of pairs that only dominate; parts of
                which none is known are left out. Lower ends of enclosures follow from these.

        Raises:
            UnsupportedError: no dominating pair is proven.
        """

    @property
    def inner(self) -> tuple[Mechanism, ...]:
        """What it is made of: the parts of a ledger, the settings of a list, the run of a selection."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """See the class."""
        return tuple(dict.fromkeys(note for one in self.inner for note in one.notes))

    @property
    def work(self) -> float:
        """How many numbers must at least be gone through before its parts are known; known without doing so."""
        return sum((one.work for one in self.inner), 0.0)

    @property
    def unit(self) -> Unit:
        """Whom it protects: a client only where all that it is made of does."""
        return Unit.CLIENT if {one.unit for one in self.inner} == {Unit.CLIENT} else Unit.RECORD

    @property
    def records_per_user(self) -> int | None:
        """How many records of a person are protected together; None where some of it does not state the same."""
        stated = {one.records_per_user for one in self.inner}
        return stated.pop() if len(stated) == 1 else None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What every number about this release rests on, and who vouches for it where nobody saw it run."""
        noisy = getattr(self, "noise_multiplier", 0.0) > 0.0
        planned = ("fixed-plan",) if getattr(self, "releases", 1) > 1 else ()
        general = (*OF_ALL_RELEASES, *(OF_NOISE if noisy else ()))
        stated = [condition(key, Status.DECLARED) for key in self._stated()]
        return (*stated, *(condition(key) for key in (*self._unseen(), *planned, *general)))

    def conditions_under(self, neighbouring: Neighbouring) -> tuple[Condition, ...]:
        """Those that numbers for such data sets need: where both have as many records, no place is left empty."""
        places = neighbouring is Neighbouring.ADD_REMOVE
        return tuple(one for one in self.conditions if places or one.key != "kept-places")

    def _stated(self) -> tuple[str, ...]:
        """Keys of conditions that the fields state."""
        return ("clipped",)

    def _unseen(self) -> tuple[str, ...]:
        """Keys of conditions that the fields do not state, in addition to those of every release."""
        return ()

    def _repr_html_(self) -> str:
        """What it is made of, and what is stated, as tables for notebooks, without colours of their own."""
        values = flat(self)
        rows = [(p.name, values[p.name], p.help) for p in parameters_of(type(self))]
        known = [row for row in (*rows, *self._followed()) if row[1] is not None]
        inner = "".join(one._repr_html_() for one in self.inner)
        return inner + html_table(type(self).__name__, known) if known else inner

    def _followed(self) -> list[tuple[str, Any, str]]:
        """What follows from the fields and helps to read them: name, value, explanation."""
        return []

    @classmethod
    def resolved(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fields by name, from what was given for fields, spelt flat, and for ``extras``.

        Raises:
            ParameterError: what was given contradicts itself.
        """
        return gathered(cls, given)


MECHANISMS: Registry[Mechanism] = Registry("mechanism", "reticent.mechanisms", Mechanism, __package__)
"""Every single mechanism by name; a ``Ledger`` is a list of them."""


def check_noise(noise_multiplier: float) -> None:
    """Refuse a ``noise_multiplier`` that is neither 0 nor a number with which one can compute.

    Raises:
        ParameterError: it is neither.
    """
    if _check.non_negative(noise_multiplier=noise_multiplier) and not SMALLEST <= noise_multiplier <= LARGEST:
        raise ParameterError("noise_multiplier", noise_multiplier, f"0, or from {SMALLEST:g} to {LARGEST:g}")


def check_rate(sample_rate: float) -> None:
    """Refuse a ``sample_rate`` that is not a probability above 0 with which one can compute.

    Raises:
        ParameterError: it is none.
    """
    if _check.rate(sample_rate=sample_rate) < SMALLEST:
        raise ParameterError("sample_rate", sample_rate, f"a number from {SMALLEST:g} to 1")
