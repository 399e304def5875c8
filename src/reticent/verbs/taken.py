"""A question as people take it along: a program and a command that ask the same, from the fields of its request."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from reticent.kernel.registry import parameters_of, told
from reticent.verbs.noise import Calibrate
from reticent.verbs.releases import Release
from reticent.verbs.request import spelling_of
from reticent.verbs.risks import Assess

FILE = "request.json"
"""Where a command finds what options do not say."""


def as_program(*requests: Assess | Calibrate) -> str:
    """Python that asks, and prints each answer."""
    return "\n".join(["import reticent as rt", *map(_call, requests)])


def _call(request: Assess | Calibrate) -> str:
    whole = request
    if request.selection is not None:
        whole = replace(request, release=Release(request.release.best_of(request.selection)), selection=None)
    said = whole.document()
    release, verb = said.pop("release"), said.pop("verb")
    given = [f"{name}={value!r}" for name, value in said.items() if name != "schema"]
    return "\nfound = rt.{}(\n    {},\n)\nprint(found)\n".format(verb, ",\n    ".join([repr(release), *given]))


def as_command(request: Assess | Calibrate) -> str:
    """A line for a shell; what options do not say is written to a file first."""
    verb = "risk" if isinstance(request, Assess) else request.verb
    if _in_options(request):
        return shlex.join(["reticent", verb, *_words(request)])
    written = shlex.quote(json.dumps(request.document(), separators=(",", ":")))
    return f"printf %s {written} > {FILE}\n{shlex.join(['reticent', verb, '--request', FILE])}"


def _in_options(request: Assess | Calibrate) -> bool:
    """Whether it is about numbers that can be typed: no ledger, no list of releases, nothing that was measured."""
    run = request.release.best_of(request.selection).base
    values = (value for one in _attackers(request.document()) for value in one.values())
    typed = told(run).keys() <= {p.name for p in parameters_of(type(run))}
    return typed and request.release.ledger is None and not any(isinstance(value, dict) for value in values)


def _attackers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each with its name, and what is not as it is by default."""
    whom = document.get("adversary", [])
    each = whom if isinstance(whom, list) else [whom]
    return [{"name": one} if isinstance(one, str) else one for one in each]


def _words(request: Assess | Calibrate) -> Iterator[str]:
    document, release = request.document(), request.release.best_of(request.selection)
    run, runs = told(release.base), release.runs
    if isinstance(request, Calibrate):
        document["unknown"], unknown = request.searched
        there = unknown.put(release, unknown.low)
        run = {name: value for name, value in run.items() if told(there.base).get(name) == value}
        run.pop(document["unknown"].replace("-", "_"), None)
    yield release.base.name
    yield from _options(run)
    if runs is not None:
        yield from ("--selection", runs.name)
        chosen = {p.option: getattr(runs, p.name) for p in parameters_of(type(runs))}
        yield from _options({name: value for name, value in chosen.items() if name != document.get("unknown")})
    for who in _attackers(document):
        yield from _options({"adversary" if name == "name" else name: value for name, value in who.items()})
    for one in fields(request):
        if spelling_of(one).typed is not None and one.name in document:
            said = document[one.name]
            for value in said if isinstance(said, list) else [said]:
                yield from _options({one.name: value})


def _options(said: Mapping[str, Any]) -> Iterator[str]:
    for name, value in said.items():
        yield from ("--" + name.replace("_", "-"), str(value) if isinstance(value, str) else repr(value))
