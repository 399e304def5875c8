"""Whether a model may go out: the certificate verifies, is of today and signed, and meets its policy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from reticent.certificates.policy import Policy
from reticent.certificates.requirements import Check, judged
from reticent.certificates.schema import Certificate
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
