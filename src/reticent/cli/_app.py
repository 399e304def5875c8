"""The command line as click's groups; bad input ends in one line and exit code 2."""

from __future__ import annotations

import gc
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from reticent import __version__
from reticent.cli._limits import own_process
from reticent.cli._mistakes import one_line, usage
from reticent.kernel.errors import ArtifactError, ExtensionError, ParameterError, ReticentError
from reticent.kernel.text import one_of, printable

VERBS = {
    "risk": "What each attacker can learn from a release.",
    "calibrate": "The least noise that keeps an attacker below a target.",
    "compare": "The noise that each attacker would allow.",
    "train": "Train with DP-SGD and record what really ran.",
    "certify": "Certify a run under every attacker.",
    "keygen": "Make a key pair for signing certificates.",
    "verify": "Derive a certificate again and compare everything.",
    "lint": "Name every fault of a training loop or a run.",
    "gate": "Stop a release whose certificate breaches a policy.",
    "register": "All releases from one data set, and what its budget leaves.",
    "audit": "Attack a run, or judge scores, against the claims.",
    "plan-audit": "How large an audit must be.",
    "audit-loop": "Audit a training loop of your own.",
    "reproduce": "Where the figures and tables of the papers are.",
    "dashboard": "The risk page in a browser, on this machine.",
}
"""One line about each verb. Its file, which is called like it, is read when it is called."""


class Listing(click.Group):
    """A group that lists its commands one per line and builds the one that is called: click's lazy group.

    Args:
        name: of the group.
        lines: says one line about each command, by name.
        make: builds the command of a name.
        paths: where a path is typed in place of a name, the last command is meant.
        more: of ``click.Group``.
    """

    def __init__(
        self,
        name: str,
        lines: Callable[[], Mapping[str, str]],
        make: Callable[[str], click.Command],
        *,
        paths: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(name, no_args_is_help=True, **more)
        self._lines, self._make, self._paths = lines, make, paths

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lines())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        meant = self._meant(cmd_name)
        return self._make(meant) if meant in self._lines() else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        meant = self._meant(args[0])
        if not meant.startswith("-") and meant not in self._lines():
            ctx.fail(f"{meant!r} is not {one_of(meant, self._lines())}")
        return super().resolve_command(ctx, args if meant == args[0] else [meant, *args])

    def _meant(self, word: str) -> str:
        path = not word.startswith("-") and ("/" in word or word.endswith(".json") or os.path.lexists(word))
        return list(self._lines())[-1] if self._paths and path and word not in self._lines() else word

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lines().items()))


class Verb(click.Command):
    """A command whose options that take one value are given once: of two keys only the last would count."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, typed = self.make_parser(ctx).parse_args(list(args))
        for one in typed:
            if isinstance(one, click.Option) and not (one.is_flag or one.multiple) and typed.count(one) > 1:
                ctx.fail(f"{one.opts[0]} is given more than once, and takes one value")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """From here on Python looks for garbage again, but not among what was loaded for the verb.

        To look through that again and again while modules are imported, and when the process ends, would cost an
        eighth of a short call.
        """
        if not gc.isenabled():  # by ``main``
            gc.freeze()
            gc.enable()
        return super().invoke(ctx)


def command(name: str, *params: click.Parameter, help: str | None = None) -> Callable[[Callable[..., None]], Verb]:
    """Make a function the command ``name``; ``--json`` comes last everywhere.

    Args:
        params: its arguments and options, which reach the function by name.
        help: by default the docstring of the function.

    Raises:
        ExtensionError: two have one name: a field of a class of another package is called like an option of the verb.
    """
    ordered = sorted(params, key=lambda one: one.name == "json")
    names = ["help", *(str(one.name) for one in params)]
    for twice in (one for one in names if names.count(one) > 1):
        raise ExtensionError(
            f"{name}: --{twice.replace('_', '-')} is an option of the verb, so no field of {name} or of an attacker "
            "can be called so: give the field another name, or ask in Python"
        )
    return lambda function: Verb(name, params=ordered, callback=function, help=help or inspect.getdoc(function))


def argument(
    name: str, kind: Any, metavar: str, help: str, *, required: bool = True, many: bool = False
) -> click.Argument:
    """What is typed without a name before it; of ``many``, () where nothing is."""
    more: dict[str, Any] = {"nargs": -1} if many else {}
    return click.Argument([name], type=_type(kind), metavar=metavar, help=help, required=required, **more)


def option(
    name: str,
    kind: Any,
    help: str,
    default: Any = None,
    *,
    flag: str | None = None,
    many: bool = False,
    required: bool = False,
) -> click.Option:
    """One option; without ``default`` it may be left out and is None then, or () where ``many`` may be given.

    Args:
        name: of the argument that it becomes.
        kind: ``float``, ``int``, ``str``, ``Path`` or ``bool``.
        help: one sentence for people.
        default: its value where it is not given.
        flag: as typed; by default the name.
        many: it may be repeated.
        required: it must be given.
    """
    names = [name, flag or "--" + name.replace("_", "-")]
    if kind is bool:
        return click.Option(names, is_flag=True, default=bool(default), help=help)
    known = {"required": True} if required else {"default": default, "show_default": default is not None}
    return click.Option(names, type=_type(kind), help=help, multiple=many, **known)


class _Place(click.Path):
    """A path that names something; a text that is empty would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "" or "\0" in str(value):
            self.fail(f"{value!r} is not a path", param, ctx)
        return super().convert(value, param, ctx)


