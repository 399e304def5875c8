"""One plain sentence per adversary, for people who decide and do not compute."""

from __future__ import annotations

import math

from reticent.certificate.numbers import AssessmentRecord
from reticent.mechanism import Neighbouring
from reticent.threat import Claim

_STRENGTH = {
    Claim.BOUND: "to at most",
    Claim.ESTIMATE: "to about",
    Claim.EMPIRICAL: "to (as measured)",
}


def sentence(record: AssessmentRecord) -> str:
    """From what guess to what guess this attacker gets, at the first stated prior.

    For a bound the percentage is rounded up, so the sentence is never stronger than the number.
    """
    prior, number = next(iter(record.success_at_prior.items()))
    before = max(float(prior), 1.0 - float(prior))
    claim = Claim(record.claim)
    after = 1.0 if number.value is None else number.value
    question = record.infers
    if record.neighbouring == Neighbouring.REPLACE and question.startswith("whether this record"):
        _, comma, average = question.partition(",")
        question = f"which of two records was used{comma}{average}"
    return (
        f"An attacker who knows {record.knows} raises a {percent(before)} guess of {question} "
        f"{_STRENGTH[claim]} {percent(after, up=claim is Claim.BOUND)}."
    )


def percent(x: float, *, up: bool = False) -> str:
    """A probability in per cent with at most one decimal; rounded up on request, never above 100."""
    tenths = 1000.0 * x
    rounded = math.ceil(tenths - 1e-9) if up else round(tenths)
    return f"{min(rounded, 1000) / 10:g}%"
