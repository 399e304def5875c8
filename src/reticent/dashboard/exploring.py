"""The panel that explores: what can be drawn at once, at the accuracy of a screen, and then the proof.

The page's script asks for both in turn and draws the answer itself: from a slider to its figure there are one request
and one drawing.
"""

from __future__ import annotations

from typing import Any

from dash import html

from reticent.adversaries import Adversary, Assessment
from reticent.adversaries.screen import screen_assessment
from reticent.dashboard import words
from reticent.dashboard.asked import Asked, Shown, answer_to
from reticent.dashboard.explaining import explanation
from reticent.dashboard.figures import risk_figure
from reticent.dashboard.judging import judge, policy_of
from reticent.dashboard.naming import remarks
from reticent.dashboard.readings import Answer, answer, composed, is_known, protected
from reticent.dashboard.state import State, adversaries_of, mechanism_of, relation_of
from reticent.dashboard.takeaway import risk_command, risk_python
from reticent.dashboard.turns import Turns

_ON_SCREEN = ("curves", "roc", "guesses")
"""Views that screen accuracy serves; tails of delta and tables of numbers need the proven curve."""


def first(turns: Turns, asked: Asked) -> Shown:
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
    return _shown(asked, Answer(tuple(found), {}), waiting, "proof")


def proof(turns: Turns, asked: Asked) -> Shown:
    """All attackers, and every number."""
    with turns.turn(asked.page, asked.turn):
        return _shown(asked, answer_to(asked.settings), (), None)


def _at_once(settings: State, who: Adversary) -> Assessment | None:
    """The proven curve where it is known already; else an estimate where that is enough for now; else None."""
    release, relation = mechanism_of(settings), relation_of(settings)
    if is_known(who, release, relation):
        return composed(who, release, relation or who.relation)
    return screen_assessment(who, release, relation or who.relation) if settings["view"] in _ON_SCREEN else None


def _shown(asked: Asked, found: Answer, waiting: tuple[str, ...], after: str | None) -> Shown:
    settings, view, whole = asked.settings, asked.settings["view"], after is None
    policy, records = policy_of(settings["policy"]), protected(mechanism_of(settings))
    judged = judge(policy, mechanism_of(settings), found.assessments) if policy and whole else None
    parts: dict[str, Any] = {
        "number": words.number_line(found.assessments),
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
    return Shown(parts, {"figure": figure}, waiting, after)
