"""Who attacks, however it is said: an object, a name, or a list of both."""

from __future__ import annotations

from collections.abc import Sequence

from reticent import _check
from reticent.adversaries import Adversary, Relaxed, WorstCase, everybody
from reticent.adversaries.base import adversary_called
from reticent.errors import ParameterError
from reticent.mechanisms import Neighbouring

Who = Adversary | str

ALL = "all"


def adversaries(who: Who | Sequence[Who] | None) -> tuple[Adversary, ...]:
    """The adversaries that are meant, in order and without repeats; None means the worst case.

    Raises:
        ParameterError: something is neither an adversary nor the name of one; the message has the nearest name.
    """
    if who is None:
        return (WorstCase(),)
    given = [who] if isinstance(who, str) or not isinstance(who, Sequence) else list(who)
    if not given:
        raise ParameterError("adversaries", given, "at least one adversary or name")
    found: list[Adversary] = []
    for one in given:
        found += [make() for make in everybody().values()] if one == ALL else [_adversary(one)]
    return tuple(dict.fromkeys(found))


def adversary(who: Who | None) -> Adversary:
    """One adversary; None means the worst case.

    Raises:
        ParameterError: it is neither an adversary nor the name of one.
    """
    return WorstCase() if who is None else _adversary(who)


def relation(text: Neighbouring | str | None) -> Neighbouring | None:
    """A neighbouring relation, or None, which leaves it to each adversary."""
    return None if text is None else _check.member(Neighbouring, neighbouring=text)


def _adversary(who: object) -> Adversary:
    if isinstance(who, str):
        return adversary_called(who)()
    if isinstance(who, type) or not isinstance(who, Adversary):
        hint = f"an adversary such as rt.Relaxed(), or a name such as {Relaxed.name!r}"
        raise ParameterError("adversary", who, hint)
    return who


def asks_for_all(who: Who | Sequence[Who] | None) -> bool:
    """Whether ``"all"`` was said, alone or in a list."""
    return who == ALL if isinstance(who, str) or not isinstance(who, Sequence) else ALL in who
