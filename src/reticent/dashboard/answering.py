"""All questions of the page: who answers, and the one line that the page shows where that fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reticent.dashboard import calibrating, comparing, exploring, opening, taking, words
from reticent.dashboard.asked import Asked, Shown
from reticent.dashboard.figures import blank
from reticent.dashboard.requests import assess_of
from reticent.dashboard.state import DEFAULTS, State, numbers_of
from reticent.dashboard.turns import SupersededError, Turns
from reticent.kernel.errors import ParameterError, ReticentError
from reticent.mechanisms.short import in_short

_FAILURES = (OSError, ReticentError, ArithmeticError, MemoryError, RecursionError, ValueError)
"""What is shown as one line: an error of ours, and what numbers beyond all use end in, deep inside."""


@dataclass(frozen=True, slots=True)
class Question:
    """Something that the page asks.

    Attributes:
        answer: what it gets.
        instead: what stands in other places where there is no answer.
        pictures: those that are empty then.
        message: the place that says what is wrong; nothing where another question says so.
    """

    answer: Callable[[Turns, Asked], Shown]
    instead: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[str, ...] = ()
    message: str = "message"


_OF_NUMBERS = ("number", "accuracy", "verdict", "remarks", "table", "policy", "cards", "left-out", "conditions")
_CODE = {"python": "", "command": ""}
_NO_NUMBERS = {"headline": "No answer for these settings", **dict.fromkeys(_OF_NUMBERS, ""), **_CODE}, ("figure",)
_OF_VALUES = dict.fromkeys(("calibrate-table", "calibrate-left-out", "planned"), "")
_NO_VALUE = {"calibrated": "No answer for this target", **_OF_VALUES, **_CODE}, ("calibrate-figure",)
_NO_COMPARISON = {"compared": "No comparison of these settings", "compare-table": "", "map-caption": ""}

QUESTIONS: dict[str, Question] = {
    "explore": Question(exploring.first, *_NO_NUMBERS),
    "proof": Question(exploring.proof, *_NO_NUMBERS),
    "calibrate": Question(calibrating.for_any_attacker, *_NO_VALUE),
    "rest": Question(calibrating.for_each_attacker, *_NO_VALUE),
    "plan": Question(calibrating.budget, {"planned": ""}, message=""),
    "compare": Question(comparing.compared, _NO_COMPARISON, ("compare-figure", "map")),
    "open": Question(opening.shown, {"opened": ""}, ("open-figure",)),
    "certificates": Question(opening.two, message="certificates-compared"),
    "ledger": Question(taking.ledger, message="ledger-said"),
    "policy": Question(taking.policy, message="policy-said"),
    "csv": Question(taking.csv, message="told"),
    "certificate": Question(taking.certificate, message="told"),
    "sheet": Question(taking.sheet, message="told"),
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
    return _json(replace(found, parts={**found.parts, **in_words(asked.settings)}), numbers=numbers_of(asked.settings))


def _field(error: BaseException) -> str:
    """The setting that is wrong; nothing where it is none that is typed."""
    name = error.name if isinstance(error, ParameterError) else ""
    return name if name in DEFAULTS else ""


def in_words(settings: State) -> dict[str, str]:
    """What was released, beside its fields, and what was asked, for a sheet of paper; nothing that cannot be read."""
    try:
        request = assess_of(settings)
        released, who = in_short(request.mechanism), ", ".join(one.label for one in request.adversary.each)
        return {"derived": released, "asked": f"Released: {released}. Attackers: {who}."}
    except _FAILURES:
        return {"derived": "", "asked": ""}  # the panel says what is wrong


def _json(found: Shown, **more: Any) -> str:
    """Components become what the page's script makes elements of."""
    stated = {name: getattr(found, name) for name in Shown.__slots__} | more
    return json.dumps(stated, default=lambda part: part.to_plotly_json(), allow_nan=False, separators=(",", ":"))
