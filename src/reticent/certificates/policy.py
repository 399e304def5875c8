"""A policy: what a certificate must show before a model may go out, and whether it does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from reticent.adversaries import ADVERSARIES
from reticent.certificates.schema import Certificate, CertifiedAssessment
from reticent.certificates.verify import Verification
from reticent.errors import ArtifactError
from reticent.io import yaml
from reticent.io.models import Sha256, validated
from reticent.io.times import moment
from reticent.mechanisms import Neighbouring
from reticent.proofs import CONDITIONS, Claim
from reticent.records.run_warnings import RunWarning
from reticent.records.watch_faults import Fault
from reticent.registry import Parameter, parameters_of
from reticent.risk.report import MEASURES, Number, Questions, Record
from reticent.text import did_you_mean, digits, one_of

MEASURED = "measured"
"""In place of a parameter's value: whatever was measured."""


Named = Literal["advantage", "bayes_security", "mu", "success", "tpr", "ppv", "epsilon", "delta", "secret"]
Real = Annotated[float, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]


def _among(*names: str) -> AfterValidator:
    """A name that exists: a policy that forbids what never happens would pass everything."""

    def known(name: str) -> str:
        if name not in names:
            raise ValueError(f"must be a name that exists{did_you_mean(name, names)}")
        return name

    return AfterValidator(known)


def _needs(places: tuple[tuple[str, str], ...]) -> str:
    names = ", ".join(name for name, _ in places)
    return f"needs 'at': {names if len(places) == 1 else f'[{names}]'}" if places else "takes no 'at'"


def _attacker(name: str) -> str:
    if name not in ADVERSARIES:
        raise ValueError(f"must be {one_of(name, ADVERSARIES)}")
    return name


Warned = Annotated[str, _among(*sorted({*(w.value for w in RunWarning), *(f.value for f in Fault)}))]
Accepted = Annotated[str, _among(*CONDITIONS)]


class Limit(Record):
    """The most risk that one attacker may have.

    Attributes:
        adversary: who; by default the worst case.
        parameters: of the attacker, by name: a number, or the word ``measured``; whatever is not named has its
            default. Numbers of the same attacker with other parameters do not count.
        measure: which number of this attacker is limited.
        at: where it is read: the prior of ``success``, the FPR of ``tpr``, the prior and the FPR of ``ppv``, the delta
            of ``epsilon``, the epsilon of ``delta``, the bits and the guesses of ``secret``; absent for the others.
        at_most: the largest value allowed; for ``bayes_security`` use ``at_least``.
        at_least: the smallest Bayes security allowed.
        neighbouring: for which relation; None for each that the policy demands, and each that the certificate has.
        claim: how strong the number must be; by default ``bound``.
    """

    measure: Named
    at_most: Real | None = None
    at_least: Real | None = None
    at: Real | tuple[Real, Real] | None = None
    adversary: Annotated[str, AfterValidator(_attacker)] = "worst-case"
    parameters: dict[str, Real | Literal["measured"] | None] = Field(default_factory=dict, max_length=16)
    neighbouring: Neighbouring | None = None
    claim: Claim | Literal["any"] = Claim.BOUND

    @model_validator(mode="after")
    def _fits(self) -> Limit:
        kind = MEASURES[self.measure]
        side, other = ("at_least", "at_most") if self.measure == "bayes_security" else ("at_most", "at_least")
        value = getattr(self, side)
        if value is None or getattr(self, other) is not None:
            raise ValueError(f"{self.measure} takes {side} and nothing else")
        if not 0.0 <= value <= kind.most:
            most = "" if math.isinf(kind.most) else f" to {kind.most:g}"
            raise ValueError(f"{side} of {self.measure} must be a number from 0{most}, got {value!r}")
        if len(self.places) != len(kind.places):
            raise ValueError(f"{self.measure} {_needs(kind.places)}")
        asked = Questions(**{asked: (x,) for (_, asked), x in zip(kind.places, self.places, strict=True)})
        if not list(kind.asked(asked)):
            raise ValueError(f"{self.measure} is read at a false positive rate above 0")
        return self

    @model_validator(mode="after")
    def _has_these_parameters(self) -> Limit:
        known = {parameter.name: parameter for parameter in _parameters(self.adversary)}
        for name, value in self.parameters.items():
            if name not in known:
                raise ValueError(f"a parameter of {self.adversary} must be {one_of(name, known)}, got {name!r}")
            if value == MEASURED and not known[name].measured:
                raise ValueError(f"{name} must be a number: nobody measures it")
        return self

    @property
    def places(self) -> tuple[float, ...]:
        """``at``, number by number."""
        return self.at if isinstance(self.at, tuple) else () if self.at is None else (self.at,)

    @property
    def relation(self) -> Neighbouring:
        """That of the limit, or the attacker's own."""
        return self.neighbouring or ADVERSARIES[self.adversary].relation


