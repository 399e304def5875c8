"""What a sampler is: frozen data that says how batches are drawn, and what may be claimed for that.

Adding one takes a file in this folder and its line in ``__init__.pyi``; docs/development/extending.md shows how. No
other file names one: whoever asks something asks a trait or a method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from reticent.kernel import pairs
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.messages import Figure, Message, said
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import CONDITIONS, Bearing, Kind
from reticent.kernel.registry import Choice, Registry, parameters_of
from reticent.kernel.samplers.epochs import MOST_STEPS, epochs_to_steps, whole_batches_of_a_pass
from reticent.kernel.text import Short, nearest, one_of, stated

LOADER = "Let reticent train, or watch a loader of Opacus: the ledger then shows it. Else read the loader's code."
"""What to do where nobody saw how batches are drawn."""
_RARE = 1e-6  # probability that some batch of the run is larger than what is called the largest


def of_draws(key: str, remedy: str, says: str | None = None) -> Kind:
    """A condition about how batches are drawn; ``says`` where no catalogue has it."""
    return Kind(key, Message(f"condition.{key}") if says is None else said(says), Bearing.RELEASE, remedy)


class Run(Protocol):
    """What a sampler asks of a run."""

    @property
    def noise_multiplier(self) -> float:
        """Of the sum, over the clip norm."""

    @property
    def sample_rate(self) -> float:
        """Probability of one record in one step; the share of the data in one batch where there are passes."""

    @property
    def steps(self) -> int:
        """Noisy updates."""

    @property
    def batch_size(self) -> int | None:
        """Expected records per batch."""

    @property
    def dataset_size(self) -> int | None:
        """Records, the target counted."""

    @property
    def records(self) -> int:
        """How many records are protected together."""

    @property
    def sampler(self) -> Sampler:
        """How its batches were drawn."""


class Uniform(Protocol):
    """Independent draws; float64."""

    def uniform(self, size: int) -> np.ndarray:
        """``size`` numbers strictly between 0 and 1."""
        ...


class Sampler(Choice, Short, ABC):
    """How the records of one step are chosen; what may be claimed for each is in docs/theory/sampling.md.

    A subclass is a frozen dataclass whose fields are described by ``kernel.registry.described``. The first line of
    its docstring is shown to people. What pages of certificates show - sentence, note, exposed,
    what the condition says - is a message; a plain string of another package stays English on every page.

    Attributes:
        name: as the command line and documents spell it.
        title: in a few words, for the dashboard.
        sentence: what it does, for readers of a certificate.
        condition: what a run with it needs, beside what every run needs.
        note: what readers must know in addition, with the values ``steps`` of an epoch and fields, or a plain string
            with these in braces; may be empty.
        exposed: where chance puts a record at worst.
        independent: each record is in each batch by a coin of its own, with probability ``sample_rate``.
        in_passes: a record is in exactly one step of each epoch: who sees the step sees one release of it.
        allocated: that step is drawn for each record by itself, and hidden.
        public_places: who is in which batch is taken to be known: nothing is claimed from draws.
        in_order: batches are the same, in the same order, in each epoch.
        displaces: a drawn record may take the place of another one.
        at_rate: a record is in each batch with probability ``sample_rate``, whatever happened in other steps.
        counts_records: numbers follow from the number of records, too.
        game: the membership game has a rule for the other records of a batch.
        attained: some two data sets are known that show as much as ``parts`` say, whatever the rate.
        drawn: what a watch calls a loader of this kind; None where it knows none.
        warning: of a run or a loop; None where there is nothing to warn of.
        draws: how many coins of one record are summed in a step.
    """

    __slots__ = ()

    name: ClassVar[str]
    title: ClassVar[str]
    sentence: ClassVar[Message | str]
    condition: ClassVar[Kind]
    note: ClassVar[Message | str] = ""
    exposed: ClassVar[Message | str] = Message("exposed.step")
    independent: ClassVar[bool] = False
    in_passes: ClassVar[bool] = False
    allocated: ClassVar[bool] = False
    public_places: ClassVar[bool] = False
    in_order: ClassVar[bool] = False
    displaces: ClassVar[bool] = False
    at_rate: ClassVar[bool] = False
    counts_records: ClassVar[bool] = False
    game: ClassVar[bool] = False
    attained: ClassVar[bool] = False
    drawn: ClassVar[str | None] = None
    warning: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if isinstance(vars(cls).get("condition"), Kind):
            CONDITIONS.bring(cls.condition)

    @property
    def draws(self) -> int:
        """See the class."""
        return 1

    @property
    def uses(self) -> int:
        """In how many steps of a pass over the data a record is, where there are passes."""
        return 1

    @property
    def tells_all(self) -> bool:
        """Whether nothing below the worst case is proven for attackers who lack a direction."""
        return not (self.independent or self.public_places)

    @abstractmethod
    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """Dominating pairs of one record, or of a person where ``of_persons`` says so; see ``Mechanism.parts_under``.

        Args:
            attained: give pairs that some two data sets have; parts of which none is known are left out.
        """

    def of_persons(self, run: Run) -> bool:
        """Whether ``parts`` is proven for several records of one person too; else the mechanism adds them up."""
        return False

    def attains(self, run: Run) -> bool:
        """Whether two data sets are known that show as much; asked where an attacker may gain by a hidden direction."""
        return self.attained or self.takes_all(run)

    def check(self, run: Run) -> None:
        """Refuse a run that contradicts the sampler.

        Raises:
            ParameterError: it does.
        """

    def keeps(self, run: Run) -> bool:
        """Whether hidden draws of this run may be those of another run too."""
        return False

    def joined(self, runs: Sequence[Run], neighbouring: Neighbouring) -> tuple[Part, ...]:
        """Runs of one ledger that keep their draws; these may be one and the same."""
        raise NotImplementedError

    def releases(self, run: Run) -> int | None:
        """How many releases of all data the run is for who learns each step of the record; None: no fewer."""
        return None

    def theorems(self, run: Run) -> tuple[str, ...]:
        """Keys of what the number of releases follows from."""
        return ()

    def notes(self, run: Run) -> tuple[Message, ...]:
        """What a reader must know about how batches were drawn."""
        told = {"steps": self.batches_of(run.sample_rate), **stated(self)}
        own = (self._noted(told),) if self.note else ()
        hidden = run.sample_rate < 1.0 and run.noise_multiplier > 0.0
        return (*own, *((Message("note.mu", exposed=said(self.exposed)),) if hidden else ()))

    def _noted(self, told: dict[str, Any]) -> Message:
        if isinstance(self.note, Message):
            return self.note.given(**{name: Figure(str(told[name])) for name, _ in self.note.values})
        return said(self.note.format(**told))

    def takes_all(self, run: Run) -> bool:
        """Whether every batch is all records: then nothing rests on draws."""
        return (self.at_rate or self.in_passes) and run.sample_rate == 1.0

    def steps_in(self, epochs: float, sample_rate: float, most: int = MOST_STEPS) -> int:
        """Noisy updates in so many passes over the data.

        Args:
            epochs: passes over the data, > 0.
            sample_rate: share of the data in one step.
            most: steps that are allowed.

        Raises:
            ParameterError: as for ``epochs_to_steps``.
        """
        return epochs_to_steps(epochs, sample_rate, most)

    def batches_of(self, sample_rate: float, *, attained: bool = False) -> int:
        """Noisy updates per pass over the data: as stated, else the fewest that there can be.

        A loader that drops the last incomplete batch makes floor(1/sample_rate), one that keeps it rounds up; the
        fewer fit into an epoch, the more epochs were started.
        """
        return whole_batches_of_a_pass(sample_rate)

    def in_batches(self, batches: int | None) -> Self:
        """The same where an epoch is known to have so many steps; None: not known. Without passes nothing changes."""
        return self

    @classmethod
    def of_uses(cls, uses: int) -> Self | None:
        """The same where it was seen that a record is in so many steps of each pass; None: nothing is proven then."""
        return cls() if uses == 1 else None

    def drawn_once(self) -> Sampler:
        """The same where a record has one coin in a step."""
        return self

    def unless_whole(self) -> Sampler:
        """What may be claimed where nobody saw that each pass over the data was whole."""
        return self

    @classmethod
    def planned(cls, batches: int, memory: int | None) -> Sampler:
        """As a plan of a training has it.

        Args:
            batches: of a pass over the data.
            memory: most records in a batch; None where nothing is stated.

        Raises:
            UnsupportedError: it cannot be had.
        """
        for name in needed(cls):
            raise UnsupportedError(f"no plan states {name}")
        return cls().in_batches(batches)

    def largest_batch(self, run: Run) -> int:
        """Records that no batch of the run exceeds, but with a probability of a millionth."""
        return run.batch_size or 1

    def largest_draw(self, run: Run) -> int:
        """The same before batches are cut."""
        return self.largest_batch(run)

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        """An endless stream of batches: increasing positions in ``range(records)``.

        Args:
            source: of random numbers.
            records: to draw from.
            sample_rate: where batches are drawn by it.
            size: of a batch, where they are not, at most ``records``.

        Raises:
            ParameterError: ``size`` is needed and missing, or outside 1 to ``records``; or such batches cannot be drawn
                here.
        """
        raise ParameterError("sampler", self.name, one_of(self.name, runnable()))

    def event(self, run: Run) -> Any:
        """One step as an event of dp_accounting, for one record; None where it has no event of its own.

        Raises:
            UnsupportedError: the event needs what the run does not state.
        """
        return None

    @classmethod
    def of_event(cls, event: Any) -> tuple[dict[str, Any], Any] | None:
        """(fields of the run, the event on a batch) of an event of dp_accounting that draws so; None for others."""
        return None

    @classmethod
    def of_process(cls, held: Mapping[str, Any]) -> dict[str, Any] | None:
        """Fields of the run, from what a process of opake holds that draws so; None for others.

        The steps belong to them where the process is more than one step.
        """
        return None


class _Samplers(Registry[Sampler]):
    """The list of samplers: each has a condition."""

    def _list(self, kind: type[Sampler]) -> type[Sampler]:
        if not isinstance(getattr(kind, "condition", None), Kind):
            raise TypeError(f"{kind.__name__}.condition is no reticent.kernel.proofs.Kind")
        return super()._list(kind)


SAMPLERS: Registry[Sampler] = _Samplers("sampler", "reticent.samplers", Sampler, "reticent.samplers")
"""Every sampler by name, in the order in which people see them."""
CONDITIONS.brought = lambda: (kind.condition for kind in SAMPLERS.values())


def runnable() -> list[str]:
    """Names of those whose batches the training loop can draw."""
    return [name for name, kind in SAMPLERS.items() if kind.batches is not Sampler.batches and not needed(kind)]


def needed(kind: type[Sampler]) -> list[str]:
    """The fields of which no name says what they are."""
    return [p.name for p in parameters_of(kind) if p.required]


def sampler_given(given: object) -> Sampler:
    """What was given for a sampler.

    Raises:
        ParameterError: it is none, such as a name; the message says what to write.
    """
    if isinstance(given, Sampler):
        return given
    meant = nearest(given, SAMPLERS)
    if meant is None:
        raise ParameterError(
            "sampler", given, f"one of {', '.join(f'{kind.__name__}()' for kind in SAMPLERS.values())}"
        )
    kind = SAMPLERS[meant]
    place = kind.__module__.rpartition(".")[0]
    raise ParameterError("sampler", given, f"a sampler of {place}: write sampler={kind.__name__}()")


def seen_as(drawn: str) -> type[Sampler] | None:
    """The sampler of which a watch says so; None where it is none of them."""
    return next((kind for kind in SAMPLERS.values() if kind.drawn == drawn), None)


def by_coins(noise: float, rate: float, steps: int, neighbouring: Neighbouring, *keys: str) -> tuple[Part, ...]:
    """Steps that hold one record by a coin of its own.

    Args:
        keys: of theorems, beside the one that proves the pair.
    """
    replaced = neighbouring is Neighbouring.REPLACE
    key = "RETICENT:replace-dominance" if replaced else "ZHU2022:Proposition 30"
    key = "DONG2022:Definition 2.3" if rate == 1.0 else key
    return (Part(pairs.poisson_gaussian(noise, rate, neighbouring), steps, (key, *keys)),)


def rarely_exceeded(run: Run, share: float) -> int:
    """Records that no batch of the run exceeds, but with a probability of a millionth.

    Args:
        share: probability of each record in one batch, by a coin of its own.
    """
    from scipy.special import bdtrc  # lists of verbs are read without it

    records = run.dataset_size or 1
    return bisect_left(range(records), True, key=lambda size: run.steps * bdtrc(size, records, share) <= _RARE)


def batch_within(size: int | None, records: int) -> int:
    """The size of a batch.

    Raises:
        ParameterError: it is missing, or not from 1 to ``records``.
    """
    if size is None or not 1 <= size <= records:
        raise ParameterError("batch_size", size, f"a whole number from 1 to {records}")
    return size


def permutations(source: Uniform, size: int) -> Iterator[np.ndarray]:
    """Endless. Sorting independent uniform keys: ties have probability below size^2 2^-53."""
    return (np.argsort(source.uniform(size), kind="stable") for _ in count())
