"""What a number rests on beyond its theorem's own mathematics: one sentence each, and who vouches for it.

``CONDITIONS`` lists all of them; a condition that is not listed cannot be stated. ``Theorem.needs`` names those of each
theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module

from reticent.kernel.errors import ParameterError
from reticent.kernel.messages import Message
from reticent.kernel.proofs.references import entries
from reticent.kernel.text import owners


class Status(StrEnum):
    """Who vouches for a condition."""

    CHECKED = "checked"
    """The code that ran, or a ledger that saw it run, establishes it."""
    DECLARED = "declared"
    """Somebody says so, or a setting does."""
    ASSUMED = "assumed"
    """Nobody looked, or what was seen does not establish it."""


class Bearing(StrEnum):
    """What a condition is about, and so what becomes of a claim while nobody has checked it."""

    GENERAL = "general"
    """Every number of differential privacy needs it. The claim stays."""
    RELEASE = "release"
    """It says what was released, as a noise multiplier does. The claim stays; a policy has to accept it."""
    DATA = "data"
    """It is about the records. The claim is conditional."""
    ATTACKER = "attacker"
    """It is about what the attacker knows. The claim is conditional."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A condition as it is listed.

    Attributes:
        key: its name.
        says: one sentence for people.
        bearing: what it is about.
        remedy: what to do while nobody vouches for it, one sentence.
    """

    key: str = field(repr=False)
    says: Message
    bearing: Bearing
    remedy: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that a number rests on.

    Attributes:
        key: of ``CONDITIONS``.
        status: who vouches for it.

    Raises:
        ParameterError: the key is not listed.
    """

    key: str
    status: Status

    def __post_init__(self) -> None:
        if self.key not in CONDITIONS:
            raise ParameterError("condition", self.key, f"one of {', '.join(CONDITIONS)}")

    @property
    def says(self) -> Message:
        """One sentence for people."""
        return CONDITIONS[self.key].says

    @property
    def bearing(self) -> Bearing:
        """What it is about."""
        return CONDITIONS[self.key].bearing

    @property
    def open(self) -> bool:
        """Whether nobody checked something that not every number of differential privacy needs."""
        return self.status is not Status.CHECKED and self.bearing is not Bearing.GENERAL

    @property
    def weakens(self) -> bool:
        """Whether a proof that rests on it is conditional."""
        return self.status is not Status.CHECKED and self.bearing in (Bearing.DATA, Bearing.ATTACKER)


class Conditions(Mapping[str, Kind]):
    """Conditions by key, in the order in which they are shown.

    Args:
        stated: those that are about all releases, or many.
        before: the one before which those stand that come with what needs them.
        bringing: the file that says which ones those are, as ``brought``; it is read when they are first asked for.
    """

    def __init__(self, stated: Iterable[Kind], before: str, bringing: str) -> None:
        self._stated, self._before, self._bringing = {one.key: one for one in stated}, before, bringing
        self.brought: Callable[[], Iterable[Kind]] = tuple
        self.loaded: dict[str, Kind] = {}
        """Those of ``brought`` whose file was read already: who asks for one of them needs no other file."""

    def __getitem__(self, key: str) -> Kind:
        found = self._stated.get(key) or self.loaded.get(key)
        found = found or next((one for one in self._others() if one.key == key), None)
        if found is None:
            raise KeyError(key)
        return found

    def _others(self) -> Iterable[Kind]:
        import_module(self._bringing)
        return self.brought()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def bring(self, kind: Kind) -> None:
        """Remember what a file that was read brings.

        Raises:
            ParameterError: another condition has its key.
        """
        if (self._stated.get(kind.key) or self.loaded.setdefault(kind.key, kind)) != kind:
            raise ParameterError("condition", kind.key, "a key that no other condition has")

    def place(self, key: str) -> float:
        """Where it stands; those that come with what needs them share one place."""
        stated = list(self._stated)
        return stated.index(key) if key in self._stated else stated.index(self._before) - 0.5

    def _all(self) -> dict[str, Kind]:
        """All.

        Raises:
            ParameterError: two have one key.
        """
        found: dict[str, Kind] = {}
        for kind in self._stated.values():
            for one in (*(self._others() if kind.key == self._before else ()), kind):
                if found.setdefault(one.key, one) != one:
                    raise ParameterError("condition", one.key, "a key that no other condition has")
        return found


CONDITIONS = Conditions(
    (
        Kind(entry["key"], Message(f"condition.{entry['key']}"), Bearing(entry["bearing"]), entry["remedy"])
        for entry in entries("conditions.json")
    ),
    before="kept-places",
    bringing="reticent.kernel.samplers.base",
)
"""Every condition by key: ``conditions.json``, and those that samplers bring."""

_WORST_FIRST = (Status.ASSUMED, Status.DECLARED, Status.CHECKED)


def condition(key: str, status: Status = Status.ASSUMED) -> Condition:
    """The listed condition ``key``.

    Args:
        status: who vouches for it; by default nobody.

    Raises:
        ParameterError: the key is not listed.
    """
    return Condition(key, status)


def vouched(conditions: Iterable[Condition], statuses: Mapping[str, Status]) -> tuple[Condition, ...]:
    """The same conditions with what is known about them.

    Args:
        statuses: by key, as observed; others keep their status.
    """
    return tuple(Condition(one.key, statuses.get(one.key, one.status)) for one in conditions)


def conditions_by_whom(owned: Iterable[tuple[str, Iterable[Condition]]]) -> list[str]:
    """Each condition as a line, worst status first: its status, the sentence, and whose numbers it is about.

    Args:
        owned: (name, conditions) pairs; a name may occur again. Nobody is named where all need a condition.
    """
    about = owners(owned)
    return [_line(one, about[one]) for one in worst_first(about)]


def _line(one: Condition, names: list[str]) -> str:
    whose = f" ({', '.join(names)})" if names else ""
    return f"{one.status.value}{whose}: {one.says}"


def worst_first(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Each once: first what makes a claim conditional, then by status, then in the order of ``CONDITIONS``."""
    return tuple(
        sorted(
            set(conditions),
            key=lambda one: (not one.weakens, _WORST_FIRST.index(one.status), CONDITIONS.place(one.key), one.key),
        )
    )
