"""The typer application and the one place where errors become one line and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer

from reticent import __version__
from reticent.errors import ParameterError, ReticentError

# typer ships its own click in some versions and depends on click in others: ask typer which one it raises.
_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

_OPTIONS = {"num_parameters": "dimension"}
"""Arguments whose option has another name."""

app = typer.Typer(
    name="reticent",
    help="How much can this attacker learn about one person from the model we release?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input ends in one line on standard error and exit code 2."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(args=words, standalone_mode=False)
    except typer.Abort:
        _fail("interrupted", 130)
    except _UsageError as error:
        _fail(" ".join(error.format_message().split()) + _given(error, words), 2)
    except ReticentError as error:
        _fail(one_line(error), 2)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def one_line(error: ReticentError) -> str:
    """The error as one line that names the option as the user typed it."""
    if isinstance(error, ParameterError):
        option = "--" + _OPTIONS.get(error.name, error.name).replace("_", "-")
        return f"{option} must be {error.allowed}, got {error.value!r}"
    return " ".join(str(error).split())


def _given(error: Any, words: Sequence[str]) -> str:
    """What was typed for the option that could not be read; usage errors do not carry it."""
    for option in getattr(getattr(error, "param", None), "opts", ()):
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == option and following:
                return f", got {following!r}"
            if word.startswith(f"{option}="):
                return f", got {word.partition('=')[2]!r}"
    return ""


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"reticent: {message}\n")
    sys.exit(code)
