"""Plain sentences for people who decide and do not compute."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from reticent.mechanisms import Neighbouring
from reticent.mechanisms.units import Unit
from reticent.proofs import Claim
from reticent.risk.report import MEASURES, AssessmentRecord, Number
from reticent.text import digits

_A_RECORD = re.compile(r"\b([Rr])ecord(s?)\b")

_STRENGTH = {
    Claim.BOUND: "to at most",
    Claim.CONDITIONAL: "to at most",
    Claim.ESTIMATE: "to about",
    Claim.EMPIRICAL: "to (as measured)",
}


Protected = int | Unit | None
"""Whom the numbers are about: so many records of a person, a client, or one record (None)."""


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


STOP = (
    "Stop: can one person have several records?",
    "Nobody stated it. Every number is about one record. Somebody with several is hidden less well.",
)
"""What stands beside numbers of which nobody stated whom they protect (``persons`` is None)."""


def parts_in(mechanism: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The single mechanisms of one that a document states: of a ledger, of settings, of the run that is repeated."""
    if "base" in mechanism:
        return parts_in(mechanism["base"])
    stated = mechanism.get("parts", mechanism.get("settings"))
    return [one for part in stated for one in parts_in(part)] if isinstance(stated, list) else [mechanism]


def about(text: str, records: Protected) -> str:
    """A sentence about "this record": of a client, or of all records of a person where ``records`` covers them."""
    if records is None:
        return text
    if isinstance(records, Unit):
        return _A_RECORD.sub(_as_client, text)
    if records == 1:
        return text.replace("this record", "this person's record").replace("this one", "this person's data")
    plural = text.replace("this record was", "this person's records were").replace(
        "this record is", "this person's records are"
    )
    plural = plural.replace("this record moves", "this person's records move")
    return plural.replace("this record", "this person's records").replace("this one", "this person's data")


def _as_client(found: re.Match[str]) -> str:
    return f"{'C' if found[1] == 'R' else 'c'}lient{found[2]}"


def asked_about(neighbouring: Neighbouring, records: Protected) -> str:
    """The question of the worst case, as a headline asks it; ``records`` as for ``sentence``."""
    if isinstance(records, Unit):
        return about(asked_about(neighbouring, None), records)
    if neighbouring is Neighbouring.REPLACE:
        if records is None:
            return "which of two possible records was used"
        return f"which of two versions of a given person's {'record' if records == 1 else 'records'} was used"
    if records is None:
        return "whether a given record was used"
    return f"whether a given person's {'record was' if records == 1 else 'records were'} used"


def sentence(record: AssessmentRecord, records: Protected = None) -> str:
    """From what guess to what guess this attacker gets, when both answers are equally likely beforehand.

    For a bound the percentage is rounded up, so the sentence is never stronger than the number. What a conditional
    number needs, and nobody checked, follows.

    Args:
        records: the most records of one person, where the numbers cover them all.
    """
    claim = Claim(record.claim)
    knows = known(record, records)
    lacks = f", but not {about(record.lacks, records)}," if record.lacks else ""
    needs = [one.known.says for one in record.conditions if one.known.weakens]
    unless = f" Nobody checked what this needs: {' '.join(about(text, records) for text in needs)}" if needs else ""
    return (
        f"An attacker who knows {knows}{lacks} can raise a 50% guess of {wanted(record, records)} "
        f"{_STRENGTH[claim]} {percent(even_guess(record), up=claim.proven)}.{unless if claim.proven else ''}"
    )


def known(record: AssessmentRecord, records: Protected = None) -> str:
    """What this attacker knows; under replacement, who knows the record knows both versions of it."""
    both = record.neighbouring == Neighbouring.REPLACE and record.knows.startswith("this record")
    return about(f"both versions of {record.knows}" if both else record.knows, records).rstrip(",")


def wanted(record: AssessmentRecord, records: Protected = None) -> str:
    """What this attacker wants to know; under replacement this is which of two records was used."""
    question = record.infers
    if record.neighbouring == Neighbouring.REPLACE and question.startswith("whether this record"):
        _, comma, average = question.partition(",")
        question = f"{asked_about(Neighbouring.REPLACE, records)}{comma}{average}"
    return about(question, records)


def headline(worst: Sequence[AssessmentRecord], records: Protected = None) -> str:
    """The answers of the worst case, one sentence for each question, and what they rest on.

    Args:
        worst: the records of the worst case, which are bounds: one for each neighbouring relation.
    """
    return " ".join([*answers(worst, records), *resting(worst, records)])


