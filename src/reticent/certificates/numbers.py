"""Assessments as strict records: every number with its interval, claim and theorem keys.

The same records go into the output of ``reticent risk`` and into certificates. Infinite numbers become
null, because strict JSON has no Infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from reticent import _check
from reticent.adversaries import Adversary, Assessment, Interval
from reticent.curves import TradeOff
from reticent.mechanisms import Ledger, Mechanism
from reticent.mechanisms.units import Unit
from reticent.proofs import CONDITIONS, Bearing, Condition, Status
from reticent.risk import (
    MU_FLOOR,
    advantage,
    bayes_security,
    delta_at_epsilon,
    epsilon_at_delta,
    mu_above,
    success,
    tpr_at_fpr,
)

RISK_SCHEMA = "reticent.risk/1"


class Record(BaseModel):
    """Base of all records: closed, immutable, and without NaN or Infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


class Number(Record):
    """A risk number with its enclosure; null is infinite: an end that is null says that nothing is proven there."""

    lower: float | None
    value: float | None
    upper: float | None

    @classmethod
    def of(cls, interval: Interval) -> Number:
        """From an interval; whatever is not finite becomes null."""
        return cls(lower=_strict(interval.lower), value=_strict(interval.value), upper=_strict(interval.upper))


class ConditionRecord(Record):
    """Something that a number rests on, and who vouches for it.

    Attributes:
        key: of ``reticent.proofs.CONDITIONS``.
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
    """What a condition says, for people, and what it is about: see ``reticent.proofs.Bearing``."""

    says: str
    about: Bearing


class AssessmentRecord(Record):
    """One adversary against one release, in numbers and words.

    The claim follows from the conditions. ``label`` is the name with the parameters that tables show.
    ``mu`` holds at every error rate. ``mu_at_rates_above`` looks at false positive rates from its key on, either way
    round: an estimate, whatever the claim.
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
    epsilon_at_delta: dict[str, Number]
    delta_at_epsilon: dict[str, Number]
    mu: Number
    mu_at_rates_above: dict[str, Number]
    theorems: list[str]
    conditions: list[ConditionRecord]
    notes: list[str]
    parameters: dict[str, str | float | dict[str, Any] | None]
    knows: str
    lacks: str
    infers: str


class RiskDocument(Record):
    """What ``reticent risk`` prints."""

    schema_: str = Field(default=RISK_SCHEMA, alias="schema")
    mechanism: dict[str, Any]
    assessments: list[AssessmentRecord]
    conditions: dict[str, ConditionText]
    skipped: dict[str, str]


@dataclass(frozen=True, slots=True)
class Questions:
    """Where the curves are read.

    Attributes:
        fprs: false positive rates for TPR, in [0, 1].
        deltas: deltas for epsilon, in (0, 1].
        epsilons: epsilons for delta, finite.
        priors: prior probabilities for a right guess, in (0, 1).
    """

    fprs: tuple[float, ...] = (0.001, 0.01)
    deltas: tuple[float, ...] = (1e-5,)
    epsilons: tuple[float, ...] = (1.0,)
    priors: tuple[float, ...] = (0.5,)

    def __post_init__(self) -> None:
        for fpr in self.fprs:
            _check.fraction(fpr=fpr)
        for delta in self.deltas:
            _check.rate(delta=delta)
        for epsilon in self.epsilons:
            _check.finite(epsilon=epsilon)
        for prior in self.priors:
            _check.open_fraction(prior=prior)

    @classmethod
    def of(
        cls,
        fprs: Sequence[float] | None,
        deltas: Sequence[float] | None,
        epsilons: Sequence[float] | None,
        priors: Sequence[float] | None,
    ) -> Questions:
        """With the defaults wherever nothing was asked."""
        d = cls()
        return cls(
            tuple(fprs or d.fprs), tuple(deltas or d.deltas), tuple(epsilons or d.epsilons), tuple(priors or d.priors)
        )


