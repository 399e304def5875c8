"""``reticent train --sweep``: what is read from the command line, and the table of all cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.adversaries.report import Number
from reticent.cli._plan import in_file
from reticent.cli._tables import print_json, print_table, say, shown
from reticent.cli.progress import note, progress_bar
from reticent.io import yaml
from reticent.verbs.progress import reporting

if TYPE_CHECKING:
    from reticent.tasks import Engine
    from reticent.training.sweep import Cell, Outcome, Risks, Sweep

SCHEMA = "reticent.sweep/1"


def asks_for_sweep(config: Path | None) -> bool:
    """Whether the file has a section ``sweep`` or ``selection``."""
    if config is None:
        return False
    document = yaml.load_file(config)  # what is no configuration is refused before torch is loaded
    return isinstance(document, dict) and not {"sweep", "selection"}.isdisjoint(document)


def run_sweep(
    cells: Sequence[Cell], out: Path, engine: Engine, timeout: float | None, *, resume: bool, json: bool
) -> None:
    """Train all cells with a progress bar; what does not fit is reported as a key of the configuration.

    Shown are one row for each cell, then all of them together, then what a reader must know.
    """
    from reticent.training.sweep import sweep

    with in_file(out), progress_bar(f"sweep {out.name}") as bar:
        found = sweep(cells, out, engine=engine, resume=resume, timeout=timeout, progress=reporting(bar, note))
    if json:
        print_json(_document(found))
        return
    rows = found.outcomes
    names = [(key, [_text(o.cell.choice[key]) for o in rows]) for key in rows[0].cell.choice]
    names.append(("run", [o.cell.name if o.run is not None else "diverged" for o in rows]))
    numbers = [("test\naccuracy", [_share(o, "test_accuracy") for o in rows])]
    numbers.append(("largest\nclass", [_share(o, "largest_class") for o in rows]))
    risks = [_numbers(o.risks) for o in rows]
    numbers.append(("advantage", [shown(risk["advantage"], up=True) for risk in risks]))
    numbers.append((f"epsilon\n@{found.delta:g}", [shown(risk["epsilon"], up=True) for risk in risks]))
    title = f"{found.out}: {len(rows)} cells; worst case, neighbouring data sets: {found.neighbouring}"
    print_table(title, names, numbers)
    say(_together(found), *_notes(found))


def _together(found: Sweep) -> str:
    if found.together is None:
        return f"All {found.trained} runs together: not bounded, because {found.why_not}."
    numbers = {name: shown(number, up=True) for name, number in _numbers(found.together).items()}
    return (
        f"All {found.trained} runs together: advantage at most {numbers['advantage']}, epsilon at most "
        f"{numbers['epsilon']} at delta {found.delta:g} (bound: composition of all runs)."
    )


def _notes(found: Sweep) -> list[str]:
    notes = [
        "Each row is about the release of that run alone, taken without a look at the others; so is its certificate. "
        "Choosing a run by its results uses all of them: for the chosen model the bound is that of all runs "
        "together.",
        "The best test accuracy of several is too high for new records, and it was chosen with the test records, "
        "which no bound here covers.",
    ]
    if found.trained > len(found.outcomes):
        notes.append(
            "Runs of earlier grids in this folder are counted. The bound holds if noise, sample rate and steps of the "
            "later ones were not chosen by looking at results of the earlier ones."
        )
    if any(o.run is None for o in found.outcomes):
        notes.append("A run that diverged left no model; that it did is seen, so its planned steps are counted.")
    warned = {w.key: w.text for o in found.outcomes if o.run is not None for w in o.run.ledger.faults}
    return notes + [f"! {key}: {text}" for key, text in warned.items()]


def _document(found: Sweep) -> dict[str, Any]:
    together: dict[str, Any] = {"runs": found.trained, "why_not": found.why_not, "risks": None}
    if found.together is not None:
        together["risks"] = _risks(found.together)
    return {
        "schema": SCHEMA,
        "delta": found.delta,
        "neighbouring": str(found.neighbouring),
        "adversary": "worst-case",
        "cells": [_cell(o) for o in found.outcomes],
        "together": together,
        "notes": _notes(found),
    }


def _cell(outcome: Outcome) -> dict[str, Any]:
    ledger = None if outcome.run is None else outcome.run.ledger
    return {
        "choice": dict(outcome.cell.choice),
        "run": None if outcome.run is None else str(outcome.run.path),
        "test_accuracy": None if ledger is None else ledger.utility.test_accuracy,
        "largest_class": None if ledger is None else ledger.utility.largest_class,
        "noise_multiplier": None if ledger is None else ledger.first.noise_multiplier,
        "steps": None if ledger is None else ledger.steps,
        "risks": _risks(outcome.risks),
    }


def _risks(risks: Risks) -> Mapping[str, Any]:
    return {"claim": "bound"} | {name: number.model_dump() for name, number in _numbers(risks).items()}


def _numbers(risks: Risks) -> dict[str, Number]:
    return {"advantage": Number.of(risks.advantage), "epsilon": Number.of(risks.epsilon)}


def _share(outcome: Outcome, name: str) -> str:
    found = None if outcome.run is None else getattr(outcome.run.ledger.utility, name)
    return "-" if found is None else f"{found:.4f}"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
