"""The one report that every door shows: each risk number with its enclosure, its claim and what it rests on.

Terminal, notebook, certificate page and dashboard read these records, and their JSON is the same everywhere. Strict
JSON has no Infinity: an infinite number is null. Each number is read off its curve here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, SerializationInfo, WithJsonSchema

from reticent.adversaries.codec import parameters
from reticent.kernel.adversaries.base import Assessment
from reticent.kernel.curves.enclosure import Interval
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message, from_json, said, to_json
from reticent.kernel.proofs import CONDITIONS, Bearing, Condition, Status
from reticent.kernel.risk import MU_FLOOR
from reticent.kernel.risk.questions import MEASURES, Measure, Questions
from reticent.mechanisms.codec import mechanism_record

RISK_SCHEMA = "reticent.risk/2"
SPOKEN = {"english": True}
"""Context in which a report is printed: each message has its English, which nothing reads back."""


def _said(message: Message, info: SerializationInfo) -> Any:
    return to_json(message, english=info.context == SPOKEN)


Said = Annotated[
    Message,
    PlainValidator(from_json),
    PlainSerializer(_said),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"key": {"type": "string"}, "values": {"type": "object"}, "en": {"type": "string"}},
            "required": ["key"],
            "additionalProperties": False,
        }
    ),
]
"""A message of a document: its key and values."""


class Record(BaseModel):
    """Base of all records: closed, immutable, and without NaN or Infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


class Number(Record):
    """A risk number with its enclosure; null is infinite: an end that is null says that nothing is proven there."""

    lower: float | None
    value: float | None
    upper: float | None

    @property
    def most(self) -> float:
        """The value; infinite where it is null."""
        return math.inf if self.value is None else self.value

    @classmethod
    def of(cls, interval: Interval) -> Number:
        """From an interval; whatever is not finite becomes null."""
        return cls(lower=strict(interval.lower), value=strict(interval.value), upper=strict(interval.upper))


class ConditionRecord(Record):
    """Something that a number rests on, and who vouches for it.

    Attributes:
        key: of ``reticent.kernel.proofs.CONDITIONS``.
        status: ``checked``, ``declared`` or ``assumed``.
    """

    key: str
    status: Status

    @property
    def known(self) -> Condition:
        """The condition itself.

        Raises:
            ParameterError: the key is not listed.
        """
        return Condition(self.key, self.status)


class ConditionText(Record):
    """What a condition says, for people, and what it is about: see ``reticent.kernel.proofs.Bearing``."""

    says: Said
    about: Bearing


class AssessmentRecord(Record):
    """One adversary against one release, in numbers and words.

    The claim follows from the conditions. ``label`` is the name with the parameters that tables show.
    ``mu`` holds at every error rate. ``mu_at_rates_above`` looks at false positive rates from its key on, either way
    round: an estimate, whatever the claim. ``also_needed`` has what single numbers need besides, by field.
    """

    adversary: str
    label: str
    neighbouring: str
    method: str
    claim: str
    advantage: Number
    bayes_security: Number
    success_at_prior: dict[str, Number]
    tpr_at_fpr: dict[str, Number]
    ppv_at_prior_and_fpr: dict[str, dict[str, Number]]
    epsilon_at_delta: dict[str, Number]
    delta_at_epsilon: dict[str, Number]
    secret_at_bits_and_guesses: dict[str, dict[str, Number]]
    recovered_at_baseline: dict[str, Number]
    mu: Number
    mu_at_rates_above: dict[str, Number]
    theorems: list[str]
    conditions: list[ConditionRecord]
    also_needed: dict[str, list[ConditionRecord]]
    notes: list[Said]
    parameters: dict[str, str | float | dict[str, Any] | None]
    knows: Said
    lacks: Said | None
    infers: Said


class RiskDocument(Record):
    """What ``reticent risk`` prints; ``warnings`` are those of the ledger that was read, if there are any."""

    schema_: str = Field(default=RISK_SCHEMA, alias="schema")
    mechanism: dict[str, Any]
    assessments: list[AssessmentRecord]
    conditions: dict[str, ConditionText]
    skipped: dict[str, Said]
    warnings: dict[str, str] = Field(default={}, exclude_if=lambda found: not found)


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


def condition_records(conditions: Iterable[Condition]) -> list[ConditionRecord]:
    """Conditions as records, in their order."""
    return [ConditionRecord(key=one.key, status=one.status) for one in conditions]


def condition_texts(records: Sequence[AssessmentRecord]) -> dict[str, ConditionText]:
    """What the conditions of ``records`` say, by key."""
    used = sorted({one.key for record in records for one in all_conditions(record)})
    return {key: ConditionText(says=CONDITIONS[key].says, about=CONDITIONS[key].bearing) for key in used}


def all_conditions(record: AssessmentRecord) -> list[ConditionRecord]:
    """What its numbers rest on, and what single ones need besides."""
    return [*record.conditions, *(one for needed in record.also_needed.values() for one in needed)]


def strict(x: float) -> float | None:
    """``x`` for strict JSON: None where it is not finite."""
    return x if math.isfinite(x) else None
