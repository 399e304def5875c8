"""The panel that searches: what each attacker would allow, and what the worst case has there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from dash import html

from reticent.adversaries import style_of
from reticent.calibration import (
    Advantage,
    BayesSecurity,
    Calibration,
    EpsilonAtDelta,
    Success,
    Target,
    TprAtFpr,
    UnreachableError,
)
from reticent.dashboard import words
from reticent.dashboard.asked import Asked, Shown
from reticent.dashboard.catalogue import TARGETS, UNKNOWNS
from reticent.dashboard.figures import Figure, picture
from reticent.dashboard.looks import GROUNDS
from reticent.dashboard.naming import Line
from reticent.dashboard.pieces import table
from reticent.dashboard.readings import points, summary, worst_case
from reticent.dashboard.requests import calibrate_of
from reticent.dashboard.turns import Turns
from reticent.errors import NumericalError, ParameterError, ReticentError, UnsupportedError
from reticent.stopping import checkpoint
from reticent.text import digits
from reticent.verbs import Calibrate, Calibrated
from reticent.verbs.taken import as_command, as_program

answer = lru_cache(maxsize=128)(Calibrate.answer)
"""What one attacker would allow; kept for the next question."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What each attacker would allow, the worst case first; and why some allow nothing that is known."""

    found: Mapping[Calibrate, Calibrated]
    skipped: Mapping[str, str]


def search(requests: Sequence[Calibrate]) -> Searched:
    """Search for each attacker in turn.

    Raises:
        ParameterError: the release has no such parameter.
    """
    found, skipped = {}, {}
    for request in requests:
        checkpoint()
        _ = request.searched
        try:
            found[request] = answer(request)
        except (UnsupportedError, UnreachableError, ParameterError, NumericalError) as error:
            skipped[request.adversary.name] = str(error)
    return Searched(found, skipped)


def for_any_attacker(turns: Turns, asked: Asked) -> Shown:
    """What the worst case allows, and who comes next."""
    first, *rest = calibrate_of(asked.settings)
    return _calibrated(turns, asked, [first], waiting=tuple(one.adversary.name for one in rest))


def for_each_attacker(turns: Turns, asked: Asked) -> Shown:
    """What each attacker allows."""
    return _calibrated(turns, asked, calibrate_of(asked.settings))


def _calibrated(turns: Turns, asked: Asked, requests: Sequence[Calibrate], waiting: tuple[str, ...] = ()) -> Shown:
    target, what = requests[0].target, UNKNOWNS[asked.settings["unknown"]][1]
    with turns.turn(asked.page, asked.turn):
        found = search(requests)
        if not found.found and not waiting:
            raise ReticentError("; ".join(found.skipped.values()))
        figure = calibration_figure(found, target, asked.theme)
    said = f"No value is known that keeps {words.goal(target)} for any attacker."
    for best in (answers[0] for answers in list(found.found.values())[:1]):
        whom = "any attacker" if best.adversary.strongest else f"the {best.adversary.name} attacker"
        said = f"{what.capitalize()} {best.unknown.words(best.value, 5)}: {words.goal(target)} for {whom}."
    parts: dict[str, Any] = {
        "calibrated": said,
        "calibrate-message": "",
        "calibrate-table": calibration_table(found, target, what, waiting),
        "calibrate-left-out": words.left_out(found.skipped),
        "calibrate-python": as_program(*found.found) if found.found else "",
        "calibrate-command": "\n".join(map(as_command, found.found)),
    }
    return Shown(parts, {"calibrate-figure": figure}, waiting, "rest" if waiting else "plan")


