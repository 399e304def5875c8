"""The words of the page: names that people understand, what is assumed, what is not covered, a glossary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from reticent import facts
from reticent.adversaries import ADVERSARIES, WorstCase
from reticent.certificates.derive import PRIVATE, question
from reticent.certificates.schema import Certificate
from reticent.certificates.sentences import Protected, about, even_guess, parts_in, percent, persons
from reticent.mechanisms import MECHANISMS, Mechanism, Neighbouring, Selection
from reticent.mechanisms.units import Unit
from reticent.proofs import Claim, Condition, Status, condition, worst_first
from reticent.risk.report import MEASURES, AssessmentRecord, ConditionRecord
from reticent.samplers import SAMPLERS
from reticent.text import owners

_RELATIONS = {
    Neighbouring.ADD_REMOVE: "Was {this} used at all?",
    Neighbouring.REPLACE: "Which of two {versions} was used, say with and without a diagnosis?",
    Neighbouring.ZERO_OUT: "Did {this} have any effect?",
}
CLAIMS = {
    "bound": "proven limit",
    "conditional": "proven if a condition holds",
    "estimate": "estimate",
    "empirical": "measured",
}
STATUSES = {
    "assumed": "Taken on trust: nobody checked this",
    "declared": "Declared: the issuer or the settings say so",
    "checked": "Checked in the run: by the issuer’s own program",
}
MARKS = {
    "bound": "Filled dot: proven, if the points below hold.",
    "conditional": "Open diamond: more must hold, which nobody checked.",
    "estimate": "Open circle: estimate or measurement.",
    "empirical": "Open circle: estimate or measurement.",
}

GLOSSARY = (
    ("record", "One row of the training data."),
    (
        "attacker, worst case",
        "An attacker is anybody who has the model and guesses about a person. The worst case knows this record and all "
        "others, and lacks only the answer, the noise and the draws. Nobody who knows no more than that can do better.",
    ),
    ("blind guess", "The best guess without the model: where 1 in 10 is in the data, always “no” is right in 90%."),
    (
        "proven limit",
        "A bound: no attacker of this kind does better, if the training is as stated here and what the numbers rest on "
        "holds.",
    ),
    (
        "advantage, Bayes security",
        "How far the attacker beats a blind guess between two equally likely answers: 0 is nothing, 1 is certainty. "
        "Bayes security is 1 minus that.",
    ),
    (
        "false alarm, FPR, TPR, PPV",
        "A false alarm: the attacker says that a person was in the data, and is wrong. FPR, the false-positive rate, "
        "is the share of outsiders accused; TPR, the true-positive rate, that of insiders found; PPV, the positive "
        "predictive value, that of accusations that are right. Shares of many people need that, without the model, "
        "all are equally likely to be in the data, independently of each other.",
    ),
    (
        "epsilon, delta, mu",
        "Numbers of differential privacy; smaller is safer. Whichever answer is true, every result is at most "
        "e^epsilon times as likely as if the other were, plus delta (e is 2.718). mu sums up the most extreme "
        "accusations only: do not rank certificates by it.",
    ),
    (
        "step, batch, draw, sample rate",
        "Training goes in steps. Each step uses a batch of the records; which ones, is drawn by chance. The sample "
        "rate is the share of the records in a batch, on average.",
    ),
    ("gradient, direction", "How far, and which way, a record moves the model in a step."),
    ("prior", "The share of the people asked about who were in the data, or of two versions the share of the second."),
    ("fingerprint", "A number computed from a file (SHA-256). A file that differs has another one."),
    ("commitment", "A sealed number: the issuer can open it later, and show which data were meant."),
)
_OCCASIONAL = (
    ("estimate", "An approximation. The truth can be higher or lower."),
    (
        "clip norm, noise multiplier",
        "The clip norm is the most by which one record may move the sum of a step. The noise multiplier is the size of "
        "the noise on that sum, in clip norms: more noise hides more.",
    ),
)
_QUESTIONS = ("add-remove, replace", "The two questions: used or not; which of two versions.")


def _occasional() -> Iterator[tuple[str, str]]:
    """Words that are explained where they occur."""
    yield from _OCCASIONAL
    released: list[type[Mechanism]] = [*MECHANISMS.values(), Selection]
    yield from sorted((kind.name, kind.sentence) for kind in released if kind.sentence)
    yield from ((name, kind.sentence) for name, kind in SAMPLERS.items())
    yield _QUESTIONS


_CLIENT = ("client", "One participant of federated learning, with all its records and all that it sends in a round.")

_COPIES = (
    "Nothing is stated about how many records a person contributed. The data list one record up to {n} times: all "
    "numbers are about one record, with its copies."
)
_NOT_COVERED = (
    "other uses of the same data, and other models trained on it: risks add up",
    "choosing settings by looking at results on the same records",
    "what the model shows about groups, or about people in general, whether or not they took part",
    "theft of the data itself, and what users type into the model",
    "rounding: the proof is about exact random numbers, the computer draws rounded ones",
)
_FAMILY = "several people together, such as a family, and what the records of relatives say about a person"

POINTERS = (
    ("EDPB Opinion 28/2024", "when a model counts as anonymous"),
    ("NIST SP 800-226", "guarantees of differential privacy"),
    ("GDPR Article 35", "impact assessments"),
)


def relation(neighbouring: Neighbouring, records: Protected) -> str:
    """The question that a neighbouring relation asks; ``records``: see ``sentences.persons``."""
    if isinstance(records, Unit):
        return about(relation(neighbouring, None), records)
    if records is None:
        return _RELATIONS[neighbouring].format(this="this record", versions="possible records")
    if records == 1:
        return _RELATIONS[neighbouring].format(this="this person's record", versions="versions of this person's record")
    text = _RELATIONS[neighbouring].format(
        this="any of this person's records", versions="versions of this person's records"
    )
    return text.replace("Was any", "Were any")


def glossary(certificate: Certificate) -> list[tuple[str, str]]:
    """The words of this page: those that every page has, and those that occur on it."""
    records = persons(certificate.mechanism)
    found = [*GLOSSARY, *(entry for entry in _occasional() if _occurs(entry[0], certificate))]
    if isinstance(records, Unit):
        found = [_CLIENT, *((word, about(meaning, records)) for word, meaning in found[1:])]
    return found


def _occurs(word: str, certificate: Certificate) -> bool:
    parts = parts_in(certificate.mechanism)
    if word == "estimate":
        return any(not Claim(record.claim).proven for record in certificate.assessments)
    if word == "add-remove, replace":
        return {record.neighbouring for record in certificate.assessments} == {"add-remove", "replace"}
    if word.startswith("clip norm"):
        return any("noise_multiplier" in part for part in parts)
    if word == "selection":
        return any("runs" in part for part in certificate.mechanism.get("parts", [certificate.mechanism]))
    return any(word in (part.get("kind"), part.get("sampler")) for part in parts)


def marks(certificate: Certificate) -> list[str]:
    """What the marks of the table mean, where they occur on it."""
    found = {record.claim for record in certificate.assessments}
    return list(dict.fromkeys(meaning for claim, meaning in MARKS.items() if claim in found))


def claim(record: AssessmentRecord) -> str:
    """How sure a number is, in words; an average says so."""
    average = " on average" if ADVERSARIES[record.adversary].averaged else ""
    return CLAIMS[record.claim] + (average if Claim(record.claim) is Claim.BOUND else "")


def not_covered(certificate: Certificate) -> list[str]:
    """What the numbers do not cover."""
    records = persons(certificate.mechanism)
    if isinstance(records, Unit):
        return [*_NOT_COVERED[:1], about(_NOT_COVERED[1], records), "people with several clients", *_NOT_COVERED[2:]]
    several = "several records together" if records is None else f"more than {records} record{'s' * (records > 1)}"
    return [*_NOT_COVERED[:2], f"people who contributed {several}", _FAMILY, *_NOT_COVERED[2:]]


def people(certificate: Certificate) -> str:
    """Whose records the numbers are about."""
    records = persons(certificate.mechanism)
    if isinstance(records, Unit):
        return "All numbers are about one client with all its records."
    if records is None:
        most = max(part.get("copies") or 1 for part in parts_in(certificate.mechanism))
        if most > 1:
            return _COPIES.format(n=most)
        return "Nothing is stated about how many records a person contributed: all numbers are about one record."
    return "The issuer declares: each person contributed " + (
        "one record." if records == 1 else f"at most {records} records."
    )


def of_clients(certificate: Certificate, text: str) -> str:
    """A sentence about records; about clients where clients are protected."""
    found = persons(certificate.mechanism)
    return about(text, found) if isinstance(found, Unit) else text


_STRONGER = "The attacker may see the model after every step, not only the last one. Who sees less learns no more."
_ALONE = (
    "final-model is the attacker who sees the last model only. Every other attacker may see the model after every step."
)


def stronger(certificate: Certificate) -> str:
    """What an attacker may see of the training."""
    every_step = all(ADVERSARIES[record.adversary].every_step for record in certificate.assessments)
    return _STRONGER if every_step else _ALONE


def left_out(certificate: Certificate) -> list[tuple[str, str, list[str]]]:
    """Who is not on the page: name, title, and the reason with what to do about it."""
    found = []
    for name, kind in ADVERSARIES.items():
        reason = certificate.skipped.get(name)
        if reason is not None:
            found.append((name, kind.title, _reasons(reason, kind.unmeasured, _of_a_field(certificate, name))))
    return found


def unanswered(certificate: Certificate) -> list[tuple[str, str]]:
    """Questions that somebody asked and nobody can answer, each with the reason."""
    records = persons(certificate.mechanism)
    known = ((relation(one, records), certificate.skipped.get(question(one))) for one in Neighbouring)
    return [(asked, f"{reason.rstrip('.')}.") for asked, reason in known if reason is not None]


def unasked(certificate: Certificate) -> list[str]:
    """The usual questions that nobody asked: the page says nothing about them."""
    records, asked = persons(certificate.mechanism), {record.neighbouring for record in certificate.assessments}
    usual = (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)
    return [relation(one, records) for one in usual if one not in asked and question(one) not in certificate.skipped]


def _of_a_field(certificate: Certificate, name: str) -> str:
    """What the page says without an attacker who is not on it: of a field of two values, the limit of replacement."""
    for record in certificate.assessments:
        known = record.adversary == WorstCase.name and record.neighbouring == Neighbouring.REPLACE
        share = percent(even_guess(record), up=True)
        if ADVERSARIES[name].needs == "gradient_change" and known and share != "100%":
            return _FIELD.format(share=share)
    return _PRIVATE


def _reasons(reason: str, unmeasured: str | None, private: str) -> list[str]:
    """Why an attacker is not on the page, and what a reader can do."""
    missing = re.fullmatch(r"\w+ must be known for the membership game: (.*)", reason)
    if missing is not None:
        return [f"not stated: {missing[1].rstrip('.')}."]
    todo = [_ASSESS] if reason == unmeasured else [private] if reason == PRIVATE else []
    return [f"{reason.rstrip('.')}.", *todo]


_ASSESS = "Where a field is sensitive, ask to have it measured."
_PRIVATE = "This page says nothing about that risk."
_FIELD = "For one field with two equally likely values the limit is {share}; of any other, this page says nothing."


_NOISE = condition("unpredictable-noise", Status.CHECKED)
_LOOKED_AT = {
    False: f"{_NOISE.says} Looked at: the source only. The noise came from the secure generator of the operating "
    "system, and no seed of it was kept.",
    True: f"{_NOISE.says} Looked at: the source only. When the loop ended, its optimizer took noise from a secure "
    "generator.",
}
"""What a program looks at before it says that nobody can predict the noise: one that trained, and one that watched."""
_PREPARED = condition("public-preparation", Status.ASSUMED)
_NOT_HERE = f"{_PREPARED.says} It does here: bounds or categories of some columns were read off them."


def sentences() -> Iterator[str]:
    """Everything that is listed here, for translators."""
    yield from CLAIMS.values()
    yield f"{CLAIMS['bound']} on average"
    yield from STATUSES.values()
    yield from MARKS.values()
    for word, meaning in (*GLOSSARY, *_occasional(), _CLIENT):
        yield from (word, meaning)
    yield from (*_NOT_COVERED, _FAMILY)
    for name, meaning in POINTERS:
        yield from (name, meaning)
    yield from (_COPIES, _STRONGER, _ALONE, _ASSESS, _PRIVATE, _FIELD, _NOT_HERE, *_LOOKED_AT.values())


def conditions(certificate: Certificate) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the numbers rest on: by status, worst first, each sentence with the attackers whose numbers need it."""
    return _by_status(certificate, [(record, record.conditions) for record in certificate.assessments])


