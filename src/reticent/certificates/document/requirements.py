"""Whether a certificate meets a policy: one line for each requirement, with what was found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reticent.adversaries.report import AssessmentRecord, ConditionRecord, Number
from reticent.certificates.document.policy import ANY, MEASURED, Limit, Policy, parameters_wanted
from reticent.certificates.document.sentences import Protected, persons
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS, Claim
from reticent.kernel.risk.questions import MEASURES
from reticent.kernel.text import digits


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement and what became of it.

    Attributes:
        name: the requirement.
        passed: whether the certificate meets it.
        detail: what was found.
        relation: whose worst case is required, if that is the requirement.
        limit, record: the limit and the attacker that it was compared with, if that is the requirement; no record
            where the certificate has none.
        value: what this attacker reaches, if the certificate states it.
        unchecked: conditions of ``value`` that nobody checked and the policy does not accept.
        accepted: those that nobody checked and the policy accepts.
    """

    name: Message | str
    passed: bool
    detail: Message | str
    relation: Neighbouring | None = None
    limit: Limit | None = None
    record: AssessmentRecord | None = None
    value: float | None = None
    unchecked: tuple[ConditionRecord, ...] = ()
    accepted: tuple[ConditionRecord, ...] = ()


LEDGER, STATED, PERSON = (Message(f"check.{one}") for one in ("ledger", "stated", "person"))
"""Requirements: a run was recorded, the numbers say whom they protect, they protect a person."""


class Judgeable(Protocol):
    """What requirements are asked of: a certificate, or the numbers of a plan."""

    @property
    def mechanism(self) -> Mapping[str, Any]: ...
    @property
    def assessments(self) -> Sequence[AssessmentRecord]: ...
    @property
    def ledger(self) -> Any: ...
    @property
    def warned(self) -> Collection[str]: ...
    @property
    def silent(self) -> Collection[str]: ...


def judged(certificate: Judgeable, policy: Policy) -> list[Check]:
    """The requirements that the document alone can answer: relations, ledger, warnings and limits.

    Args:
        certificate: the document; whether it is true, signed and of today is not asked here.
    """
    found = []
    worst = {record.neighbouring for record in certificate.assessments if record.adversary == "worst-case"}
    for relation in policy.demanded:
        others = Message("check.there-for", relations=", ".join(sorted(worst))) if worst else Message("check.nowhere")
        name = Message("check.worst-case", relation=relation.value)
        found.append(Check(name, relation in worst, Message("check.there") if relation in worst else others, relation))
    if policy.per != "record":
        found.append(_whom(persons(certificate.mechanism), policy))
    if policy.ledger:
        present = certificate.ledger is not None
        found.append(Check(LEDGER, present, Message("check.yes" if present else "check.no-ledger")))
    for warned in policy.forbid_warnings:
        there = warned in certificate.warned
        seen = Message("check.found" if there else "check.none")
        found.append(Check(Message("check.no-warning", name=warned), not there, seen))
    for limit in policy.limits:
        found += _limit(certificate, policy, limit)
    return found


def _whom(protected: Protected, policy: Policy) -> Check:
    """Whom the numbers protect: who says nothing is not believed to have one record of each person."""
    name = PERSON if policy.per else STATED
    if protected is None:
        return Check(name, False, Message("check.nobody-stated"))
    if isinstance(protected, Unit):
        return Check(name, policy.per is None, Message("check.one-client"))
    return Check(name, True, Message("check.at-most", n=Figure(str(protected))))


def _limit(certificate: Judgeable, policy: Policy, limit: Limit) -> list[Check]:
    """One answer for each relation: that of the limit, or all that must be there and all that are."""
    found = []
    every = [record for record in certificate.assessments if record.adversary == limit.adversary]
    fits = [record for record in every if _is_meant(record, limit)]
    if limit.neighbouring is not None:
        relations = [limit.neighbouring.value]
    else:
        relations = [relation.value for relation in policy.demanded]
        relations += [record.neighbouring for record in fits if record.neighbouring not in relations]
    for relation in dict.fromkeys(relations):
        records = [record for record in fits if record.neighbouring == relation]
        if not records:
            others = "-with" if any(r.neighbouring == relation for r in every) else ""
            detail = Message(f"check.missing{others}", name=limit.adversary)
            found.append(Check(_name(limit, relation), False, detail, limit=limit))
        found += [_against(record, limit, policy, _name(limit, relation), certificate.silent) for record in records]
    return found


