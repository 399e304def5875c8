"""Whether a certificate meets a policy: one line for each requirement, with what was found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reticent.certificates.policy import ANY, MEASURED, Limit, Policy, parameters_wanted
from reticent.certificates.sentences import Protected, persons
from reticent.mechanisms import Neighbouring
from reticent.mechanisms.units import Unit
from reticent.proofs import CONDITIONS, Claim
from reticent.risk.report import MEASURES, AssessmentRecord, ConditionRecord, Number
from reticent.text import digits


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement and what became of it.

    Attributes:
        name: the requirement, in words.
        passed: whether the certificate meets it.
        detail: what was found.
        relation: whose worst case is required, if that is the requirement.
        limit, record: the limit and the attacker that it was compared with, if that is the requirement; no record
            where the certificate has none.
        value: what this attacker reaches, if the certificate states it.
        unchecked: conditions of ``value`` that nobody checked and the policy does not accept.
        accepted: those that nobody checked and the policy accepts.
    """

    name: str
    passed: bool
    detail: str
    relation: Neighbouring | None = None
    limit: Limit | None = None
    record: AssessmentRecord | None = None
    value: float | None = None
    unchecked: tuple[ConditionRecord, ...] = ()
    accepted: tuple[ConditionRecord, ...] = ()


LEDGER = "the ledger of a run supports it"
"""Name of the requirement that a run was recorded."""


STATED = "it is stated how many records a person has"
"""Name of the requirement that the numbers say whom they protect."""
PERSON = "the numbers are about a person"
"""Name of the requirement that they protect a person."""


class Judgeable(Protocol):
    """What requirements are asked of: a certificate, or the numbers of a plan."""

    @property
    def mechanism(self) -> Mapping[str, Any]: ...
    @property
    def assessments(self) -> Sequence[AssessmentRecord]: ...
    @property
    def ledger(self) -> Any: ...
    @property
    def warnings(self) -> Sequence[Any]: ...
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
        detail = "there" if relation in worst else f"there for {', '.join(sorted(worst)) or 'no relation'}"
        found.append(Check(f"the worst case under {relation.value}", relation in worst, detail, relation))
    if policy.per != "record":
        found.append(_whom(persons(certificate.mechanism), policy))
    if policy.ledger:
        present = certificate.ledger is not None
        found.append(Check(LEDGER, present, "yes" if present else "no ledger"))
    listed = {warning.name for warning in certificate.warnings}
    for name in policy.forbid_warnings:
        found.append(Check(f"no warning {name}", name not in listed, "found" if name in listed else "none"))
    for limit in policy.limits:
        found += _limit(certificate, policy, limit)
    return found


def _whom(protected: Protected, policy: Policy) -> Check:
    """Whom the numbers protect: who says nothing is not believed to have one record of each person."""
    name = PERSON if policy.per else STATED
    if protected is None:
        return Check(name, False, "nobody stated it: every number is about one record")
    if isinstance(protected, Unit):
        return Check(name, policy.per is None, "every number is about one client, with all its records")
    return Check(name, True, f"at most {protected}, as the issuer declares")


def _limit(certificate: Judgeable, policy: Policy, limit: Limit) -> list[Check]:
    """One answer for each relation: that of the limit, or all that must be there and all that are."""
    name, found = _name(limit), []
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
            others = ", only with other parameters" if any(r.neighbouring == relation for r in every) else ""
            detail = f"the certificate has no such assessment of {limit.adversary}{others}"
            found.append(Check(f"{name} ({relation})", False, detail, limit=limit))
        found += [_against(record, limit, policy, f"{name} ({relation})", certificate.silent) for record in records]
    return found


def _is_meant(record: AssessmentRecord, limit: Limit) -> bool:
    """Whether the attacker of an assessment has the parameters of the limit, and defaults in all others."""
    wanted = {parameter.name: parameter.default for parameter in parameters_wanted(limit.adversary)} | limit.parameters
    return wanted.keys() == record.parameters.keys() and all(
        isinstance(record.parameters[name], dict) if value == MEASURED else value in (ANY, record.parameters[name])
        for name, value in wanted.items()
    )


def _against(record: AssessmentRecord, limit: Limit, policy: Policy, where: str, silent: Collection[str]) -> Check:
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
) -> tuple[bool, str]:
    """Whether a limit is met, and what was found."""
    if not _strong_enough(record, limit):
        return False, f"the claim is {record.claim}, the policy wants {limit.claim}"
    if unaccepted:
        names = ", ".join(f"{one.key} ({one.status.value})" for one in unaccepted)
        reached = (
            "it rests" if number is None or number.value is None else f"is {_digits(limit, number.value)}, and rests"
        )
        return False, f"{reached} on {names}: the policy does not accept that"
    if number is None:
        return False, f"the certificate does not state it at {_place(limit)}"
    if number.value is None:
        return False, "there is no finite value"
    return within(limit, number.value), f"is {_digits(limit, number.value)}"


def _digits(limit: Limit, value: float) -> str:
    return digits(value, 6, up=limit.at_least is None)


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


def _place(limit: Limit) -> str:
    names = (name for name, _ in MEASURES[limit.measure].places)
    return ", ".join(f"{name} {place:g}" for name, place in zip(names, limit.places, strict=True))


def _name(limit: Limit) -> str:
    who = ", ".join(f"{name} {'none' if value is None else value}" for name, value in limit.parameters.items())
    place = "" if limit.at is None else f" at {_place(limit)}"
    bound = f"at least {limit.at_least:g}" if limit.at_least is not None else f"at most {limit.at_most:g}"
    return f"{limit.adversary}{f' ({who})' if who else ''}: {limit.measure}{place} {bound}"
