"""A proof: two curves that enclose the true one, the theorems that say so, and the conditions that they need.

The mathematics of an attacker yields proofs, one for each theorem that applies. ``best`` combines them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Self

import numpy as np

from reticent.kernel.curves import TradeOff
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.messages import Message
from reticent.kernel.proofs.claims import Basis
from reticent.kernel.proofs.conditions import Condition, Status, vouched, worst_first
from reticent.kernel.proofs.references import cite

_NET = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 30), np.geomspace(1.05, 60.0, 60)])
_GAIN = 0.1  # relative, in delta: by which another curve has to be below; chords between thresholds cost up to 0.003
_SMALLEST = math.log(1e-8)  # log of the deltas that are compared
_ROUNDING, _LEAST = 1e-9, math.log(1e-20)  # the same two where anything counts that is more than rounding


@dataclass(frozen=True, kw_only=True)
class Derived:
    """What a curve follows from.

    Attributes:
        theorems: keys of ``reticent.kernel.proofs.references``.
        conditions: what it needs, with who vouches for it; first what makes a claim conditional.
        notes: what else a reader must know to use the numbers, one sentence each; no conditions.

    Raises:
        ParameterError: a key is not listed.
    """

    theorems: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    notes: tuple[Message | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "theorems", tuple(dict.fromkeys(cite(*self.theorems))))
        object.__setattr__(self, "conditions", worst_first(self.conditions))

    def vouched(self, statuses: Mapping[str, Status]) -> Self:
        """The same with what is known about its conditions, by key."""
        return replace(self, conditions=vouched(self.conditions, statuses))

    def under(self, *conditions: Condition) -> Self:
        """The same under more conditions."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def saying(self, *notes: Message | str) -> Self:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def prefaced(self, *notes: Message | str) -> Self:
        """The same with notes that come first."""
        return replace(self, notes=(*notes, *self.notes))

    def citing(self, *keys: str) -> Self:
        """The same with more theorems."""
        return replace(self, theorems=(*self.theorems, *keys))


@dataclass(frozen=True)
class Proof(Derived):
    """An enclosure of the curve of one attacker.

    Attributes:
        enclosure: of the attacker's curve.
        mu: (lower, upper) around mu of the curve, where the release says more than points of the curve.
    """

    enclosure: Enclosure
    mu: tuple[float, float] = field(default=(0.0, math.inf), kw_only=True)

    @property
    def needs(self) -> frozenset[str]:
        """Keys of its conditions."""
        return frozenset(one.key for one in self.conditions)

    def as_estimate(self) -> Formula:
        """The upper end alone, of an attacker whom a real one may exceed."""
        return Formula(self.enclosure.pessimistic, theorems=self.theorems, conditions=self.conditions, notes=self.notes)

    def from_above(self) -> Proof:
        """The same for a weaker attacker: the lower end is none of theirs."""
        return replace(self, enclosure=Enclosure.from_above(self.enclosure.pessimistic), mu=(0.0, self.mu[1]))

    def below_unknown(self) -> Proof:
        """The same with nothing claimed from below, except for mu."""
        known = self.enclosure
        return replace(self, enclosure=Enclosure.from_above(known.pessimistic, known.notes))

    def meet(self, other: Proof) -> Proof:
        """Both proofs of one curve together: the smaller upper end, and the lower end of this proof.

        Where ``other`` is nowhere below by a tenth, among deltas above 1e-8, this proof is the answer.

        Args:
            other: a proof for the same attacker, or for a stronger one.
        """
        from reticent.kernel.curves.capped import above_none  # the worst case alone meets nobody

        mine, theirs = self.enclosure.pessimistic, other.enclosure.pessimistic
        if mine is theirs or not _is_below(theirs, mine):
            return self
        curve = theirs if not _is_below(mine, theirs) else above_none([mine, theirs])
        known = self.enclosure
        both = Enclosure.checked(curve, known.optimistic, (*known.notes, *other.enclosure.notes), known.trace)
        met = replace(self, enclosure=both, mu=(self.mu[0], min(self.mu[1], other.mu[1])))
        return met.citing(*other.theorems).under(*other.conditions).saying(*other.notes)


@dataclass(frozen=True)
class Formula(Derived):
    """A curve in closed form: an estimate, or a bound that is looser than what is proven.

    Attributes:
        curve: the curve.
        basis: how it was found.
        most_mu: no more than this is stated as mu.
    """

    curve: TradeOff
    basis: Basis = field(default=Basis.APPROXIMATION, kw_only=True)
    most_mu: float = field(default=math.inf, kw_only=True)


def best(proofs: Iterable[Proof]) -> tuple[Proof, ...]:
    """One proof for each set of conditions, those with the most conditions first.

    Under a set of conditions every proof holds that needs no other condition: their upper ends are intersected.

    Args:
        proofs: for one attacker, or for a stronger one (``Proof.from_above``); the sharpest ones first.
    """
    given = tuple(proofs)
    answers: dict[frozenset[str], Proof] = {}
    for one in given:
        if one.needs not in answers:
            others = (other for other in given if other is not one and other.needs <= one.needs)
            answers[one.needs] = reduce(Proof.meet, others, one)
    return tuple(sorted(answers.values(), key=lambda one: -len(one.needs)))


def without_repeats(proofs: tuple[Proof, ...]) -> tuple[Proof, ...]:
    """Without the first where the next shows as much under fewer conditions: of it, only what it says remains.

    Args:
        proofs: of ``best``.
    """
    if len(proofs) != 2 or not proofs[1].needs < proofs[0].needs:
        return proofs
    one, other = proofs
    if _is_below(one.enclosure.pessimistic, other.enclosure.pessimistic, _ROUNDING, _LEAST):
        return proofs
    return (other.prefaced(*one.notes, *one.enclosure.notes),)


def _is_below(one: TradeOff, other: TradeOff, gain: float = _GAIN, smallest: float = _SMALLEST) -> bool:
    """Whether ``one`` gives an attacker less than ``other`` at some threshold of either sign."""
    for lower, upper in ((one, other), (one.reversed, other.reversed)):
        logs, bound = lower.log_delta(_NET), upper.log_delta(_NET)
        if np.any((bound > smallest) & (logs < bound - gain)):
            return True
    return False
