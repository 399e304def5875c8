"""One audit, all its numbers: what ``reticent audit`` prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reticent.auditing.curve import EmpiricalTradeOff, empirical_trade_off
from reticent.auditing.intervals import ConfidenceInterval
from reticent.auditing.lower_bounds import LowerBound
from reticent.auditing.one_run import Guesses
from reticent.auditing.roc import auc_interval, delong, tpr_interval
from reticent.auditing.scores import Design, Scores
from reticent.auditing.sequential import audit_claim_sequential
from reticent.auditing.statistics import STATISTICS, Asked
from reticent.auditing.thresholds import ThresholdRule
from reticent.auditing.verdict import Verdict, audit_claim, audit_claim_one_run
from reticent.kernel.curves import TradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError

SCHEMA = "reticent.audit/1"
DEFAULT_FPRS = (0.001, 0.01, 0.1)
_LOOKED = (
    "AUC, rates and the band hold for a number of scores that was fixed beforehand; verdicts and bounds at every one."
)
_EACH = "Each statement holds by itself at the stated confidence, not all of them together."


@dataclass(frozen=True, eq=False)
class AuditReport:
    """Everything an audit says.

    Attributes:
        scores: what was audited.
        confidence: of each statement.
        curve: empirical trade-off curve with its band.
        auc: with an interval for every sample size.
        auc_asymptotic: DeLong's interval, or None where it does not exist.
        tpr: true positive rates by false positive rate.
        bounds: lower bounds on epsilon, mu and advantage; each says how it was obtained.
        verdicts: by the name of the claim.
        sequential: whether verdicts and bounds hold at every number of scores.
    """

    scores: Scores
    confidence: float
    curve: EmpiricalTradeOff
    auc: ConfidenceInterval
    auc_asymptotic: ConfidenceInterval | None
    tpr: Mapping[float, ConfidenceInterval]
    bounds: tuple[LowerBound, ...]
    verdicts: Mapping[str, Verdict]
    sequential: bool = False

    @property
    def hints(self) -> tuple[str, ...]:
        """What is probably wrong with the scores, and what does not hold at every number of them, one sentence each."""
        found = []
        if np.ptp(np.concatenate([self.scores.member, self.scores.non_member])) == 0.0:
            found.append("All scores are equal: this attack tells nobody from anybody.")
        if self.auc.upper < 0.5:
            found.append(
                f"The scores seem to be reversed (AUC {self.auc.value:.2g}): larger must mean member. Turn the signs "
                "of losses, or look whether the labels are swapped, and audit again."
            )
        if self.sequential:
            found.append(_LOOKED)
        return tuple(found)

    def to_json(self) -> dict[str, object]:
        """The document ``reticent.audit/1``: strict JSON, aggregates only, no single score."""
        subject = self.scores.meta.get("subject")
        return {
            "schema": SCHEMA,
            "auc": self.auc.to_json(),
            "auc_asymptotic": None if self.auc_asymptotic is None else self.auc_asymptotic.to_json(),
            "bounds": [bound.to_json() for bound in self.bounds],
            "confidence": self.confidence,
            "curve": self.curve.to_json(),
            "design": str(self.scores.design),
            "members": len(self.scores.member),
            "meta": dict(self.scores.meta),
            "non_members": len(self.scores.non_member),
            "notes": [*([f"This audits {subject}."] if subject is not None else []), *self.hints, _EACH],
            "sequential": self.sequential,
            "tpr_at_fpr": {repr(fpr): interval.to_json() for fpr, interval in self.tpr.items()},
            "verdicts": {name: verdict.to_json() for name, verdict in self.verdicts.items()},
        }


def audit(
    scores: Scores,
    claims: Mapping[str, TradeOff] | None = None,
    *,
    delta: float = 1e-5,
    fprs: Sequence[float] = DEFAULT_FPRS,
    rule: ThresholdRule | None = None,
    guesses: Guesses | None = None,
    confidence: float = 0.95,
    sequential: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """Run every estimator on ``scores`` and judge every claim.

    Scores of one run with fair coins are judged by the one-run tests, which allow any dependence
    between scores; bounds that would need independence are given as well and say so.

    Args:
        scores: what the attack returned.
        claims: claimed curves by name, for instance of each adversary.
        delta: for epsilon, strictly between 0 and 1.
        fprs: false positive rates at which the true positive rate is reported.
        rule: how thresholds are chosen; by default that of each statistic.
        guesses: for one run, fixed in advance; by default ``Guesses.planned``: from each claim for its verdict, from
            the first claim for the bounds.
        confidence: of each statement, in (0, 1).
        sequential: make verdicts and bounds that hold at every number of scores, which are in the order of the runs:
            whoever looks may stop, or add scores and audit again.
        progress: called with (statements made, statements wanted).

    Raises:
        ParameterError: an argument is outside its domain.
    """
    if not isinstance(rule, ThresholdRule | None):
        known = "a rule of reticent.auditing, such as Ranks() or Bonferroni()"
        raise ParameterError("rule", rule, known)
    claims, tell = claims or {}, progress or (lambda done, wanted: None)
    made = guesses
    if scores.design is Design.ONE_RUN and made is None:
        made = Guesses.planned(len(scores), next(iter(claims.values()), None), confidence)
    asked = Asked(delta, rule, made, confidence)
    statistics = [
        kind() for kind in STATISTICS.values() if kind.sequential is sequential and kind.design in (None, scores.design)
    ]
    wanted = len(statistics) + len(claims) + 1
    bounds: list[LowerBound] = []
    verdicts: dict[str, Verdict] = {}
    for statistic in statistics:
        bounds.append(statistic.bound(scores, asked))
        tell(len(bounds), wanted)
    for name, curve in claims.items():
        if sequential:
            verdicts[name] = audit_claim_sequential(scores, curve, rule, confidence)
        elif scores.design is Design.ONE_RUN:
            verdicts[name] = audit_claim_one_run(scores, curve, guesses, confidence)
        else:
            verdicts[name] = audit_claim(scores, curve, rule, confidence)
        tell(len(bounds) + len(verdicts), wanted)
    report = AuditReport(
        scores,
        confidence,
        empirical_trade_off(scores, confidence),
        auc_interval(scores, confidence),
        _delong(scores, confidence),
        {fpr: tpr_interval(scores, fpr, confidence) for fpr in fprs},
        tuple(bounds),
        verdicts,
        sequential,
    )
    tell(wanted, wanted)
    return report


def _delong(scores: Scores, confidence: float) -> ConfidenceInterval | None:
    try:
        return delong(scores, confidence)
    except UnsupportedError:
        return None
