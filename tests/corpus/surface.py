"""Public names and signatures, help of every verb, schemas, entry points."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

import reticent as rt
from tests.corpus.case import Case
from tests.corpus.project import called, projected

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("adversaries", "auditing", "attacks", "calibration", "certificates", "curves", "data", "interop", "mechanisms",
         "pairs", "proofs", "risk", "sensitivity", "tasks", "training", "watching")  # fmt: skip


def _names(module: Any) -> dict[str, str]:
    told = {}
    for name in sorted(n for n in dir(module) if not n.startswith("_")):
        value = getattr(module, name)
        if inspect.ismodule(value):
            continue
        try:
            told[name] = str(inspect.signature(value))
        except (TypeError, ValueError):
            told[name] = type(value).__name__
    return told


def _verbs(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                if found is not None:
                    yield from _verbs(found, (*path, name))


def cases() -> Iterator[Case]:
    """What somebody can name."""
    from reticent.cli import app

    yield Case("names; reticent", lambda: _names(rt))
    for room in ROOMS:
        yield Case(f"names; {room}", lambda r=room: _names(importlib.import_module(f"reticent.{r}")))
    for verb in _verbs(app):
        yield Case(f"help; {' '.join(verb)}", lambda v=verb: called(*v, "--help"))
    for path in sorted((ROOT / "docs/schema").glob("*.json")):
        yield Case(f"schema; {path.name}", lambda p=path: projected(json.loads(p.read_text())))
    groups = sorted(group for group in entry_points().groups if "reticent" in group)
    yield Case("entry points", lambda: groups)
