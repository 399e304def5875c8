"""What a certificate says to people who decide and do not compute, as messages; and whom its numbers are about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from reticent.adversaries.report import AssessmentRecord, Number
from reticent.kernel.adversaries import ADVERSARIES
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import CLIENT, PERSON, PERSONS, RECORD, Figure, Message
from reticent.kernel.proofs import Claim
from reticent.kernel.risk.questions import MEASURES
from reticent.kernel.text import digits

Protected = int | Unit | None
"""Whom the numbers are about: so many records of a person, a client, or one record (None)."""
_SHARES = {
    Claim.BOUND: "share.at-most",
    Claim.CONDITIONAL: "share.at-most",
    Claim.ESTIMATE: "share.about",
    Claim.EMPIRICAL: "share.as-measured",
}
CERTAIN, EVEN = Figure("100", "%"), Figure("50", "%")
"""What is no limit, and what is right without the model where both answers are equally likely."""


def persons(mechanism: Mapping[str, Any]) -> Protected:
    """How many records of a person the numbers cover together, from a mechanism as a document states it.

    None where nothing is stated: then the numbers are about one record, and no sentence about a person follows.
    ``Unit.CLIENT`` where whole clients are drawn and clipped.
    """
    parts = parts_in(mechanism)
    if all(part.get("unit") == Unit.CLIENT for part in parts):
        return Unit.CLIENT
    records = {part.get("records_per_user") for part in parts}
    (only,) = records if len(records) == 1 else (None,)
    return only if isinstance(only, int) else None


def whom(records: Protected) -> str:
    """The word by which catalogues know them."""
    if isinstance(records, Unit):
        return CLIENT
    return RECORD if records is None else PERSON if records == 1 else PERSONS


STOP = Message("stop.question"), Message("stop.meaning")
"""What stands beside numbers of which nobody stated whom they protect (``persons`` is None)."""


def parts_in(mechanism: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The single mechanisms of one that a document states: of a ledger, of settings, of the run that is repeated."""
    if "base" in mechanism:
        return parts_in(mechanism["base"])
    stated = mechanism.get("parts", mechanism.get("settings"))
    return [one for part in stated for one in parts_in(part)] if isinstance(stated, list) else [mechanism]


def asked_about(neighbouring: str, records: Protected) -> Message:
    """The question of the worst case, as a headline asks it; ``records`` as for ``sentence``."""
    return Message(f"asked.{neighbouring}").about(whom(records))


def sentence(record: AssessmentRecord, records: Protected = None) -> Message:
    """From what guess to what guess this attacker gets, when both answers are equally likely beforehand.

    For a bound the percentage is rounded up, so the sentence is never stronger than the number. What a conditional
    number needs, and nobody checked, follows.

    Args:
        records: the most records of one person, where the numbers cover them all.
    """
    claim, what = Claim(record.claim), wanted(record)
    averaged = ADVERSARIES[record.adversary].averaged
    found = Message(
        "sentence",
        knows=known(record),
        wanted=Message("sentence.apposition", what=what) if averaged else what,
        reach=Message(_SHARES[claim], share=percent(even_guess(record), up=claim.proven)),
    )
    if record.lacks is not None:
        found = found.under("lacking").given(lacks=record.lacks)
    needs = tuple(one.known.says for one in record.conditions if one.known.weakens)
    if needs and claim.proven:
        found = Message("sentence.unchecked", sentence=found, needs=needs)
    return found.about(whom(records))


def known(record: AssessmentRecord) -> Message:
    """What this attacker knows; under replacement, who knows the record knows both versions of it."""
    return record.knows.under(record.neighbouring)


def wanted(record: AssessmentRecord) -> Message:
    """What this attacker wants to know; under replacement this is which of two records was used."""
    return record.infers.under(record.neighbouring)


def headline(worst: Sequence[AssessmentRecord], records: Protected = None) -> Message:
    """The answers of the worst case, one sentence for each question, and what they rest on.

    Args:
        worst: the records of the worst case, which are bounds: one for each neighbouring relation.
    """
    return Message("headline", says=(*answers(worst), *resting(worst))).about(whom(records))


