"""Stored results: one JSON file for each figure or table, beside this file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.gallery.entry import GROUPS, Measured, Published, Relation, Result
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.text import did_you_mean

RESULTS = Path(__file__).parent / "results"


def stored_ids() -> tuple[str, ...]:
    """Every id with a stored result; see ``in_order``."""
    names = [p.name.removesuffix(".json") for p in RESULTS.iterdir() if p.name.endswith(".json")]
    return in_order([name.replace("--", "/") for name in names])


def in_order(ids: Sequence[str]) -> tuple[str, ...]:
    """Papers in the order of ``GROUPS``, figures before sections and tables, by number."""
    return tuple(sorted(ids, key=_place))


def stored(entry_id: str) -> Result:
    """The stored result of an id.

    Raises:
        ParameterError: there is none.
        ArtifactError: the file is damaged.
    """
    if entry_id not in stored_ids():
        raise ParameterError(
            "id",
            entry_id,
            "an id that `python -m experiments.gallery` lists, or all" + did_you_mean(entry_id, stored_ids()),
        )
    try:
        return _from_json(json.loads((RESULTS / file_name(entry_id)).read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise ArtifactError(f"the stored result of {entry_id} is damaged: {type(error).__name__}: {error}") from None


def document(result: Result) -> dict[str, Any]:
    """A result as JSON: what ``python -m experiments.gallery --json`` prints for it."""
    return {
        "id": result.id,
        "paper": result.paper,
        "title": result.title,
        "verdict": result.verdict.value,
        "published": [
            {
                "name": p.name,
                "relation": p.relation.value,
                "value": p.value,
                "tolerance": p.tolerance,
                "where": p.where,
            }
            for p in result.published
        ],
        "ours": {name: _measured(m) for name, m in result.ours.items()},
        "reason": result.reason,
        "needs": result.needs,
        "stored": list(result.stored),
        "settings": dict(result.settings),
    }


def _measured(m: Measured) -> dict[str, Any]:
    """Ends of the interval only where there is one, and the drift only where it is not the usual one."""
    row: dict[str, Any] = {"value": m.value}
    if m.about:
        row |= {"low": m.low, "high": m.high, "about": m.about}
    if m.drift is not None:
        row["drift"] = None if m.drift == float("inf") else m.drift
    return row


def _from_json(row: Mapping[str, Any]) -> Result:
    ours = {}
    for name, m in row["ours"].items():
        value = m["value"]
        drift = (float("inf") if m["drift"] is None else m["drift"]) if "drift" in m else None
        ours[name] = Measured(value, m.get("low", value), m.get("high", value), m.get("about", ""), drift)
    published = tuple(
        Published(p["name"], p["value"], p["where"], p["tolerance"], Relation(p["relation"])) for p in row["published"]
    )
    words = row["reason"], row["needs"], tuple(row["stored"])
    return Result(row["id"], row["title"], row["settings"], published, ours, *words)


def file_name(entry_id: str) -> str:
    """Of the stored result of an id."""
    return entry_id.replace("/", "--") + ".json"


def _place(entry_id: str) -> tuple[int, str, int]:
    paper, _, item = entry_id.partition("/")
    kind, _, number = item.rpartition("-")
    return list(GROUPS).index(paper), kind, int(number)
