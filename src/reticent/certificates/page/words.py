"""What the page says besides its numbers: what they rest on, what they do not cover, who is left out, its glossary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reticent import facts
from reticent.adversaries.report import AssessmentRecord, ConditionRecord
from reticent.certificates.document.derive import PRIVATE, question
from reticent.certificates.document.numbers import Names, further, named
from reticent.certificates.document.schema import Certificate, WarningRecord
from reticent.certificates.document.sentences import CERTAIN, Protected, even_guess, parts_in, percent, persons, whom
from reticent.kernel.adversaries import ADVERSARIES, WorstCase
from reticent.kernel.mechanisms import MECHANISMS, Mechanism
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import CLIENT, RECORD, TEXT, Figure, Message, said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim, Condition, Status, condition, worst_first
from reticent.kernel.risk.questions import MEASURES
from reticent.kernel.samplers import SAMPLERS
from reticent.kernel.text import owners
from reticent.mechanisms import Selection

Line = tuple[Message, Names]
"""What is said, and whose numbers it is about; nobody is named where it is about those of all."""
EVERYWHERE = (
    "record", "attacker", "blind-guess", "proven-limit", "advantage", "rates", "epsilon", "step", "gradient",
    "prior", "fingerprint", "commitment",
)  # fmt: skip
"""Words that every page explains."""
NOT_COVERED = ("other-uses", "choosing", "family", "groups", "theft")
_BEFORE = 2
"""Of these, so many stand before what the number of records of a person leaves out."""
POINTERS = ("edpb", "nist", "gdpr")
"""What the page names for further reading."""


def relation(neighbouring: Neighbouring, records: Protected) -> Message:
    """The question that a neighbouring relation asks; ``records``: see ``sentences.persons``."""
    return Message(f"relation.{neighbouring.value}").about(whom(records))


def glossary(certificate: Certificate) -> list[tuple[Message | str, Message]]:
    """The words of this page: those that every page has, and those that occur on it."""
    found = [*EVERYWHERE, *(word for word in ("estimate", "clip-norm") if _occurs(word, certificate))]
    if isinstance(persons(certificate.mechanism), Unit):
        found[0] = "client"
    explained: list[tuple[Message | str, Message]] = [
        (Message(f"word.{one}"), Message(f"word.{one}.means")) for one in found
    ]
    explained += [(name, meaning) for name, meaning in _named() if _occurs(name, certificate)]
    return [(word, of_clients(certificate, meaning)) for word, meaning in explained]


def _named() -> Iterator[tuple[str, Message]]:
    """Names that are explained where they occur; they are the same in every language."""
    released: list[type[Mechanism]] = [*MECHANISMS.values(), Selection]
    yield from sorted(((kind.name, said(kind.sentence)) for kind in released if kind.sentence), key=lambda one: one[0])
    yield from ((name, said(kind.sentence)) for name, kind in SAMPLERS.items())


def _occurs(word: str, certificate: Certificate) -> bool:
    parts = parts_in(certificate.mechanism)
    if word == "estimate":
        return any(not Claim(record.claim).proven for record in certificate.assessments)
    if word == "clip-norm":
        return any("noise_multiplier" in part for part in parts)
    if word == "selection":
        return any("runs" in part for part in certificate.mechanism.get("parts", [certificate.mechanism]))
    return any(word in (part.get("kind"), part.get("sampler")) for part in parts)


def claim(record: AssessmentRecord) -> Message:
    """How sure a number is, in words; an average says so."""
    found = Message(f"claim.{record.claim}")
    return found.under("average") if ADVERSARIES[record.adversary].averaged else found


def not_covered(certificate: Certificate) -> list[Message]:
    """What the numbers do not cover."""
    records = persons(certificate.mechanism)
    found = [of_clients(certificate, Message(f"not-covered.{one}")) for one in NOT_COVERED]
    if isinstance(records, Unit):
        found[_BEFORE] = Message("not-covered.several-clients")
    elif records is None:
        found.insert(_BEFORE, Message("not-covered.several-records"))
    else:
        found.insert(_BEFORE, Message("not-covered.more-records", n=Figure(str(records))))
    count = size(certificate)
    if count is not None:
        found.append(of_clients(certificate, Message("not-covered.size", count=Figure(str(count)))))
    elif any(one.name == facts.SIZE_PUBLIC.key for one in certificate.warnings):
        found.append(of_clients(certificate, Message("not-covered.size.unprinted")))
    return found


def size(certificate: Certificate) -> int | None:
    """How many training records the page prints, if it does."""
    found = {part["dataset_size"] for part in parts_in(certificate.mechanism) if part.get("dataset_size") is not None}
    return int(found.pop()) if len(found) == 1 else None


def people(certificate: Certificate) -> Message:
    """Whose records the numbers are about."""
    records = persons(certificate.mechanism)
    if isinstance(records, Unit):
        return Message("people.client")
    if records is not None:
        return Message("people.declared", n=Figure(str(records)))
    most = max(part.get("copies") or 1 for part in parts_in(certificate.mechanism))
    return Message("people.copies", n=Figure(str(most))) if most > 1 else Message("people.record")


def of_clients(certificate: Certificate, message: Message) -> Message:
    """A sentence about records; about clients where clients are protected."""
    return message.about(CLIENT if isinstance(persons(certificate.mechanism), Unit) else RECORD)


def stronger(certificate: Certificate) -> Message:
    """What an attacker may see of the training."""
    every_step = all(ADVERSARIES[record.adversary].every_step for record in certificate.assessments)
    return Message("stronger.every-step" if every_step else "stronger.last-step")


def left_out(certificate: Certificate) -> list[tuple[Message, Message, list[Message]]]:
    """Who is not on the page: name, title, and the reason with what to do about it."""
    found = []
    for name, kind in ADVERSARIES.items():
        reason = certificate.skipped.get(name)
        if reason is not None:
            unmeasured = None if kind.unmeasured is None else said(kind.unmeasured)
            todo = [Message("left-out.assess")] if reason == unmeasured else []
            todo += [_of_a_field(certificate, name)] if reason == PRIVATE else []
            found.append((Message(f"name.{name}", more=""), said(kind.title), [_closed(reason), *todo]))
    return found


def unanswered(certificate: Certificate) -> list[tuple[Message, Message]]:
    """Questions that somebody asked and nobody can answer, each with the reason."""
    records = persons(certificate.mechanism)
    known = ((relation(one, records), certificate.skipped.get(question(one))) for one in Neighbouring)
    return [(asked, _closed(reason)) for asked, reason in known if reason is not None]


def unasked(certificate: Certificate) -> list[Message]:
    """The usual questions that nobody asked: the page says nothing about them."""
    records, asked = persons(certificate.mechanism), {record.neighbouring for record in certificate.assessments}
    usual = (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)
    return [relation(one, records) for one in usual if one not in asked and question(one) not in certificate.skipped]


def _of_a_field(certificate: Certificate, name: str) -> Message:
    """What the page says without an attacker who is not on it: of a field of two values, the limit of replacement."""
    for record in certificate.assessments:
        known = record.adversary == WorstCase.name and record.neighbouring == Neighbouring.REPLACE
        share = percent(even_guess(record), up=True)
        if ADVERSARIES[name].needs == "gradient_change" and known and share != CERTAIN:
            return Message("left-out.field", share=share)
    return Message("left-out.nothing")


def _closed(reason: Message) -> Message:
    """A reason as a sentence of the page."""
    if reason.key == TEXT:
        return said(f"{str(reason).rstrip('.')}.")
    return Message("refused", reason=reason.under("page"))


_NOISE = condition("unpredictable-noise", Status.CHECKED)
_PREPARED = condition("public-preparation", Status.ASSUMED)


def conditions(certificate: Certificate) -> Mapping[Status, list[Line]]:
    """What the numbers of the worst case rest on: by status, worst first."""
    strongest = [one for one in certificate.assessments if one.adversary == WorstCase.name]
    return _by_status(certificate, [(one, one.conditions) for one in strongest])


def every_condition(certificate: Certificate) -> Mapping[Status, list[Line]]:
    """The same of all attackers, each sentence with those whose numbers need it."""
    return _by_status(certificate, [(record, record.conditions) for record in certificate.assessments])


@dataclass(frozen=True, slots=True)
class Beyond:
    """What only weaker attackers need: engineers know what it means.

    Attributes:
        conditions: as for the worst case, each with the attackers whose numbers need it.
    """

    conditions: Mapping[Status, list[Line]]

    @property
    def names(self) -> Names:
        """Attackers whose numbers need more than those of the worst case."""
        return tuple(dict.fromkeys(name for lines in self.conditions.values() for _, who in lines for name in who))

    @property
    def points(self) -> int:
        """How many there are."""
        return sum(map(len, self.conditions.values()))

    @property
    def unchecked(self) -> int:
        """How many of these nobody checked."""
        return self.points - len(self.conditions.get(Status.CHECKED, ()))


def beyond(certificate: Certificate) -> Beyond | None:
    """What the numbers of weaker attackers need besides; None where they need no more than the worst case."""
    known = {line for lines in conditions(certificate).values() for line, _ in lines}
    found = {
        status: more
        for status, lines in every_condition(certificate).items()
        if (more := [one for one in lines if one[0] not in known])
    }
    return Beyond(found) if found else None


def counts(certificate: Certificate) -> Counter[str]:
    """How many points the page lists under each status."""
    listed = [every_condition(certificate), *(needed(certificate, name) for name in further(certificate))]
    return Counter(status.value for found in listed for status, lines in found.items() for _ in lines)


def needed(certificate: Certificate, measure: str) -> Mapping[Status, list[Line]]:
    """What the numbers of ``measure`` need besides."""
    field = MEASURES[measure].field
    stating = [record for record in certificate.assessments if field in record.also_needed]
    return _by_status(certificate, [(record, record.also_needed[field]) for record in stating])


def _said(certificate: Certificate, known: Condition) -> Message:
    """A condition in words; of noise that was checked, what the program looked at; and where a warning denies it."""
    if known == _NOISE and certificate.ledger is not None:
        return known.says.under("watched" if certificate.ledger.config is None else "trained")
    false = denied(certificate) if known == _PREPARED else None
    return false or of_clients(certificate, known.says)


def denied(certificate: Certificate) -> Message | None:
    """The condition that a warning of the document says does not hold; None where there is no such warning."""
    return _PREPARED.says.under("denied") if facts.SCHEMA_FROM_RECORDS.key in certificate.warned else None


def _by_status(
    certificate: Certificate, stated: Sequence[tuple[AssessmentRecord, Sequence[ConditionRecord]]]
) -> Mapping[Status, list[Line]]:
    needed = owners((record.label, [one.known for one in own]) for record, own in stated)
    names = {record.label: named(record) for record, _ in stated}
    groups: dict[Status, list[Line]] = {}
    for known in worst_first(needed):
        who = tuple(names[label] for label in needed[known])
        groups.setdefault(known.status, []).append((_said(certificate, known), who))
    return groups


def reason(warning: WarningRecord) -> Message:
    """What a warning says to people who decide."""
    whole = said(warning.text)
    found = dict(whole.values).get("reason")
    return found if isinstance(found, Message) else whole


def remedies(certificate: Certificate) -> list[tuple[str, Message]]:
    """What engineers can do about each warning, by its name."""
    ledger = certificate.ledger
    return [] if ledger is None else [(fact.key, of_clients(certificate, fact.remedy)) for fact in ledger.faults]
