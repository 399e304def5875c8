"""Bayes security against membership inference: closed forms, and the exact value by default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reticent.accountants import closed_forms
from reticent.kernel.adversaries.base import Adversary, Assessment, Method, Stated
from reticent.kernel.adversaries.worst_case import worst_case_proof
from reticent.kernel.curves import GaussianTradeOff, TradeOff, from_advantage
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Basis, Formula
from reticent.kernel.samplers import Run
from reticent.kernel.styles import Style

_MEANING = "CHERUBIN2024:Section 2"
_SHAPE = "Only the advantage is approximated; rates read off this curve at low FPR are not safe: use exact."
_UNSAFE = "Corollary 7 without its error term can state less risk than there is: no bound (CHERUBIN2024:B1)."
_LINE = "Every rate follows from the security alone: TPR is at most FPR + 1 - security, which says nothing of mu."
_PUBLISHED = "CHERUBIN2024:Corollary 7", "CHERUBIN2024:Proposition 9"
_LOOSE = "A bound on the advantage; other rates follow from it alone and are loose."

MU_FORMS: dict[Method, tuple[closed_forms.MuForm, str]] = {
    Method.CLOSED_FORM: (closed_forms.rho_form_mu, "RETICENT:rho-form"),
    Method.CLT: (closed_forms.clt_mu, "RETICENT:clt"),
}
"""Closed forms that state a mu, with the key of each."""


@dataclass(frozen=True, slots=True)
class Membership(Adversary):
    """Tells two candidate records (or presence from absence) apart, at the prior that suits it best.

    Knows: every other record, both candidates, every noisy gradient sum.
    Does not know: which records were sampled, and the noise.
    Claim: the exact value is a bound; closed forms are estimates of it, at their stated distance; the
    proven bracket bounds the advantage only.

    Example:
        >>> import reticent as rt
        >>> round(rt.Membership().assess(rt.Gaussian(2.0)).measure(rt.bayes_security).value, 4)
        0.8026
    """

    name: ClassVar[str] = "membership"
    title: ClassVar[Message | str] = Message("attacker.membership")
    short: ClassVar[str] = "looks for a known record"
    also: ClassVar[tuple[str, ...]] = ("mia", "membership-inference", "lira")
    style: ClassVar[Style] = Style("#1b8f68", (12, 3, 3, 3), "#00724f", "#5fd0a5")
    methods: ClassVar[tuple[Method, ...]] = tuple(Method)
    knows: ClassVar[Message | str] = Message("knows.all")
    lacks: ClassVar[Message | str] = ""
    infers: ClassVar[Message | str] = Message("infers.in-data")

    def is_worst_by(self, method: Method) -> bool:
        return method is Method.EXACT

    def stated(self, run: Run, neighbouring: Neighbouring, method: Method) -> Stated | None:
        steps = run.noise_multiplier, run.sample_rate, run.steps
        if method in MU_FORMS:
            return Stated(float(MU_FORMS[method][0](*steps, neighbouring)))
        if method is Method.PROVEN:
            return Stated(None, closed_forms.proven_upper([steps], neighbouring))
        return None if method is Method.EXACT else Stated(None, float(closed_forms.published(*steps, neighbouring)))

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """Bayes security of membership; see ``reticent.accountants.closed_forms`` for each formula.

        Args:
            method: how the curve is evaluated; a closed form is an estimate or, where it is proven, a bound.

        Raises:
            UnsupportedError: a closed form is asked for anything but Poisson-sampled DP-SGD, or the published one
                for steps that differ.
        """
        closed = None if method is Method.EXACT else _closed_form(mechanism, neighbouring, method)  # it may refuse
        proof = worst_case_proof(mechanism, neighbouring)
        exact = replace(proof, theorems=(_MEANING, *proof.theorems))
        return Assessment(self, neighbouring, method, (exact,), closed)


def _closed_form(mechanism: Mechanism, neighbouring: Neighbouring, method: Method) -> Formula:
    """Steps may differ where squares of mu add up."""
    mechanism.one_record(f"method {method.value}")
    parts = mechanism.trainings
    if not parts or not all(part.singly_sampled for part in parts):
        needed = "Poisson-sampled DP-SGD" + (" with noise in every part" if len(mechanism.parts) > 1 else "")
        raise UnsupportedError(f"method {method.value} is known for {needed} only; use method exact")
    if any(part.noise_multiplier == 0.0 for part in parts):
        raise UnsupportedError(f"method {method.value} needs noise_multiplier > 0; use method exact")
    runs = [(part.noise_multiplier, part.sample_rate, part.steps) for part in parts]
    if method is Method.PROVEN:
        upper = from_advantage(closed_forms.proven_upper(runs, neighbouring))
        return _formula(mechanism, upper, "RETICENT:hellinger-bracket", notes=(_LOOSE,), basis=Basis.PROOF)
    if method is Method.PUBLISHED:
        if len(parts) > 1:
            raise UnsupportedError(f"method {method.value} is published for equal steps only; use method exact")
        line = from_advantage(float(closed_forms.published(*runs[0], neighbouring)))
        return _formula(mechanism, line, *_PUBLISHED, notes=(_UNSAFE, _LINE))
    form, key = MU_FORMS[method]
    curve = GaussianTradeOff(closed_forms.added_mu(form, runs, neighbouring))
    return _formula(mechanism, curve, key, notes=(_SHAPE,))


def _formula(
    mechanism: Mechanism,
    curve: TradeOff,
    *keys: str,
    notes: tuple[str, ...],
    basis: Basis = Basis.APPROXIMATION,
) -> Formula:
    shown = (*notes, *mechanism.notes)
    return Formula(curve, theorems=(_MEANING, *keys), conditions=mechanism.conditions, notes=shown, basis=basis)