def calibration_table(searched: Searched, target: Target, what: str, waiting: Sequence[str]) -> html.Table:
    """What each attacker would allow, and the worst case there; who is still ``waiting`` is named."""
    found = [(answers[0], answers.worst[0]) for answers in searched.found.values()]
    reference = {c.neighbouring: c.value for c, _ in found if c.adversary.strongest}
    risk = words.risk_of(target)
    titles = ("attacker", what, f"{risk}, any attacker", f"{risk}, this attacker", "against worst case", "")
    body, up = [], target.grows_with_risk
    for c, worst in found:
        base, unsafe = reference.get(c.neighbouring), not target.met_by(worst)
        ratio = "" if not base else f"× {c.value / base:.3g}"
        beyond = [html.Small("beyond the target")] if unsafe else []
        use: dict[str, Any] = {"data-settings": _settings(c)}
        cells = [
            html.Td(html.Strong(c.unknown.words(c.value, 5)), className="n"),
            html.Td([digits(worst, up=up), *beyond], className="n beyond" if unsafe else "n"),
            html.Td(digits(c.achieved.value, up=up), className="n"),
            html.Td(ratio, className="n"),
            html.Td(html.Button("Use this", **use)),
        ]
        body.append((words.attacker(c.adversary.name, c.neighbouring.value), cells))
    later = [html.Td("computing …", colSpan=5, className="quiet")]
    return table(titles, [*body, *((words.attacker(name), later) for name in waiting)])


def _settings(found: Calibration) -> str:
    """The settings that an answer changes, as part of an address."""
    name, value = found.unknown.name, found.value
    by = {"sample_rate": "rate", "steps": "rate", "batch_size": "data", "epochs": "data"}.get(name)
    text = str(int(value)) if value == int(value) else repr(float(value))
    return urlencode({"panel": "explore", name: text, **({} if by is None else {"by": by})})


def calibration_figure(searched: Searched, target: Target, theme: str) -> Figure:
    """The worst-case curve at what each attacker allows, and the target as a line to be dragged."""
    view = TARGETS[target.name][2]
    found = (answers[0] for answers in searched.found.values())
    there = [(c.adversary, worst_case(c.mechanism, c.neighbouring)) for c in found]
    lines = [
        Line(
            points(worst, view),
            who.name,
            style_of(who.name),
            worst.claim,
            4.0 if who.strongest else 2.0,
            f"worst case where {who.name} is content",
            who.name,
        )
        for who, worst in sorted(there, key=lambda one: -(summary(one[1]).advantage.value or 0.0))
    ]
    drawn = _line(target, theme)
    figure = picture(lines, view, theme, _least(target), drawn.pop("annotations", ()))
    figure["layout"].update(drawn)
    return figure


def _least(target: Target) -> float:
    """How far the axis has to go for the target to be seen, and dragged beyond itself."""
    match target:
        case EpsilonAtDelta(value=value):
            return 2.0 * value
        case Success(value=value, prior=prior):
            return value - max(prior, 1.0 - prior)
        case _:
            return 0.0


def _line(target: Target, theme: str) -> dict[str, Any]:
    ends = _ends(target)
    if ends is None:
        return {}
    accent = GROUNDS[theme].accent
    shape = {"type": "line", **ends, "line": {"color": accent, "width": 3}, "name": "target"}
    places = {"curves": (0.99, 0.86), "roc": (0.99, 0.02), "guesses": (0.5, 0.99)}
    x, y = places.get(TARGETS[target.name][2], (0.99, 0.99))
    note = {"text": "the target: drag it", "xref": "paper", "yref": "paper", "x": x, "y": y, "showarrow": False}
    blind = max(target.prior, 1.0 - target.prior) if isinstance(target, Success) else 0.0
    meta = {"drag": target.name, "blind": blind}
    return {"shapes": [shape], "annotations": [{**note, "font": {"color": accent}}], "meta": meta}


def _ends(target: Target) -> dict[str, float] | None:
    """Where the line lies: errors that add up to at least 1 - advantage, or one rate, or one epsilon."""
    match target:
        case Advantage(value=value):
            return {"x0": 0.0, "y0": 1.0 - value, "x1": 1.0 - value, "y1": 0.0}
        case BayesSecurity(value=value):
            return {"x0": 0.0, "y0": value, "x1": value, "y1": 0.0}
        case TprAtFpr(value=value):
            return {"x0": 1e-5, "y0": value, "x1": 1.0, "y1": value}
        case EpsilonAtDelta(value=value):
            return {"x0": value, "y0": 1e-10, "x1": value, "y1": 1.0}
        case Success(value=value, prior=prior):
            gain = value - max(prior, 1.0 - prior)
            return {"x0": 0.0, "y0": gain, "x1": 1.0, "y1": gain}
        case _:
            return None
