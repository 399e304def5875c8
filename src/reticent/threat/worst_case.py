"""The Neyman-Pearson adversary of differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reticent.composition import compose, mu_limits, release_notes
from reticent.mechanism import DPSGD, Laplace, Ledger, Mechanism, Neighbouring, Sampler
from reticent.references import cite
from reticent.threat.base import Assessment, Claim, Method


@dataclass(frozen=True, slots=True)
class WorstCase:
    """Chooses both data sets, sees every noisy sum, has no time limit.

    Knows: every record but the target, the model, the code, all parameters, both candidate data sets.
    Does not know: which records were sampled, and the noise.
    Protects: one record, in the sense of ``neighbouring``.
    Claim: a bound, with no assumption about the data.
    """

    name: ClassVar[str] = "worst-case"
    relation: ClassVar[Neighbouring] = Neighbouring.ADD_REMOVE
    knows: ClassVar[str] = "everything but this record"
    lacks: ClassVar[str] = "which records each step drew, and the noise"
    infers: ClassVar[str] = "whether this record was used"

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """The composed curve of the dominating pair, enclosed; ``method`` is always answered exactly.

        Raises:
            UnsupportedError: no dominating pair is proven for this sampler and relation.
        """
        truth = compose(mechanism, neighbouring)
        return Assessment(
            adversary=self,
            neighbouring=neighbouring,
            method=Method.EXACT,
            claim=Claim.BOUND,
            curve=truth.pessimistic,
            truth=truth,
            theorems=worst_case_theorems(mechanism, neighbouring),
            notes=release_notes(mechanism),
            mu_limits=mu_limits(mechanism, neighbouring),
        )


def worst_case_theorems(mechanism: Mechanism, neighbouring: Neighbouring) -> tuple[str, ...]:
    """Keys of what the worst-case curve of ``mechanism`` stands on."""
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    keys = {"DONG2022:Theorem 3.2", "RETICENT:composition-enclosure", "RETICENT:all-rates-mu"}
    for part in parts:
        if isinstance(part, Laplace):
            keys |= {"DONG2022:Lemma A.6"} | ({"ZHU2022:Theorem 11"} if part.sample_rate < 1.0 else set())
        elif not isinstance(part, DPSGD) or part.sample_rate == 1.0 or part.sampler is Sampler.SHUFFLED:
            keys.add("DONG2022:Definition 2.3")
        elif part.sampler is Sampler.FIXED_SIZE:
            displaced = neighbouring is Neighbouring.ADD_REMOVE
            keys.add("RETICENT:fixed-size-dominance" if displaced else "DONG2022:Theorem 4.2")
        elif neighbouring is Neighbouring.REPLACE:
            keys.add("RETICENT:replace-dominance")
        else:
            keys.add("ZHU2022:Proposition 30")
    return cite(*sorted(keys))
