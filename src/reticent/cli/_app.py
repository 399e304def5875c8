"""The typer application and the one place where errors become one line and exit code 2."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from reticent import __version__
from reticent.cli._limits import own_process
from reticent.errors import ParameterError, ReticentError
from reticent.keywords import MEANT
from reticent.text import one_of, printable

# typer ships its own click in some versions and depends on click in others: ask typer which one it raises.
_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


VERBS = {
    "risk": ("risk", "What each attacker can learn from a release."),
    "calibrate": ("calibrate", "The least noise that keeps an attacker below a target."),
    "compare": ("compare", "The noise that each attacker would allow."),
    "train": ("train", "Train with DP-SGD and record what really ran."),
    "certify": ("certify", "Certify a run under every attacker."),
    "keygen": ("certify", "Make a key pair for signing certificates."),
    "verify": ("verify", "Derive a certificate again and compare everything."),
    "lint": ("lint", "Name every fault of a training loop or a run."),
    "gate": ("gate", "Stop a release whose certificate breaches a policy."),
    "audit": ("audit", "Attack a run, or judge scores, against the claims."),
    "plan-audit": ("audit", "How large an audit must be."),
    "audit-loop": ("audit_loop", "Audit a training loop of your own."),
    "reproduce": ("reproduce", "Figures and tables of the papers, and whether we agree."),
    "dashboard": ("dashboard", "The risk page in a browser, on this machine."),
}
"""The file of each verb, and one line about it: files are read only when their verb is called."""

_MEANT = {f"--{typed}".replace("_", "-"): f"--{ours}".replace("_", "-") for typed, ours in MEANT.items()}
"""Options as other tools call them."""


class Listing(TyperGroup):
    """A group that lists its commands one per line, without building them."""

    def lines(self) -> dict[str, str]:
        """One line about each command, by name."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.lines())

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not args[0].startswith("-") and args[0] not in self.lines():
            ctx.fail(f"{args[0]!r} is not {one_of(args[0], self.lines())}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, TyperGroup):
            _refuse_twice(ctx, command, rest)
        if command is not None and command.callback is not None:
            command.callback = _loaded(command.callback)
        return name, command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines().items()))


def _refuse_twice(ctx: Any, command: Any, args: Sequence[str]) -> None:
    """An option that takes one value is given once: of two keys or policies only the last would count."""
    takes = {name: one for one in command.params for name in one.opts if name.startswith("-") and _takes_one(one)}
    many = {name for one in command.params for name in one.opts if getattr(one, "multiple", False)}
    given, words = set(), iter(args)
    for word in words:
        if word == "--":
            return
        name, equals, _ = word.partition("=")
        if name in takes and takes[name].name in given:
            ctx.fail(f"{name} is given more than once, and takes one value")
        if name in takes:
            given.add(takes[name].name)
        if name in (takes | dict.fromkeys(many)) and not equals:
            next(words, None)


def _takes_one(option: Any) -> bool:
    return not (option.multiple or option.is_flag) if hasattr(option, "multiple") else False