def _type(kind: Any) -> Any:
    return _Place(path_type=Path) if kind is Path else kind


_LARGEST = 64 << 20
_CUT_OFF = 141
"""The exit code where nobody reads on, as shells say it: 128 and SIGPIPE. Of click it is 1, which is a breach."""
JSON = option("json", bool, "Print strict JSON and nothing else.")
DRY_RUN = option("dry_run", bool, "Print the request as JSON and do nothing else: --request takes it.")
REQUEST = option("request", Path, "Take the request from a JSON file, which --dry-run prints.")
"""Shown by every verb that asks; ``_by_request`` makes the command that takes it."""


def _room(verb: str) -> Any:
    """The file of a verb."""
    return import_module(f"reticent.cli.{verb.replace('-', '_')}")


def _verb(name: str) -> click.Command:
    """The command of a verb, from its file; one that lists attackers is made anew, with those that are known now."""
    found: Any = getattr(_room(name), name.replace("-", "_"))
    made: click.Command = found if isinstance(found, click.Command) else found()
    return made


def _root(version: bool, data: Path | None) -> None:
    if version:
        click.echo(__version__)
        raise click.exceptions.Exit
    if data is not None:
        if not data.is_dir():
            raise ParameterError("data", str(data), "a folder")
        os.environ["RETICENT_DATA"] = str(data)


def _by_request(verb: str) -> Verb:
    """The command that takes the request from a file.

    Raises:
        ArtifactError: the verb takes none.
    """
    room = _room(verb)
    kinds: dict[Any, Any] = getattr(room, "ASKED", {})
    if not kinds:
        raise ArtifactError(f"{verb} takes no --request")

    @command(verb, DRY_RUN, REQUEST, *getattr(room, "SHOWN_BY", ()), JSON, help=VERBS[verb])
    def run(json: bool, dry_run: bool, request: Path, **given: Any) -> None:
        from reticent.io import strict

        document = strict.load(request, _LARGEST)
        stated = document.get("verb") if isinstance(document, dict) else None
        kind = next((one for one in kinds if one.verb == stated), next(iter(kinds)))
        asked = kind.of_document(document, str(request))
        if dry_run:
            click.echo(asked.to_json())
        else:
            kinds[kind](asked, given, json)

    return run


class _Root(Listing):
    """All verbs; one that is given a request needs no further word."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] in VERBS and any(word.split("=")[0] == "--request" for word in args[1:]):
            words = args[1:]
            while words and not words[0].startswith("-"):  # which release it is about, the request says
                del words[0]
            return args[0], _by_request(args[0]), words
        return super().resolve_command(ctx, args)


app = _Root(
    "reticent",
    lambda: VERBS,
    _verb,
    params=[
        option("version", bool, "Print the version and stop."),
        option("data", Path, "Folder of the data sets, instead of $RETICENT_DATA."),
    ],
    callback=_root,
    invoke_without_command=True,
    help="How much can this attacker learn about one person from the model we release?",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input ends in one line on standard error and exit code 2."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if arguments is None:  # the process is ours
        own_process()
        gc.disable()  # until the verb starts: see ``Verb.invoke``
    try:
        code = app.main(args=words, prog_name="reticent", standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
        _fail("interrupted", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        _fail(usage(error, app, words), 2)
    except ReticentError as error:
        _fail(one_line(error, app, words), 2)
    except (BrokenPipeError, SystemExit):  # by the second click says that a pipe broke, and no verb of ours says it
        # Who read our output has seen enough; nothing may be written to it at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_CUT_OFF)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except (OverflowError, ZeroDivisionError, MemoryError, RecursionError) as error:
        _fail(f"the numbers asked for are too extreme to compute with ({type(error).__name__}: {error})", 2)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"reticent: {printable(message)}\n")
    sys.exit(code)
