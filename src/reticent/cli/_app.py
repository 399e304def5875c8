"""The typer application and the one place where errors become one line and exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent import __version__
from reticent._text import printable
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
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of the data sets, in place of $RETICENT_DATA.")
    ] = None,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if data is not None:
        if not data.is_dir():
            raise ParameterError("data", str(data), "a folder")
        os.environ["RETICENT_DATA"] = str(data)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input ends in one line on standard error and exit code 2."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(args=words, standalone_mode=False)
        sys.stdout.flush()
    except typer.Abort:
        _fail("interrupted", 130)
    except _UsageError as error:
        _fail(" ".join(error.format_message().split()) + _given(error, words), 2)
    except ReticentError as error:
        _fail(one_line(error, words), 2)
    except BrokenPipeError:
        # Who read our output has seen enough; nothing may be written to it at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except (OverflowError, MemoryError, RecursionError) as error:
        _fail(f"the numbers asked for are too extreme to compute with ({type(error).__name__}: {error})", 2)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def one_line(error: ReticentError, words: Sequence[str]) -> str:
    """The error as one line; it names an option only if the command that was typed has it."""
    if isinstance(error, ParameterError):
        option = "--" + _OPTIONS.get(error.name, error.name).replace("_", "-")
        name = option if option in _options_of(words) else error.name
        return f"{name} must be {error.allowed}, got {printable(repr(error.value), 200)}"
    return " ".join(str(error).split())


def _options_of(words: Sequence[str]) -> set[str]:
    """The options of the command that ``words`` call, those of all commands above it included."""
    command: Any = typer.main.get_command(app)
    found: set[str] = set()
    for word in [*words, None]:
        found.update(name for parameter in command.params for name in parameter.opts)
        following = getattr(command, "commands", {}).get(word)
        command = following or command
    return found


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
    sys.stderr.write(f"reticent: {printable(message)}\n")
    sys.exit(code)
