"""The words of the page: names that people understand, what is assumed, what is not covered, a glossary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reticent.adversaries import ADVERSARIES, FinalModel
from reticent.certificates.schema import Certificate
from reticent.certificates.sentences import Protected, about, persons
from reticent.mechanisms import Neighbouring
from reticent.mechanisms.units import Unit
from reticent.proofs import Claim, Condition, worst_first
from reticent.risk.report import MEASURES, AssessmentRecord, ConditionRecord

_RELATIONS = {
    Neighbouring.ADD_REMOVE: "Was {this} used at all?",
    Neighbouring.REPLACE: "Which of two {records} was used?",
    Neighbouring.ZERO_OUT: "Did {this} have any effect?",
}
CLAIMS = {
    "bound": "proven limit",
    "conditional": "proven if a condition holds",
    "estimate": "estimate",
    "empirical": "measured",
}
STATUSES = {
    "assumed": "Assumed: nothing that was seen establishes it",
    "declared": "Declared: the issuer says so",
    "checked": "Checked in the run",
}

GLOSSARY = (
    ("record", "One row of the training data. A person can have contributed several."),
    ("attacker", "Someone who tries to learn something about one record, or one person, from the released model."),
    (
        "worst case",
        "An attacker who knows everything but the answer, the noise and the draws of the batches. Nobody who knows no "
        "more than that can do better.",
    ),
    ("blind guess", "The best guess without the model. It is right even if the model reveals nothing."),
    (
        "proven limit",
        "A bound: no attacker of this kind does better, given what was run. Where the proof needs a condition on the "
        "data that nobody checked, the page says so.",
    ),
    ("estimate", "An approximation. The truth can be higher or lower."),
    ("advantage", "How far the attacker beats a coin flip: 0 is nothing, 1 is certainty. 1 minus Bayes security."),
    (
        "false alarm",
        "The attacker says that a person was in the data, and is wrong. FPR is the share of outsiders accused, TPR the "
        "share of insiders found.",
    ),
    (
        "epsilon, delta, mu",
        "Numbers of differential privacy that sum up the whole curve. Smaller is safer; experts compare them.",
    ),
    ("noise", "Random numbers added during training. They hide what one record does."),
)

_CLIENT = ("client", "One participant of federated learning, with all its records and all that it sends in a round.")

_NOT_COVERED = (
    "other uses of the same data, and other models trained on it: risks add up",
    "choosing settings by looking at results on the same records",
    "what the model shows about groups, or about people in general, whether or not they took part",
    "theft of the data itself, and what users type into the model",
    "rounding: the proof is about exact random numbers, the computer draws rounded ones",
)

POINTERS = (
    ("EDPB Opinion 28/2024", "on AI models and personal data: when a model counts as anonymous"),
    ("NIST SP 800-226", "how to evaluate guarantees of differential privacy"),
    ("GDPR Article 35", "the data protection impact assessment that these numbers can feed"),
)


def relation(neighbouring: Neighbouring, records: Protected) -> str:
    """The question that a neighbouring relation asks; ``records``: see ``sentences.persons``."""
    if isinstance(records, Unit):
        return about(relation(neighbouring, None), records)
    if records is None:
        return _RELATIONS[neighbouring].format(this="this record", records="records")
    if records == 1:
        return _RELATIONS[neighbouring].format(this="this person's record", records="records of this person")
    text = _RELATIONS[neighbouring].format(this="any of this person's records", records="sets of this person's records")
    return text.replace("Was any", "Were any")


def glossary(records: Protected) -> list[tuple[str, str]]:
    """Ten words; ``records``: see ``sentences.persons``."""
    if not isinstance(records, Unit):
        return list(GLOSSARY)
    return [_CLIENT, *((word, about(meaning, records)) for word, meaning in GLOSSARY[1:])]


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
    return [*_NOT_COVERED[:2], f"people who contributed {several}", *_NOT_COVERED[2:]]


def people(certificate: Certificate) -> str:
    """Whose records the numbers are about."""
    records = persons(certificate.mechanism)
    if isinstance(records, Unit):
        return "All numbers are about one client with all its records."
    if records is None:
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
    alone = any(record.adversary == FinalModel.name for record in certificate.assessments)
    return _ALONE if alone else _STRONGER


def left_out(certificate: Certificate) -> list[tuple[str, str, list[str]]]:
    """Who is not on the page: name, title, and the reason with what to do about it."""
    found = []
    for name, kind in ADVERSARIES.items():
        reason = certificate.skipped.get(name)
        if reason is not None:
            todo = [_ASSESS] if kind.unmeasured == reason else []
            found.append((name, kind.title, [f"{reason.rstrip('.')}.", *todo]))
    return found


_ASSESS = "Name the field as sensitive in the configuration, or watch with sensitive=, to have it assessed."


def sentences() -> Iterator[str]:
    """Everything that is listed here, for translators."""
    yield from CLAIMS.values()
    yield f"{CLAIMS['bound']} on average"
    yield from STATUSES.values()
    for word, meaning in (*GLOSSARY, _CLIENT):
        yield from (word, meaning)
    yield from _NOT_COVERED
    for name, meaning in POINTERS:
        yield from (name, meaning)
    yield from (_STRONGER, _ALONE, _ASSESS)


def conditions(certificate: Certificate) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the numbers rest on: by status, worst first, each sentence with the attackers whose numbers need it."""
    return _by_status(certificate, [(record, record.conditions) for record in certificate.assessments])


def of_secrets(certificate: Certificate) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the numbers about secrets need besides."""
    field = MEASURES["secret"].field
    stating = [record for record in certificate.assessments if field in record.also_needed]
    return _by_status(certificate, [(record, record.also_needed[field]) for record in stating])


def _by_status(
    certificate: Certificate, stated: Sequence[tuple[AssessmentRecord, Sequence[ConditionRecord]]]
) -> list[tuple[str, list[tuple[str, str]]]]:
    needed: dict[Condition, dict[str, None]] = {}
    for record, own in stated:
        for one in own:
            needed.setdefault(one.known, {})[record.label] = None
    everybody = {record.label for record, _ in stated}
    groups: dict[str, list[tuple[str, str]]] = {}
    for known in worst_first(needed):
        names = "" if len(needed[known]) == len(everybody) else ", ".join(needed[known])
        groups.setdefault(STATUSES[known.status.value], []).append((of_clients(certificate, known.says), names))
    return list(groups.items())
