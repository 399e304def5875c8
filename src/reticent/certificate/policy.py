"""A policy: what a certificate must show before a model may go out, and whether it does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from reticent._text import digits
from reticent._time import moment
from reticent.certificate.numbers import Number, Record
from reticent.certificate.schema import Certificate, CertifiedAssessment, read_text
from reticent.certificate.text import inert
from reticent.certificate.verify import Verification
from reticent.errors import ArtifactError
from reticent.mechanism import Neighbouring
from reticent.mechanism.run_ledger import first_problem
from reticent.threat import Claim

_LARGEST_POLICY = 1 << 20
_WHOLE = ("advantage", "bayes_security", "mu")
_AT = {
    "success": ("success_at_prior", "prior"),
    "tpr": ("tpr_at_fpr", "fpr"),
    "epsilon": ("epsilon_at_delta", "delta"),
    "delta": ("delta_at_epsilon", "epsilon"),
}
Adversary = Literal["worst-case", "relaxed", "mixed", "membership", "membership-game", "attribute"]
Measure = Literal["advantage", "bayes_security", "mu", "success", "tpr", "epsilon", "delta"]


class Limit(Record):
    """The most risk that one attacker may have.

    Attributes:
        adversary: who; by default the worst case.
        measure: which number of this attacker is limited.
        at: where it is read: the prior of ``success``, the FPR of ``tpr``, the delta of ``epsilon``, the epsilon
            of ``delta``; absent for the others.
        at_most: the largest value allowed; for ``bayes_security`` use ``at_least``.
        at_least: the smallest Bayes security allowed.
        neighbouring: for which relation, or None for every one that the certificate has.
        claim: how strong the number must be; by default ``bound``.
    """

    measure: Measure
    at_most: float | None = None
    at_least: float | None = None
    at: float | None = None
    adversary: Adversary = "worst-case"
    neighbouring: Neighbouring | None = None
    claim: Claim | Literal["any"] = Claim.BOUND

    @model_validator(mode="after")
    def _fits(self) -> Limit:
        side, other = ("at_least", "at_most") if self.measure == "bayes_security" else ("at_most", "at_least")
        if getattr(self, side) is None or getattr(self, other) is not None:
            raise ValueError(f"{self.measure} takes {side} and nothing else")
        if (self.at is None) == (self.measure in _AT):
            raise ValueError(f"{self.measure} {'needs' if self.at is None else 'takes no'} 'at'")
        return self


class Policy(Record):
    """What a certificate must show.

    Attributes:
        limits: at least one.
        signature: require a signature of the key that ``--key`` gives.
        max_age_days: oldest certificate to accept, counted from ``created``.
        relations: neighbouring relations that must be covered.
        ledger: require the ledger of a real run behind the mechanism.
        forbid_warnings: named warnings that must not be there.
    """

    schema_: Literal["reticent.policy/1"] = Field(alias="schema")
    limits: Annotated[list[Limit], Field(min_length=1, max_length=256)]
    signature: bool = False
    max_age_days: Annotated[float, Field(gt=0.0, le=36_500.0)] | None = None
    relations: tuple[Neighbouring, ...] = ()
    ledger: bool = False
    forbid_warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement and what became of it.

    Attributes:
        name: the requirement, in words.
        passed: whether the certificate meets it.
        detail: what was found.
    """

    name: str
    passed: bool
    detail: str


def load_policy(path: Path) -> Policy:
    """Read a policy.

    Raises:
        ArtifactError: the file is missing, no YAML, or has a key or value that is not allowed.
    """
    try:
        document = yaml.safe_load(read_text(path, _LARGEST_POLICY))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ArtifactError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if not isinstance(document, dict):
        raise ArtifactError(f"{path}: must be a mapping of keys to values")
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        raise ArtifactError(inert(f"{path}: {first_problem(error)}")) from None


def check(
    certificate: Certificate, outcome: Verification, policy: Policy, *, signed: bool | None, now: datetime
) -> list[Check]:
    """Every requirement of ``policy``, in order: the document itself first.

    Args:
        certificate: the document.
        outcome: what ``verify`` found; numbers of a document that is not accepted count for nothing.
        policy: what is required.
        signed: whether the signature was checked and is that of the issuer; None where no key was given.
        now: for age and expiry.
    """
    found = [_verified(outcome)]
    if policy.signature or signed is not None:
        says = {True: "by the key given", False: "missing, or by another key", None: "no key was given to check it"}
        found.append(Check("the certificate is signed", signed is True, says[signed]))
    found += _dates(certificate, policy, now)
    shown = {record.neighbouring for record in certificate.assessments}
    for relation in policy.relations:
        detail = "covered" if relation in shown else f"covered: {', '.join(sorted(shown))}"
        found.append(Check(f"relation {relation.value} is covered", relation in shown, detail))
    if policy.ledger:
        present = certificate.ledger is not None
        found.append(Check("the ledger of a run stands behind it", present, "yes" if present else "no ledger"))
    listed = {warning.name for warning in certificate.warnings}
    for name in policy.forbid_warnings:
        found.append(Check(f"no warning {inert(name)}", name not in listed, "found" if name in listed else "none"))
    for limit in policy.limits:
        found += _limit(certificate, limit)
    return found


def _verified(outcome: Verification) -> Check:
    refused = [difference for difference in outcome.differences if outcome.refuses(difference)]
    if not refused:
        return Check("the certificate verifies", True, f"{outcome.equal} numbers and sentences derived again")
    first = inert(refused[0].leaf)
    return Check("the certificate verifies", False, f"{len(refused)} numbers or sentences differ, first {first}")


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


def _limit(certificate: Certificate, limit: Limit) -> list[Check]:
    name = _name(limit)
    records = [
        record
        for record in certificate.assessments
        if record.adversary == limit.adversary and limit.neighbouring in (None, record.neighbouring)
    ]
    if not records:
        return [Check(name, False, f"the certificate has no such assessment of {limit.adversary}")]
    return [_against(record, limit, name) for record in records]


def _against(record: CertifiedAssessment, limit: Limit, name: str) -> Check:
    where = f"{name} ({record.neighbouring})"
    if limit.claim != "any" and record.claim != limit.claim:
        return Check(where, False, f"the claim is {record.claim}, the policy wants {limit.claim}")
    number = _read(record, limit)
    if number is None:
        return Check(where, False, f"the certificate does not state it at {limit.at:g}")
    if number.value is None:
        return Check(where, False, "there is no finite value")
    if limit.at_least is not None:
        return Check(where, number.value >= limit.at_least, f"is {digits(number.value, 6, up=False)}")
    assert limit.at_most is not None  # noqa: S101 (Limit checks that one of both is given)
    return Check(where, number.value <= limit.at_most, f"is {digits(number.value, 6, up=True)}")


def _read(record: CertifiedAssessment, limit: Limit) -> Number | None:
    if limit.measure in _WHOLE:
        number: Number = getattr(record, limit.measure)
        return number
    stated: dict[str, Number] = getattr(record, _AT[limit.measure][0])
    return stated.get(repr(limit.at))


def _name(limit: Limit) -> str:
    place = "" if limit.at is None else f" at {_AT[limit.measure][1]} {limit.at:g}"
    bound = f"at least {limit.at_least:g}" if limit.at_least is not None else f"at most {limit.at_most:g}"
    return f"{limit.adversary}: {limit.measure}{place} {bound}"
