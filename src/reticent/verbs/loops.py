"""``audit_loop``: is somebody's own training loop the DP-SGD that it claims to be?"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from reticent.adversaries.report import Record
from reticent.attacks.claims import KEYS, read_claim
from reticent.kernel.errors import ParameterError, needing
from reticent.kernel.keywords import hinting
from reticent.kernel.mechanisms import DPSGD
from reticent.verbs.progress import Say, counted
from reticent.verbs.request import COUNT, FLAG, FRACTION, PATH, POSITIVE, SEED, TEXT, asked
from reticent.verbs.sealing import PLAN, Planned, Sealed, SealedPlan
from reticent.verbs.table import Answer

if TYPE_CHECKING:
    from reticent.attacks.mechanics import MechanicsReport
    from reticent.attacks.white_box import TrainFunction

_WHAT = "New runs of the loop on chosen records were audited: this says nothing about a model that it released before."


class LoopCheck(Record):
    """One test of a loop; a small p-value speaks against the claim."""

    name: str
    p_value: float
    finding: str
    failed: bool


class LoopDocument(Record):
    """What ``reticent audit-loop --json`` prints: of ``tests`` those that were made when the audit stopped."""

    schema_: str = Field(default="reticent.loop-audit/1", alias="schema")
    about: str = _WHAT
    function: str
    significance: float
    refuted: bool
    p_value: float
    likely_fault: str | None
    tests: int
    runs: int
    planned_runs: int
    checks: list[LoopCheck]
    plan: SealedPlan | None = None


class LoopAudited(Answer):
    """All tests of one loop.

    Attributes:
        function: its name.
        report: the tests that were made, with their p-values.
        plan: that was sealed before the first run.
    """

    def __init__(self, function: str, report: MechanicsReport, plan: SealedPlan | None = None) -> None:
        self.function, self.report, self.plan = function, report, plan

    @property
    def document(self) -> LoopDocument:
        """Every test, and whether the claim is refuted."""
        report = self.report
        checks = [
            LoopCheck(name=c.name, p_value=c.p_value, finding=c.finding, failed=c in report.failed)
            for c in report.checks
        ]
        return LoopDocument(
            function=self.function,
            significance=report.significance,
            refuted=report.accused,
            p_value=report.adjusted_p_value,
            likely_fault=report.likely,
            tests=report.tests,
            runs=report.runs,
            planned_runs=report.planned,
            checks=checks,
            plan=self.plan,
        )

    @property
    def exit_code(self) -> int:
        """1 where the claim is refuted."""
        return int(self.report.accused)

    def lines(self) -> list[str]:
        checks, failed = self.report.checks, self.report.failed
        tests = f"{self.function}: {len(checks)} tests; a small p-value speaks against the claim"
        each = [f"{c.p_value:8.2g} {'FAILED ' * (c in failed)}{c.name}: {c.finding}" for c in checks]
        plan = [] if self.plan is None else [f"sealed plan: {self.plan.digest}"]
        return [_WHAT, *self.report.headlines, *plan, tests, " p-value", *each]

    def indent(self, line: str) -> int:
        return 9 if line[:8].strip(" -.0123456789e") == "" else 0


@dataclass(frozen=True, kw_only=True)
class AuditLoop(Planned):
    """Whether a training loop of your own is the DP-SGD that it claims to be."""

    verb = "audit_loop"
    function: str = asked(TEXT, "Called as function(model, data, claim).", word="MODULE:FUNCTION")
    claim: Path = asked(PATH, "YAML: " + ", ".join(KEYS) + ".")
    significance: float = asked(FRACTION, "Probability of accusing a correct loop, at most.", 0.001)
    workers: int = asked(COUNT, "Processes in which the loop runs.", 2)
    seed: int = asked(SEED, "Seed of the audit's own choices.", 0)
    timeout: float | None = asked(POSITIVE, "Give up when no run has ended for this many seconds.", None)
    whole: bool = asked(FLAG, "Go on when a test has failed: all tests, and a better guess at the fault.", False)
    plan: Path | None = asked(PATH, PLAN, None)

    def decides(self) -> dict[str, Any]:
        """The numbers of the claim, and the runs and tests that follow from them, besides what was asked."""
        from reticent.attacks.experiments import experiments
        from reticent.attacks.mechanics import TESTS

        claim = read_claim(self.claim)
        runs, said = [one.name for one in experiments(claim, self.seed)], {name: getattr(claim, name) for name in KEYS}
        more = {"claim": said, "significance": self.significance, "seed": self.seed, "runs": runs, "tests": len(TESTS)}
        return {**super().decides(), **more}

    def answer(self, progress: Say | None = None) -> LoopAudited | Sealed:
        """Import the function, run it on records with chosen gradients, and test what it releases; or seal a plan.

        Raises:
            ArtifactError: the file of the claim or of the plan is none.
            ParameterError: another audit was planned, there is no such function, or its releases do not fit the claim.
            UnsupportedError: torch is not installed; the text says what to install.
            WorkerError: the loop failed.
        """
        claim = read_claim(self.claim)
        with needing("auditing a loop", "train"):
            from reticent.attacks.loop import audit_loop, find_loop
        sys.path.insert(0, os.getcwd())
        loop = find_loop(self.function)
        plan, new = self.sealed()
        if plan is not None and new:
            return Sealed(plan)
        how: dict[str, Any] = {
            name: getattr(self, name) for name in ("significance", "workers", "seed", "timeout", "whole")
        }
        report = audit_loop(loop, claim, progress=counted(progress), **how)
        return LoopAudited(self.function, report, plan)


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
