"""Attribute inference: one field of one record, bounded by how far it can move a clipped gradient."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from reticent.adversaries import attribute
from reticent.kernel import checks
from reticent.kernel.accountants import compose, mu_limits
from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.adversaries.worst_case import worst_case_theorems
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Basis, Formula, Proof, Status
from reticent.kernel.registry import described
from reticent.kernel.styles import Style
from reticent.mechanisms.sensitivity import SensitivityRecord

if TYPE_CHECKING:
    from reticent.kernel.adversaries.witness import Witness


@dataclass(frozen=True, slots=True)
class Attribute(Adversary):
    """Knows a record but for one field, and wants that field.

    Knows: every other record, the rest of the target, all values the field can have, every noisy sum.
    Does not know: which records were sampled, and the noise.
    Claim: a bound for a constant change, or for a record whose filter fixed a budget in advance; an
    estimate for a record measured afterwards.

    Attributes:
        gradient_change: largest distance between the clipped gradients of two completions of the target
            in one step, in the units of ``max_grad_norm``; or what a recorder accumulated.

    Raises:
        ParameterError: ``gradient_change`` is negative or NaN.
    """

    gradient_change: float | SensitivityRecord | None = field(
        default=None, metadata=described("Largest change R of a clipped gradient.")
    )

    name: ClassVar[str] = "attribute"
    title: ClassVar[Message | str] = Message("attacker.attribute")
    short: ClassVar[str] = "wants one field"
    also: ClassVar[tuple[str, ...]] = ("aia", "attribute-inference")
    needs: ClassVar[str | None] = "gradient_change"
    style: ClassVar[Style] = Style("#9c7a1a", (14, 4), "#7a5600", "#e0b34d")
    methods: ClassVar[tuple[Method, ...]] = (Method.PROVEN, Method.CLT, Method.PUBLISHED)
    unmeasured: ClassVar[Message | str | None] = Message("refused.unmeasured-field")
    relation: ClassVar[Neighbouring] = Neighbouring.REPLACE
    knows: ClassVar[Message | str] = Message("knows.others-but-a-field")
    lacks: ClassVar[Message | str] = Message("lacks.field")
    infers: ClassVar[Message | str] = Message("infers.field")

    def __post_init__(self) -> None:
        if self.gradient_change is not None and not isinstance(self.gradient_change, SensitivityRecord):
            checks.non_negative(gradient_change=self.gradient_change)

    def checked_by(self, witness: Witness) -> dict[str, Status]:
        """A budget compares all values of the field that was recorded, so it ends at one step for all of them."""
        return {"same-stop": Status.CHECKED} if isinstance(self.gradient_change, SensitivityRecord) else {}

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.REPLACE, method: Method = Method.PROVEN
    ) -> Assessment:
        """Assess under the replacement of one field; ``exact`` and ``closed-form`` answer with ``proven``.

        ``proven``: the best of the affinity route (RETICENT:attribute-affinity), the revealed mask
        (RETICENT:attribute-mask) and the worst case under replacement. ``clt``: the Gaussian limit with the
        worst mask term. ``published``: Corollary 10 of CHERUBIN2024, which does not hold.

        Args:
            mechanism: what was released, one record per person.
            neighbouring: any; the answer is that of ``replace``.
            method: ``proven``, ``clt`` or ``published``.

        Raises:
            ParameterError: ``gradient_change`` is missing, or belongs to another run.
            UnsupportedError: a release has other than Gaussian noise, or a record meets a ledger.
        """
        if self.gradient_change is None:
            raise ParameterError(
                "gradient_change", None, "given (a number >= 0) for the attribute attacker", shown=False
            )
        mechanism.one_record("attribute inference")
        case = attribute.case_of(self.gradient_change, mechanism)
        worst = compose(mechanism, Neighbouring.REPLACE)
        bound = case.proven(worst.pessimistic)
        conditions = (*mechanism.conditions_under(Neighbouring.REPLACE), *case.conditions)
        notes = (*case.said, Message("note.private"), Message("note.replacement"), *mechanism.notes)
        proof = Proof(
            Enclosure(pessimistic=bound, optimistic=case.attained()),
            theorems=(
                "RETICENT:attribute-affinity",
                "RETICENT:attribute-mask",
                *worst_case_theorems(mechanism, Neighbouring.REPLACE),
            ),
            conditions=conditions,
            notes=notes,
            mu=(0.0, min(case.unsampled_mu(), mu_limits(mechanism, Neighbouring.REPLACE)[1])),
        )
        formula = None if case.basis is Basis.PROOF else proof.as_estimate()
        if method is Method.CLT:
            key: str = "RETICENT:attribute-clt"
            note: Message | str = Message("note.attribute-clt")
            formula = Formula(case.clt(), theorems=(key,), conditions=conditions, notes=(note, *notes))
        elif method is Method.PUBLISHED:
            key, note = "CHERUBIN2024:Corollary 10", _PUBLISHED
            formula = Formula(case.published(), theorems=(key,), conditions=conditions, notes=(note, *notes))
        else:
            method = Method.PROVEN
        return Assessment(self, Neighbouring.REPLACE, method, (proof,), formula, data_dependent=True)


_PUBLISHED = (
    "Corollary 10 mixes a maximum over the batch with the factor p and forgets what a shared component of "
    "the completions says about the sampling: it can state less risk than there is (CHERUBIN2024:B4, CHERUBIN2024:B5)."
)
