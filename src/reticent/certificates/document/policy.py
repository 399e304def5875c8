"""A policy: what a certificate must show before a model may go out. ``requirements`` says whether it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from reticent.adversaries.report import Record
from reticent.facts import all_facts
from reticent.io.models import Sha256, validated
from reticent.kernel.adversaries import ADVERSARIES
from reticent.kernel.errors import ArtifactError
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS, Claim
from reticent.kernel.registry import Parameter, parameters_of
from reticent.kernel.risk.questions import MEASURES, Questions
from reticent.kernel.text import did_you_mean, one_of

_ROUNDING = 1e-9
"""Relative difference of two spellings of one number."""
MEASURED = "measured"
"""In place of a parameter's value: whatever was measured."""
ANY = "any"
"""In place of a parameter's value: whatever it is. The conditions say who vouches for it."""


Named = Literal["advantage", "bayes_security", "mu", "success", "tpr", "ppv", "epsilon", "delta", "secret", "recovered"]
Real = Annotated[float, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]


def _among(listed: Callable[[], Collection[str]]) -> AfterValidator:
    """A name that exists: a policy that forbids what never happens would pass everything."""

    def known(name: str) -> str:
        names = listed()
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


Warned = Annotated[str, _among(lambda: sorted(fact.key for fact in all_facts().values() if fact.said))]
Accepted = Annotated[str, _among(lambda: CONDITIONS)]


class Limit(Record):
    """The most risk that one attacker may have.

    Attributes:
        adversary: who; by default the worst case.
        parameters: of the attacker, by name: a number, or the word ``measured`` or ``any``; whatever is not named has
            its default. Numbers of the same attacker with other parameters do not count.
        measure: which number of this attacker is limited.
        at: where it is read: the prior of ``success``, the FPR of ``tpr``, the prior and the FPR of ``ppv``, the delta
            of ``epsilon``, the epsilon of ``delta``, the bits and the guesses of ``secret``, the baseline
            of ``recovered``; absent for the others.
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
    parameters: dict[str, Real | Literal["measured", "any"] | None] = Field(default_factory=dict, max_length=16)
    neighbouring: Neighbouring | None = None
    claim: Claim | Literal["any"] = Claim.BOUND

    @model_validator(mode="after")
    def _fits(self) -> Limit:
        kind = MEASURES[self.measure]
        side, other = ("at_least", "at_most") if self.measure == "bayes_security" else ("at_most", "at_least")
        value = getattr(self, side)
        if value is None or getattr(self, other) is not None:
            raise ValueError(f"{self.measure} takes {side} only")
        if not 0.0 <= value <= kind.most:
            most = "" if math.isinf(kind.most) else f" to {kind.most:g}"
            raise ValueError(f"{side} of {self.measure} must be a number from 0{most}, got {value!r}")
        if len(self.places) != len(kind.places):
            raise ValueError(f"{self.measure} {_needs(kind.places)}")
        asked = Questions(**{asked: (x,) for (_, asked), x in zip(kind.places, self.places, strict=True)})
        if not list(kind.asked(asked)):
            raise ValueError(f"{self.measure} is read at a false positive rate above 0")
        least = kind.blind(*self.places) if self.places else 0.0
        if value < least * (1.0 - _ROUNDING):
            raise ValueError(f"at_most of {self.measure} must be at least {least:g}, which no attack is needed for")
        if value == (kind.most if self.at_least is None else 0.0):
            beyond = "below" if self.at_least is None else "above"
            raise ValueError(f"{side} of {self.measure} must be {beyond} {value:g}, to which every release keeps")
        return self

    @model_validator(mode="after")
    def _has_these_parameters(self) -> Limit:
        known = {parameter.name: parameter for parameter in parameters_wanted(self.adversary)}
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
        per: whom the numbers have to be about: a ``person``, with so many records as the document states, or a
            ``record``, whoever has how many. By default the document must state a person's records, or protect
            whole clients.
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
    per: Literal["person", "record"] | None = None
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


def load_policy(path: Path) -> Policy:
    """Read a policy.

    Raises:
        ArtifactError: the file is missing, no YAML, or has a key or value that is not allowed.
    """
    from reticent.io import yaml

    document = yaml.load_file(path)
    if not isinstance(document, dict):
        raise ArtifactError(f"{path}: must be a mapping of keys to values")
    return validated(Policy, document, str(path))


def parameters_wanted(adversary: str) -> tuple[Parameter, ...]:
    """The parameters that a limit on this attacker can name."""
    return parameters_of(ADVERSARIES[adversary])