def answers(worst: Sequence[AssessmentRecord], records: Protected = None) -> list[str]:
    """One answer for each question, beside what is right without the model. The arguments are those of ``headline``.

    Both answers are equally likely beforehand, so without the model half of all answers are right. An estimate, such
    as a first picture on a screen, says *about*, never *at most*.
    """
    return [_answer(record, records) for record in worst]


def resting(worst: Sequence[AssessmentRecord], records: Protected = None) -> list[str]:
    """What the answers rest on: that draws stay hidden, and that no private gradient ended the training."""
    needed = {one.key for record in worst for one in record.conditions} if limited(worst) else set()
    return [about(says, records) for key, says in RESTING.items() if key in needed]


_EVEN = "if both answers are equally likely beforehand"
RESTING = {
    "hidden-draws": "This holds as long as nobody learns which records each step drew.",
    "same-stop": "It holds only if no record decided when training ended, which the number of steps shows.",
}
"""What a headline says of a condition that the worst case has."""


def _answer(worst: AssessmentRecord, records: Protected) -> str:
    question, right = asked_about(Neighbouring(worst.neighbouring), records), _right(worst)
    if not Claim(worst.claim).proven:
        return f"Asked {question}, an attacker is right about {percent(even_guess(worst))} of the time, {_EVEN}."
    if right == "100%":
        return f"Nothing is proven that keeps an attacker from being all but certain {question}."
    blind = f"Without the model: {percent(0.5)}."
    return f"Asked {question}, an attacker is right at most {right} of the time, {_EVEN}. {blind}"


def _right(worst: AssessmentRecord) -> str:
    return percent(even_guess(worst), up=True)


def limited(worst: Sequence[AssessmentRecord]) -> bool:
    """Whether some answer of the worst case is a limit below certainty."""
    return any(_right(record) != "100%" for record in worst)


def even_guess(record: AssessmentRecord) -> float:
    """Probability of a right guess when both answers are equally likely beforehand: (1 + advantage) / 2."""
    return 0.5 + 0.5 * _finite(record.advantage)


def worth(record: AssessmentRecord, prior: float, fpr: float) -> tuple[str, str]:
    """How likely it is that somebody who is accused was in the data: blindly, and with the model.

    Args:
        prior: share of the people who were in the data.
        fpr: share of all others that the attacker accuses wrongly.
    """
    number = MEASURES["ppv"].of(record, prior, fpr)
    return percent(prior), _stated(record, number, prior)


def one_in(prior: float) -> str:
    """A share in words, such as *1 in 10*."""
    return f"1 in {1 / prior:.3g}"


def found_at(record: AssessmentRecord, fpr: float) -> tuple[str, str]:
    """Share of members found by an attacker who accuses ``fpr`` of all others wrongly: blindly, and with the model."""
    return percent(fpr), _stated(record, record.tpr_at_fpr[repr(float(fpr))], fpr)


def _stated(record: AssessmentRecord, number: Number, blind: float) -> str:
    claim, share = Claim(record.claim), _finite(number)
    shown = above_blind(blind, share) if claim.proven else percent(share)
    return f"{_STRENGTH[claim].removeprefix('to ')} {shown}"


def above_blind(blind: float, share: float) -> str:
    """At least ``share`` in per cent: one decimal, or as many as show by how little it exceeds the blind guess.

    A rare secret stays hidden almost always: 0.90000001 is 90.000001%, where one decimal would make it 90.1%.
    """
    start = Decimal(repr(round(blind, 12)))
    gain = Decimal(repr(share)) - start
    if not 0 < gain < Decimal("0.001"):
        return percent(share, up=True)
    digit = Decimal((0, (1,), gain.adjusted()))
    return f"{(100 * (start + gain.quantize(digit, ROUND_CEILING))).normalize():f}%"


def share(x: float, *, up: bool | None = None) -> str:
    """A probability in per cent with three digits, however small it is; ``up`` as for ``digits``."""
    return f"{digits(100.0 * x, 3, up=up)}%"


def percent(x: float, *, up: bool = False) -> str:
    """A probability in per cent with at most one decimal; rounded up on request, never above 100."""
    tenths = 1000.0 * x
    rounded = math.ceil(tenths * (1.0 - 4e-16)) if up else round(tenths)  # 0.618 is 61.8%, as floats round
    return f"{min(rounded, 1000) / 10:g}%"


def _finite(number: Number) -> float:
    return 1.0 if number.value is None else number.value
