"""The typer application and the one place where errors become one line and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import typer

from reticent import __version__
from reticent.errors import ParameterError, ReticentError

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
    try:
        code = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted", 130)
    except click.ClickException as error:
        _fail(error.format_message().replace("\n", " "), 2)
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


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"reticent: {message}\n")
    sys.exit(code)
