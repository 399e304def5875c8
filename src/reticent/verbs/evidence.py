"""``audit`` and ``audit_loop``: what an attack really achieved, and whether a loop is what it claims to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from reticent.adversaries import WorstCase
from reticent.auditing.one_run import Guesses
from reticent.auditing.report import DEFAULT_FPRS, AuditReport
from reticent.auditing.report import audit as judge
from reticent.auditing.scores import Scores
from reticent.auditing.thresholds import ThresholdRule
from reticent.curves import TradeOff
from reticent.errors import ParameterError, needing
from reticent.keywords import hinting
from reticent.mechanisms import DPSGD, Neighbouring
from reticent.pairs.neighbouring import relation_of
from reticent.verbs.releases import mechanism_of
from reticent.verbs.request import NUMBERS
from reticent.verbs.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reticent.attacks.mechanics import MechanicsReport
    from reticent.attacks.white_box import TrainFunction


class Audited(Table):
    """An audit as a table of measured numbers with their limits.

    Attributes:
        report: everything that the audit says.
        claims: the curves that were claimed, by name.
    """

    def __init__(self, report: AuditReport, claims: Mapping[str, TradeOff] | None = None) -> None:
        self.report = report
        self.claims = dict(claims or {})

    def title(self) -> str:
        scores = self.report.scores
        many = f"{len(scores.member)} members, {len(scores.non_member)} non-members"
        return f"audit of {many}; each line holds with confidence {self.report.confidence:g}"

    def columns(self) -> tuple[str, ...]:
        return ("measured", "value", "at least", "at most")

    def rows(self) -> list[tuple[Cell, ...]]:
        """Rates with both limits, then lower bounds, one row each."""
        report = self.report
        found: list[tuple[Cell, ...]] = [("AUC", report.auc.value, report.auc.lower, report.auc.upper)]
        for fpr, rate in report.tpr.items():
            found.append((f"TPR@{fpr:g}", rate.value, rate.lower, rate.upper))
        return found + [(bound.title, None, bound.value, None) for bound in report.bounds]

    def ways(self, row: tuple[Cell, ...]) -> list[bool | None]:
        """Limits are rounded outwards."""
        return [None, None, False, True]

    def notes(self) -> list[str]:
        found = [f"claim {name}: {verdict.finding}" for name, verdict in self.report.verdicts.items()]
        return [*(found or ["no claim was tested: give claim="]), *self.report.hints]

    def theorems(self) -> list[str]:
        report = self.report
        found = [bound.theorems for bound in report.bounds] + [one.theorems for one in report.verdicts.values()]
        return [*report.curve.theorems, *(key for keys in found for key in keys)]

    def plot(self, ax: Sequence[Axes] | None = None, *, legend: bool = True) -> list[Any]:
        """Draw the measured curve with its band, and the claims: error rates, and confident accusations.

        Args:
            ax: two matplotlib axes; None makes a figure.
            legend: as for ``reticent.verbs.plots.plot``.

        Returns:
            The axes, as a list.

        Raises:
            ParameterError: there are not two axes.
            UnsupportedError: matplotlib is not installed.
        """
        from reticent.certificates.figures import draw_audit
        from reticent.verbs.plots import axes_for, with_legend

        drawn = axes_for(ax, 2)
        draw_audit(drawn[0], drawn[1], self.report, self.claims)
        return with_legend(drawn, legend)

    def to_json(self) -> str:
        """The document ``reticent.audit/1`` as strict JSON text."""
        return json.dumps(self.report.to_json(), indent=2, allow_nan=False)


@hinting
def audit(
    scores: Scores | ArrayLike,
    non_member_scores: ArrayLike | None = None,
    *,
    claim: Any = None,
    neighbouring: Neighbouring | str | None = None,
    delta: float = 1e-5,
    fprs: Sequence[float] = DEFAULT_FPRS,
    rule: ThresholdRule | None = None,
    guesses: Guesses | None = None,
    confidence: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> Audited:
    """What an attack achieved, and whether it refutes a claim.

    Args:
        scores: ``reticent.auditing.Scores``, or the scores of members; higher is more member-like.
        non_member_scores: the scores of non-members, unless ``scores`` has both.
        claim: what is claimed: a mechanism, or a file or ledger that says what was released (its worst case); a curve;
            or curves by name.
        neighbouring: between which data sets, for a mechanism.
        delta, fprs, rule, guesses, confidence, progress: as for ``reticent.auditing.report.audit``.

    Raises:
        ParameterError: scores are missing or not finite, or an option is wrong.

    Example:
        >>> import reticent as rt
        >>> found = rt.audit([3.0, 2.0, 2.5] * 40, [0.0, 1.0, 0.5] * 40, claim=rt.Gaussian(1.0))
        >>> found.notes()
        ['claim worst-case: inconsistent']
    """
    if not isinstance(scores, Scores):
        if non_member_scores is None:
            raise ParameterError("non_member_scores", None, "given with the scores of members", shown=False)
        scores = Scores(np.asarray(scores), np.asarray(non_member_scores))
    elif non_member_scores is not None:
        raise ParameterError("non_member_scores", "given", "left out: the scores hold both", shown=False)
    claims = _claims(claim, neighbouring)
    rates = NUMBERS.read("fprs", fprs)
    report = judge(
        scores, claims, delta=delta, fprs=rates, rule=rule, guesses=guesses, confidence=confidence, progress=progress
    )
    return Audited(report, claims)


def audit_loop(train_fn: TrainFunction, claim: DPSGD, **options: Any) -> MechanicsReport:
    """Is this training loop the DP-SGD that it claims to be? See ``reticent.attacks.loop.audit_loop``.

    Raises:
        UnsupportedError: torch is not installed; the text says what to install.
        ParameterError: the claim is no DP-SGD.
    """
    with needing("auditing a loop", "train"):
        from reticent.attacks.loop import audit_loop as run
    if getattr(claim, "training", None) is None:
        raise ParameterError("claim", type(claim).__name__, "DP-SGD: rt.dpsgd(...) with batch and dataset size")
    return hinting(run)(train_fn, claim, **options)


def _claims(claim: Any, neighbouring: Neighbouring | str | None) -> dict[str, TradeOff]:
    if claim is None:
        return {}
    if isinstance(claim, TradeOff):
        return {"claim": claim}
    if isinstance(claim, Mapping):
        for curve in claim.values():
            if not isinstance(curve, TradeOff):
                raise ParameterError("claim", type(curve).__name__, "curves by name: a release is given by itself")
        return dict(claim)
    between = relation_of(neighbouring) or WorstCase.relation
    return {WorstCase.name: WorstCase().assess(mechanism_of(claim), between).curve}
