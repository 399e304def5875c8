"""Reading back from a document what it says it follows from; everything is checked before anything is computed."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, get_type_hints

from pydantic import ValidationError

from reticent.adversaries import ADVERSARIES, Adversary
from reticent.certificates.derive import NOT_ASKED, PRIVATE, Inputs, assessed
from reticent.certificates.numbers import Questions
from reticent.certificates.schema import Certificate, CertifiedAssessment, Edition
from reticent.certificates.text import inert
from reticent.errors import ArtifactError, ParameterError, ReticentError, UnsupportedError
from reticent.mechanisms import MECHANISMS, Ledger, Mechanism, Neighbouring
from reticent.records.run_ledger import PublicLedger, RunLedger, first_problem
from reticent.records.watched_run import WATCH_SCHEMA, PublicWatchedRun, WatchedRun
from reticent.registry import Parameter, parameters_of

_MOST_PARTS = 64
_LARGEST_COUNT = 10**12
_MOST_POINTS = 4096
_MOST_WORK = 1e8
"""Numbers: some seconds, and less than a gigabyte."""


def inputs_of(certificate: Certificate) -> Inputs:
    """What the document says it follows from.

    Raises:
        ArtifactError: it names a mechanism, attacker, question or ledger that does not exist or is out of bounds.
    """
    ledger = _ledger(certificate)
    mechanism = mechanism_of(certificate.mechanism) if ledger is None else within_reach(ledger.mechanism())
    asked = tuple((_adversary(record), _known(Neighbouring, record.neighbouring)) for record in certificate.assessments)
    q = certificate.questions
    try:
        questions = Questions(tuple(q.fprs), tuple(q.deltas), tuple(q.epsilons), tuple(q.priors))
    except ReticentError as error:
        raise ArtifactError(f"questions: {error}") from None
    skipped = {
        name: reason for name, reason in certificate.skipped.items() if _may_be_skipped(certificate, mechanism, name)
    }
    return Inputs(certificate.declared, mechanism, asked, questions, skipped, certificate.edition, ledger)


def mechanism_of(record: dict[str, Any]) -> Mechanism:
    """The mechanism that a record describes.

    Raises:
        ArtifactError: it describes none, or one beyond every use we know.
    """
    fields = dict(record)
    kind = fields.pop("kind", None)
    try:
        if kind == "ledger":
            return within_reach(Ledger(tuple(_part(part) for part in _parts(fields))))
        known = MECHANISMS[str(kind)]
        for parameter in parameters_of(known):
            if fields.get(parameter.name) is not None:
                fields[parameter.name] = _read(parameter, fields[parameter.name])
        mechanism = known(**fields)
    except (ReticentError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(inert(f"mechanism: {error}")) from None
    return within_reach(mechanism)


def within_reach(mechanism: Mechanism) -> Mechanism:
    """The same mechanism, if a document of a stranger may ask for what it takes to derive it.

    Raises:
        ArtifactError: it takes too much.
    """
    if mechanism.work > _MOST_WORK:
        asked = f"goes through about {mechanism.work:.0e} numbers"
        raise ArtifactError(f"mechanism: {asked}, more than the {_MOST_WORK:.0e} that a document may ask for")
    return mechanism


def _part(record: Any) -> Mechanism:
    part = mechanism_of(record)
    if isinstance(part, Ledger):
        raise ParameterError("parts", "a ledger", "no ledger themselves")
    return part


def _parts(fields: dict[str, Any]) -> list[dict[str, Any]]:
    parts = fields["parts"]
    if set(fields) != {"parts"} or not isinstance(parts, list) or not 1 <= len(parts) <= _MOST_PARTS:
        raise ParameterError("parts", "given", f"the one field, a list of 1 to {_MOST_PARTS} mechanisms")
    if not all(isinstance(part, dict) and part.get("kind") != "ledger" for part in parts):
        raise ParameterError("parts", "given", "objects, none of them a ledger")
    return parts


def _ledger(certificate: Certificate) -> PublicLedger | PublicWatchedRun | None:
    if certificate.ledger is None:
        return None
    watched = certificate.ledger.get("schema") == WATCH_SCHEMA
    kinds: tuple[Any, Any] = (WatchedRun, PublicWatchedRun) if watched else (RunLedger, PublicLedger)
    kind = kinds[0] if certificate.edition is Edition.COMPLETE else kinds[1]
    try:
        ledger: PublicLedger | PublicWatchedRun = kind.model_validate(certificate.ledger)
        steps = _most_steps(ledger)
        mechanism_of({"kind": "dpsgd", "noise_multiplier": 1.0, "sample_rate": 1.0, "steps": steps})
        ledger.mechanism()
    except ValidationError as error:
        raise ArtifactError(inert(f"ledger.{first_problem(error)}")) from None
    except (ReticentError, ValueError, OverflowError) as error:
        raise ArtifactError(inert(f"ledger: {error}")) from None
    return ledger


def _most_steps(ledger: PublicLedger | PublicWatchedRun) -> int:
    if isinstance(ledger, PublicWatchedRun):
        return max(ledger.steps, 0 if ledger.planned is None else ledger.planned.steps)
    return ledger.planned_steps


def _adversary(record: CertifiedAssessment) -> Adversary:
    kind = _known_adversary(record.adversary)
    known = {parameter.name: parameter for parameter in parameters_of(kind)}
    try:
        return kind(**{name: _parameter(known[name], value) for name, value in record.parameters.items()})
    except (ReticentError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(inert(f"{record.adversary}: {error}")) from None


def _read(parameter: Parameter, value: Any) -> Any:
    """The value of a parameter as its type; whole numbers are written without a point: 4 is 4.0 again."""
    if _whole(value) and value > _LARGEST_COUNT:
        raise ParameterError(parameter.name, value, f"at most {_LARGEST_COUNT:g}")
    if issubclass(parameter.kind, StrEnum):
        return parameter.kind(value)
    if parameter.kind is int and isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_COUNT:
        return int(value)
    return float(value) if _whole(value) and parameter.kind is not int else value


def _parameter(parameter: Parameter, value: Any) -> Any:
    """A number, or what was measured, as an object that names its kind."""
    if not isinstance(value, dict):
        return value if value is None else _read(parameter, value)
    measured = dict(value)
    name = measured.pop("kind", None)
    kind = {known.__name__: known for known in parameter.measured}[str(name)]
    for points in measured.values():
        if isinstance(points, list) and len(points) > _MOST_POINTS:
            raise ParameterError("parameters", len(points), f"lists of at most {_MOST_POINTS} numbers")
    hints = get_type_hints(kind)
    return kind(**{name: _measured(hints.get(name), value) for name, value in measured.items()})


def _measured(hint: Any, value: Any) -> Any:
    """A field of a measurement: null is infinite where no null may stand, words are those of an enumeration."""
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    if hint is float and value is None:
        return math.inf
    return float(value) if _whole(value) and hint is not int else value


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _known_adversary(name: str) -> type[Adversary]:
    if name not in ADVERSARIES:
        raise ArtifactError(inert(f"unknown attacker {name!r}: this version knows {', '.join(ADVERSARIES)}"))
    return ADVERSARIES[name]


def _known(kind: type[Neighbouring], text: str) -> Neighbouring:
    try:
        return kind(text)
    except ValueError:
        raise ArtifactError(inert(f"unknown neighbouring relation {text!r}")) from None


def _may_be_skipped(certificate: Certificate, mechanism: Mechanism, name: str) -> bool:
    """Whether the reason that the document gives for leaving ``name`` out is one that can be true."""
    reason = certificate.skipped[name]
    if reason == PRIVATE:
        measured = any(parameter.measured for parameter in parameters_of(_known_adversary(name)))
        return certificate.edition is Edition.PUBLIC and measured
    kind = _known_adversary(name)
    return reason in (NOT_ASKED, kind.unmeasured) or reason in _refusals(kind, certificate, mechanism)


def _refusals(kind: type[Adversary], certificate: Certificate, mechanism: Mechanism) -> set[str]:
    """Why such an attacker cannot be answered, under its own relation and each of the document."""
    examples = [kind(), *(kind(**{p.name: 1.0}) for p in parameters_of(kind) if p.measured and p.typeable)]
    found = set()
    for relation in sorted({kind.relation.value, *(record.neighbouring for record in certificate.assessments)}):
        for example in examples:
            try:
                assessed(example, mechanism, _known(Neighbouring, relation))
            except (UnsupportedError, ParameterError) as error:
                found.add(str(error))
    return found
