"""The panel that explores: what can be drawn at once, at the accuracy of a screen, and then the proof.

The page's script asks for both in turn and draws the answer itself: from a slider to its figure there are one request
and one drawing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import html

from reticent.adversaries.screen import screen_assessment
from reticent.dashboard import words
from reticent.dashboard.asked import Asked, Shown
from reticent.dashboard.explaining import explanation
from reticent.dashboard.figures import remarks, risk_figure
from reticent.dashboard.judging import judge, policy_of
from reticent.dashboard.readings import answer, assessed, is_known, protected
from reticent.dashboard.requests import assess_of
from reticent.dashboard.turns import Turns
from reticent.kernel.adversaries import Adversary, Assessment
from reticent.verbs import Assess, Assessments
from reticent.verbs.names import Attackers
from reticent.verbs.taken import as_command, as_program

_ON_SCREEN = ("curves", "roc", "guesses")
"""Views that screen accuracy serves; tails of delta and tables of numbers need the proven curve."""


def first(turns: Turns, asked: Asked) -> Shown:
    """Everybody whose curve is known or can be drawn in milliseconds; the worst case, whatever it takes."""
    turns.note(asked.page, asked.turn)
    request, view = assess_of(asked.settings), asked.settings["view"]
    everybody = request.adversary.each
    found = [drawn for who in everybody if (drawn := _at_once(request, who, view))]
    if not (found and found[0].adversary.strongest):
        quick = tuple(who for who in everybody if not (who.averaged or who.needs))
        with turns.turn(asked.page, asked.turn):
            known = answer(replace(request, adversary=Attackers(quick)))
        have = {drawn.adversary.name for drawn in known}
        found = [*known, *(drawn for drawn in found if drawn.adversary.name not in have)]
    answered = {drawn.adversary.name for drawn in found}
    waiting = tuple(who.name for who in everybody if who.name not in answered)
    whole = not waiting and all(drawn.claim.proven or drawn.truth for drawn in found)
    if whole and view != "table":  # all is known; so is the worst case of every relation
        return _shown(asked, answer(request), (), None)
    return _shown(asked, Assessments(request, found, {}), waiting, "proof")


def proof(turns: Turns, asked: Asked) -> Shown:
    """All attackers, and every number."""
    with turns.turn(asked.page, asked.turn):
        return _shown(asked, answer(assess_of(asked.settings)), (), None)


def _at_once(request: Assess, who: Adversary, view: str) -> Assessment | None:
    """The proven curve where it is known already; else an estimate where that is enough for now; else None."""
    asked = who, request.mechanism, request.neighbouring or who.relation
    if request.method not in (None, who.methods[0]):
        return None
    if is_known(*asked, who.methods[0]):
        return assessed(*asked, who.methods[0])
    return screen_assessment(*asked) if view in _ON_SCREEN else None


def _shown(asked: Asked, found: Assessments, waiting: tuple[str, ...], after: str | None) -> Shown:
    settings, view, whole = asked.settings, asked.settings["view"], after is None
    policy, records = policy_of(settings["policy"]), protected(found.mechanism)
    judged = judge(policy, found) if policy and whole else None
    parts: dict[str, Any] = {
        "number": words.number_line(found),
        "headline": words.answer_line(found, records),
        "accuracy": words.accuracy(found, waiting),
        "message": "",
        "table": "",
        "cards": words.cards(found, waiting, judged.rows if judged else {}, records, whole=whole),
        "verdict": judged.line() if judged else "The policy waits for the proof." if policy else "",
        "policy": judged.others() if judged else "",
        "remarks": [html.P(line) for line in remarks(found, view)],
        "left-out": words.left_out(found.skipped),
    }
    if view == "table":
        parts["table"] = (
            words.number_table(found, judged.marks if judged else {}) if whole else "computing every number …"
        )
    if whole:
        answered = tuple(who for who in found.request.adversary.each if who.name not in found.skipped)
        request = replace(found.request, adversary=Attackers(answered))
        parts["conditions"] = explanation(found)
        parts.update(python=as_program(request), command=as_command(request))
    return Shown(parts, {"figure": risk_figure(found, settings.picture, asked.theme)}, waiting, after)
