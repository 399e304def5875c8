"""Options made from the fields of mechanisms and attackers, and how text becomes types."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar

import typer

from reticent import _check
from reticent.cli._app import Listing
from reticent.errors import ParameterError
from reticent.mechanisms import MECHANISMS, Mechanism, Neighbouring
from reticent.registry import Parameter, parameters_of, typed
from reticent.text import one_of

Choice = TypeVar("Choice", bound=StrEnum)

JsonOption = Annotated[bool, typer.Option("--json", help="Print strict JSON and nothing else.")]


def option(name: str, kind: Any, help: str, default: Any = None, *, flag: str | None = None) -> inspect.Parameter:
    """One option of a command as a parameter of its function; ``default`` None makes it optional."""
    hint = kind if default is not None else kind | None
    info = typer.Option(flag or "--" + name.replace("_", "-"), help=help)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=Annotated[hint, info])


class _Command:
    """A command with more options than its signature shows. They are listed each time it is asked for them."""

    def __init__(self, function: Callable[..., None], more: Callable[[], Iterable[inspect.Parameter]]) -> None:
        self._function, self._more = function, more
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__annotations__ = {}  # all hints stand in the signature

    def __call__(self, **values: Any) -> None:
        self._function(**values)

    @property
    def __signature__(self) -> inspect.Signature:
        own = inspect.signature(self._function, eval_str=True).parameters.values()
        named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own if p.kind is not p.VAR_KEYWORD]
        taken = {p.name for p in named}
        every = [*named, *(p for p in self._more() if p.name not in taken)]
        return inspect.Signature(sorted(every, key=lambda p: p.name == "json"))  # the same place everywhere


def takes(more: Callable[[], Iterable[inspect.Parameter]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that ``more`` lists, besides its own; they reach its ``**given`` by name.

    The list is made when the command is called, so attackers registered after its file was read are in it.
    """
    return lambda function: _Command(function, more)


def _typed(parameter: Parameter) -> type:
    return str if issubclass(parameter.kind, StrEnum) else parameter.kind


def mechanism_options(kind: type[Mechanism]) -> list[inspect.Parameter]:
    """The fields of a mechanism, and what may be given in their place; all may be left out as far as typer knows."""
    return [_option(p, p.help) for p in (*parameters_of(kind), *kind.extras)]


def adversary_options(known: Iterable[inspect.Parameter] = ()) -> list[inspect.Parameter]:
    """The parameters of all attackers, each with the names of those that have it."""
    from reticent.adversaries.base import adversary_parameters

    takers: dict[str, list[str]] = {}
    found: dict[str, Parameter] = {}
    for who, parameter in adversary_parameters():
        takers.setdefault(parameter.name, []).append(who)
        found[parameter.name] = parameter
    taken = {p.name for p in known}
    return [
        _option(p, f"{p.help.rstrip('.')}, for {' and '.join(takers[name])}.")
        for name, p in found.items()
        if name not in taken
    ]


def _option(p: Parameter, help: str) -> inspect.Parameter:
    default = "" if p.default is None else f" Default: {p.default}."
    return option(p.name, _typed(p), help + default, flag=f"--{p.option}")


def adversary_option(default: str, *, many: bool = True, flag: str = "--adversary") -> inspect.Parameter:
    """``--adversary`` with the names of all attackers."""
    from reticent.adversaries import ADVERSARIES

    names, name = ", ".join(ADVERSARIES), flag.removeprefix("--")
    if not many:
        return option(name, str, f"The attacker: {names}.", default, flag=flag)
    return option(name, list[str], f"Attacker: {names} or all; repeatable. Default: {default}.", flag=flag)


def curve_options() -> list[inspect.Parameter]:
    """``--neighbouring`` and ``--method``."""
    from reticent.adversaries import ADVERSARIES, Method

    others: dict[str, list[str]] = {}
    for name, kind in ADVERSARIES.items():
        if kind.relation is not Neighbouring.ADD_REMOVE:
            others.setdefault(kind.relation.value, []).append(name)
    own = "".join(f", and {relation} for {' and '.join(names)}" for relation, names in others.items())
    return [
        option("neighbouring", str, f"{', '.join(Neighbouring)}. Default: add-remove{own}."),
        option("method", str, f"{', '.join(Method)}. Default: that of each attacker."),
    ]


