"""The rows of the answer: each attacker of the document, with the guess before and after.

An attacker who repeats another goes to the appendix: the page has a row for each different answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from reticent.certificates.document.numbers import named, repeats
from reticent.certificates.document.schema import Certificate, CertifiedAssessment, QuestionRecord
from reticent.certificates.document.sentences import (
    CERTAIN,
    EVEN,
    even_guess,
    found_at,
    limited,
    one_in,
    percent,
    persons,
    worth,
)
from reticent.certificates.page import words
from reticent.kernel.adversaries import ADVERSARIES, WorstCase
from reticent.kernel.messages import Figure, Message, said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim

SCALE = 192.0
_INDENT = 6.0
_ALL = Message("share.at-most", share=CERTAIN)
NO_LIMIT = Message("no-limit")
"""What a proof says that ends at 100%."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the answer: an attacker, and from where to where the guess goes.

    Attributes:
        record: the assessment.
        name: of its attacker, the same in every table, picture and note.
        title: that attacker in people's words.
        guesses: with the model, in the order of the columns.
        sure: how sure the numbers are, in words.
        dot: place of the best guess on the drawing from 50% to 100%.
        like: the attacker whose answer this one repeats, who has the row of both; None for a row of its own.
    """

    record: CertifiedAssessment
    name: Message
    title: Message
    guesses: tuple[Message, ...]
    sure: Message
    dot: float
    like: Message | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the answer: its heading, what is reached without the model, and what it means."""

    name: Message
    blind: Message
    means: Message | None


@dataclass(frozen=True, slots=True)
class Group:
    """The rows under one neighbouring relation.

    Attributes:
        question: what every attacker here wants to know.
        short: the same in few words.
        instead: what the columns mean here, where that is not what the text below the table says.
        columns: of this question.
        rows: the worst case first, each with an answer of its own.
        apart: those who repeat another, or lie between two rows: they go to the appendix.
    """

    question: Message
    short: Message
    instead: Message | None
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    apart: tuple[Row, ...]


def place(share: float) -> float:
    """Where a share of right answers lies on the drawing: 50% at its left end, 100% at its right."""
    return round(_INDENT + SCALE * (2.0 * share - 1.0), 1)


def columns(certificate: Certificate, relation: str) -> tuple[Column, ...]:
    """The columns of the answer to the question of a relation."""
    q = certificate.questions
    found = [Column(Message("column.guess"), Message("column.blind", share=EVEN), None)]
    for prior, fpr in _accusations(q):
        at, often = Figure(f"{100.0 * fpr:g}", "%"), Figure(f"{1 / prior:.3g}")
        found.append(_column("accused", relation, at, percent(prior), n=often))
    for fpr in (f for f in q.fprs if f == 0.01):
        found.append(_column("found", relation, percent(fpr), percent(fpr)))
    return tuple(found)


def _column(name: str, relation: str, at: Figure, blind: Figure, **values: Figure) -> Column:
    means = Message(f"column.{name}.means", **values).under(relation)
    return Column(Message(f"column.{name}", share=at), Message("column.blind", share=blind), means)


def explained(columns: Sequence[Column], relation: str) -> list[Message]:
    """What the columns about many people mean, and on which terms they hold."""
    found = [one.means for one in columns if one.means is not None]
    return [*found, Message("columns.independent").under(relation)] if found else []


Surest = tuple[Message, Figure, Message, Message | None, Message | None]
"""A question, the false alarms, and the share of right accusations at even odds, and at a rare prior."""


def surest(certificate: Certificate) -> list[Surest]:
    """The worth of accusations where few are accused: at even odds, and at the prior of the table where it has one.

    One for each question up to the first that has no limit; none where the document does not state the number.
    """
    q, worst = certificate.questions, (one for one in certificate.assessments if one.adversary == WorstCase.name)
    few = [fpr for fpr in q.fprs if 0.0 < fpr <= 0.01]
    if not few or 0.5 not in q.priors:
        return []
    alarms = min(few)
    rare = next((prior for prior, fpr in _accusations(q) if fpr == alarms), None)
    return [
        (
            Message(f"short.{one.neighbouring}"),
            Figure(f"{100.0 * alarms:g}", "%"),
            worth(one, 0.5, alarms),
            None if rare is None else one_in(rare),
            None if rare is None else worth(one, rare, alarms),
        )
        for one in takewhile(lambda one: limited([one]), worst)
    ]


def _accusations(q: QuestionRecord) -> list[tuple[float, float]]:
    """The prior and the false alarm rate at which the worth of an accusation is a column."""
    rare = [prior for prior in q.priors if prior < 0.5][:1]
    return [(prior, fpr) for prior in rare for fpr in sorted(q.fprs) if 0.0 < fpr <= 0.01][:1]


def groups(certificate: Certificate) -> list[Group]:
    """All attackers, by relation."""
    records = persons(certificate.mechanism)
    found: dict[str, list[CertifiedAssessment]] = {}
    for record in certificate.assessments:
        found.setdefault(record.neighbouring, []).append(record)
    return [
        _group(certificate, words.relation(Neighbouring(name), records), name, same) for name, same in found.items()
    ]


def _group(certificate: Certificate, question: Message, relation: str, same: Sequence[CertifiedAssessment]) -> Group:
    rows = [_row(certificate, one, same) for one in same]
    own, apart = (tuple(row for row in rows if (row.like is None) is wanted) for wanted in (True, False))
    own_columns, head = (columns(certificate, one) for one in (relation, certificate.assessments[0].neighbouring))
    instead = None if own_columns == head else Message("columns.instead")
    return Group(question, Message(f"short.{relation}"), instead, own_columns, own, apart)


def _row(certificate: Certificate, record: CertifiedAssessment, same: Sequence[CertifiedAssessment]) -> Row:
    title, guesses = said(ADVERSARIES[record.adversary].title), _guesses(certificate, record)
    sure = NO_LIMIT if guesses[0] == guesses[-1] == NO_LIMIT else words.claim(record)
    return Row(record, named(record), title, guesses, sure, place(even_guess(record)), _like(record, same))


def _like(record: CertifiedAssessment, same: Sequence[CertifiedAssessment]) -> Message | None:
    """Who has the row of this attacker: the first with the same curve and claim, or both ends of a mixture."""
    kind = ADVERSARIES[record.adversary]
    for other in same:
        if other is record:
            break
        if repeats(record, other):
            return Message(kind.repeated, name=named(other))
    if kind.beside is None or kind.beside not in {other.adversary for other in same}:
        return None
    ends = {"other": kind.beside, "worst": WorstCase.name}
    return Message("between", **{end: Message(f"name.{name}", more="") for end, name in ends.items()})


def _guesses(certificate: Certificate, record: CertifiedAssessment) -> tuple[Message, ...]:
    q = certificate.questions
    claim = Claim(record.claim)
    strength = "at-most" if claim.proven else "about" if claim is Claim.ESTIMATE else "measured"
    even = Message(f"share.{strength}", share=percent(even_guess(record), up=claim.proven))
    accused = [_accused(record, *at) for at in _accusations(q)]
    found = (even, *accused, *(found_at(record, f) for f in q.fprs if f == 0.01))
    return tuple(NO_LIMIT if share == _ALL else share for share in found)


def _accused(record: CertifiedAssessment, prior: float, fpr: float) -> Message:
    """The worth of an accusation; where everybody can be found, what is left is arithmetic and no limit."""
    return _ALL if found_at(record, fpr) == _ALL else worth(record, prior, fpr)
