"""Who attacks, however it is said: an object, a name, or a list of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from reticent import _check
from reticent.adversaries import Adversary, WorstCase, everybody
from reticent.adversaries.base import ALL, adversaries_named, adversary_called
from reticent.errors import ParameterError

Who = Adversary | str


def adversaries(who: Who | Sequence[Who] | None) -> tuple[Adversary, ...]:
    """The adversaries that are meant, in order and without repeats; None means the worst case.

    Raises:
        ParameterError: something is neither an adversary nor the name of one; the message has the nearest name.
    """
    given = _listed(who)
    if not given:
        raise ParameterError("adversaries", given, "at least one adversary or name")
    return tuple(dict.fromkeys(found for one in given for found in _meant(one)))


def adversary(who: Who | None) -> Adversary:
    """One adversary; None means the worst case.

    Raises:
        ParameterError: it is neither an adversary nor the name of one, or ``"all"``.
    """
    return adversary_called(who)() if isinstance(who, str) else _meant(WorstCase() if who is None else who)[0]


def asks_for_all(who: Who | Sequence[Who] | None) -> bool:
    """Whether ``"all"`` was said, alone or in a list."""
    return ALL in _listed(who)


def _listed(who: Any) -> list[Any]:
    if who is None:
        return [WorstCase()]
    return [who] if isinstance(who, str) or not isinstance(who, Sequence) else list(who)


def _meant(who: object) -> tuple[Adversary, ...]:
    if isinstance(who, str):
        return adversaries_named([who])[0]
    if isinstance(who, type) or not isinstance(who, Adversary):
        one = next(kind for kind in everybody().values() if kind.averaged)
        hint = f"an adversary such as rt.{one.__name__}(), or a name such as {one.name!r}"
        raise ParameterError("adversary", who, hint)
    return (who,)


def path_given(**given: Any) -> Path | None:
    """The one argument as a path, None where it is None."""
    ((name, value),) = given.items()
    if value is None:
        return None
    if not isinstance(value, (str, Path)):
        raise ParameterError(name, value, "a path")
    return Path(value)


def several(**given: Any) -> tuple[float, ...]:
    """The one argument as numbers, whether it is a number or several."""
    ((name, values),) = given.items()
    many = values if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    return tuple(_check.finite(**{name: x}) for x in many)
