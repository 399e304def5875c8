"""How the values of requests are said: in Python, in a file, or on a command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent.kernel.adversaries import Adversary, Method, WorstCase, everybody
from reticent.kernel.adversaries.base import ALL, adversaries_named, adversary_called
from reticent.kernel.errors import ParameterError
from reticent.kernel.pairs.neighbouring import Neighbouring, relation_of
from reticent.kernel.text import stated
from reticent.verbs.request import Spelling, member, one_or_more

Who = Adversary | str


@dataclass(frozen=True)
class Attackers:
    """Who attacks.

    Attributes:
        each: in order, without repeats.
        everybody: all of them are meant: those that cannot be answered are left out, with the reason.
    """

    each: tuple[Adversary, ...]
    everybody: bool = False

    @classmethod
    def of(cls, who: Any) -> Attackers:
        """From an adversary, its name, a record with its ``name``, or a list of these.

        Raises:
            ArtifactError, ParameterError: as for ``adversaries``.
        """
        return who if isinstance(who, Attackers) else cls(adversaries(who), ALL in _listed(who))

    def written(self) -> list[Any]:
        """Names, and records where something is not as it is by default; ``all`` stands for those with defaults."""
        if not self.everybody:
            return [_written(one) for one in self.each]
        usual = adversaries([ALL])
        others = [one for one in self.each if one not in usual]
        short = adversaries([ALL, *others]) == self.each  # not so where one with defaults stands beside another of it
        return [ALL, *map(_written, others if short else self.each)]


WORST = WorstCase()
USUAL = Attackers((WORST,))
"""Who attacks where nobody is named."""


def _written(who: Adversary) -> Any:
    from reticent.adversaries.codec import parameters

    said = {name: value for name, value in parameters(who).items() if name in stated(who)}
    return {"name": who.name, **said} if said else who.name


def adversaries(who: Who | Sequence[Who]) -> tuple[Adversary, ...]:
    """The adversaries that are meant, in order and without repeats.

    Of ``all``, an attacker that is named besides is the one that is named.

    Raises:
        ParameterError: something is neither an adversary nor the name of one; the message has the nearest name.
    """
    given = _listed(who)
    if not given:
        raise ParameterError("adversaries", given, "at least one adversary or name")
    named = [found for one in given if one != ALL for found in _meant(one)]
    usual = _meant(ALL) if ALL in given else ()
    in_place = [[one for one in named if type(one) is type(each)] or [each] for each in usual]
    return tuple(dict.fromkeys((*(one for found in in_place for one in found), *named)))


def _listed(who: Any) -> list[Any]:
    return list(who) if isinstance(who, Sequence) and not isinstance(who, str) else [who]


def _meant(who: object) -> tuple[Adversary, ...]:
    if isinstance(who, str):
        return adversaries_named([who])[0]
    if isinstance(who, dict):
        from reticent.adversaries.codec import adversary_of

        record = dict(who)
        return (adversary_of(str(record.pop("name", None)), record),)
    if isinstance(who, type) or not isinstance(who, Adversary):
        one = next(kind for kind in everybody().values() if kind.averaged)
        hint = f"an adversary such as rt.{one.__name__}(), or a name such as {one.name!r}"
        raise ParameterError("adversary", who, hint)
    return (who,)


def _one(who: object) -> Adversary:
    """One adversary; ``all`` is the name of none."""
    return adversary_called(who)() if isinstance(who, str) else _meant(who)[0]


_WHO = {"anyOf": [{"type": "string"}, {"type": "object", "required": ["name"]}]}
ATTACKERS = Spelling(lambda _, said: Attackers.of(said), Attackers.written, one_or_more(_WHO), None)
ATTACKER = Spelling(lambda _, said: _one(said), _written, _WHO, None)
RELATION = Spelling(lambda _, said: relation_of(said), str, {"enum": [*Neighbouring]}, str)
METHOD = member(Method)
BETWEEN = "Between which data sets; default: each attacker's own."
HOW = "How curves are evaluated; default: each attacker's own."
