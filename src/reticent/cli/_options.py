"""Options that several verbs share, and how text becomes types."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from reticent.errors import ParameterError
from reticent.mechanism import Neighbouring
from reticent.threat import (
    Adversary,
    Attribute,
    Membership,
    MembershipGame,
    Method,
    Mixed,
    Relaxed,
    WorstCase,
)

Choice = TypeVar("Choice", bound=StrEnum)

AdversaryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--adversary", help="worst-case, relaxed, membership, attribute, membership-game, mixed or all; repeatable."
    ),
]
NeighbouringOption = Annotated[
    str | None,
    typer.Option(
        "--neighbouring",
        help="add-remove, replace or zero-out; default: add-remove, and replace for attribute and membership-game.",
    ),
]
DIMENSION_HELP = (
    "Dimensions in which the direction of the record is unknown, for relaxed (default 1); trained parameters, for "
    "membership-game."
)
MethodOption = Annotated[str, typer.Option("--method", help="exact, closed-form, clt, proven or published.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print strict JSON and nothing else.")]


def choice(kind: type[Choice], text: str, name: str) -> Choice:
    """The member of ``kind`` that ``text`` spells.

    Raises:
        ParameterError: there is none; the message lists what there is.
    """
    try:
        return kind(text)
    except ValueError:
        raise ParameterError(name, text, "one of " + ", ".join(kind)) from None


def neighbouring_of(text: str | None) -> Neighbouring | None:
    """``--neighbouring`` as a type; None, where nothing was stated, leaves it to each adversary."""
    return None if text is None else choice(Neighbouring, text, "neighbouring")


def method_of(text: str) -> Method:
    """``--method`` as a type."""
    return choice(Method, text, "method")


def adversaries_of(
    names: Sequence[str] | None,
    *,
    gradient_change: float | None = None,
    susceptibility: float | None = None,
    relaxed_probability: float = 0.5,
    dimension: int | None = None,
    option: str = "adversary",
) -> tuple[tuple[Adversary, ...], bool]:
    """The adversaries named, in order and without repeats; and whether all of them were asked for.

    Args:
        names: as typed; None or empty means the worst case alone.
        gradient_change: largest change of one clipped gradient, for ``attribute``.
        susceptibility: squared Mahalanobis norm of the target's gradient, for ``membership-game``.
        relaxed_probability: for ``mixed``.
        dimension: of the space in which the direction is unknown, for ``relaxed``.
        option: that the names come from.

    Raises:
        ParameterError: a name is unknown, or a number is given that no adversary named here takes.
    """
    makers: dict[str, Callable[[], Adversary]] = {
        "worst-case": WorstCase,
        "relaxed": lambda: Relaxed(dimension=dimension),
        "membership": Membership,
        "attribute": lambda: Attribute(gradient_change=gradient_change),
        "membership-game": lambda: MembershipGame(susceptibility=susceptibility),
        "mixed": lambda: Mixed(relaxed_probability=relaxed_probability),
    }
    wanted = list(dict.fromkeys(names or ["worst-case"]))
    for name in wanted:
        if name != "all" and name not in makers:
            raise ParameterError(option, name, "one of " + ", ".join([*makers, "all"]))
    everything = "all" in wanted
    chosen = list(makers) if everything else wanted
    takers = (("gradient_change", gradient_change, "attribute"), ("susceptibility", susceptibility, "membership-game"))
    for number, value, taker in takers:
        if value is not None and taker not in chosen:
            raise ParameterError(number, value, f"left out unless --{option} {taker} is asked for")
    return tuple(makers[name]() for name in chosen), everything


def is_terminal() -> bool:
    """Whether progress bars and colours make sense."""
    return sys.stdout.isatty()
