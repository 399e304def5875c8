"""Where a number comes from: its definition, what it needs, the theorems and the lines of code, from the one list."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any

from dash import html

from reticent.certificates.page.words import claim as in_words
from reticent.dashboard.figures import called
from reticent.dashboard.readings import summary
from reticent.kernel.adversaries import Assessment
from reticent.kernel.proofs import CONDITIONS
from reticent.kernel.proofs.references import PAPERS, THEOREMS, Theorem
from reticent.kernel.risk.questions import MEASURES


def explanation(assessments: Sequence[Assessment]) -> list[Any]:
    """What each number means, and for each attacker the conditions and the theorems of its number, each said once."""
    said: set[str] = set()
    return [
        html.H3("What the numbers mean"),
        _definitions(),
        *[p for a in assessments for p in _one(a, assessments[0], said)],
    ]


def anchor(assessment: Assessment) -> str:
    """The id of the part about one attacker."""
    return f"why-{assessment.adversary.name}-{assessment.neighbouring.value}"


def _definitions() -> html.Ul:
    found = [(name.replace("_", " "), definition(one.read), place_of(one.read)) for name, one in MEASURES.items()]
    return html.Ul([html.Li([html.Strong(name), f": {says} ", html.Code(place)]) for name, says, place in found])


def _one(assessment: Assessment, first: Assessment, said: set[str]) -> list[Any]:
    needed = {f"{one.key}: {one.status.value}": one for one in assessment.conditions}
    held = [[str(one.says), _because(one.key, one.status.value)] for key, one in needed.items() if key not in said]
    proven = [_theorem(THEOREMS[key]) for key in assessment.theorems if key not in said]
    again = [key.partition(": ")[0] for key in (*needed, *assessment.theorems) if key in said]
    said.update(needed, assessment.theorems)
    return [
        html.H3(f"{called(assessment, first.neighbouring)}: {assessment.adversary.title}", id=anchor(assessment)),
        html.P(["Claim: ", html.Strong(str(in_words(summary(assessment)))), "."]),
        *_listed("It needs:", held),
        *(_listed("It follows from:", proven) if assessment.theorems else [html.P("No theorem: an estimate.")]),
        *([html.P(f"As above: {', '.join(again)}.", className="quiet")] if again else []),
    ]


def _listed(title: str, lines: Sequence[Any]) -> list[Any]:
    return [html.P(title), html.Ul([html.Li(line) for line in lines])] if lines else []


def _because(key: str, status: str) -> str:
    return f" ({status})" if status == "checked" else f" ({status}) {CONDITIONS[key].remedy}"


def _theorem(one: Theorem) -> list[Any]:
    paper = PAPERS[one.key.partition(":")[0]]
    lines = [html.Strong(one.key), f" {one.says} ", html.Span(f"Needs: {one.conditions} ", className="quiet")]
    lines.append(html.Small(f"{paper.authors}, {paper.title} ({paper.year}). "))
    if one.proof:
        lines.append(html.Small(["Proof: ", html.Code(f"docs/{one.proof}"), ". "]))
    if one.code:
        lines.append(html.Small(["Code: ", html.Code(place_of_name(one.code)), ". "]))
    if one.tests:
        lines.append(html.Small(["Test: ", html.Code(one.tests), "."]))
    return lines


def definition(read: Callable[..., Any]) -> str:
    """The first sentence of a function's docstring, without marks of code."""
    return re.sub("[`*]", "", (inspect.getdoc(read) or "").split("\n")[0])


@lru_cache(maxsize=256)
def place_of_name(name: str) -> str:
    """``module:name`` as file and line, or a module as its file."""
    module, _, inner = name.partition(":")
    return place_of(resolve_name(name)) if inner else f"{module.replace('.', '/')}.py"


@lru_cache(maxsize=256)
def place_of(thing: Any) -> str:
    """File and line of a function or a class, and its name."""
    bare: Any = inspect.unwrap(getattr(thing, "fget", thing))
    module, name = getattr(bare, "__module__", ""), getattr(bare, "__qualname__", "")
    try:
        line = inspect.getsourcelines(bare)[1]
    except (OSError, TypeError):
        return f"{module}:{name}"
    return f"{module.replace('.', '/')}.py:{line} {name}"
