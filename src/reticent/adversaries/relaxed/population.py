"""The attacker who knows from where the record was drawn, and not which one it is: for networks of any form."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from reticent.adversaries.relaxed import reacting as engine
from reticent.kernel import checks
from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.adversaries.worst_case import worst_case_proof
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof, Status, best, condition, without_repeats
from reticent.kernel.registry import described
from reticent.kernel.styles import Style

if TYPE_CHECKING:
    from reticent.kernel.adversaries.witness import Witness


class Label(StrEnum):
    """Whether the attacker knows the label of the record."""

    UNKNOWN = "unknown"
    KNOWN = "known"


@dataclass(frozen=True, slots=True)
class Population(Adversary):
    """Knows a pool of candidates of which the record is one, each as likely as the others.

    Knows: every other record, the pool, all noisy gradient sums, so the gradients of each candidate at every step.
    Does not know: which candidate it is; which records were sampled; the noise.
    Claim: on the power averaged over the candidates. A bound for models of any form whose gradients, over the pool,
    keep within two limits (docs/theory/relaxed/networks.md). ``reticent train`` checks them before each step where its
    configuration has a section ``spread``. Against one candidate the power can be that of the worst case.

    Attributes:
        mean_gradient: most of the length of the mean of clipped gradients over the pool, in clip norms: root mean
            square over the steps; in (0, 1].
        second_moment: most of the mean of <g, e>^2 over the pool, for any direction e and at every step; in (0, 1].
        record_label: whether the attacker knows it; then the limits are about the candidates of each label by itself.

    Raises:
        ParameterError: a limit is outside its domain.

    Example:
        >>> import reticent as rt
        >>> from reticent.adversaries import Population
        >>> run = rt.DPSGD(3.0, 0.05, 200)
        >>> found = Population(mean_gradient=0.07, second_moment=0.03).assess(run)
        >>> [round(one.measure(rt.advantage).value, 3) for one in (found, rt.WorstCase().assess(run))]
        [0.018, 0.096]
    """

    mean_gradient: float = field(default=1.0, metadata=described("Root mean square of the mean gradient of a pool."))
    second_moment: float = field(default=1.0, metadata=described("Largest second moment of a pool's gradients."))
    record_label: Label = field(default=Label.UNKNOWN, metadata=described("The label of the record: unknown or known."))

    name: ClassVar[str] = "population"
    title: ClassVar[Message | str] = Message("attacker.population")
    short: ClassVar[str] = "record unknown"
    style: ClassVar[Style] = Style("#8a5a9e", (3, 3, 10, 3), "#6d3b83", "#c99bdc")
    knows: ClassVar[Message | str] = Message("knows.pool")
    averaged: ClassVar[bool] = True
    infers: ClassVar[Message | str] = Message("infers.used-all-candidates")
    needs: ClassVar[str | None] = "mean_gradient"
    by_name_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.rate(mean_gradient=self.mean_gradient)
        checks.rate(second_moment=self.second_moment)
        checks.strict_member(Label, record_label=self.record_label)

    @classmethod
    def knowing(cls, **measured: Any) -> Self:
        """With the limits that a run held to, by field."""
        given = {name: value for name, value in measured.items() if name in cls.__dataclass_fields__}
        return cls(**{**given, "record_label": Label(given.get("record_label", Label.UNKNOWN))})

    @property
    def lacks(self) -> Message:
        """The record, and its label where that is unknown."""
        known = self.record_label is Label.KNOWN
        return Message("lacks.candidate") if known else Message("lacks.candidate-and-label")

    def checked_by(self, witness: Witness) -> dict[str, Status]:
        """That gradients of a pool kept within these limits, or smaller ones, at every step."""
        held = witness.spread
        if held is None or held.mean_gradient > self.mean_gradient or held.second_moment > self.second_moment:
            return {}
        return {"spread-gradients": Status.CHECKED} if self.record_label in ("unknown", held.record_label) else {}

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """The bound by what the releases can tell about the candidate, and never more than the worst case.

        Args:
            mechanism: what was released: ``DPSGD`` with equal steps, whole batches or those of independent coins.
            neighbouring: add/remove or zero-out.
            method: any; the answer is that of ``exact``.

        Raises:
            UnsupportedError: another release, several records of a person, or replacement.
        """
        run = mechanism.training
        if run is None or run.records > 1 or neighbouring is Neighbouring.REPLACE or run.noise_multiplier == 0.0:
            raise UnsupportedError(
                "population is answered for noisy DP-SGD of equal steps and one record, add-remove or zero-out"
            )
        if not (run.sampler.independent or run.sampler.takes_all(run)) or run.sampler.tells_all:
            raise UnsupportedError("population is answered for batches by independent coins, or for whole ones")
        worst = worst_case_proof(mechanism, neighbouring).from_above()
        proof = Proof(
            engine.of_a_pool(run, self.mean_gradient, self.second_moment),
            theorems=("RETICENT:spread-gradients", "RETICENT:all-rates-mu"),
            conditions=(
                *mechanism.conditions_under(neighbouring),
                condition("spread-gradients", Status.DECLARED),
                condition("one-of-the-pool", Status.ASSUMED),
            ),
            notes=(Message("note.averaged-over-pool"), *mechanism.notes),
            mu=(0.0, worst.mu[1]),
        )
        return Assessment(self, neighbouring, Method.EXACT, without_repeats(best([proof, worst])))
