"""``plan_audit``: how large an audit must be."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from reticent.adversaries.report import Record
from reticent.auditing.planning import Plan, Unit
from reticent.auditing.planning import plan_audit as plan
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.proofs import Claim
from reticent.verbs.progress import Say
from reticent.verbs.request import FRACTION, NON_NEGATIVE, Request, asked, member
from reticent.verbs.table import Answer


class PlanDocument(Record):
    """What ``reticent plan-audit --json`` prints."""

    schema_: str = Field(default="reticent.audit-plan/1", alias="schema")
    claim: Claim
    confidence: float
    level: float | None
    needed: int
    power: float
    theorems: list[str]
    unit: Unit


class AuditPlan(Answer):
    """The smallest audit that reaches a power.

    Attributes:
        plan: how large it is, and its threshold.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.document = plan, PlanDocument.model_validate(plan.to_json())

    def lines(self) -> list[str]:
        found = self.plan
        one_run = found.unit is Unit.ONE_RUN
        halves = "each included by a fair coin" if one_run else "half with the target and half without"
        size = f"{found.needed} {found.unit}, {halves}: power {found.power:.3f} at confidence {found.confidence:g}"
        return [size, *([] if found.level is None else [f"threshold rule: ranks:{found.level:.4g}"])]


@dataclass(frozen=True, kw_only=True)
class PlanAudit(Request):
    """How many canaries or models it takes to distinguish a feared curve from a claimed one."""

    verb = "plan_audit"
    claimed_mu: float = asked(NON_NEGATIVE, "The Gaussian curve to be refuted.")
    true_mu: float = asked(NON_NEGATIVE, "The curve the release is feared to have.")
    unit: Unit = asked(member(Unit), "What is counted.", Unit.CANARIES)
    power: float = asked(FRACTION, "Wanted probability of refuting the claim.", 0.8)
    confidence: float = asked(FRACTION, "Confidence of each statement.", 0.95)

    def answer(self, progress: Say | None = None) -> AuditPlan:
        """The smallest audit.

        Raises:
            UnsupportedError: the truth is nowhere below the claim, or no audit that can be made reaches the power.
        """
        curves = GaussianTradeOff(self.claimed_mu), GaussianTradeOff(self.true_mu)
        return AuditPlan(plan(*curves, self.unit, self.confidence, self.power))
