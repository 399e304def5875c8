"""What a mechanism is: frozen data that knows, for each neighbouring relation, the pairs that dominate its releases.

Adding one takes a file in this folder and its line in ``__init__.pyi``; docs/development/extending.md shows how.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Condition, Status, condition
from reticent.kernel.registry import Choice, Parameter, Registry, flat, gathered, parameters_of
from reticent.kernel.samplers import INDEPENDENT, Sampler
from reticent.kernel.text import Short, html_table

if TYPE_CHECKING:
    from reticent.kernel.mechanisms.dpsgd import DPSGD
    from reticent.pairs import Runs

SMALLEST, LARGEST = 1e-30, 1e30
"""Beyond these, squares and exponentials leave the range of floating point, and no answer means anything."""

OF_ALL_RELEASES = ("used-once", "public-preparation")
OF_NOISE = ("unpredictable-noise", "real-numbers")
OF_A_START = ("start-weights", "base-model")
"""Keys of conditions that nobody can check from parameters alone."""


class Mechanism(Choice, Short, ABC):
    """What was released, as frozen data. Nothing here says what follows from it.

    A subclass is a frozen dataclass whose fields are described by ``kernel.registry.described``; the first line of its
    docstring is shown to people.

    Attributes:
        name: as the command line and documents spell it.
        title: in a few words, for the dashboard; the name where it says enough.
        sentence: what it is, for readers of a certificate; empty where they need not be told.
        extras: what people may give instead of fields; see ``resolved``.
        notes: what a reader must know in addition to the conditions, one sentence or two each.
        noise_multiplier: noise over the largest contribution of one record; None where there is none to be scaled.
        sample_rate: probability that a record is in one release.
        sampler: how the records of one release are drawn.
        releases: how often it is released, of the same data.
        records: how many coins of one person may come up in one release.
        weights: how often each of ``settings`` is on the list of which chance drew one; empty where there is no list.
    """

    __slots__ = ()

    name: ClassVar[str]
    title: ClassVar[str] = ""
    sentence: ClassVar[Message | str] = ""
    extras: ClassVar[tuple[Parameter, ...]] = ()
    noise_multiplier: float | None = None
    sample_rate: float = 1.0
    sampler: Sampler = INDEPENDENT
    releases: int = 1
    weights: tuple[int, ...] = ()

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
        return tuple(one for one in (*self.parts, *self.settings, self.base) if one is not self)

    @property
    def singles(self) -> tuple[Mechanism, ...]:
        """What none of is made of others: the innermost of ``inner``, or the one that it is."""
        return tuple(one for part in self.inner for one in part.singles) or (self,)

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        """What ran, one after the other: the parts of a ledger, or the one that it is."""
        return (self,)

    @property
    def settings(self) -> tuple[Mechanism, ...]:
        """What may have run: the settings of a list of which chance drew one, or the one that it is."""
        return (self,)

    @property
    def base(self) -> Mechanism:
        """One run: of several whose best is released, or the one that it is."""
        return self

    @property
    def runs(self) -> Runs | None:
        """The law of the number of runs whose best is released; None where everything that ran is."""
        return None

    @property
    def training(self) -> DPSGD | None:
        """The run of DP-SGD that it is: sums whose contributions may react to what was released before."""
        return None

    @property
    def trainings(self) -> tuple[DPSGD, ...]:
        """Its parts, where all of them are runs of DP-SGD; else nothing."""
        found = tuple(run for part in self.parts if (run := part.training) is not None)
        return found if len(found) == len(self.parts) else ()

    @property
    def sums(self) -> DPSGD | None:
        """Sums with Gaussian noise of its own in each, of gradients or not, as a run; None for everything else."""
        return self.training

    @property
    def steps(self) -> int:
        """Noisy releases in all."""
        return self.releases

    @property
    def records(self) -> int:
        """See the class."""
        return 1

    @property
    def coordinates(self) -> int | None:
        """How many numbers each release has, where that is known."""
        return None

    def equivalent(self) -> Mechanism:
        """What has the same dominating pairs, where noise that is correlated is one release of its own."""
        return self

    def one_record(self, what: str, says: Message | None = None) -> None:
        """Refuse it where its numbers are to hold for several records of one person.

        Args:
            what: the start of the error's sentence.
            says: the whole sentence, where pages show it.

        Raises:
            UnsupportedError: ``what`` is known for one record per person only.
        """
        if any(part.records > 1 for part in self.parts):
            raise UnsupportedError(says or f"{what} is known for one record per person only")

    def changed(self, name: str, value: float) -> Mechanism:
        """The same with another value of a parameter that may be searched; ``steps`` is whatever counts releases.

        Raises:
            UnsupportedError: it has no such parameter.
        """
        searched = self.searched()
        field = "releases" if name == "steps" and name not in searched else name
        if field not in searched:
            raise UnsupportedError(f"{type(self).__name__} has no {name} that could be calibrated")
        return replace(self, **{field: value})  # type: ignore[type-var]

    def scaled(self, factor: float) -> Mechanism:
        """The same with all its noise times ``factor``.

        Raises:
            UnsupportedError: it has no noise that could be scaled.
        """
        if self.noise_multiplier is None:
            raise UnsupportedError(f"{type(self).__name__} has no noise that could be scaled")
        if self.noise_multiplier == 0.0:
            raise UnsupportedError(
                "a step without noise stays without noise, whatever the factor: it has no calibration"
            )
        return self.changed("noise_multiplier", self.noise_multiplier * factor)

    @classmethod
    def searched(cls) -> tuple[str, ...]:
        """Parameters in which risk is known to move one way, so that they may be searched; the first is meant first."""
        known = ("noise_multiplier", "steps", "releases")
        return tuple(p.name for p in parameters_of(cls) if p.search or p.name in known)

    @property
    def notes(self) -> tuple[Message | str, ...]:
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
        planned = ("fixed-plan",) if self.releases > 1 else ()
        general = (*OF_ALL_RELEASES, *(OF_NOISE if self.noise_multiplier else ()))
        stated = [condition(key, Status.DECLARED) for key in self._stated()]
        return (*stated, *(condition(key) for key in (*self._unseen(), *planned, *general)))

    def conditions_under(self, neighbouring: Neighbouring) -> tuple[Condition, ...]:
        """Those that numbers for such data sets need: where both have as many records, no place is left empty."""
        places = neighbouring is Neighbouring.ADD_REMOVE
        return tuple(one for one in self.conditions if places or one.key != "kept-places")

    def _stated(self) -> tuple[str, ...]:
        """Keys of conditions that the fields state."""
        return ("clipped", *((self.sampler.condition.key,) if self.sample_rate < 1.0 else ()))

    def _unseen(self) -> tuple[str, ...]:
        """Keys of conditions that the fields do not state, in addition to those of every release."""
        return ("hidden-draws",) if self.sample_rate < 1.0 else ()

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


MECHANISMS: Registry[Mechanism] = Registry("mechanism", "reticent.mechanisms", Mechanism, "reticent.mechanisms")
"""Every single mechanism by name; a ``Ledger`` is a list of them."""


def check_noise(noise_multiplier: float) -> None:
    """Refuse a ``noise_multiplier`` that is neither 0 nor a number with which one can compute.

    Raises:
        ParameterError: it is neither.
    """
    if checks.non_negative(noise_multiplier=noise_multiplier) and not SMALLEST <= noise_multiplier <= LARGEST:
        raise ParameterError("noise_multiplier", noise_multiplier, f"0, or from {SMALLEST:g} to {LARGEST:g}")


def check_rate(sample_rate: float) -> None:
    """Refuse a ``sample_rate`` that is not a probability above 0 with which one can compute.

    Raises:
        ParameterError: it is none.
    """
    if checks.rate(sample_rate=sample_rate) < SMALLEST:
        raise ParameterError("sample_rate", sample_rate, f"a number from {SMALLEST:g} to 1")
