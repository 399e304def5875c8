"""A plan of an audit that is sealed before the first run: whoever knows its digest can check that it was kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from reticent import __version__
from reticent.adversaries.report import Record
from reticent.io import strict
from reticent.io.commitments import commit, new_salt, opens
from reticent.io.files import write_atomic, writing
from reticent.io.models import Sha256, validated
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.verbs.request import Request
from reticent.verbs.table import Answer

PLAN = "A sealed plan. Where there is no such file it is written, and nothing is run; else the audit must be this one."
_NAME = "audit-plan"
_FREE = ("schema", "plan", "workers", "timeout", "engine", "address", "work", "resume")
"""What changes no result."""


class SealedPlan(Record):
    """What an audit will do, and a salted digest of it: tell the digest before the run, and show the plan after it."""

    schema_: str = Field(default="reticent.sealed-plan/1", alias="schema")
    digest: Sha256
    salt: Sha256
    audit: dict[str, Any]

    @classmethod
    def of(cls, audit: Mapping[str, Any]) -> SealedPlan:
        """A plan with a salt of its own: its digest tells nothing about it, not even a small seed."""
        salt, audit = new_salt(), strict.portable(dict(audit))
        return cls(digest=commit(salt, _NAME, strict.canonical(audit)), salt=salt, audit=audit)

    @property
    def whole(self) -> bool:
        """Whether the digest is that of the plan."""
        return opens(self.digest, self.salt, _NAME, strict.canonical(self.audit))


class Sealed(Answer):
    """A plan that was written; nothing was run.

    Attributes:
        document: the plan.
    """

    def __init__(self, document: SealedPlan) -> None:
        self.document = document

    def lines(self) -> list[str]:
        return [
            f"sealed plan: {self.document.digest}",
            "Tell this digest to those who will read the audit, and keep the file to yourself until then.",
            "The same command runs the audit now; its report names the digest and holds the plan.",
        ]


class Planned(Request):
    """A request to an audit that may be sealed beforehand."""

    plan: Path | None

    def decides(self) -> dict[str, Any]:
        """What decides the result, as plain data."""
        said = {name: value for name, value in self.document().items() if name not in _FREE}
        return {**said, "version": __version__}

    def sealed(self) -> tuple[SealedPlan | None, bool]:
        """The plan, if one is named, and whether it was written just now.

        Raises:
            ArtifactError: the file holds no plan, or one that was edited.
            ParameterError: this is another audit than the one that was planned; the text says in what.
        """
        if self.plan is None:
            return None, False
        asked_for = SealedPlan.of(self.decides())
        if not self.plan.exists():
            with writing(self.plan):
                write_atomic(self.plan, asked_for.model_dump_json(by_alias=True, indent=1).encode(), private=True)
            return asked_for, True
        found = validated(SealedPlan, strict.load(self.plan), str(self.plan))
        if not found.whole:
            raise ArtifactError(f"{self.plan}: its digest is not that of the plan in it: it was edited")
        for name in sorted({*found.audit, *asked_for.audit}):
            planned, now = found.audit.get(name), asked_for.audit.get(name)
            if planned != now:
                wanted = "left out" if planned is None else repr(planned)
                raise ParameterError(name, now, f"{wanted}, as the sealed plan {self.plan} says")
        return found, False


class AuditCheck(Record):
    """What ``reticent verify`` says of the report of an audit: whether it is the audit that was planned."""

    schema_: str = Field(default="reticent.audit-check/1", alias="schema")
    accepted: bool
    plan: Sha256
    problems: list[str]


class PlanChecked(Answer):
    """Whether an audit is the one that was planned.

    Attributes:
        document: the digest of the plan, and what does not agree.
    """

    def __init__(self, document: AuditCheck) -> None:
        self.document = document

    @property
    def exit_code(self) -> int:
        """1 where it is not."""
        return int(not self.document.accepted)

    def lines(self) -> list[str]:
        found = self.document
        if not found.accepted:
            return ["REFUSED", *(f"  refused: {problem}" for problem in found.problems)]
        return [
            f"ACCEPTED. The audit is the one of the plan {found.plan}.",
            "Compare this digest with the one that was told. Verdict and numbers were not checked.",
        ]


def check_report(report: Any, where: str) -> PlanChecked:
    """Whether the report of an audit, as JSON data, is that of the plan in it.

    Raises:
        ArtifactError: it names no plan.
    """
    if not isinstance(report, dict) or report.get("plan") is None:
        raise ArtifactError(f"{where}: no report of an audit with a sealed plan (--plan)")
    plan = validated(SealedPlan, report["plan"], f"{where}: plan")
    kept = _loop(report, plan.audit) if "checks" in report else _scores(report, plan.audit)
    problems = ([] if plan.whole else ["the digest is not that of the plan"]) + [*kept]
    return PlanChecked(AuditCheck(accepted=not problems, plan=plan.digest, problems=problems))


def _loop(report: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[str]:
    yield from _same({name: report.get(name) for name in ("function", "significance", "tests")}, plan)
    planned, runs = len(plan.get("runs", [])), report["runs"]
    if report["planned_runs"] != planned or (runs < planned and not report["refuted"]):
        yield f"{runs} of {report['planned_runs']} runs, where {planned} were planned, or fewer that refute the claim"


def _scores(report: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[str]:
    stated = {"confidence": report.get("confidence"), "sequential": report.get("sequential")}
    yield from _same(stated, {"confidence": 0.95, "sequential": False, **plan})
    if "design" in plan and plan["design"] != report.get("design"):
        yield f"design is {report.get('design')!r}, planned {plan['design']!r}"
    for mu in plan.get("against_mu", []):
        if f"mu={float(mu)!r}" not in report["verdicts"]:
            yield f"no verdict on mu={mu}, which was planned"


def _same(stated: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[str]:
    return (
        f"{name} is {value!r}, planned {plan.get(name)!r}" for name, value in stated.items() if value != plan.get(name)
    )
