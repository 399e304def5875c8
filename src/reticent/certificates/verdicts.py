"""A policy in words: what the issuer allows, what was reached, and what the policy did not ask about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reticent.adversaries import WorstCase
from reticent.certificates.numbers import plain
from reticent.certificates.policy import Limit
from reticent.certificates.requirements import LEDGER, PERSON, STATED, Check, judged, within
from reticent.certificates.schema import Certificate
from reticent.certificates.sentences import asked_about, even_guess, percent, persons
from reticent.certificates.words import of_clients
from reticent.mechanisms import Neighbouring
from reticent.proofs import CONDITIONS
from reticent.risk.report import ConditionRecord
from reticent.text import digits

WORST = WorstCase.name
SHORT = {
    Neighbouring.ADD_REMOVE: "used or not",
    Neighbouring.REPLACE: "which of two versions",
    Neighbouring.ZERO_OUT: "any effect or none",
}
"""What a relation asks, in few words."""
_UNCHECKED = "But unchecked: see below"
"""Of a number that is low enough and rests on what the policy wants checked; the page lists that after the limits."""
TRUST = {"declared": "only the issuer or the settings say so", "assumed": "taken on trust"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One requirement in words.

    Attributes:
        met: whether it is.
        says: what is required and what was found, as sentences without their full stops.
    """

    met: bool
    says: tuple[str, ...]


def verdicts(certificate: Certificate) -> list[Verdict]:
    """One for each requirement of the document, in its order."""
    known = {one.name: one for one in _judged(certificate)}
    return [
        Verdict(one.passed, _words(known.get(one.name, Check(one.name, one.passed, one.detail))))
        for one in certificate.requirements
    ]


def unchecked(certificate: Certificate) -> list[tuple[str, str]]:
    """What nobody checked and the policy wants checked: each condition, with who vouches for it."""
    return _named(certificate, [one for check in _judged(certificate) for one in check.unchecked])


def _named(certificate: Certificate, conditions: Sequence[ConditionRecord]) -> list[tuple[str, str]]:
    return [
        (of_clients(certificate, one.known.says), TRUST[one.status.value])
        for one in dict.fromkeys(conditions)
        if one.key in CONDITIONS and one.status.value in TRUST
    ]


def accepted(certificate: Certificate) -> list[tuple[str, str]]:
    """What nobody checked and the policy accepts: each condition of a number that it judges, with who vouches."""
    return _named(certificate, [one for check in _judged(certificate) for one in check.accepted])


def unjudged(certificate: Certificate) -> list[tuple[str, str, bool]]:
    """Questions for which no limit of the policy is about the worst case.

    Each with the share of right answers in the worst case, and whether a limit is about a weaker attacker.
    """
    judged_here = {(one.record.adversary, one.record.neighbouring) for one in _judged(certificate) if one.record}
    relations = {relation for _, relation in judged_here}
    records = persons(certificate.mechanism)
    return [
        (
            asked_about(Neighbouring(one.neighbouring), records),
            percent(even_guess(one), up=True),
            one.neighbouring in relations,
        )
        for one in certificate.assessments
        if judged_here and one.adversary == WORST and (WORST, one.neighbouring) not in judged_here
    ]


def _judged(certificate: Certificate) -> list[Check]:
    return [] if certificate.policy is None else judged(certificate, certificate.policy)


def _words(check: Check) -> tuple[str, ...]:
    if check.relation is not None:
        done = "was" if check.passed else "was not"
        return (f"The worst case {done} computed (question: {SHORT[check.relation]})",)
    if check.name == LEDGER:
        return ("The training was recorded" if check.passed else "No training was recorded",)
    if check.name == STATED:
        return (f"{'It is' if check.passed else 'Nobody'} stated how many records a person has",)
    if check.name == PERSON:
        return ("The numbers are about a person" if check.passed else "The numbers are not about a person",)
    if check.limit is None or check.record is None or check.value is None:
        return check.name, check.detail
    return tuple(_of_a_limit(check, check.limit, check.value, Neighbouring(check.record.neighbouring)))


def _of_a_limit(check: Check, limit: Limit, value: float, relation: Neighbouring) -> list[str]:
    found = [_required(check, limit, relation), f"Reached: {_reached(limit, value)}, {_enough(limit, value)}"]
    if check.passed or not within(limit, value):
        return found
    return [*found, _UNCHECKED if check.unchecked else f"The number alone is not enough: {check.detail}"]


def _required(check: Check, limit: Limit, relation: Neighbouring) -> str:
    if limit.adversary != WORST or limit.parameters or limit.at_most is None:
        return check.name
    if limit.measure == "success" and limit.places == (0.5,):
        return f"Right guess at most {digits(100.0 * limit.at_most, 6)}% ({SHORT[relation]})"
    if limit.measure == "epsilon":
        return f"Epsilon at most {limit.at_most:g} at delta {plain(limit.places[0])} ({SHORT[relation]})"
    if limit.measure == "tpr":
        alarms, most = (f"{digits(100.0 * share, 6)}%" for share in (limit.places[0], limit.at_most))
        return f"Found with {alarms} false alarms: at most {most} ({SHORT[relation]})"
    return check.name


def _reached(limit: Limit, value: float) -> str:
    if limit.measure == "success" or (limit.measure == "tpr" and limit.adversary == WORST):
        return percent(value, up=True)
    return digits(value, up=limit.at_least is None)


def _enough(limit: Limit, value: float) -> str:
    if limit.at_least is not None:
        return "high enough" if within(limit, value) else "too low"
    return "low enough" if within(limit, value) else "too high"
