"""The panel that explores: the worst case at once, everybody at screen accuracy next, then the proof.

The page's script asks for each stage in turn and draws the answer itself: between a slider and its figure stand one
request and one drawing.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from reticent.adversaries import Adversary, Assessment, Membership, WorstCase
from reticent.dashboard import words
from reticent.dashboard.asked import TOO_EXTREME, Asked
from reticent.dashboard.figures import empty, risk_figure
from reticent.dashboard.readings import Answer, answer, assessed, is_known
from reticent.dashboard.screen import screen_assessment
from reticent.dashboard.state import State, adversaries_of, mechanism_of, relation_of
from reticent.dashboard.takeaway import risk_command, risk_python
from reticent.dashboard.turns import BusyError, SupersededError, Turns
from reticent.errors import ParameterError, ReticentError

_QUICK = ("worst-case", "membership", "membership-game")
_ON_SCREEN = ("curves", "roc", "guesses")
"""Views that screen accuracy serves; tails of delta and tables of numbers need the proven curve."""


class Stage(StrEnum):
    """How much is wanted, in the order in which it is asked."""

    FIRST = "first"
    ALL = "all"
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
    except BusyError as error:
        return _json(_failed(theme, str(error)))
    except (ReticentError, *TOO_EXTREME) as error:
        return _json(_failed(theme, words.one_line(error)))


def _first(turns: Turns, asked: Asked) -> dict[str, Any]:
    """The worst case, at screen accuracy where its proof takes long, and everybody whose answer costs nothing."""
    turns.note(asked.page, asked.turn)
    everybody = adversaries_of(asked.settings)
    if sketch := _sketch(asked.settings, everybody[0]):
        found = [sketch, *(s for a in everybody[1:] if isinstance(a, Membership) and (s := _sketch(asked.settings, a)))]
        answered = {a.adversary.name for a in found}
        others = tuple(a.name for a in everybody if a.name not in answered)
        return _shown(asked, Answer(tuple(found), {}), others, Stage.ALL if others else Stage.PROOF)
    release, relation = mechanism_of(asked.settings), relation_of(asked.settings)
    quick = tuple(a for a in everybody if a.name in _QUICK or is_known(a, release, relation))
    with turns.turn(asked.page, asked.turn) as turn:
        known = answer(quick, release, relation, turn.check)
    others = tuple(a.name for a in everybody if a not in quick)
    after = Stage.ALL if others else Stage.PROOF if asked.settings["view"] == "table" else None
    return _shown(asked, known, others, after)


def _all(turns: Turns, asked: Asked) -> dict[str, Any]:
    """Everybody whose curve can be drawn at screen accuracy, or is known."""
    release, relation, found = mechanism_of(asked.settings), relation_of(asked.settings), []
    with turns.turn(asked.page, asked.turn) as turn:
        for who in (everybody := adversaries_of(asked.settings)):
            turn.check()
            if is_known(who, release, relation):
                found.append(assessed(who, release, relation or who.relation))
            elif sketch := _sketch(asked.settings, who):
                found.append(sketch)
    if not found or not isinstance(found[0].adversary, WorstCase):
        return {"next": Stage.PROOF}
    answered = {a.adversary.name for a in found}
    others = tuple(a.name for a in everybody if a.name not in answered)
    return _shown(asked, Answer(tuple(found), {}), others, Stage.PROOF)


def _proof(turns: Turns, asked: Asked) -> dict[str, Any]:
    """All attackers, and every number."""
    settings = asked.settings
    with turns.turn(asked.page, asked.turn) as turn:
        found = answer(adversaries_of(settings), mechanism_of(settings), relation_of(settings), turn.check)
        shown = _shown(asked, found, (), None)
        turn.check()  # nothing that is no longer asked reaches the page
        return shown


_STAGES = {Stage.FIRST: _first, Stage.ALL: _all, Stage.PROOF: _proof}


def _sketch(settings: State, who: Adversary) -> Assessment | None:
    """An attacker as an estimate, where that is enough for now and the proven curve is not known yet."""
    release, relation = mechanism_of(settings), relation_of(settings)
    if settings["view"] not in _ON_SCREEN or is_known(who, release, relation):
        return None
    return screen_assessment(who, release, relation or who.relation)


def _shown(asked: Asked, found: Answer, waiting: tuple[str, ...], after: Stage | None) -> dict[str, Any]:
    settings, view, whole = asked.settings, asked.settings["view"], after is None
    parts: dict[str, Any] = {
        "headline": words.answer_line(found.assessments[0]),
        "accuracy": words.accuracy(found.assessments),
        "message": "",
        "table": "",
        "cards": words.cards(found.assessments, waiting),
        "left-out": words.left_out(found.skipped),
        "conditions": words.conditions(found.assessments),
    }
    if view == "table":
        parts["table"] = words.number_table(found.assessments) if whole else "computing every number …"
    if whole:
        parts.update(python=risk_python(settings, found), command=risk_command(settings, found))
    figure = risk_figure(found.assessments, "curves" if view == "table" else view, asked.theme)
    return {"parts": parts, "figure": figure, "waiting": waiting, "next": after}


def _failed(theme: str, line: str) -> dict[str, Any]:
    parts = dict.fromkeys(("accuracy", "table", "cards", "left-out", "conditions", "python", "command"), "")
    parts |= {"headline": "No answer for these settings", "message": line}
    return {"parts": parts, "figure": empty("curves", theme), "waiting": (), "next": None}


def _json(shown: dict[str, Any]) -> str:
    """Components become what the page's script makes elements of."""
    return json.dumps(shown, default=lambda part: part.to_plotly_json(), allow_nan=False, separators=(",", ":"))
