"""Rules of thresholds and numbers of guesses as people type them."""

from __future__ import annotations

import numpy as np

from reticent.auditing.one_run import Guesses
from reticent.auditing.thresholds import Bonferroni, Given, NormalScores, Ranks, Split, ThresholdRule
from reticent.kernel.errors import ParameterError


def rule_of(text: str, seed: int) -> ThresholdRule:
    """``normal-scores``, ``ranks:0.01,0.1``, ``given:1.5``, ``bonferroni:1,2`` or ``split:0.3`` as a type.

    Raises:
        ParameterError: it is none of these.
    """
    if text == "normal-scores":
        return NormalScores()
    name, _, rest = text.partition(":")
    try:
        values = tuple(float(part) for part in rest.split(","))
    except ValueError:
        raise ParameterError("rule", text, "a name and numbers, such as ranks:0.01,0.1") from None
    try:
        return _rule(name, values, text, seed)
    except ParameterError as error:
        allowed = f"{name} with {error.allowed}" if error.name != "rule" else error.allowed
        raise ParameterError("rule", text, allowed) from None


def _rule(name: str, values: tuple[float, ...], text: str, seed: int) -> ThresholdRule:
    match name, values:
        case "ranks", levels:
            return Ranks(levels)
        case "bonferroni", candidates:
            return Bonferroni(candidates)
        case "given", (threshold,):
            return Given(threshold)
        case "split", (fraction,):
            return Split(fraction, np.random.default_rng(seed))
    raise ParameterError("rule", text, "normal-scores or ranks:FPR,.. or given:T or bonferroni:T,.. or split:FRACTION")


def guesses_of(text: str) -> Guesses:
    """``100,100`` as a type.

    Raises:
        ParameterError: it is not two whole numbers.
    """
    members, _, others = text.partition(",")
    if not (members.isdecimal() and others.isdecimal()):
        raise ParameterError("guesses", text, "two whole numbers MEMBERS,NON_MEMBERS")
    return Guesses(int(members), int(others))
