"""The rows of the answer: each attacker of the document, with the guess before and after.

An attacker who repeats another goes to the appendix: the page has a row for each different answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from reticent.adversaries import ADVERSARIES, WorstCase
from reticent.certificates import words
from reticent.certificates.numbers import repeats
from reticent.certificates.schema import Certificate, CertifiedAssessment, QuestionRecord
from reticent.certificates.sentences import asked_about, even_guess, found_at, limited, one_in, percent, persons, worth
from reticent.mechanisms import Neighbouring
from reticent.proofs import Claim

SCALE = 192.0
_INDENT = 6.0
INSTEAD = "Here, read “has the diagnosis” for “is in the data”. Insiders are those who have it."
"""How to read the head of the table where the attacker knows two versions of a record."""
_ALL = "at most 100%"
NO_LIMIT = "no limit"
"""What a proof says that ends at 100%."""
_SAID = (("is in the data", "share of insiders found"), ("has the diagnosis", "share of those with it who are found"))
"""Who can be accused and who can be found: of people, and of versions of a record."""
_ALONE = "independently of others, and nobody is known to be likelier"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the answer: an attacker, and from where to where the guess goes.

    Attributes:
        record: the assessment; its attacker has the same name in every table, picture and note.
        title: that attacker in people's words.
        guesses: pairs (blind guess, with the model), in the order of the columns.
        sure: how sure the numbers are, in words.
        dot: place of the best guess on the drawing from 50% to 100%.
        like: the attacker whose answer this one repeats, who has the row of both; None for a row of its own.
    """

    record: CertifiedAssessment
    title: str
    guesses: tuple[tuple[str, str], ...]
    sure: str
    dot: float
    like: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """The rows under one neighbouring relation.

    Attributes:
        question: what every attacker here wants to know.
        relation: its name.
        instead: what the columns mean here, where that is not what the head of the table says; else empty.
        columns: heading and explanation of each column, for this question.
        rows: the worst case first, each with an answer of its own.
        apart: those who repeat another, or lie between two rows: they go to the appendix.
    """

    question: str
    relation: str
    instead: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    apart: tuple[Row, ...]


def place(share: float) -> float:
    """Where a share of right answers lies on the drawing: 50% at its left end, 100% at its right."""
    return round(_INDENT + SCALE * (2.0 * share - 1.0), 1)


def columns(certificate: Certificate, relation: str) -> tuple[tuple[str, str], ...]:
    """Heading and explanation of each column of the answer to the question of a relation."""
    q = certificate.questions
    there, insiders = _SAID[relation == Neighbouring.REPLACE]
    found = [("Right guess", f"both answers equally likely; without the model {percent(0.5)}")]
    for prior, fpr in _accusations(q):
        meaning = f"accusations that are right, if {one_in(prior)} {there}, {_ALONE}"
        found.append((f"Accused, {100.0 * fpr:g}% false alarms", f"{meaning}; without the model {percent(prior)}"))
    for fpr in (f for f in q.fprs if f == 0.01):
        found.append((f"Found, {percent(fpr)} false alarms", f"{insiders}; without the model {percent(fpr)}"))
    return tuple(found)


def rare_prior(certificate: Certificate) -> str | None:
    """The prior of the columns on accusations, in words; None where there are none."""
    return next((one_in(prior) for prior, _ in _accusations(certificate.questions)), None)


def surest(certificate: Certificate) -> list[tuple[str, str, str]]:
    """The worth of accusations at even odds where few are accused: the question, the false alarms, the right share.

    One for each question up to the first that has no limit; none where the document does not state the number.
    """
    q, worst = certificate.questions, (one for one in certificate.assessments if one.adversary == WorstCase.name)
    few = [fpr for fpr in q.fprs if 0.0 < fpr <= 0.01]
    if not few or 0.5 not in q.priors:
        return []
    found, records = min(few), persons(certificate.mechanism)
    return [
        (asked_about(Neighbouring(one.neighbouring), records), f"{100.0 * found:g}%", worth(one, 0.5, found)[1])
        for one in takewhile(lambda one: limited([one]), worst)
    ]


def _accusations(q: QuestionRecord) -> list[tuple[float, float]]:
    """The prior and the false alarm rates at which the worth of an accusation is a column."""
    rare = [prior for prior in q.priors if prior < 0.5][:1]
    return [(prior, fpr) for prior in rare for fpr in sorted(q.fprs, reverse=True) if 0.0 < fpr <= 0.01][:2]


def groups(certificate: Certificate) -> list[Group]:
    """All attackers, by relation."""
    records = persons(certificate.mechanism)
    found: dict[str, list[CertifiedAssessment]] = {}
    for record in certificate.assessments:
        found.setdefault(record.neighbouring, []).append(record)
    return [
        _group(certificate, words.relation(Neighbouring(name), records), name, same) for name, same in found.items()
    ]


def _group(certificate: Certificate, question: str, relation: str, same: Sequence[CertifiedAssessment]) -> Group:
    rows = [_row(certificate, one, same) for one in same]
    own, apart = (tuple(row for row in rows if (row.like is None) is wanted) for wanted in (True, False))
    own_columns, head = (columns(certificate, one) for one in (relation, certificate.assessments[0].neighbouring))
    return Group(question, relation, "" if own_columns == head else INSTEAD, own_columns, own, apart)


def _row(certificate: Certificate, record: CertifiedAssessment, same: Sequence[CertifiedAssessment]) -> Row:
    title, guesses = ADVERSARIES[record.adversary].title, _guesses(certificate, record)
    sure = NO_LIMIT if guesses[0][1] == guesses[-1][1] == NO_LIMIT else words.claim(record)
    return Row(record, title, guesses, sure, place(even_guess(record)), _like(record, same))


def _like(record: CertifiedAssessment, same: Sequence[CertifiedAssessment]) -> str | None:
    """Who has the row of this attacker: the first with the same curve and claim, or both ends of a mixture."""
    kind = ADVERSARIES[record.adversary]
    for other in same:
        if other is record:
            break
        if repeats(record, other):
            return kind.repeated.format(name=other.label)
    between = kind.beside in {other.adversary for other in same}
    return f"Lies between {kind.beside} and {WorstCase.name}" if between else None


def _guesses(certificate: Certificate, record: CertifiedAssessment) -> tuple[tuple[str, str], ...]:
    q = certificate.questions
    claim = Claim(record.claim)
    strength = "at most" if claim.proven else "about" if claim is Claim.ESTIMATE else "measured"
    even = (percent(0.5), f"{strength} {percent(even_guess(record), up=claim.proven)}")
    accused = [_accused(record, *at) for at in _accusations(q)]
    found = (even, *accused, *(found_at(record, f) for f in q.fprs if f == 0.01))
    return tuple((blind, NO_LIMIT if share == _ALL else share) for blind, share in found)


def _accused(record: CertifiedAssessment, prior: float, fpr: float) -> tuple[str, str]:
    """The worth of an accusation; where everybody can be found, what is left is arithmetic and no limit."""
    blind, share = worth(record, prior, fpr)
    return blind, _ALL if found_at(record, fpr)[1] == _ALL else share