class _Verbs(Listing):
    def lines(self) -> dict[str, str]:
        return {verb: line for verb, (_, line) in VERBS.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        import_module(f"reticent.cli.{VERBS[cmd_name][0]}")
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.registered_commands = [info for info in app.registered_commands if info.name == cmd_name]
        one.registered_groups = [info for info in app.registered_groups if info.name == cmd_name]
        return typer.main.get_group(one).commands[cmd_name]


app = typer.Typer(add_completion=False, rich_markup_mode=None)
"""What the files of the verbs add themselves to. Only the verb that is called is built from it."""

whole = typer.Typer(
    name="reticent",
    cls=_Verbs,
    help="How much can this attacker learn about one person from the model we release?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@whole.callback(invoke_without_command=True)
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
    if arguments is None:  # the process is ours
        own_process()
        gc.disable()  # until the verb starts: see ``_loaded``
    try:
        code = whole(args=words, standalone_mode=False)
        sys.stdout.flush()
    except typer.Abort:
        _fail("interrupted", 130)
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message())
            sys.exit(2)
        _fail(_usage(error) + _given(error, words) + _meant(error, words), 2)
    except ReticentError as error:
        _fail(one_line(error, words), 2)
    except BrokenPipeError:
        # Who read our output has seen enough; nothing may be written to it at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except (OverflowError, ZeroDivisionError, MemoryError, RecursionError) as error:
        _fail(f"the numbers asked for are too extreme to compute with ({type(error).__name__}: {error})", 2)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _loaded(verb: Callable[..., Any]) -> Callable[..., Any]:
    """``verb``, from whose start on Python looks for garbage again, but not among what was loaded for it.

    That stays. To look through it again and again while modules are imported, and when the process ends, would cost an
    eighth of a short call.
    """

    @wraps(verb)
    def begun(**given: Any) -> Any:
        if not gc.isenabled():  # by ``main``
            gc.freeze()
            gc.enable()
        return verb(**given)

    return begun


def one_line(error: ReticentError, words: Sequence[str]) -> str:
    """The error as one line; it names an option only if the command that was typed has it."""
    if isinstance(error, ParameterError):
        option = "--" + error.name.replace("_", "-")
        known = _options_of(words)
        name = option if option in known else error.name
        got = "" if error.value is None else error.got(printable(repr(error.value), 200))
        return f"{name} must be {_as_options(error.allowed, known)}{got}"
    return " ".join(str(error).split())


def _as_options(text: str, known: set[str]) -> str:
    """The text with the names of arguments that can only be options, such as batch_size, spelt as typed."""
    names = {option[2:].replace("-", "_"): option for option in known if "-" in option[2:]}
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)


def _options_of(words: Sequence[str]) -> set[str]:
    """The options of the command that ``words`` call, those of all commands above it included."""
    command: Any = typer.main.get_command(whole)
    found: set[str] = set()
    for word in [*words, None]:
        found.update(name for parameter in command.params for name in parameter.opts)
        following = command.get_command(None, word) if word and hasattr(command, "get_command") else None
        command = following or command
    return found


def _usage(error: Any) -> str:
    """What typer says, as one line in our form; an option that is not known is answered with the nearest one."""
    told = " ".join(error.format_message().split())
    for kind, words in {"valid integer": "a whole number", "valid number": "a number"}.items():
        if kind in told and getattr(error, "param", None) is not None:
            return f"{error.param.opts[0]} must be {words}"
    if type(error).__name__ == "MissingParameter" and getattr(error, "param", None) is not None:
        return f"{_shown(error.param)} must be given"
    name = getattr(error, "option_name", None)
    if type(error).__name__ != "NoSuchOption" or not name:
        return told
    near = getattr(error, "possibilities", None)
    return f"no option {name}" + (f" (did you mean {sorted(near)[0]}?)" if near and name not in _MEANT else "")


def _shown(parameter: Any) -> str:
    """A parameter as it is typed: an option by its name, an argument by what stands for it."""
    return str(parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar or parameter.name)


def _given(error: Any, words: Sequence[str]) -> str:
    """What was typed for the option that could not be read; usage errors do not carry it."""
    found = []
    for option in getattr(getattr(error, "param", None), "opts", ()):
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == option and following:
                found.append(following)
            if word.startswith(f"{option}="):
                found.append(word.partition("=")[2])
    return f", got {_odd_one(found)!r}" if found else ""


def _odd_one(texts: list[str]) -> str:
    """Of what was typed for an option, the text that is no number, or no whole one; else the last."""
    for kind in (float, int):
        for text in texts:
            try:
                kind(text)
            except ValueError:
                return text
    return texts[-1]


def _meant(error: Any, words: Sequence[str]) -> str:
    """Our name of an option that other tools call otherwise."""
    ours = _MEANT.get(getattr(error, "option_name", ""))
    return f". Here it is {ours}" if ours is not None and ours in _options_of(words) else ""


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"reticent: {printable(message)}\n")
    sys.exit(code)