class Policy(Record):
    """What a certificate must show.

    Attributes:
        limits: at least one.
        signature: require a signature of the key that ``--key`` gives.
        max_age_days: oldest certificate to accept, counted from ``created``.
        relations: neighbouring relations that must be covered, each with its worst case; by default those of the
            limits.
        ledger: require the ledger of a real run behind the mechanism.
        forbid_warnings: named warnings that must not be there.
        accept_conditions: what a number may rest on although nobody checked it; by default nothing.
        weights: require the file of weights, which ``--weights`` gives, to be the one that the certificate names.
        weights_sha256: fingerprints of the models that may go out; the certificate must name one of them.
    """

    schema_: Literal["reticent.policy/1"] = Field(alias="schema")
    limits: Annotated[list[Limit], Field(min_length=1, max_length=256)]
    signature: Flag = False
    max_age_days: Annotated[Real, Field(gt=0.0, le=36_500.0)] | None = None
    relations: tuple[Neighbouring, ...] = ()
    ledger: Flag = False
    forbid_warnings: tuple[Warned, ...] = ()
    accept_conditions: tuple[Accepted, ...] = ()
    weights: Flag = False
    weights_sha256: Annotated[tuple[Sha256, ...], Field(min_length=1, max_length=256)] | None = None

    @property
    def demanded(self) -> tuple[Neighbouring, ...]:
        """The relations that must be there."""
        named = self.relations or tuple(limit.neighbouring for limit in self.limits if limit.neighbouring)
        return tuple(dict.fromkeys(named or (limit.relation for limit in self.limits)))


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


@dataclass(frozen=True, slots=True)
class Shown:
    """What was compared besides the numbers; None where nothing was given to compare with.

    Attributes:
        signed: the signature is that of the key given.
        weights: the file of weights is the one that the certificate names.
    """

    signed: bool | None = None
    weights: bool | None = None


def load_policy(path: Path) -> Policy:
    """Read a policy.

    Raises:
        ArtifactError: the file is missing, no YAML, or has a key or value that is not allowed.
    """
    document = yaml.load_file(path)
    if not isinstance(document, dict):
        raise ArtifactError(f"{path}: must be a mapping of keys to values")
    return validated(Policy, document, str(path))


def check(
    certificate: Certificate, outcome: Verification, policy: Policy, shown: Shown, *, now: datetime
) -> list[Check]:
    """Every requirement of ``policy``, in order: the document itself first.

    Args:
        certificate: the document.
        outcome: what ``verify`` found; numbers of a document that is not accepted count for nothing.
        policy: what is required.
        shown: what else was compared.
        now: for age and expiry.
    """
    found = [_verified(outcome), *_shown(certificate, policy, shown), *_dates(certificate, policy, now)]
    worst = {record.neighbouring for record in certificate.assessments if record.adversary == "worst-case"}
    for relation in policy.demanded:
        detail = "there" if relation in worst else f"there for {', '.join(sorted(worst)) or 'no relation'}"
        found.append(Check(f"the worst case under {relation.value}", relation in worst, detail))
    if policy.ledger:
        present = certificate.ledger is not None
        found.append(Check("the ledger of a run stands behind it", present, "yes" if present else "no ledger"))
    listed = {warning.name for warning in certificate.warnings}
    for name in policy.forbid_warnings:
        found.append(Check(f"no warning {name}", name not in listed, "found" if name in listed else "none"))
    for limit in policy.limits:
        found += _limit(certificate, policy, limit)
    return found


