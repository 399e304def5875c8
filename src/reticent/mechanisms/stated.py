"""Releases of which nothing is known but bounds on delta that somebody proved: the curve that none is worse than."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from reticent.kernel import pairs
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.base import Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part

REACH = 600.0
"""Beyond this epsilon, e^-epsilon underflows, and no answer means anything."""
_MOST = 1000  # numbers in one list


class Stated(Mechanism):
    """A release with a statement of privacy, from another tool or a paper."""

    __slots__ = ()

    _theorems: ClassVar[tuple[str, ...]]
    _adds: ClassVar[bool] = False  # whether what is stated of several releases adds up; else curves are composed

    @abstractmethod
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Epsilons >= 0, and log of what delta is at most there; in any order."""

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """One part for all releases; none that is attained, as nobody says what was released.

        Args:
            neighbouring: between which data sets: those that the statement was proven for.
        """
        one, count = (self, 1) if self._adds else (replace(self, releases=1), self.releases)  # type: ignore[type-var]
        pair = None if attained else _pair(one)
        return (Part(pair, count, self._theorems),) if pair else ()

    @property
    def notes(self) -> tuple[Message | str, ...]:
        return (Message("note.stated-only"),)

    def _stated(self) -> tuple[str, ...]:
        return ("stated-guarantee",)


@lru_cache(maxsize=64)  # equal releases are counted together
def _pair(stated: Stated) -> pairs.CurvePair | None:
    """The largest of the lines 1 - delta - e^epsilon alpha, of their mirror images and of 0; None where all is private.

    In logarithms, as 1 - delta would round a small delta away.
    """
    from reticent.kernel.curves import SymmetricPolygon  # lists of mechanisms are read without them
    from reticent.kernel.curves.polygon import symmetric_above

    epsilons, log_delta = stated._bounds()
    private = epsilons[np.isneginf(log_delta)]
    if np.any(private == 0.0):
        return None
    rows, first = np.unique(np.append(epsilons, 0.0), return_index=True)  # of two that are one, the first
    curve = symmetric_above(rows, np.append(log_delta, 0.0)[first])  # at 0, delta is at most 1
    largest = float(np.min(private, initial=math.inf))
    return pairs.CurvePair(SymmetricPolygon(curve.vertices, curve.log_slopes), (largest, largest))


class Listed(NamedTuple):
    """What a list must be.

    Attributes:
        holds: of each number.
        order: of each number and the next.
        wanted: both in words.
    """

    holds: Callable[[float], bool]
    order: Callable[[float, float], bool]
    wanted: str


def check_lists(stated: Stated, **kinds: Listed) -> None:
    """Refuse lists that are not what they must be, or not as long as the first; keep them as text with commas.

    Raises:
        ParameterError: one is refused.
    """
    count = 0
    for name, kind in kinds.items():
        given = getattr(stated, name)
        try:
            found = numbers(given)
        except (TypeError, ValueError):
            found = ()
        if not 1 <= len(found) <= _MOST:
            raise ParameterError(name, str(given)[:60], f"1 to {_MOST} numbers, with commas between them")
        if not all(map(kind.holds, found)) or not all(kind.order(*two) for two in pairwise(found)):
            raise ParameterError(name, str(given)[:60], kind.wanted)
        if count not in (0, len(found)):
            raise ParameterError(name, str(given)[:60], f"as many numbers as {next(iter(kinds))}, which are {count}")
        count = len(found)
        object.__setattr__(stated, name, ",".join(repr(one).removesuffix(".0") for one in found))


def numbers(given: str | Iterable[float]) -> tuple[float, ...]:
    """Those of a list, or of a text with commas between them.

    Raises:
        TypeError, ValueError: there is something else in it.
    """
    return tuple(float(one) for one in (given.split(",") if isinstance(given, str) else given))
