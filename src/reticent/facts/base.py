"""What a fact of a run is: what is found, what it does to the release, and which conditions it vouches for.

A fact is one object in this folder, with a line in ``__init__.pyi`` and its words in the catalogues. Everything else is
made from these: warnings of certificates, rows of lint, names for policies, pages. A ledger has a value for each fact
that was found: ``found``, ``could not look``, or what the fact states. Of what is not there nothing was found. A key
that this version does not know voids the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter

from reticent.kernel.lazy import kinds
from reticent.kernel.messages import Message
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.facts.steps import Segment
    from reticent.records.ledger import RunLedger

Word = Annotated[str, Field(max_length=300, pattern=r"^[\x20-\x7e]*$")]
"""The name of something in a program, in one line of ASCII."""


def _unsaid(key: str) -> str:
    could = {one for fact in all_facts().values() for one in fact.silent}
    if key not in could:
        raise ValueError(f"must be one of {', '.join(sorted(could))}")
    return key


Silent = Annotated[str, AfterValidator(_unsaid)]
"""Key of a condition of which a program said nothing, though it could have."""


def word(text: str) -> str:
    """A name of a program as a ``Word``: any other character becomes a question mark."""
    return "".join(c if " " <= c <= "~" else "?" for c in text[:300])


def section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of a configuration; nothing where it is no section."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


class Severity(StrEnum):
    """How bad a fact is."""

    ERROR = "error"
    """No proof covers the run: no number promises anything."""
    WARNING = "warning"
    """The numbers hold, but they are larger than they need be, or leave something out that the text names."""
    NOTE = "note"
    """Good to know."""


class Seen(StrEnum):
    """What a detector says of a fact that states nothing more. Where it could not look, the worst is taken."""

    FOUND = "found"
    BLIND = "could not look"


@dataclass(frozen=True, slots=True)
class Reading:
    """What of a run counts. Every effect of a fact moves it towards more risk, so their order does not matter.

    Attributes:
        segments: equal steps, with all that is known of them.
        noisy: whether any noise counts.
        one_by_one: each step used one batch that the sampler drew.
        secret: nobody knows who was in which batch.
    """

    segments: tuple[Segment, ...]
    noisy: bool = True
    one_by_one: bool = True
    secret: bool = True


Effect = Callable[["RunLedger", Reading], Reading]
Shown = Callable[["RunLedger"], bool]


@dataclass(frozen=True, repr=False)
class Fact:
    """One thing that a reader of a run must know.

    Attributes:
        key: its name.
        severity: how bad it is. An error voids the run.
        shown: whether the other facts of a ledger show it; None where somebody has to see it.
        ours: whether it is said of runs of ``reticent train``, too.
        stated: type of its value in a ledger; by default ``Seen``.
        effect: on what counts, where it was found.
        vouches: which conditions a ledger establishes by it, whether it was found or not.
        silent: conditions that are the program's to state, each with whether a ledger says nothing of it. What they
            deny would make the numbers larger, so to say nothing is never worth more.
        shows: lines of a certificate about its value: what to call it, and what it is.
        ran_here: it is said of a run of ``reticent train``.
        cause: which of several things was found; the catalogues may have words for it.
    """

    key: str
    severity: Severity = field(default=Severity.ERROR, compare=False)
    shown: Shown | None = field(default=None, compare=False)
    ours: bool = field(default=False, compare=False, kw_only=True)
    stated: Any = field(default=Seen, compare=False, kw_only=True)
    effect: Effect = field(default=lambda _run, reading: reading, compare=False, kw_only=True)
    vouches: Callable[[RunLedger], Mapping[str, Status]] = field(default=lambda _run: {}, compare=False, kw_only=True)
    silent: Mapping[str, Shown] = field(default_factory=dict, compare=False, kw_only=True)
    shows: Callable[[Any], Iterable[tuple[Message, Message]]] = field(
        default=lambda _value: (), compare=False, kw_only=True
    )
    ran_here: bool = field(default=False, compare=False, kw_only=True)
    cause: str = field(default="", compare=False, kw_only=True)

    def __repr__(self) -> str:
        return self.key

    def __lt__(self, other: Fact) -> bool:
        return self.key < other.key

    @property
    def voids(self) -> bool:
        """Whether no proof covers the run."""
        return self.severity is Severity.ERROR

    @property
    def said(self) -> bool:
        """Whether there are words for people; else it is there for what it does to the release."""
        return self.reason.known

    @property
    def reason(self) -> Message:
        """What was seen and what the numbers make of it."""
        return self._words("reason")

    @property
    def remedy(self) -> Message:
        """What to do about it."""
        return self._words("remedy")

    @property
    def text(self) -> Message:
        """Sentences for people: the reason, and the remedy where it is no setting of our trainer."""
        return self.reason if self.ran_here else Message("fault", reason=self.reason, remedy=self.remedy)

    def of_ours(self) -> Fact:
        """The same as it is said of a run of ``reticent train``."""
        return replace(self, ran_here=True)

    def because(self, cause: str) -> Fact:
        """The same where it is known what was found."""
        return replace(self, cause=cause)

    def _words(self, what: str) -> Message:
        key = self.key if self.key in all_facts() else "unknown"
        found = Message(f"fault.{key}.{what}")
        return found.under("ours") if self.ran_here else found.under(self.cause)

    def value(self, given: Any) -> Any:
        """What a ledger states, as a value.

        Raises:
            ValueError: it is none.
        """
        return TypeAdapter(self.stated).validate_python(given)

    def on(self, run: RunLedger, reading: Reading) -> Reading:
        """What counts of a run of which this is found."""
        return replace(reading, noisy=False) if self.voids else self.effect(run, reading)


@cache
def all_facts() -> dict[str, Fact]:
    """Every fact by key, in the order in which people see them."""
    return {fact.key: fact for fact in kinds("reticent.facts")}


def known(key: str) -> Fact:
    """The fact with this key. One that this version does not know voids the run."""
    return all_facts().get(key) or Fact(key)
