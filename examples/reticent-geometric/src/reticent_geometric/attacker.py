"""Somebody who sees every k-th release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from reticent.kernel.adversaries import Adversary, Assessment, Method
from reticent.kernel.adversaries.worst_case import worst_case_proof
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.registry import described
from reticent_geometric.theorems import THINNED


@dataclass(frozen=True, slots=True)
class EveryKth(Adversary):
    """Sees every k-th release and nothing in between.

    Knows: this record and all others.
    Does not know: the releases in between, and the noise.
    Claim: a bound for releases that do not depend on earlier ones. Steps of training do, so they get no answer: what
    an unseen step did to the weights shows in the next one.

    Attributes:
        stride: k; the first release is seen.
    """

    stride: int = field(default=2, metadata=described("Every how many releases one is seen."))

    name: ClassVar[str] = "every-kth"
    title: ClassVar[str] = "Attacker who sees every k-th release"
    short: ClassVar[str] = "sees some releases"
    knows: ClassVar[str] = "this record and all others"
    lacks: ClassVar[str] = "the releases in between"
    infers: ClassVar[str] = "whether this record was used"

    def __post_init__(self) -> None:
        if isinstance(self.stride, bool) or not isinstance(self.stride, int) or self.stride < 1:
            raise ParameterError("stride", self.stride, "a whole number >= 1")

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        if "releases" not in mechanism.searched():
            raise UnsupportedError("every-kth is known for independent releases; steps of training are none")
        seen = mechanism.changed("releases", -(-mechanism.releases // self.stride))
        proof = worst_case_proof(seen, neighbouring).citing(THINNED)
        return Assessment(self, neighbouring, Method.EXACT, (proof,))
