"""A verb that asks: options or a file become a request, which is answered and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import click

from reticent.cli._app import DRY_RUN, JSON, REQUEST, Verb, argument, command, option
from reticent.cli._tables import say
from reticent.cli.progress import waiting
from reticent.kernel.text import listed
from reticent.verbs.request import Request, spelling_of
from reticent.verbs.table import Answer

Asked = TypeVar("Asked", bound=Request)
Do = Callable[[Any, Mapping[str, Any], bool], Any]
"""Answers a request; it gets what was typed besides, and whether JSON is asked for."""


def parameters_of(request: type[Request], known: Sequence[click.Parameter] = ()) -> list[click.Parameter]:
    """What is typed for the fields that one word says, but for arguments that are known; arguments come first."""
    arguments: list[click.Parameter] = []
    options: list[click.Parameter] = []
    stated = {one.name for one in known if isinstance(one, click.Argument)}
    for one in fields(request):  # type: ignore[arg-type]
        way, help = spelling_of(one), one.metadata["help"]
        if way.typed is None or one.name in stated:
            continue
        if one.metadata["word"]:
            arguments.append(argument(one.name, way.typed, one.metadata["word"], help, many=way.many))
            continue
        words = (way.schema or {}).get("enum")
        help += f" One of {', '.join(words)}." if words else ""
        help += relations() if one.name == "neighbouring" and one.default is None else ""
        help = help.removesuffix(".") + "; repeatable." if way.many else help
        plain = None if one.default is MISSING or not isinstance(one.default, (str, int, float)) else one.default
        default = plain if plain is None or way.typed is bool else way.typed(way.written(plain))
        options.append(option(one.name, way.typed, help, default, many=way.many, required=one.default is MISSING))
    return [*arguments, *options]


def relations() -> str:
    """Which relation is each attacker's own."""
    from reticent.kernel.adversaries import ADVERSARIES

    own: dict[str, list[str]] = {}
    for name, kind in ADVERSARIES.items():
        own.setdefault(kind.relation.value, []).append(name)
    usual, *others = own
    return f" Their own: {usual}{''.join(f', and {one} for {listed(own[one])}' for one in others)}."


def made(request: type[Asked], given: Mapping[str, Any], **instead: Any) -> Asked:
    """The request from what was typed for its fields, and from what is said ``instead``."""
    names = [one.name for one in fields(request) if spelling_of(one).typed is not None]  # type: ignore[arg-type]
    typed = {name: given[name] for name in names if given.get(name) not in (None, ())}
    return request.of(**{**typed, **instead})


def asking(
    name: str,
    request: type[Request],
    do: Do,
    *params: click.Parameter,
    ask: Callable[[dict[str, Any]], Request] | None = None,
    after: Sequence[click.Parameter] = (),
    help: str | None = None,
) -> Verb:
    """The command that makes a request from its options.

    Args:
        request: whose fields are typed.
        do: answers it.
        params: what is typed besides, before these.
        ask: the request, from what was typed; by default each field as it is.
        after: what is typed besides, after them.
        help: by default what the docstring of the request says first.
    """
    kind, more = request, parameters_of(request, params)
    help = help or (request.__doc__ or "").split("\n")[0]

    @command(name, *params, *more, *after, DRY_RUN, REQUEST, JSON, help=help)
    def run(json: bool, dry_run: bool, request: None, **given: Any) -> None:
        asked = ask(given) if ask else made(kind, given)
        if dry_run:
            click.echo(asked.to_json())
        else:
            do(asked, given, json)

    return run


def in_lines(found: Answer, given: Mapping[str, Any]) -> None:
    """What an answer says to people, wrapped at the width of the terminal."""
    for line in found.lines():
        say(line, indent=found.indent(line))


def told(
    found: Any, given: Mapping[str, Any], json: bool, show: Callable[[Any, Mapping[str, Any]], None] = in_lines
) -> Any:
    """Print JSON or what ``show`` makes of the answer and of what was typed; end with its exit code."""
    click.echo(found.to_json().rstrip("\n")) if json else show(found, given)
    if found.exit_code:
        raise click.exceptions.Exit(found.exit_code)
    return found


def showing(show: Callable[[Any, Mapping[str, Any]], None] = in_lines, **how: Any) -> Do:
    """Answer and show; the answer is returned.

    Args:
        how: of ``answer``, besides progress.
    """

    def do(request: Any, given: Mapping[str, Any], json: bool) -> Any:
        with waiting(f"{request.verb}:") as progress:
            found = request.answer(progress, **how)
        return told(found, given, json, show)

    return do
