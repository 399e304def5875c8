"""Every paper once, version pinned, and every theorem that a number may follow from.

Docstrings, command output and certificates cite the keys of ``THEOREMS``. A key that is not here cannot be cited (a
test checks). ``ERRATA`` has published statements that do not hold. The entries are data: ``papers.json``,
``theorems_of_papers.json``, ``own_theorems.json`` and ``errata.json``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from reticent.kernel.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Paper:
    """A publication or a page of this project's documentation.

    Attributes:
        key: what theorems and errata cite, such as ``DONG2022``.
        authors: family names.
        title: as published.
        year: of the version.
        version: the one whose numbering is cited.
    """

    key: str
    authors: str
    title: str
    year: int
    version: str


@dataclass(frozen=True, slots=True)
class Theorem:
    """A statement that numbers follow from.

    Attributes:
        key: ``PAPER:place``.
        says: the statement in one sentence.
        conditions: under which conditions it holds, in one sentence.
        proof: page and section below ``docs/`` that proves it, or states it as its paper does.
        code: ``module:name`` of the code that uses it.
        tests: file that tests this code.
        holds: False for formulas that are published but do not hold; only ``published`` may cite them.
        assumes: what it takes for granted of a training and nothing checks, in words.
        needs: the same as keys of ``reticent.kernel.proofs.CONDITIONS``, without those that every release needs.
    """

    key: str
    says: str
    conditions: str
    proof: str = ""
    code: str = ""
    tests: str = ""
    holds: bool = True
    assumes: str = field(default="", repr=False)
    needs: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Erratum:
    """One place of a paper.

    Attributes:
        key: ``PAPER:code``.
        printed: what the paper says and where, in one sentence.
        holds: what holds instead, in one sentence.
        shown_by: the test that shows it, below tests/; empty where it is shown by the argument alone.
    """

    key: str
    printed: str
    holds: str
    shown_by: str = ""


def entries(name: str) -> list[dict[str, Any]]:
    """What a file of data in this folder lists."""
    found: list[dict[str, Any]] = json.loads((resources.files(__package__) / name).read_text(encoding="utf-8"))
    return found


PAPERS = {entry["key"]: Paper(**entry) for entry in entries("papers.json")}
THEOREMS = {
    entry["key"]: Theorem(**entry | {"needs": tuple(entry["needs"])})
    for name in ("theorems_of_papers.json", "own_theorems.json")
    for entry in entries(name)
}
ERRATA = {entry["key"]: Erratum(**entry) for entry in entries("errata.json")}


def cite(*keys: str) -> tuple[str, ...]:
    """The keys, after checking that each is in ``THEOREMS``.

    Raises:
        ParameterError: a key is unknown.
    """
    for key in keys:
        if key not in THEOREMS:
            raise ParameterError("theorem", key, "a key of reticent.kernel.proofs.references.THEOREMS")
    return keys


def add_paper(paper: Paper, *theorems: Theorem) -> None:
    """State a source of another package and its theorems, so that its mechanisms and attackers can cite them.

    Raises:
        ParameterError: a key is taken already, or a theorem's key does not begin with that of the paper.
    """
    for theorem in theorems:
        if theorem.key.partition(":")[0] != paper.key or THEOREMS.setdefault(theorem.key, theorem) != theorem:
            raise ParameterError("theorem", theorem.key, f"{paper.key}:PLACE, a key that nothing else has")
    if PAPERS.setdefault(paper.key, paper) != paper:
        raise ParameterError("paper", paper.key, "a key that nothing else has")
