"""Options made from the fields of mechanisms and attackers, and how text becomes types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from reticent.cli._app import JSON, REQUEST, Listing, option
from reticent.cli._limits import SECONDS
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import MECHANISMS, Mechanism
from reticent.kernel.registry import Parameter, parameters_of, typed
from reticent.kernel.text import listed
from reticent.pairs.runs import RUNS, Runs, runs_called

if TYPE_CHECKING:
    from reticent.verbs.names import Attackers

TIMEOUT = option("timeout", float, "Give up after this many seconds.", SECONDS)


def mechanism_options(kind: type[Mechanism], lead: str = "") -> list[click.Option]:
    """The fields of a mechanism, what may be given in their place, and selection; click takes all as optional.

    Args:
        lead: what the help of each field begins with.
    """
    return [*(_option(p, lead + p.help) for p in (*parameters_of(kind), *kind.extras)), *selection_options()]


def selection_options() -> list[click.Option]:
    """``--selection`` and its parameters: the best of several runs is released."""
    return [
        option("selection", str, f"The best of several runs; how many: {', '.join(RUNS)}."),
        option("mean_runs", float, "Average number of runs, for --selection."),
        option("shape", float, "Shape of the number of runs, for --selection negative-binomial. Default: 0."),
    ]


def runs_typed(given: Mapping[str, Any]) -> Runs | None:
    """How many runs there are of which the best is released; None where ``--selection`` does not say.

    Raises:
        ParameterError: a parameter of it is missing, or given without it.
    """
    stated = {name: given.get(option) for name, option in (("mean", "mean_runs"), ("shape", "shape"))}
    values = {name: value for name, value in stated.items() if value is not None}
    if given.get("selection") is None:
        if values:
            name = "mean_runs" if "mean" in values else "shape"
            raise ParameterError(name, given[name], "left out unless --selection is given")
        return None
    kind = runs_called(given["selection"])
    if "mean" not in values:
        raise ParameterError("mean_runs", None, "given with --selection")
    if "shape" in values and "shape" not in {p.name for p in parameters_of(kind)}:
        raise ParameterError("shape", values["shape"], "left out unless --selection is negative-binomial")
    return kind(**values)


def selected(mechanism: Mechanism, given: Mapping[str, Any]) -> Mechanism:
    """The best of several runs of ``mechanism`` where ``--selection`` says so; else the mechanism."""
    from reticent.verbs.releases import Release

    return Release(mechanism).best_of(runs_typed(given))


def who_attacks(
    known: Iterable[click.Parameter] = (), default: str | None = None, *, many: bool = True, flag: str = "--adversary"
) -> list[click.Option]:
    """``--adversary`` with what any attacker takes.

    Args:
        known: options of the verb: what an attacker takes by one of their names is stated by that option.
        default: who is meant where nobody is named; by default the first of all.
        many: several may be named.
        flag: instead of ``--adversary``.
    """
    return [_adversary_option(default, many=many, flag=flag), *_adversary_options(known)]


def _adversary_options(known: Iterable[click.Parameter]) -> list[click.Option]:
    """The parameters of all attackers, each with the names of those that have it."""
    from reticent.kernel.adversaries.base import adversary_parameters

    takers: dict[str, list[str]] = {}
    found: dict[str, Parameter] = {}
    for who, parameter in adversary_parameters():
        takers.setdefault(parameter.name, []).append(who)
        found[parameter.name] = parameter
    taken = {p.name for p in known}
    return [
        _option(p, f"{p.help.rstrip('.')}, for {listed(takers[name])}.")
        for name, p in found.items()
        if name not in taken
    ]


def _option(p: Parameter, help: str) -> click.Option:
    default = "" if p.default is None else f" Default: {p.default}."
    kind = str if issubclass(p.kind, StrEnum) else p.kind
    return option(p.name, kind, help + default, flag=f"--{p.option}")


def _adversary_option(default: str | None, *, many: bool, flag: str) -> click.Option:
    """``--adversary`` with the names of all attackers; the first is meant where none is stated."""
    from reticent.kernel.adversaries import ADVERSARIES

    names, name, default = ", ".join(ADVERSARIES), flag.removeprefix("--"), default or next(iter(ADVERSARIES))
    if not many:
        return option(name, str, f"The attacker: {names}.", default, flag=flag)
    return option(name, str, f"Attacker: {names} or all; repeatable. Default: {default}.", flag=flag, many=True)


def per_mechanism(
    name: str,
    help: str,
    build: Callable[[type[Mechanism]], click.Command],
    leaves: Mapping[str, tuple[str, Callable[[], click.Command]]],
    offered: Callable[[type[Mechanism]], bool] = lambda kind: True,
    *,
    paths: bool = False,
) -> Listing:
    """A group with one command for each mechanism, made from its fields when it is called.

    Args:
        build: the command of a mechanism.
        leaves: further commands: a line about each, and what makes it.
        offered: whether there is a command for a mechanism.
        paths: the last leaf is meant where a path is typed in place of a name.
    """

    def lines() -> dict[str, str]:
        kinds = {name: first_line(kind) for name, kind in MECHANISMS.items() if offered(kind)}
        return {**kinds, **{leaf: line for leaf, (line, _) in leaves.items()}}

    def make(name: str) -> click.Command:
        return leaves[name][1]() if name in leaves else build(MECHANISMS[name])

    return Listing(name, lines, make, help=help, params=[REQUEST, JSON], paths=paths)


def first_line(kind: type) -> str:
    """What the docstring says first."""
    return (kind.__doc__ or "").strip().split("\n")[0]


def mechanism_given(
    kind: type[Mechanism], given: Mapping[str, Any], stand_in: Mapping[str, Any] = MappingProxyType({})
) -> Mechanism:
    """A mechanism from what was typed for its fields; None where nothing was.

    Args:
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
            raise ParameterError(
                name, None, "given, as it is not what is searched" if stand_in else "given", shown=False
            )
    return selected(kind(**fields), given)


