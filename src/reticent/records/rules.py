"""Constraints between the facts of a ledger, as data: which facts, what must hold among them, and what it means.

``own_rules`` holds the table of ledgers with a configuration, ``seen_rules`` that of the others. To write, read,
certify or verify a ledger is to ask for its ``contradictions``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from reticent.io.strict import canonical, portable
from reticent.text import printable

Word = Annotated[str, Field(max_length=300, pattern=r"^[\x20-\x7e]*$")]
"""The name of something in a program, in one line of ASCII."""


def word(text: str) -> str:
    """A name of a program as a ``Word``: any other character becomes a question mark."""
    return "".join(c if " " <= c <= "~" else "?" for c in text[:300])


def section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of a configuration; nothing where it is no section."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


Versions = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,60}$")],
        Annotated[str, Field(pattern=r"^[A-Za-z0-9.+!_-]{1,80}$")],
    ],
    Field(max_length=64),
]
"""Versions of libraries, by name."""
Digest = Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
"""SHA-256 of all other facts, or nothing before the ledger is sealed."""

Found = Iterable[tuple[str, str]]
"""Pairs of a fact, by its path, and what is wrong there."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One constraint.

    Attributes:
        facts: that it ties together, by their paths in the ledger.
        means: what must hold, in one sentence.
        broken: where a ledger breaks it.
    """

    facts: tuple[str, ...]
    means: str
    broken: Callable[[Any], Found]


def contradictions(rules: Iterable[Rule], ledger: Any) -> Iterator[tuple[str, str]]:
    """Pairs of a fact and what is wrong there. A rule that facts break off, which somebody forged, is broken."""
    for rule in rules:
        try:
            yield from rule.broken(ledger)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            yield rule.facts[0], f"cannot be read beside {', '.join(rule.facts[1:]) or 'the rest'}: {printable(error)}"


def digest_of(ledger: BaseModel) -> str:
    """SHA-256 over all facts of a ledger but the digest itself; 1 and 1.0 are one number."""
    document = ledger.model_dump(mode="json", by_alias=True, exclude={"digest"})
    return hashlib.sha256(canonical(portable(document))).hexdigest()


def digest_is_that_of_the_facts(ledger: Any) -> Found:
    """The rule that every ledger has: nothing changed since it was sealed."""
    if not ledger.digest:
        yield "digest", "is missing: the ledger is not as it was written"
    elif ledger.digest != digest_of(ledger):
        yield "digest", "is not that of the other facts: they were changed after the run"
