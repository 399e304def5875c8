"""A relaxed adversary with some probability, the worst case otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reticent.adversaries.relaxed.adversary import Relaxed
from reticent.adversaries.relaxed.direction_unknown import DIMENSION, GRADIENTS, KNOWN_SHARE, DirectionUnknown
from reticent.kernel import checks
from reticent.kernel.accountants import compose, worst_case
from reticent.kernel.adversaries.base import Assessment, Method
from reticent.kernel.adversaries.worst_case import worst_case_theorems
from reticent.kernel.curves import Mixture, TradeOff
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof
from reticent.kernel.registry import described
from reticent.kernel.styles import Style
from reticent.mechanisms.gradients import Gradients


@dataclass(frozen=True, slots=True)
class Mixed(DirectionUnknown):
    """Relaxed with probability ``relaxed_probability``, else the worst case; a public coin.

    Knows: what the drawn type knows, and which type was drawn.
    Does not know: what the drawn type does not know.
    Claim: that of the relaxed type.

    The type is drawn once, before training, independent of the data. Composition happens within each
    type first; the mixture comes last (RETICENT:public-coin).

    Attributes:
        relaxed_probability: probability of the relaxed type, in [0, 1].
        dimension, gradients, known_share: of the relaxed type; see ``Relaxed``.

    Raises:
        ParameterError: ``relaxed_probability`` is outside [0, 1]; or as for ``Relaxed``.

    Example:
        >>> import reticent as rt
        >>> round(rt.Mixed(0.5).assess(rt.Gaussian(2.0)).measure(rt.advantage).value, 4)
        0.1277
    """

    relaxed_probability: float = field(default=0.5, metadata=described("Probability that the attacker is relaxed."))
    dimension: int | None = field(default=None, metadata=DIMENSION)
    gradients: Gradients | None = field(default=None, metadata=GRADIENTS)
    known_share: float = field(default=0.0, metadata=KNOWN_SHARE)

    name: ClassVar[str] = "mixed"
    title: ClassVar[Message | str] = Message("attacker.mixed")
    short: ClassVar[str] = "direction may be known"
    beside: ClassVar[str | None] = Relaxed.name
    style: ClassVar[Style] = Style("#2b83ba", (3, 3), "#0067a8", "#6bb8f2")
    averaged: ClassVar[bool] = True
    infers: ClassVar[Message | str] = Message("infers.used-that-direction")

    def __post_init__(self) -> None:
        checks.fraction(relaxed_probability=self.relaxed_probability)
        self._relaxed()

    def _relaxed(self) -> Relaxed:
        return Relaxed(self.dimension, gradients=self.gradients, known_share=self.known_share)

    knows: ClassVar[Message | str] = Message("knows.all")

    @property
    def lacks(self) -> Message:
        """With the probability."""
        return Message("lacks.direction-with", share=Figure(f"{100.0 * self.relaxed_probability:g}", "%"))

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """delta_mixed = w delta_relaxed + (1 - w) delta_worst at every epsilon: equal slopes.

        Raises:
            UnsupportedError: as for ``WorstCase`` and ``Relaxed``.
        """
        coin = Message("note.coin", share=Figure(repr(self.relaxed_probability)))
        relaxed = self._relaxed().assess(mechanism, neighbouring)
        proofs = tuple(self._with_coin(proof, mechanism, neighbouring).prefaced(coin) for proof in relaxed.proofs)
        return Assessment(self, neighbouring, Method.EXACT, proofs)

    def _with_coin(self, proof: Proof, mechanism: Mechanism, neighbouring: Neighbouring) -> Proof:
        known, theorems = proof.enclosure, ("RETICENT:public-coin", *proof.theorems)
        if known is worst_case(mechanism, neighbouring):  # both types are the worst case
            return replace(proof, theorems=theorems)
        worst = compose(mechanism, neighbouring)
        theorems = (*theorems, *worst_case_theorems(mechanism, neighbouring))
        above = below = self._mix(known.pessimistic, worst.pessimistic)
        if known.optimistic is not known.pessimistic or worst.optimistic is not worst.pessimistic:
            below = self._mix(known.optimistic, worst.optimistic)
        mixed = Enclosure(pessimistic=above, optimistic=below)
        return replace(proof, enclosure=mixed, theorems=theorems)

    def _mix(self, relaxed: TradeOff, worst: TradeOff) -> TradeOff:
        return Mixture([relaxed, worst], [self.relaxed_probability, 1.0 - self.relaxed_probability])
