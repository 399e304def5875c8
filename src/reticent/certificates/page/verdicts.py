"""A policy in words: what the issuer allows, what was reached, and what the policy did not ask about."""

from __future__ import annotations

from collections.abc import Sequence

from reticent.adversaries.report import AssessmentRecord, ConditionRecord
from reticent.certificates.document.numbers import named, plain
from reticent.certificates.document.policy import Limit
from reticent.certificates.document.requirements import LEDGER, PERSON, STATED, Check, judged, within
from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.sentences import asked_about, even_guess, percent, persons
from reticent.certificates.page.words import of_clients
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.messages import Figure, Message, said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS, Status
from reticent.kernel.text import digits

WORST = WorstCase.name


def verdicts(certificate: Certificate) -> list[tuple[bool, tuple[Message, ...]]]:
    """Of each requirement whether it is met, and sentences without their full stops: what it is, what was found."""
    return [(one.passed, _words(one)) for one in _judged(certificate)]


def unchecked(certificate: Certificate) -> list[tuple[Message, Message]]:
    """What nobody checked and the policy wants checked: each condition, with who vouches for it."""
    return _named(certificate, [one for check in _judged(certificate) for one in check.unchecked])


def _named(certificate: Certificate, conditions: Sequence[ConditionRecord]) -> list[tuple[Message, Message]]:
    return [
        (of_clients(certificate, one.known.says), Message(f"trust.{one.status.value}"))
        for one in dict.fromkeys(conditions)
        if one.key in CONDITIONS and one.status is not Status.CHECKED
    ]


def accepted(certificate: Certificate) -> list[tuple[Message, Message]]:
    """What nobody checked and the policy accepts: each condition of a number that it judges, with who vouches."""
    return _named(certificate, [one for check in _judged(certificate) for one in check.accepted])


def unjudged(certificate: Certificate) -> list[tuple[Message, Figure, bool]]:
    """Questions for which no limit of the policy is about the worst case.

    Each with the share of right answers in the worst case, and whether a limit is about a weaker attacker.
    """
    judged_here = {(one.record.adversary, one.record.neighbouring) for one in _judged(certificate) if one.record}
    relations = {relation for _, relation in judged_here}
    records = persons(certificate.mechanism)
    return [
        (
            asked_about(one.neighbouring, records),
            percent(even_guess(one), up=True),
            one.neighbouring in relations,
        )
        for one in certificate.assessments
        if judged_here and one.adversary == WORST and (WORST, one.neighbouring) not in judged_here
    ]


def _judged(certificate: Certificate) -> list[Check]:
    return [] if certificate.policy is None else judged(certificate, certificate.policy)


def _words(check: Check) -> tuple[Message, ...]:
    if check.relation is not None:
        found = Message("required.computed", question=_short(check.relation))
        return (found if check.passed else found.under("not"),)
    if check.name in (LEDGER, STATED, PERSON):
        found = Message(f"required.{check.name.key.removeprefix('check.')}")
        return (found if check.passed else found.under("not"),)
    if check.limit is None or check.record is None or check.value is None:
        return said(check.name), said(check.detail)
    return tuple(_of_a_limit(check, check.limit, check.value, check.record))


def _short(relation: Neighbouring) -> Message:
    """What a relation asks, in few words."""
    return Message(f"short.{relation.value}")


def _of_a_limit(check: Check, limit: Limit, value: float, record: AssessmentRecord) -> list[Message]:
    found = [
        _required(check, limit, record),
        Message(f"reached.{_enough(limit, value)}", value=_reached(limit, value)),
    ]
    if check.passed or not within(limit, value):
        return found
    if check.unchecked:  # the page lists what after the limits
        return [*found, Message("required.unchecked")]
    return [*found, Message("required.not-enough", detail=said(check.detail))]


def _required(check: Check, limit: Limit, record: AssessmentRecord) -> Message:
    relation = Neighbouring(record.neighbouring)
    in_words = said(check.name).given(who=named(record), relation=_short(relation))
    if limit.adversary != WORST or limit.parameters or limit.at_most is None:
        return in_words
    most = Figure(digits(100.0 * limit.at_most, 6), "%")
    if limit.measure == "success" and limit.places == (0.5,):
        return Message("required.guess", share=most, question=_short(relation))
    if limit.measure == "epsilon":
        at = {"limit": Figure(f"{limit.at_most:g}"), "delta": plain(limit.places[0])}
        return Message("required.epsilon", question=_short(relation), **at)
    if limit.measure == "tpr":
        alarms = Figure(digits(100.0 * limit.places[0], 6), "%")
        return Message("required.found", alarms=alarms, share=most, question=_short(relation))
    return in_words


def _reached(limit: Limit, value: float) -> Figure:
    if limit.measure == "success" or (limit.measure == "tpr" and limit.adversary == WORST):
        return percent(value, up=True)
    return Figure(digits(value, up=limit.at_least is None))


def _enough(limit: Limit, value: float) -> str:
    if limit.at_least is not None:
        return "high-enough" if within(limit, value) else "too-low"
    return "low-enough" if within(limit, value) else "too-high"
