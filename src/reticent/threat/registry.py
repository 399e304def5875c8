"""Every attacker by name: the one list that all others are made from.

Adding one takes a file in this folder, with ``@ADVERSARIES.add`` above the class, and its name in ``_FILES``;
docs/extending.md shows how. An attacker of your own is listed by the same decorator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reticent._registry import Parameter, Registry, parameters_of, typed
from reticent.errors import ParameterError
from reticent.threat.base import Adversary

_FILES = ("worst_case", "relaxed", "mixed", "membership", "membership_game", "norm_only", "attribute")

ADVERSARIES: Registry[Adversary] = Registry("attacker", "reticent.threat", _FILES)
"""In the order in which certificates and tables show them."""

ALL = "all"


def adversary_parameters() -> Iterator[tuple[str, Parameter]]:
    """(name of the attacker, parameter) for all that can be typed."""
    for name, kind in ADVERSARIES.items():
        for parameter in parameters_of(kind):
            if parameter.typeable:
                yield name, parameter


def adversaries_named(
    names: Sequence[str], given: dict[str, Any] | None = None, option: str = "adversary"
) -> tuple[tuple[Adversary, ...], bool]:
    """The attackers of these names, in order and without repeats; and whether all of them were asked for.

    Args:
        names: as typed; ``all`` stands for every one that is not kept for reproduction only.
        given: parameters by field name; None where nothing was given.
        option: that the names come from, for errors.

    Raises:
        ParameterError: a name is unknown, or a parameter is given that no attacker named here has.
    """
    everything = ALL in names
    kinds = [ADVERSARIES.find(name, option, ALL) for name in dict.fromkeys(names) if name != ALL]
    kinds = list(dict.fromkeys([*everybody().values(), *kinds])) if everything else kinds
    stated = {name: value for name, value in (given or {}).items() if value is not None}
    taken = {kind: [p for p in parameters_of(kind) if p.name in stated] for kind in kinds}
    for name in stated:
        if not any(p.name == name for parameters in taken.values() for p in parameters):
            takers = [who for who, parameter in adversary_parameters() if parameter.name == name]
            wanted = f"left out unless --{option} {' or '.join(takers)} is asked for"
            raise ParameterError(name, stated[name], wanted)
    return tuple(kind(**{p.name: typed(p, stated[p.name]) for p in taken[kind]}) for kind in kinds), everything


def standard_adversaries() -> tuple[Adversary, ...]:
    """All that need no measurement, with their own defaults."""
    return tuple(kind() for kind in everybody().values() if kind.unmeasured is None)


def everybody() -> dict[str, type[Adversary]]:
    """What "all" stands for: every attacker but those that are kept for reproduction, by name."""
    return {name: kind for name, kind in ADVERSARIES.items() if not kind.by_name_only}
