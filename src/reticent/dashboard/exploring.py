"""The panel that explores: what can be drawn at once, at the accuracy of a screen, and then the proof.

The page's script asks for both in turn and draws the answer itself: from a slider to its figure there are one request
and one drawing.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from dash import html

from reticent.adversaries import Adversary, Assessment
from reticent.dashboard import words
from reticent.dashboard.asked import FAILURES, Asked, answer_to
from reticent.dashboard.explaining import explanation
from reticent.dashboard.figures import empty, risk_figure
from reticent.dashboard.judging import judge, policy_of
from reticent.dashboard.naming import remarks
from reticent.dashboard.readings import Answer, answer, composed, is_known, protected
from reticent.dashboard.screen import screen_assessment
from reticent.dashboard.state import State, adversaries_of, mechanism_of, relation_of
from reticent.dashboard.takeaway import risk_command, risk_python
from reticent.dashboard.turns import SupersededError, Turns
from reticent.errors import ParameterError

_ON_SCREEN = ("curves", "roc", "guesses")
"""Views that screen accuracy serves; tails of delta and tables of numbers need the proven curve."""


class Stage(StrEnum):
    """How much is wanted, in the order in which it is asked."""

    FIRST = "first"
    PROOF = "proof"


def explore(turns: Turns, sent: Any) -> str:
    """The answer to one question as JSON: pieces of the page, the figure, who is waited for, and the next stage.

    Whatever goes wrong is one line of the answer. ``{}`` where the page has asked something else since.
    """
    theme = "light"
    try:
        if not isinstance(sent, dict) or sent.get("stage") not in tuple(Stage):
            raise ParameterError("stage", type(sent).__name__, "one that the page asks for")
        asked = Asked.of(sent, sent.get("theme"))
        theme = asked.theme
        return _json(_STAGES[Stage(sent["stage"])](turns, asked))
    except SupersededError:
        return "{}"
    except FAILURES as error:
        return _json(_failed(theme, words.one_line(error)))


def _first(turns: Turns, asked: Asked) -> dict[str, Any]:
    """Everybody whose curve is known or can be drawn in milliseconds; the worst case, whatever it takes."""
    turns.note(asked.page, asked.turn)
    everybody = adversaries_of(asked.settings)
    found = [drawn for who in everybody if (drawn := _at_once(asked.settings, who))]
    if not (found and found[0].adversary.strongest):
        quick = tuple(who for who in everybody if not (who.averaged or who.needs))
        with turns.turn(asked.page, asked.turn):
            known = answer(quick, mechanism_of(asked.settings), relation_of(asked.settings))
        have = {drawn.adversary.name for drawn in known.assessments}
        found = [*known.assessments, *(drawn for drawn in found if drawn.adversary.name not in have)]
    answered = {drawn.adversary.name for drawn in found}
    waiting = tuple(who.name for who in everybody if who.name not in answered)
    whole = not waiting and all(drawn.claim.proven or drawn.truth for drawn in found)
    if whole and asked.settings["view"] != "table":  # all is known; so is the worst case of every relation
        return _shown(asked, answer_to(asked.settings), (), None)
    return _shown(asked, Answer(tuple(found), {}), waiting, Stage.PROOF)


def _proof(turns: Turns, asked: Asked) -> dict[str, Any]:
    """All attackers, and every number."""
    with turns.turn(asked.page, asked.turn):
        return _shown(asked, answer_to(asked.settings), (), None)


_STAGES = {Stage.FIRST: _first, Stage.PROOF: _proof}


def _at_once(settings: State, who: Adversary) -> Assessment | None:
    """The proven curve where it is known already; else an estimate where that is enough for now; else None."""
    release, relation = mechanism_of(settings), relation_of(settings)
    if is_known(who, release, relation):
        return composed(who, release, relation or who.relation)
    return screen_assessment(who, release, relation or who.relation) if settings["view"] in _ON_SCREEN else None


def _shown(asked: Asked, found: Answer, waiting: tuple[str, ...], after: Stage | None) -> dict[str, Any]:
    settings, view, whole = asked.settings, asked.settings["view"], after is None
    policy, records = policy_of(settings["policy"]), protected(mechanism_of(settings))
    judged = judge(policy, mechanism_of(settings), found.assessments) if policy and whole else None
    parts: dict[str, Any] = {
        "headline": words.answer_line(found.assessments, records),
        "accuracy": words.accuracy(found.assessments, waiting),
        "message": "",
        "table": "",
        "cards": words.cards(found.assessments, waiting, judged.rows if judged else None, records),
        "verdict": judged.line() if judged else "The policy waits for the proof." if policy else "",
        "policy": judged.others() if judged else "",
        "remarks": [html.P(line) for line in remarks(found.assessments, view)],
        "left-out": words.left_out(found.skipped),
    }
    if view == "table":
        parts["table"] = (
            words.number_table(found.assessments, judged.marks if judged else None)
            if whole
            else "computing every number …"
        )
    if whole:
        parts["conditions"] = explanation(found.assessments)
        parts.update(python=risk_python(settings, found), command=risk_command(settings, found))
    figure = risk_figure(found.assessments, settings.picture, asked.theme)
    return {"parts": parts, "figure": figure, "waiting": waiting, "next": after}


def _failed(theme: str, line: str) -> dict[str, Any]:
    parts = dict.fromkeys(
        ("accuracy", "table", "cards", "remarks", "left-out", "conditions", "verdict", "policy", "python", "command"),
        "",
    )
    parts |= {"headline": "No answer for these settings", "message": line}
    return {"parts": parts, "figure": empty("curves", theme), "waiting": (), "next": None}


def _json(shown: dict[str, Any]) -> str:
    """Components become what the page's script makes elements of."""
    return json.dumps(shown, default=lambda part: part.to_plotly_json(), allow_nan=False, separators=(",", ":"))