def counts(certificate: Certificate) -> Counter[str]:
    """How many points the page lists under each status."""
    names = {title: status for status, title in STATUSES.items()}
    listed = [*conditions(certificate), *of_secrets(certificate)]
    return Counter(names[title] for title, lines in listed for _ in lines)


def of_secrets(certificate: Certificate) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the numbers about secrets need besides."""
    field = MEASURES["secret"].field
    stating = [record for record in certificate.assessments if field in record.also_needed]
    return _by_status(certificate, [(record, record.also_needed[field]) for record in stating])


def _said(certificate: Certificate, known: Condition) -> str:
    """A condition in words; of noise that was checked, what the program looked at; and where a warning denies it."""
    if known == _NOISE and certificate.ledger is not None:
        return _LOOKED_AT[certificate.ledger.get("config") is None]
    false = denied(certificate) if known == _PREPARED else None
    return false or of_clients(certificate, known.says)


def denied(certificate: Certificate) -> str | None:
    """The condition that a warning of the document says does not hold; None where there is no such warning."""
    cited = [name for one in certificate.declared.releases if one is not None for name in one.warnings]
    listed = [*cited, *(one.name for one in certificate.warnings)]
    return _NOT_HERE if facts.SCHEMA_FROM_RECORDS.key in listed else None


def _by_status(
    certificate: Certificate, stated: Sequence[tuple[AssessmentRecord, Sequence[ConditionRecord]]]
) -> list[tuple[str, list[tuple[str, str]]]]:
    needed = owners((record.label, [one.known for one in own]) for record, own in stated)
    groups: dict[str, list[tuple[str, str]]] = {}
    for known in worst_first(needed):
        line = _said(certificate, known), ", ".join(needed[known])
        groups.setdefault(STATUSES[known.status.value], []).append(line)
    return list(groups.items())