def assessment_record(
    assessment: Assessment, questions: Questions, measured: Mapping[str, Any] | None = None
) -> AssessmentRecord:
    """Read every risk number off the curve of ``assessment``.

    Args:
        assessment: what to read.
        questions: where the curve is read.
        measured: what ``measures`` returned for the same curve and enclosure, to save the time.
    """
    who = assessment.adversary
    return AssessmentRecord(
        adversary=who.name,
        label=who.label,
        neighbouring=assessment.neighbouring.value,
        method=assessment.method.value,
        claim=assessment.claim.value,
        **(measures(assessment, questions) if measured is None else measured),
        theorems=list(assessment.theorems),
        conditions=condition_records(assessment.conditions),
        notes=list(assessment.notes),
        parameters=parameters(who),
        knows=who.knows,
        lacks=assessment.lacks,
        infers=who.infers,
    )


def measures(assessment: Assessment, questions: Questions) -> dict[str, Any]:
    """Every risk number of the curve, by field of ``AssessmentRecord``."""

    def number(risk: Callable[..., float], *at: float) -> Number:
        return Number.of(assessment.measure(risk, *at))

    def numbers(risk: Callable[[TradeOff, float], float], points: Sequence[float]) -> dict[str, Number]:
        return {repr(float(x)): number(risk, x) for x in points}

    return {
        "advantage": number(advantage),
        "bayes_security": number(bayes_security),
        "success_at_prior": numbers(success, questions.priors),
        "tpr_at_fpr": numbers(tpr_at_fpr, questions.fprs),
        "epsilon_at_delta": numbers(epsilon_at_delta, questions.deltas),
        "delta_at_epsilon": numbers(delta_at_epsilon, questions.epsilons),
        "mu": Number.of(assessment.mu()),
        "mu_at_rates_above": numbers(mu_above, (MU_FLOOR,)),
    }


def parameters(adversary: Adversary) -> dict[str, str | float | dict[str, Any] | None]:
    """What defines the adversary beyond its name, so that anybody can assess it again.

    What was measured on data (a sensitivity record, a law of susceptibilities, a spectrum) is an object that
    names its kind.
    """
    known = {field.name: getattr(adversary, field.name) for field in fields(adversary)}  # type: ignore[arg-type]
    return {name: _parameter(value) for name, value in known.items()}


def _parameter(value: Any) -> Any:
    if not is_dataclass(value):
        return value
    return {"kind": type(value).__name__, **{name: _plain(item) for name, item in asdict(value).items()}}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return _strict(value) if isinstance(value, float) else value


def mechanism_record(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism as plain data, with its kind."""
    if isinstance(mechanism, Ledger):
        return {"kind": mechanism.name, "parts": [mechanism_record(part) for part in mechanism.parts]}
    fields = asdict(mechanism)  # type: ignore[call-overload]
    if fields.get("unit") is Unit.RECORD:  # nothing is said where a record is a record
        del fields["unit"]
    return {"kind": mechanism.name, **fields}


def risk_document(
    mechanism: Mechanism,
    assessments: Sequence[Assessment],
    questions: Questions,
    skipped: Mapping[str, str],
) -> RiskDocument:
    """Everything that ``reticent risk`` prints, as one record."""
    records = [assessment_record(a, questions) for a in assessments]
    return RiskDocument(
        mechanism=mechanism_record(mechanism),
        assessments=records,
        conditions=condition_texts(records),
        skipped=dict(skipped),
    )


def condition_records(conditions: Iterable[Condition]) -> list[ConditionRecord]:
    """Conditions as records, in their order."""
    return [ConditionRecord(key=one.key, status=one.status) for one in conditions]


def condition_texts(records: Sequence[AssessmentRecord]) -> dict[str, ConditionText]:
    """What the conditions of ``records`` say, by key."""
    used = sorted({one.key for record in records for one in record.conditions})
    return {key: ConditionText(says=CONDITIONS[key].says, about=CONDITIONS[key].bearing) for key in used}


def _strict(x: float) -> float | None:
    return x if math.isfinite(x) else None
