"""From assessments to the report that every door shows: each number is read off its curve here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reticent.adversaries.base import Assessment
from reticent.adversaries.codec import parameters
from reticent.mechanisms import Mechanism
from reticent.mechanisms.codec import mechanism_record
from reticent.messages import Message, said
from reticent.risk import MU_FLOOR
from reticent.risk.report import (
    MEASURES,
    AssessmentRecord,
    Measure,
    Number,
    Questions,
    RiskDocument,
    condition_records,
    condition_texts,
)


def assessment_record(
    assessment: Assessment, questions: Questions, measured: Mapping[str, Any] | None = None
) -> AssessmentRecord:
    """Read every risk number off the curve of ``assessment``.

    Args:
        measured: what ``measures`` returned for the same curve and enclosure, to save the time.
    """
    who = assessment.adversary
    further = [one for one in MEASURES.values() if _answered(one, assessment, questions) and one.places]
    return AssessmentRecord(
        adversary=who.name,
        label=who.label,
        neighbouring=assessment.neighbouring.value,
        method=assessment.method.value,
        claim=assessment.claim.value,
        **(measures(assessment, questions) if measured is None else measured),
        theorems=list(dict.fromkeys((*assessment.theorems, *(key for one in further for key in one.theorems)))),
        conditions=condition_records(assessment.conditions),
        also_needed={one.field: condition_records(one.conditions) for one in further if one.conditions},
        notes=list(assessment.notes),
        parameters=parameters(who),
        knows=said(who.knows),
        lacks=assessment.lacks,
        infers=said(who.infers),
    )


def measures(assessment: Assessment, questions: Questions) -> dict[str, Any]:
    """Every risk number of the curve, by field of ``AssessmentRecord``."""
    found: dict[str, Any] = {"mu_at_rates_above": {repr(MU_FLOOR): Number.of(assessment.mu_above(MU_FLOOR))}}
    for name, one in MEASURES.items():
        if name == "mu":
            found[one.field] = Number.of(assessment.mu())
        else:
            places = list(one.asked(questions)) if _answered(one, assessment, questions) else []
            found[one.field] = _by_place({at: Number.of(assessment.measure(one.read, *at)) for at in places})
    return found


def _answered(one: Measure, assessment: Assessment, questions: Questions) -> bool:
    """Whether a measure is asked for, and may be read off this curve."""
    return any(True for _ in one.asked(questions)) and one.answers(assessment.adversary.every_test)


def _by_place(read: Mapping[tuple[float, ...], Number]) -> Any:
    """Numbers by the texts of their places, one level for each."""
    found: dict[str, Any] = {}
    for places, number in read.items():
        if not places:
            return number
        level = found
        for place in places[:-1]:
            level = level.setdefault(repr(float(place)), {})
        level[repr(float(places[-1]))] = number
    return found


def risk_document(
    mechanism: Mechanism,
    assessments: Sequence[Assessment],
    questions: Questions,
    skipped: Mapping[str, Message | str],
    warnings: Mapping[str, str],
) -> RiskDocument:
    """Everything that ``reticent risk`` prints, as one record."""
    records = [assessment_record(a, questions) for a in assessments]
    return RiskDocument(
        mechanism=mechanism_record(mechanism),
        assessments=records,
        conditions=condition_texts(records),
        skipped={name: said(reason) for name, reason in skipped.items()},
        warnings=dict(warnings),
    )
