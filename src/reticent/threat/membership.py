"""Bayes security against membership inference: closed forms, and the exact value by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reticent.composition import closed_forms, compose, mu_limits
from reticent.composition.schedules import FORMS, added_mu, proven_upper
from reticent.errors import UnsupportedError
from reticent.mechanism import DPSGD, Ledger, Mechanism, Neighbouring, Sampler
from reticent.mechanism.dpsgd import one_record
from reticent.references import cite
from reticent.threat.base import Adversary, Assessment, Claim, Method
from reticent.threat.registry import ADVERSARIES
from reticent.threat.worst_case import worst_case_theorems
from reticent.tradeoff import GaussianTradeOff, TradeOff, from_advantage

_SHAPE = "Only the advantage is approximated; rates read off this curve at low FPR are not safe: use exact."
_LOOSE = "A bound on the advantage; other rates follow from it alone and are loose."


@ADVERSARIES.add
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
    title: ClassVar[str] = "Attacker with two candidates"
    methods: ClassVar[tuple[Method, ...]] = tuple(Method)
    knows: ClassVar[str] = "all other records and both candidates for this one"
    lacks: ClassVar[str] = "which records each step drew, and the noise"
    infers: ClassVar[str] = "whether this record is in the training data"

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """Bayes security of membership; see ``reticent.composition.closed_forms`` for each formula.

        Raises:
            UnsupportedError: a closed form is asked for anything but Poisson-sampled DP-SGD, or the published one
                for steps that differ.
        """
        truth = compose(mechanism, neighbouring)
        curve: TradeOff
        if method is Method.EXACT:
            curve, claim, keys = truth.pessimistic, Claim.BOUND, worst_case_theorems(mechanism, neighbouring)
            notes: tuple[str, ...] = ()
        else:
            curve, claim, keys, notes = _closed_form(mechanism, neighbouring, method)
        return Assessment(
            adversary=self,
            neighbouring=neighbouring,
            method=method,
            claim=claim,
            curve=curve,
            truth=truth,
            theorems=cite("CHERUBIN2024:Section 2", *keys),
            notes=notes + mechanism.notes,
            mu_limits=mu_limits(mechanism, neighbouring),
        )


def _closed_form(
    mechanism: Mechanism, neighbouring: Neighbouring, method: Method
) -> tuple[TradeOff, Claim, tuple[str, ...], tuple[str, ...]]:
    one_record(mechanism, f"method {method.value}")
    if isinstance(mechanism, Ledger):
        return _of_schedule(mechanism, neighbouring, method)
    if not (isinstance(mechanism, DPSGD) and mechanism.sampler is Sampler.POISSON):
        raise UnsupportedError(f"method {method.value} is known for Poisson-sampled DP-SGD only; use exact")
    if mechanism.noise_multiplier == 0.0:
        raise UnsupportedError(f"method {method.value} needs noise_multiplier > 0; use exact")
    sigma, rate, steps = mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps
    match method:
        case Method.CLOSED_FORM:
            mu = float(closed_forms.rho_form_mu(sigma, rate, steps, neighbouring))
            return GaussianTradeOff(mu), Claim.ESTIMATE, ("RETICENT:rho-form",), (_SHAPE,)
        case Method.CLT:
            mu = float(closed_forms.clt_mu(sigma, rate, steps, neighbouring))
            return GaussianTradeOff(mu), Claim.ESTIMATE, ("RETICENT:clt",), (_SHAPE,)
        case Method.PROVEN:
            upper = float(closed_forms.proven_bracket(sigma, rate, steps, neighbouring)[1])
            return from_advantage(upper), Claim.BOUND, ("RETICENT:hellinger-bracket",), (_LOOSE,)
        case _:
            mu = float(closed_forms.published_mu(sigma, rate, steps, neighbouring))
            note = "Corollary 7 without its error term can state less risk than there is: no bound (CHERUBIN2024:B1)."
            return GaussianTradeOff(mu), Claim.ESTIMATE, ("CHERUBIN2024:Corollary 7",), (note, _SHAPE)


def _of_schedule(
    ledger: Ledger, neighbouring: Neighbouring, method: Method
) -> tuple[TradeOff, Claim, tuple[str, ...], tuple[str, ...]]:
    """The forms for steps that differ: affinities multiply, variances add up."""
    parts = [
        p for p in ledger.parts if isinstance(p, DPSGD) and p.sampler is Sampler.POISSON and p.noise_multiplier > 0
    ]
    if len(parts) < len(ledger.parts):
        needs = "Poisson-sampled DP-SGD with noise in every part"
        raise UnsupportedError(f"method {method.value} is known for {needs} only; use exact")
    if method is Method.PROVEN:
        upper = proven_upper(parts, neighbouring)
        return from_advantage(upper), Claim.BOUND, ("RETICENT:hellinger-bracket",), (_LOOSE,)
    if method.value not in FORMS:
        raise UnsupportedError(f"method {method.value} is printed for equal steps only; use exact")
    mu = added_mu(FORMS[method.value], parts, neighbouring)
    key = "RETICENT:rho-form" if method is Method.CLOSED_FORM else "RETICENT:clt"
    return GaussianTradeOff(mu), Claim.ESTIMATE, (key,), (_SHAPE,)
