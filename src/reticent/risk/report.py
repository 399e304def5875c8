"""The one report that every door shows: each risk number with its enclosure, its claim and what it rests on.

Terminal, notebook, certificate page and dashboard read these records, and their JSON is the same everywhere. Strict
JSON has no Infinity: an infinite number is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from reticent import _check
from reticent.proofs import CONDITIONS, Bearing, Condition, Status
from reticent.risk import measures

RISK_SCHEMA = "reticent.risk/1"


class Record(BaseModel):
    """Base of all records: closed, immutable, and without NaN or Infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


class _Interval(Protocol):
    """A number between its two ends."""

    @property
    def lower(self) -> float: ...
    @property
    def value(self) -> float: ...
    @property
    def upper(self) -> float: ...


class Number(Record):
    """A risk number with its enclosure; null is infinite: an end that is null says that nothing is proven there."""

    lower: float | None
    value: float | None
    upper: float | None

    @classmethod
    def of(cls, interval: _Interval) -> Number:
        """From an interval; whatever is not finite becomes null."""
        return cls(lower=strict(interval.lower), value=strict(interval.value), upper=strict(interval.upper))


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


@dataclass(frozen=True, slots=True)
class Measure:
    """A risk number as reports state it.

    Attributes:
        field: of an ``AssessmentRecord``.
        heading: of its column.
        read: takes it off a curve.
        most: the largest value that it can have; the smallest is 0.
        place: what it is read at, such as ``prior``; None where it is read at no place.
        asked: the field of ``Questions`` with those places.
    """

    field: str
    heading: str
    read: Callable[..., float]
    most: float = 1.0
    place: str | None = None
    asked: str = ""

    def of(self, record: AssessmentRecord, place: float | str | None = None) -> Number:
        """The number of a record, at one of its places."""
        stated: Any = getattr(record, self.field)
        found: Number = stated if place is None else stated[repr(float(place))]
        return found

    def at(self, place: float | str | None) -> str:
        """The heading with its place."""
        return self.heading if place is None else f"{self.heading}@{float(place):g}"


MEASURES: dict[str, Measure] = {
    "advantage": Measure("advantage", "advantage", measures.advantage),
    "bayes_security": Measure("bayes_security", "security", measures.bayes_security),
    "success": Measure("success_at_prior", "guess", measures.success, 1.0, "prior", "priors"),
    "tpr": Measure("tpr_at_fpr", "TPR", measures.tpr_at_fpr, 1.0, "fpr", "fprs"),
    "epsilon": Measure("epsilon_at_delta", "epsilon", measures.epsilon_at_delta, math.inf, "delta", "deltas"),
    "delta": Measure("delta_at_epsilon", "delta", measures.delta_at_epsilon, 1.0, "epsilon", "epsilons"),
    "mu": Measure("mu", "mu", measures.mu, math.inf),
}
"""Every number of a report, in the order of its columns; by the name that a policy and a target use."""


def condition_records(conditions: Iterable[Condition]) -> list[ConditionRecord]:
    """Conditions as records, in their order."""
    return [ConditionRecord(key=one.key, status=one.status) for one in conditions]


def condition_texts(records: Sequence[AssessmentRecord]) -> dict[str, ConditionText]:
    """What the conditions of ``records`` say, by key."""
    used = sorted({one.key for record in records for one in record.conditions})
    return {key: ConditionText(says=CONDITIONS[key].says, about=CONDITIONS[key].bearing) for key in used}


def strict(x: float) -> float | None:
    """``x`` for strict JSON: None where it is not finite."""
    return x if math.isfinite(x) else None
