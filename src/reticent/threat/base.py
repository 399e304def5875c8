"""What an adversary is, and what an assessment of one says.

An adversary turns *what was released* into a trade-off curve together with the claim that the curve
carries. Adding one takes a file in this folder, a key in ``references`` and a test case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol, runtime_checkable

from reticent.composition.bracket import Bracket
from reticent.mechanism import Mechanism, Neighbouring
from reticent.tradeoff import TradeOff


class Claim(StrEnum):
    """How strong a number is."""

    BOUND = "bound"
    """Proven; the conditions are named in the notes."""
    ESTIMATE = "estimate"
    """An approximation, with its distance to the exact value wherever that can be computed."""
    EMPIRICAL = "empirical"
    """Measured, with a confidence."""


class Method(StrEnum):
    """How an adversary's curve is evaluated."""

    EXACT = "exact"
    CLOSED_FORM = "closed-form"
    CLT = "clt"
    PROVEN = "proven"
    PUBLISHED = "published"
    """A formula as a paper prints it, for reproduction only; it may be unsafe."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its enclosure: ``lower <= truth <= upper``; ``value`` is what is claimed.

    An end is infinite where nothing is proven on that side.
    """

    lower: float
    value: float
    upper: float


@dataclass(frozen=True)
class Assessment:
    """One adversary against one release.

    Attributes:
        adversary: who attacks.
        neighbouring: between which data sets.
        method: how the curve was evaluated.
        claim: the strength of ``curve``.
        curve: the curve that is claimed; for a bound, on the safe side.
        truth: a certified enclosure of the exact curve of the stated model, or None where the
            exact curve is unknown.
        theorems: keys of ``reticent.references``.
        notes: what a reader must know to use the numbers, one sentence each.
        data_dependent: the numbers depend on private data and must not be published as they are.
    """

    adversary: Adversary
    neighbouring: Neighbouring
    method: Method
    claim: Claim
    curve: TradeOff
    truth: Bracket | None
    theorems: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())
    data_dependent: bool = False

    def measure(self, risk: Callable[[TradeOff], float]) -> Interval:
        """Read a risk number off the curve, with its enclosure from ``truth``; infinite ends without one."""
        value = float(risk(self.curve))
        if self.truth is None:
            return Interval(-math.inf, value, math.inf)
        same = self.truth.pessimistic is self.curve
        ends = sorted((float(risk(self.truth.optimistic)), value if same else float(risk(self.truth.pessimistic))))
        return Interval(ends[0], value, ends[1])


@runtime_checkable
class Adversary(Protocol):
    """Who attacks: frozen data with a name, three sentences for people, and one method."""

    name: ClassVar[str]
    infers: ClassVar[str]

    @property
    def knows(self) -> str:
        """Completes "an attacker who knows ..."."""
        ...

    @property
    def lacks(self) -> str:
        """Completes "does not know ..."."""
        ...

    def assess(self, mechanism: Mechanism, neighbouring: Neighbouring, method: Method) -> Assessment:
        """Assess ``mechanism``.

        Raises:
            UnsupportedError: nothing proven is known for this combination; the text says what is.
        """
        ...