def _counting() -> set[str]:
    """Who takes the number of trained parameters from ``--dimension`` where nothing else states it."""
    from reticent.kernel.adversaries import ADVERSARIES
    from reticent.kernel.adversaries.base import ALL

    return {ALL, *(name for name, kind in ADVERSARIES.items() if kind.counts_parameters)}


def told_apart(
    kind: type[Mechanism], names: Sequence[str], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was typed for the mechanism, and what for the attackers. A field of the mechanism comes first.

    ``--dimension`` states in how many dimensions the direction is unknown. Where no attacker asks for that, or the
    membership game asks for the number of trained parameters and nothing states it, it is that number.
    """
    from reticent.kernel.adversaries.base import ALL, adversary_parameters

    own = {p.name for p in parameters_of(kind)}
    release, attackers = dict(given), {name: value for name, value in given.items() if name not in own}
    stated = attackers.get("dimension")
    if stated is not None and "num_parameters" in own:
        checks.count(dimension=stated)
        takers = {who for who, parameter in adversary_parameters() if parameter.name == "dimension"}
        taken = bool(takers & set(names)) or ALL in names
        if release.get("num_parameters") is None and (not taken or _counting() & set(names)):
            release["num_parameters"] = stated
        if not taken:
            attackers["dimension"] = None
    return release, attackers


def say_if_unused(dimension: int | None, names: Sequence[str]) -> None:
    """A note on standard error where a dimension was typed and nobody who was asked for looks at it."""
    from reticent.kernel.adversaries.base import adversary_parameters

    takers = [who for who, parameter in adversary_parameters() if parameter.name == "dimension"]
    if dimension is not None and not {*takers, *_counting()} & set(names):
        who = ", ".join(names)
        note = f"note: --dimension {dimension} changes no number here, as {who} does not depend on it"
        click.echo(f"{note}; add --adversary {takers[0]} for an attacker who does", err=True)


def adversaries_of(names: Sequence[str], given: Mapping[str, Any], option: str = "adversary") -> Attackers:
    """The attackers named, with the parameters that were typed.

    Raises:
        ParameterError: a name is unknown, or a parameter is given that no attacker named here takes.
    """
    from reticent.kernel.adversaries.base import adversaries_named, adversary_parameters
    from reticent.verbs.names import Attackers

    known = {parameter.name for _, parameter in adversary_parameters()}
    typed = {name: value for name, value in given.items() if name in known}
    return Attackers(*adversaries_named(names, typed, option))