def _is_meant(record: AssessmentRecord, limit: Limit) -> bool:
    """Whether the attacker of an assessment has the parameters of the limit, and defaults in all others."""
    wanted = {parameter.name: parameter.default for parameter in parameters_wanted(limit.adversary)} | limit.parameters
    return wanted.keys() == record.parameters.keys() and all(
        isinstance(record.parameters[name], dict) if value == MEASURED else value in (ANY, record.parameters[name])
        for name, value in wanted.items()
    )


def _against(record: AssessmentRecord, limit: Limit, policy: Policy, where: Message, silent: Collection[str]) -> Check:
    number = _read(record, limit)
    value = None if number is None else number.value
    opened, named = tuple(_open(record, limit)), policy.accept_conditions
    if policy.per == "record":  # what hides several records hides one, however many a person has
        opened = tuple(one for one in opened if one.key != "records-per-person")
    accepted = tuple(one for one in opened if one.key in named and one.key not in silent)
    unaccepted = tuple(one for one in opened if one not in accepted)
    passed, detail = _judged(record, limit, number, unaccepted)
    return Check(
        where, passed, detail, limit=limit, record=record, value=value, unchecked=unaccepted, accepted=accepted
    )


def _judged(
    record: AssessmentRecord, limit: Limit, number: Number | None, unaccepted: Sequence[ConditionRecord]
) -> tuple[bool, Message]:
    """Whether a limit is met, and what was found."""
    if not _strong_enough(record, limit):
        return False, Message("check.claim", claim=record.claim, wanted=limit.claim)
    if unaccepted:
        rests = Message("check.rests", conditions=", ".join(f"{one.key} ({one.status.value})" for one in unaccepted))
        if number is None or number.value is None:
            return False, rests
        return False, rests.under("value").given(value=_digits(limit, number.value))
    if number is None:
        return False, Message("check.not-stated", place=_place(limit))
    if number.value is None:
        return False, Message("check.not-finite")
    return within(limit, number.value), Message("check.is", value=_digits(limit, number.value))


def _digits(limit: Limit, value: float) -> Figure:
    return Figure(digits(value, 6, up=limit.at_least is None))


def within(limit: Limit, value: float) -> bool:
    """Whether a number keeps to its limit."""
    if limit.at_least is not None:
        return value >= limit.at_least
    assert limit.at_most is not None  # noqa: S101 (Limit checks that one of both is given)
    return value <= limit.at_most


def _strong_enough(record: AssessmentRecord, limit: Limit) -> bool:
    """A conditional bound counts as a bound: its conditions are judged by themselves. Both exceed an estimate."""
    if limit.claim in ("any", record.claim):
        return True
    return Claim(record.claim).proven and (limit.claim == Claim.ESTIMATE or Claim(limit.claim).proven)


def _open(record: AssessmentRecord, limit: Limit) -> Iterator[ConditionRecord]:
    """What nobody checked. What this version does not know, nobody checked."""
    for found in (*record.conditions, *record.also_needed.get(MEASURES[limit.measure].field, ())):
        if found.key not in CONDITIONS or found.known.open:
            yield found


def _read(record: AssessmentRecord, limit: Limit) -> Number | None:
    try:
        return MEASURES[limit.measure].of(record, *limit.places)
    except KeyError:
        return None


def _place(limit: Limit) -> Message:
    names = (name for name, _ in MEASURES[limit.measure].places)
    at = {name: Figure(f"{place:g}") for name, place in zip(names, limit.places, strict=True)}
    return Message(f"place.{limit.measure}", **at)


def _name(limit: Limit, relation: str) -> Message:
    who = ", ".join(f"{name} {'none' if value is None else value}" for name, value in limit.parameters.items())
    end, bound = ("at-most", limit.at_most) if limit.at_least is None else ("at-least", limit.at_least)
    found = Message(
        f"limit.{end}",
        who=f"{limit.adversary}{f' ({who})' if who else ''}",
        measure=limit.measure,
        limit=Figure(f"{bound:g}"),
        relation=relation,
    )
    return found if limit.at is None else found.under("at").given(place=_place(limit))