def answers(worst: Sequence[AssessmentRecord], records: Protected = None) -> list[Message]:
    """One answer for each question, beside what is right without the model. The arguments are those of ``headline``.

    Both answers are equally likely beforehand, so without the model half of all answers are right. An estimate, such
    as a first picture on a screen, says *about*, never *at most*.
    """
    return [_answer(record).about(whom(records)) for record in worst]


def resting(worst: Sequence[AssessmentRecord], records: Protected = None) -> list[Message]:
    """What the answers rest on: that draws stay hidden, and that no private gradient ended the training."""
    needed = {one.key for record in worst for one in record.conditions} if limited(worst) else set()
    return [Message(f"resting.{key}").about(whom(records)) for key in RESTING if key in needed]


RESTING = ("hidden-draws", "same-stop")
"""Conditions of the worst case of which a headline says something."""


def _answer(worst: AssessmentRecord) -> Message:
    question, right = Message(f"asked.{worst.neighbouring}"), _right(worst)
    if not Claim(worst.claim).proven:
        return Message("answer.about", question=question, share=percent(even_guess(worst)))
    if right == CERTAIN:
        return Message("answer.certain", question=question)
    return Message("answer.at-most", question=question, share=right, blind=EVEN)


def _right(worst: AssessmentRecord) -> Figure:
    return percent(even_guess(worst), up=True)


def limited(worst: Sequence[AssessmentRecord]) -> bool:
    """Whether some answer of the worst case is a limit below certainty."""
    return any(_right(record) != CERTAIN for record in worst)


def even_guess(record: AssessmentRecord) -> float:
    """Probability of a right guess when both answers are equally likely beforehand: (1 + advantage) / 2."""
    return 0.5 + 0.5 * _finite(record.advantage)


def worth(record: AssessmentRecord, prior: float, fpr: float) -> Message:
    """How likely it is, with the model, that somebody who is accused was in the data.

    Args:
        prior: share of the people who were in the data.
        fpr: share of all others that the attacker accuses wrongly.
    """
    return _stated(record, MEASURES["ppv"].of(record, prior, fpr), prior)


def one_in(prior: float) -> Message:
    """A share in words, such as *1 in 10*."""
    return Message("one-in", n=Figure(f"{1 / prior:.3g}"))


def found_at(record: AssessmentRecord, fpr: float) -> Message:
    """Share of members found by an attacker with the model, who accuses ``fpr`` of all others wrongly."""
    return _stated(record, record.tpr_at_fpr[repr(float(fpr))], fpr)


def _stated(record: AssessmentRecord, number: Number, blind: float) -> Message:
    claim, share = Claim(record.claim), _finite(number)
    return Message(_SHARES[claim], share=above_blind(blind, share) if claim.proven else percent(share))


def above_blind(blind: float, share: float) -> Figure:
    """At least ``share`` in per cent: one decimal, or as many as show by how little it exceeds the blind guess.

    A rare secret stays hidden almost always: 0.90000001 is 90.000001%, where one decimal would make it 90.1%.
    """
    start = Decimal(repr(round(blind, 12)))
    gain = Decimal(repr(share)) - start
    if not 0 < gain < Decimal("0.001"):
        return percent(share, up=True)
    digit = Decimal((0, (1,), gain.adjusted()))
    return Figure(f"{(100 * (start + gain.quantize(digit, ROUND_CEILING))).normalize():f}", "%")


def share(x: float, *, up: bool | None = None) -> Figure:
    """A probability in per cent with three digits, however small it is; ``up`` as for ``digits``."""
    return Figure(digits(100.0 * x, 3, up=up), "%")


def percent(x: float, *, up: bool = False) -> Figure:
    """A probability in per cent with at most one decimal; rounded up on request, never above 100."""
    tenths = 1000.0 * x
    rounded = math.ceil(tenths * (1.0 - 4e-16)) if up else round(tenths)  # 0.618 is 61.8%, as floats round
    return Figure(f"{min(rounded, 1000) / 10:g}", "%")


def _finite(number: Number) -> float:
    return 1.0 if number.value is None else number.value