def _verified(outcome: Verification) -> Check:
    refused = [difference for difference in outcome.differences if outcome.refuses(difference)]
    if not refused:
        return Check("the certificate verifies", True, f"{outcome.equal} numbers and sentences derived again")
    first = refused[0].leaf
    return Check("the certificate verifies", False, f"{len(refused)} numbers or sentences differ, first {first}")


def _shown(certificate: Certificate, policy: Policy, shown: Shown) -> Iterator[Check]:
    """The signature and the model."""
    if policy.signature or shown.signed is not None:
        says = {True: "by the key given", False: "missing, or by another key", None: "no key was given to check it"}
        yield Check("the certificate is signed", shown.signed is True, says[shown.signed])
    if policy.weights or shown.weights is not None:
        says = {True: "it is", False: "it is another, or none is named", None: "no file of weights was given"}
        yield Check("the model is the one that it names", shown.weights is True, says[shown.weights])
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


def _limit(certificate: Certificate, policy: Policy, limit: Limit) -> list[Check]:
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
            found.append(Check(f"{name} ({relation})", False, detail))
        found += [_against(record, limit, policy, f"{name} ({relation})") for record in records]
    return found


def _is_meant(record: CertifiedAssessment, limit: Limit) -> bool:
    """Whether the attacker of an assessment has the parameters of the limit, and defaults in all others."""
    wanted = {parameter.name: parameter.default for parameter in _parameters(limit.adversary)} | limit.parameters
    return wanted.keys() == record.parameters.keys() and all(
        isinstance(record.parameters[name], dict) if value == MEASURED else record.parameters[name] == value
        for name, value in wanted.items()
    )


def _parameters(adversary: str) -> tuple[Parameter, ...]:
    return parameters_of(ADVERSARIES[adversary])


def _against(record: CertifiedAssessment, limit: Limit, policy: Policy, where: str) -> Check:
    if not _strong_enough(record, limit):
        return Check(where, False, f"the claim is {record.claim}, the policy wants {limit.claim}")
    unaccepted = [f"{key} ({status})" for key, status in _open(record, limit) if key not in policy.accept_conditions]
    if unaccepted:
        return Check(where, False, f"it rests on {', '.join(unaccepted)}: the policy does not accept that")
    number = _read(record, limit)
    if number is None:
        return Check(where, False, f"the certificate does not state it at {_place(limit)}")
    if number.value is None:
        return Check(where, False, "there is no finite value")
    if limit.at_least is not None:
        return Check(where, number.value >= limit.at_least, f"is {digits(number.value, 6, up=False)}")
    assert limit.at_most is not None  # noqa: S101 (Limit checks that one of both is given)
    return Check(where, number.value <= limit.at_most, f"is {digits(number.value, 6, up=True)}")


def _strong_enough(record: CertifiedAssessment, limit: Limit) -> bool:
    """A conditional bound counts as a bound: its conditions are checked by themselves."""
    return limit.claim in ("any", record.claim) or (Claim(limit.claim).proven and Claim(record.claim).proven)


def _open(record: CertifiedAssessment, limit: Limit) -> Iterator[tuple[str, str]]:
    """What nobody checked, and who says so. What this version does not know, nobody checked."""
    for found in (*record.conditions, *record.also_needed.get(MEASURES[limit.measure].field, ())):
        if found.key not in CONDITIONS or found.known.open:
            yield found.key, found.status.value


def _read(record: CertifiedAssessment, limit: Limit) -> Number | None:
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