class PerMechanism(Listing):
    """A group with one command for each mechanism, made from its fields when it is called."""

    leaves: ClassVar[dict[str, str]] = {}
    """Further commands, with a line about each."""

    later: ClassVar[dict[str, Callable[[], Callable[..., None]]]] = {}
    """Those of them that are made when they are called: lists of attackers are not loaded for a list of commands."""

    @staticmethod
    def build(kind: type[Mechanism]) -> Callable[..., None]:
        """The function of the command for one mechanism."""
        raise NotImplementedError

    @staticmethod
    def offered(kind: type[Mechanism]) -> bool:
        """Whether there is a command for this mechanism."""
        return True

    def lines(self) -> dict[str, str]:
        kinds = {name: first_line(kind) for name, kind in MECHANISMS.items() if self.offered(kind)}
        return {**kinds, **self.leaves}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        if cmd_name in self.later:
            one.command(cmd_name, help=self.leaves[cmd_name])(self.later[cmd_name]())
        elif cmd_name in MECHANISMS and cmd_name in self.lines():
            kind = MECHANISMS[cmd_name]
            one.command(cmd_name, help=first_line(kind))(self.build(kind))
        else:
            return super().get_command(ctx, cmd_name)
        return typer.main.get_command(one)


def first_line(kind: type) -> str:
    """What the docstring says first."""
    return (kind.__doc__ or "").strip().split("\n")[0]


def mechanism_given(
    kind: type[Mechanism], given: Mapping[str, Any], stand_in: Mapping[str, Any] = MappingProxyType({})
) -> Mechanism:
    """A mechanism from what was typed for its fields; None where nothing was.

    Args:
        kind: of the mechanism.
        given: by name of the field; other names are left alone.
        stand_in: fields that are searched, with any value.

    Raises:
        ParameterError: a field is missing or out of bounds.
    """
    parameters = {p.name: p for p in (*parameters_of(kind), *kind.extras)}
    stated = {name: typed(p, given[name]) for name, p in parameters.items() if given.get(name) is not None}
    fields = {**kind.resolved(stated), **stand_in}
    for name, p in parameters.items():
        if p.required and fields.get(name) is None:
            raise ParameterError(name, None, "given, as it is not what is searched" if stand_in else "given")
    return kind(**fields)


def choice(kind: type[Choice], text: str, name: str) -> Choice:
    """The member of ``kind`` that ``text`` spells.

    Raises:
        ParameterError: there is none; the message lists what there is.
    """
    try:
        return kind(text)
    except ValueError:
        raise ParameterError(name, text, one_of(text, kind)) from None


def neighbouring_of(text: str | None) -> Neighbouring | None:
    """``--neighbouring`` as a type; None, where nothing was stated, leaves it to each attacker."""
    return None if text is None else choice(Neighbouring, text, "neighbouring")


def method_of(text: str | None) -> Any:
    """``--method`` as a type; None, where nothing was stated, leaves it to each attacker."""
    from reticent.adversaries import Method

    return None if text is None else choice(Method, text, "method")


_COUNTS_PARAMETERS = "membership-game"
"""The attacker who takes the number of trained parameters from ``--dimension`` where nothing else states it."""


def told_apart(
    kind: type[Mechanism], names: Sequence[str], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was typed for the mechanism, and what for the attackers. A field of the mechanism comes first.

    ``--dimension`` states in how many dimensions the direction is unknown. Where no attacker asks for that, or the
    membership game asks for the number of trained parameters and nothing states it, it is that number.
    """
    from reticent.adversaries.base import ALL, adversary_parameters

    own = {p.name for p in parameters_of(kind)}
    release, attackers = dict(given), {name: value for name, value in given.items() if name not in own}
    stated = attackers.get("dimension")
    if stated is not None and "num_parameters" in own:
        _check.count(dimension=stated)
        takers = {who for who, parameter in adversary_parameters() if parameter.name == "dimension"}
        taken = bool(takers & set(names)) or ALL in names
        if release.get("num_parameters") is None and (not taken or {_COUNTS_PARAMETERS, ALL} & set(names)):
            release["num_parameters"] = stated
        if not taken:
            attackers["dimension"] = None
    return release, attackers


def say_if_unused(dimension: int | None, names: Sequence[str]) -> None:
    """A note on standard error where a dimension was typed and nobody who was asked for looks at it."""
    from reticent.adversaries.base import ALL, adversary_parameters

    takers = [who for who, parameter in adversary_parameters() if parameter.name == "dimension"]
    if dimension is not None and not {*takers, _COUNTS_PARAMETERS, ALL} & set(names):
        who = ", ".join(names)
        note = f"note: --dimension {dimension} changes no number here, as {who} does not depend on it"
        typer.echo(f"{note}; add --adversary {takers[0]} for an attacker who does", err=True)


def adversaries_of(names: Sequence[str], given: Mapping[str, Any], option: str = "adversary") -> Any:
    """The attackers named, with the parameters that were typed; and whether all of them were asked for.

    Raises:
        ParameterError: a name is unknown, or a parameter is given that no attacker named here takes.
    """
    from reticent.adversaries.base import adversaries_named, adversary_parameters

    known = {parameter.name for _, parameter in adversary_parameters()}
    return adversaries_named(names, {name: value for name, value in given.items() if name in known}, option)


def is_terminal() -> bool:
    """Whether progress bars and colours make sense."""
    return sys.stdout.isatty()
