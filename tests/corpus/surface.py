"""Public names and signatures, help of every verb, schemas."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import click

import reticent as rt
from tests.corpus.case import Case
from tests.corpus.project import called, projected

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("adversaries", "verbs", "auditing", "attacks", "calibration", "certificates", "curves", "data", "interop",
         "kernel.adversaries", "kernel.curves", "kernel.mechanisms", "kernel.pairs", "kernel.proofs", "kernel.risk",
         "kernel.samplers", "mechanisms", "pairs", "sensitivity", "tasks", "training", "watching")  # fmt: skip


def _names(module: Any) -> dict[str, str]:
    """What each name is; of our classes also what each instance has."""
    told = {}
    for name in sorted(n for n in dir(module) if not n.startswith("_")):
        value = getattr(module, name)
        if not inspect.ismodule(value):
            told[name] = _said(value)
        if inspect.isclass(value):
            told |= {f"{name}.{member}": what for member, what in _members(value)}
    return told


def _members(kind: type) -> Iterator[tuple[str, str]]:
    for name in sorted(n for n in dir(kind) if not n.startswith("_")):
        owner = next((one for one in kind.__mro__ if name in vars(one)), kind)
        if owner.__module__.startswith("reticent."):
            yield name, _said(getattr(kind, name))


def _said(value: Any) -> str:
    if isinstance(value, Enum):
        return repr(value)
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return type(value).__name__


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
    from reticent.adversaries.report import RiskDocument
    from reticent.certificates.document.schema import Certificate
    from reticent.cli import app
    from reticent.kernel.proofs import CONDITIONS
    from reticent.kernel.proofs.references import THEOREMS

    yield Case("names; reticent", lambda: _names(rt))
    for room in ROOMS:
        yield Case(f"names; {room}", lambda r=room: _names(importlib.import_module(f"reticent.{r}")))
    for verb in _verbs(app):
        yield Case(f"help; {' '.join(verb)}", lambda v=verb: called(*v, "--help"))
    conditions = {key: replace(kind, says=str(kind.says)) for key, kind in CONDITIONS.items()}
    for name, told in {"conditions": conditions, "theorems": THEOREMS}.items():
        yield Case(f"sentences; {name}", lambda t=told: {key: repr(t[key]) for key in sorted(t)})
    for model in (Certificate, RiskDocument):
        yield Case(f"schema; {model.__name__}", lambda m=model: projected(m.model_json_schema(by_alias=True)))
    audit = ROOT / "docs/schema/audit-1.schema.json"  # written by hand; the tests hold it against the code
    yield Case("schema; audit", lambda: projected(json.loads(audit.read_text())))
