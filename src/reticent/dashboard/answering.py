"""All questions of the page: who answers, and the one line that the page shows where that fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reticent.dashboard import calibrating, comparing, exploring, opening, planning, taking, words
from reticent.dashboard.asked import Asked, Shown
from reticent.dashboard.figures import blank
from reticent.dashboard.requests import assess_of
from reticent.dashboard.state import DEFAULTS, State, numbers_of
from reticent.dashboard.turns import SupersededError, Turns
from reticent.errors import ParameterError, ReticentError
from reticent.mechanisms.short import in_short

_FAILURES = (OSError, ReticentError, ArithmeticError, MemoryError, RecursionError, ValueError)
"""What is shown as one line: an error of ours, and what numbers beyond all use end in, deep inside."""


@dataclass(frozen=True, slots=True)
class Question:
    """Something that the page asks.

    Attributes:
        answer: what it gets.
        message: the place that says what is wrong; nothing where another question says so.
        instead: what stands in other places then.
        pictures: those that are empty then.
    """

    answer: Callable[[Turns, Asked], Shown]
    message: str
    instead: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[str, ...] = ()


_OF_NUMBERS = ("number", "accuracy", "verdict", "remarks", "table", "policy", "cards", "left-out", "conditions")
_OF_VALUES = ("calibrate-table", "calibrate-left-out", "calibrate-python", "calibrate-command", "planned")
_NO_NUMBERS = {"headline": "No answer for these settings", **dict.fromkeys((*_OF_NUMBERS, "python", "command"), "")}
_NO_VALUE = {"calibrated": "No answer for this target", **dict.fromkeys(_OF_VALUES, "")}
_NO_COMPARISON = {"compared": "No comparison of these settings", "compare-table": "", "map-caption": ""}

QUESTIONS: dict[str, Question] = {
    "explore": Question(exploring.first, "message", _NO_NUMBERS, ("figure",)),
    "proof": Question(exploring.proof, "message", _NO_NUMBERS, ("figure",)),
    "calibrate": Question(calibrating.for_any_attacker, "calibrate-message", _NO_VALUE, ("calibrate-figure",)),
    "rest": Question(calibrating.for_each_attacker, "calibrate-message", _NO_VALUE, ("calibrate-figure",)),
    "plan": Question(planning.budget, "", {"planned": ""}),
    "compare": Question(comparing.compared, "compare-message", _NO_COMPARISON, ("compare-figure", "map")),
    "open": Question(opening.shown, "open-message", {"opened": ""}, ("open-figure",)),
    "certificates": Question(opening.two, "certificates-compared"),
    "ledger": Question(taking.ledger, "ledger-said"),
    "policy": Question(taking.policy, "policy-said"),
    "csv": Question(taking.csv, "told"),
    "certificate": Question(taking.certificate, "told"),
    "sheet": Question(taking.sheet, "told"),
}
"""By name. The first question of a panel has the panel's name."""


def answered(turns: Turns, sent: Any, *, local: bool = False) -> str:
    """The answer to one question as JSON; ``{}`` where the page has asked something else since."""
    try:
        asked = Asked.of(sent, local=local)
        if asked.stage not in QUESTIONS:
            raise ParameterError("stage", asked.stage, "one that the page asks for")
    except _FAILURES as error:
        return _json(Shown({"message": words.one_line(error)}))
    question = QUESTIONS[asked.stage]
    try:
        found = question.answer(turns, asked)
    except SupersededError:
        return "{}"
    except _FAILURES as error:
        said = {question.message: words.one_line(error)} if question.message else {}
        found = Shown(
            {**question.instead, **said},
            dict.fromkeys(question.pictures, blank(asked.theme)),
            field=_field(error),
        )
    if asked.stage != asked.settings["panel"]:
        return _json(found)
    more = {"derived": derived(asked.settings), "asked": in_words(asked.settings)}
    return _json(replace(found, parts={**found.parts, **more}), numbers=numbers_of(asked.settings))


def _field(error: BaseException) -> str:
    """The setting that is wrong; nothing where it is none that is typed."""
    name = error.name if isinstance(error, ParameterError) else ""
    return name if name in DEFAULTS else ""


def in_words(settings: State) -> str:
    """What was asked, for a sheet of paper; nothing where it cannot be read."""
    try:
        request = assess_of(settings)
        who = ", ".join(one.label for one in request.adversary.each)
        return f"Released: {in_short(request.mechanism)}. Attackers: {who}."
    except _FAILURES:
        return ""


def derived(settings: State) -> str:
    """What follows from records, batch and epochs, or what the file says; nothing where the rate is set itself."""
    try:
        if settings["mechanism"] == "ledger":
            return in_short(assess_of(settings).mechanism)
        if settings["mechanism"] != "dpsgd" or settings["by"] == "rate":
            return ""
        run = assess_of(settings).mechanism.base
        return f"sample rate {run.sample_rate:.4g}, {run.steps:,} steps"
    except _FAILURES:
        return ""  # the panel says what is wrong


def _json(found: Shown, **more: Any) -> str:
    """Components become what the page's script makes elements of."""
    stated = {name: getattr(found, name) for name in Shown.__slots__} | more
    return json.dumps(stated, default=lambda part: part.to_plotly_json(), allow_nan=False, separators=(",", ":"))
