"""A verb that asks: options or a file become a request, which is answered and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

import click

from reticent.cli._app import DRY_RUN, JSON, REQUEST, Verb, command, option
from reticent.cli._progress import waiting
from reticent.text import listed
from reticent.verbs.request import Request, spelling_of

Do = Callable[[Any, Mapping[str, Any], bool], Any]
"""Answers a request; it gets what was typed besides, and whether JSON is asked for."""


def options_of(request: type[Request], *names: str) -> list[click.Option]:
    """The options of the fields that one word says, or of those that are named."""
    found = []
    for one in fields(request):  # type: ignore[arg-type]
        way = spelling_of(one)
        if way.typed is not None and (not names or one.name in names):
            words = (way.schema or {}).get("enum")
            help = one.metadata["help"] + (f" One of {', '.join(words)}." if words else "")
            help += relations() if one.name == "neighbouring" else ""
            help = help.removesuffix(".") + "; repeatable." if way.many else help
            found.append(option(one.name, way.typed, help, many=way.many, required=one.default is MISSING))
    return found


def relations() -> str:
    """Which relation is each attacker's own."""
    from reticent.adversaries import ADVERSARIES

    own: dict[str, list[str]] = {}
    for name, kind in ADVERSARIES.items():
        own.setdefault(kind.relation.value, []).append(name)
    usual, *others = own
    return f" Their own: {usual}{''.join(f', and {one} for {listed(own[one])}' for one in others)}."


def typed_for(request: type[Request], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed for those fields."""
    names = [one.name for one in fields(request) if spelling_of(one).typed is not None]  # type: ignore[arg-type]
    return {name: given[name] for name in names if given.get(name) not in (None, ())}


def asking(name: str, ask: Callable[[dict[str, Any]], Request], do: Do, *params: click.Parameter, help: str) -> Verb:
    """The command that makes a request from its options.

    Args:
        ask: the request, from what was typed.
        do: answers it.
    """

    @command(name, *params, DRY_RUN, REQUEST, JSON, help=help)
    def run(json: bool, dry_run: bool, request: None, **given: Any) -> None:
        asked = ask(given)
        if dry_run:
            click.echo(asked.to_json())
        else:
            do(asked, given, json)

    return run


def showing(show: Callable[[Any, Mapping[str, Any]], None]) -> Callable[[Any, Mapping[str, Any], bool], Any]:
    """Answer, and print JSON or what ``show`` makes of the answer and of what was typed; the answer is returned."""

    def do(request: Request, given: Mapping[str, Any], json: bool) -> Any:
        with waiting(f"{request.verb}:") as progress:
            found = request.answer(progress)
        click.echo(found.to_json()) if json else show(found, given)
        return found

    return do
