"""The one report that every door shows: each risk number with its enclosure, its claim and what it rests on.

Terminal, notebook, certificate page and dashboard read these records, and their JSON is the same everywhere. Strict
JSON has no Infinity: an infinite number is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, SerializationInfo, WithJsonSchema

from reticent import _check
from reticent.curves.enclosure import Interval
from reticent.errors import ParameterError
from reticent.messages import Message, from_json, to_json
from reticent.proofs import CONDITIONS, Bearing, Condition, Status
from reticent.risk import measures

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


@dataclass(frozen=True, slots=True)
class Questions:
    """Where the curves are read.

    Attributes:
        fprs: false positive rates for TPR, in [0, 1].
        deltas: deltas for epsilon, in (0, 1].
        epsilons: epsilons for delta, finite and >= 0.
        priors: prior probabilities for a right guess, in (0, 1).
        secret_bits: min-entropies of secrets in one person's records, in bits, > 0.
        guesses: how many guesses of such a secret, each a whole number.
    """

    fprs: tuple[float, ...] = (0.001, 0.01)
    deltas: tuple[float, ...] = (1e-5,)
    epsilons: tuple[float, ...] = (1.0,)
    priors: tuple[float, ...] = (0.5,)
    secret_bits: tuple[float, ...] = ()
    guesses: tuple[float, ...] = (1,)

    def __post_init__(self) -> None:
        for fpr in self.fprs:
            _check.fraction(fpr=fpr)
        for delta in self.deltas:
            _check.rate(delta=delta)
        for epsilon in self.epsilons:
            _check.non_negative(epsilon=epsilon)
        for prior in self.priors:
            _check.open_fraction(prior=prior)
        for bits in self.secret_bits:
            measures.blind_guess(bits)
        for guesses in self.guesses:
            measures.blind_guess(1.0, guesses)
        if not self.secret_bits and self.guesses != (1,):
            raise ParameterError("guesses", self.guesses, "given with secret_bits", shown=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """A risk number as reports state it.

    Attributes:
        field: of an ``AssessmentRecord``.
        heading: of its column.
        read: takes it off a curve.
        most: the largest value that it can have; the smallest is 0.
        places: what it is read at, such as ``prior``, each with the field of ``Questions`` that asks for it.
        theorems: keys of what it follows from, besides those of the curve.
        needs: keys of conditions, besides those of the curve.
        one_sided: it is read only off curves that bound every test; see ``Adversary.every_test``.
    """

    field: str
    heading: str
    read: Callable[..., float]
    most: float = 1.0
    places: tuple[tuple[str, str], ...] = ()
    theorems: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    one_sided: bool = False

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What it needs besides the curve, as the person who asks declares it."""
        return tuple(Condition(key, Status.DECLARED) for key in self.needs)

    def answers(self, every_test: bool) -> bool:
        """Whether it may be read off a curve that bounds every test, or not every test."""
        return every_test or not self.one_sided

    def of(self, record: AssessmentRecord, *places: float | str) -> Number:
        """The number of a record, at one of its places."""
        stated: Any = getattr(record, self.field)
        for place in places:
            stated = stated[repr(float(place))]
        found: Number = stated
        return found

    def at(self, *places: float | str) -> str:
        """The heading with its place."""
        return f"{self.heading}@{','.join(f'{float(x):g}' for x in places)}" if places else self.heading

    def stated(self, record: AssessmentRecord) -> list[tuple[str, ...]]:
        """The places at which a record states it, as texts."""
        levels: list[tuple[tuple[str, ...], Any]] = [((), getattr(record, self.field))]
        for _ in self.places:
            levels = [((*at, key), inner) for at, level in levels for key, inner in level.items()]
        return [at for at, _ in levels]

    def asked(self, questions: Questions) -> Iterator[tuple[float, ...]]:
        """Each place at which it is read; one without numbers, where it has no place."""
        for places in product(*(getattr(questions, asked) for _, asked in self.places)):
            if not (self.read is measures.ppv and places[1] == 0.0):  # nobody is flagged
                yield places


_PRIOR, _FPR = ("prior", "priors"), ("fpr", "fprs")
MEASURES: dict[str, Measure] = {
    "advantage": Measure("advantage", "advantage", measures.advantage),
    "bayes_security": Measure("bayes_security", "security", measures.bayes_security),
    "success": Measure("success_at_prior", "guess", measures.success, 1.0, (_PRIOR,)),
    "tpr": Measure("tpr_at_fpr", "TPR", measures.tpr_at_fpr, 1.0, (_FPR,)),
    "ppv": Measure("ppv_at_prior_and_fpr", "PPV", measures.ppv, 1.0, (_PRIOR, _FPR)),
    "epsilon": Measure("epsilon_at_delta", "epsilon", measures.epsilon_at_delta, math.inf, (("delta", "deltas"),)),
    "delta": Measure("delta_at_epsilon", "delta", measures.delta_at_epsilon, 1.0, (("epsilon", "epsilons"),)),
    "secret": Measure(
        "secret_at_bits_and_guesses",
        "secret",
        measures.secret_success,
        1.0,
        (("secret_bits", "secret_bits"), ("guesses", "guesses")),
        ("RETICENT:secret",),
        ("secret-entropy", "secret-nowhere-else"),
        one_sided=True,
    ),
    "mu": Measure("mu", "mu", measures.mu, math.inf),
}
"""Every number of a report, in the order of its columns; by the name that a policy and a target use."""


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
