"""Whether a model may go out: the certificate verifies, is of today and signed, and meets its policy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from reticent.calibration.spelling import target_of
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.requirements import Check, judged
from reticent.certificates.document.schema import Certificate
from reticent.certificates.register import TORN, Register
from reticent.certificates.verify import Verification
from reticent.io.times import moment


def check(
    certificate: Certificate,
    outcome: Verification,
    policy: Policy,
    *,
    now: datetime,
    signed: bool | None = None,
    weights: bool | None = None,
) -> list[Check]:
    """Every requirement of ``policy``, in order: the document itself first.

    Args:
        outcome: what ``verify`` found; numbers of a document that is not accepted are not even read.
        now: for age and expiry.
        signed: whether the signature is that of the key given; None where none was given.
        weights: whether the file of weights is the one that the certificate names; None where none was given.
    """
    around = [_verified(outcome), *_besides(certificate, policy, signed, weights), *_dates(certificate, policy, now)]
    return [*around, *(judged(certificate, policy) if outcome.accepted else ())]


def _verified(outcome: Verification) -> Check:
    refused = [difference for difference in outcome.differences if outcome.refuses(difference)]
    if not refused:
        return Check("the certificate verifies", True, f"{outcome.equal} numbers and sentences derived again")
    first = refused[0].leaf
    return Check("the certificate verifies", False, f"{len(refused)} numbers or sentences differ, first {first}")


def _besides(certificate: Certificate, policy: Policy, signed: bool | None, weights: bool | None) -> Iterator[Check]:
    if policy.signature or signed is not None:
        says = {True: "by the key given", False: "missing, or by another key", None: "no key was given to check it"}
        yield Check("the certificate is signed", signed is True, says[signed])
    if policy.weights or weights is not None:
        says = {True: "it is", False: "it is another, or none is named", None: "no file of weights was given"}
        yield Check("the model is the one that it names", weights is True, says[weights])
    if policy.weights_sha256 is not None:
        named = certificate.declared.weights_sha256
        detail = "no model is named" if named is None else f"SHA-256 {named}"
        yield Check("the model is one that may go out", named in policy.weights_sha256, detail)


def _dates(certificate: Certificate, policy: Policy, now: datetime) -> list[Check]:
    found = []
    created, expires = moment(certificate.declared.created), certificate.declared.expires
    if expires is not None:
        found.append(Check("the certificate has not expired", now < moment(expires), f"expires {expires}"))
    if policy.max_age_days is not None:
        age = now - created
        fresh = timedelta(days=-1) <= age <= timedelta(days=policy.max_age_days)
        detail = f"created {certificate.declared.created}, {_days(age)}"
        found.append(Check(f"at most {policy.max_age_days:g} days old", fresh, detail))
    return found


def _days(age: timedelta) -> str:
    """Whole days: a public certificate states the day on which it was made, and no hour."""
    if age < timedelta(0):
        return "in the future"
    return {0: "today", 1: "1 day ago"}.get(age.days, f"{age.days} days ago")


def registered(
    certificate: Certificate,
    policy: Policy,
    register: Register,
    spent: float,
    *,
    name: str | None = None,
    budget: str | None = None,
    head: str | None = None,
) -> list[Check]:
    """Whether the release is in the register of its data, and the budget of that is kept.

    Args:
        spent: what all its releases use together.
        name: of the data set that it must be about, if anybody asks.
        budget: that it must have.
        head: that must still be there.
    """
    entered, between = register.holds(certificate), register.opened.neighbouring
    notes = [TORN] if register.torn else []
    notes += ["whether it is an old one was not asked (--register-head)"] if head is None else []
    how = "; ".join([f"{register.opened.data}: {'entered' if entered else 'not entered'}", *notes])
    kept = f"{register.left(spent)} ({between}, for a plan)"
    checks = [
        Check("the release is in the register", entered, how),
        Check("all releases keep the budget", register.budget.met_by(spent), kept),
        Check("the register is of a relation of the policy", between in policy.demanded, between),
    ]
    if head is not None:
        there = register.reaches(head)
        said = f"the head {'is' if there else 'is not'} in it: {head}"
        checks.append(Check("the register is no old one", there, said))
    if name is not None:
        checks.append(Check("the register is of the data", register.opened.data == name, register.opened.data))
    if budget is not None:
        same = register.budget == target_of(budget)
        checks.append(Check("the register has the budget", same, register.opened.budget))
    return checks
