"""The Neyman-Pearson adversary of differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reticent.kernel.accountants import mu_limits, worst_case
from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof
from reticent.kernel.styles import Style


@dataclass(frozen=True, slots=True)
class WorstCase(Adversary):
    """Chooses both data sets, sees every noisy sum, has no time limit.

    Knows: every record but the target, the model, the code, all parameters, both candidate data sets.
    Does not know: which records were sampled, and the noise.
    Protects: one record, in the sense of ``neighbouring``.
    Claim: a bound, with no assumption about the data. Where batches are drawn, the draws must stay hidden.

    Example:
        >>> import reticent as rt
        >>> found = rt.WorstCase().assess(rt.Gaussian(2.0), rt.Neighbouring.REPLACE)
        >>> round(found.measure(rt.advantage).value, 4)
        0.3829
    """

    name: ClassVar[str] = "worst-case"
    title: ClassVar[Message | str] = Message("attacker.worst-case")
    short: ClassVar[str] = "any attacker"
    also: ClassVar[tuple[str, ...]] = ("dp", "strong", "strong-adversary")
    strongest: ClassVar[bool] = True
    style: ClassVar[Style] = Style("#7f7f7f", (), "#111111", "#f2f2f2")
    knows: ClassVar[Message | str] = Message("knows.all")
    lacks: ClassVar[Message | str] = ""
    infers: ClassVar[Message | str] = Message("infers.used")
    every_test: ClassVar[bool] = True

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """The composed curve of the dominating pair, enclosed; ``method`` is always answered exactly.

        Of a Poisson-sampled run it is composed when more than its advantage or Bayes security is read.

        Raises:
            UnsupportedError: no dominating pair is proven for this sampler and relation.
        """
        return Assessment(self, neighbouring, Method.EXACT, (worst_case_proof(mechanism, neighbouring),))


def worst_case_proof(mechanism: Mechanism, neighbouring: Neighbouring) -> Proof:
    """What is proven of everybody: the composed curve of the dominating pairs.

    Raises:
        UnsupportedError: no dominating pair is proven for this sampler and relation.
    """
    return Proof(
        worst_case(mechanism, neighbouring),
        theorems=worst_case_theorems(mechanism, neighbouring),
        conditions=mechanism.conditions_under(neighbouring),
        notes=mechanism.notes,
        mu=mu_limits(mechanism, neighbouring),
    )


def worst_case_theorems(mechanism: Mechanism, neighbouring: Neighbouring) -> tuple[str, ...]:
    """Keys of what the worst-case curve of ``mechanism`` follows from."""
    keys = {"DONG2022:Theorem 3.2", "RETICENT:composition-enclosure", "RETICENT:all-rates-mu"}
    keys.update(key for part in mechanism.parts_under(neighbouring) for key in part.theorems)
    return tuple(sorted(keys))
