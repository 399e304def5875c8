"""Mistakes on the command line: what was wrong with what was typed, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import click

from reticent.kernel.errors import ParameterError, ReticentError
from reticent.kernel.keywords import MEANT
from reticent.kernel.text import nearest, printable

_MEANT = {f"--{typed}".replace("_", "-"): f"--{ours}".replace("_", "-") for typed, ours in MEANT.items()}
"""Options as other tools call them."""

_NEAR = 0.7
"""How alike an unknown option and a known one must be spelt for the known one to be suggested, from 0 to 1."""


def one_line(error: ReticentError, app: click.Command, words: Sequence[str]) -> str:
    """An error of ours as one line; it names an option only if the command that was typed has it."""
    if isinstance(error, ParameterError):
        flag = "--" + error.name.replace("_", "-")
        known = _options_of(app, words)
        name = flag if flag in known else error.name
        got = f", got {printable(repr(error.value), 200)}" if error.shown and error.value is not None else ""
        return f"{name} must be {_as_options(error.allowed, known)}{got}"
    return " ".join(str(error).split())


def _as_options(text: str, known: set[str]) -> str:
    """The text with the names of arguments that can only be options, such as batch_size, spelt as typed."""
    names = {flag[2:].replace("-", "_"): flag for flag in known if "-" in flag[2:]}
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)


def _options_of(app: click.Command, words: Iterable[str]) -> set[str]:
    """The options of the command that ``words`` call, those of all groups above it included."""
    found: set[str] = set()
    called: Any = app
    for word in [*words, None]:
        found.update(name for parameter in called.params for name in parameter.opts)
        following = (
            called.get_command(click.Context(called), word) if word and isinstance(called, click.Group) else None
        )
        called = following or called
    return found


def usage(error: click.ClickException, app: click.Command, words: Sequence[str]) -> str:
    """What click says, as one line in our form; an option that is not known is answered with the nearest one."""
    message = " ".join(error.format_message().split())
    if isinstance(error, click.NoSuchOption):
        ours, known = _MEANT.get(error.option_name), _options_of(app, words)
        if error.option_name == "-h":
            return "no option -h. Here it is --help"
        if ours in known:
            return f"no option {error.option_name}. Here it is {ours}"
        if error.option_name in known:
            return f"{error.option_name} must be left out beside --request: the request says it"
        near = nearest(error.option_name.lstrip("-"), [name.lstrip("-") for name in sorted(known)], _NEAR)
        return f"no option {error.option_name}" + (f" (did you mean --{near}?)" if near else "")
    parameter = error.param if isinstance(error, click.BadParameter) else None
    if parameter is None:
        return message
    name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.metavar
    if isinstance(error, click.MissingParameter):
        return f"{name} must be given"
    wanted = {"integer": "a whole number", "float": "a number", "path": "a path"}.get(parameter.type.name)
    got = f", got {error.message.rpartition(' is not')[0]}" if isinstance(parameter, click.Option) else ""
    return message if wanted is None else f"{name} must be {wanted}{got}"
