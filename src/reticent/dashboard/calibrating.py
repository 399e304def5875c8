"""The panel that searches: what each attacker would allow, what the worst case has there, and the budget in epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import numpy as np
from dash import html

from reticent.adversaries.screen import screen_assessment
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
from reticent.dashboard.figures import COMPARED, GROUNDS, Figure, Line, axis_of, base_layout, line_through, picture
from reticent.dashboard.pieces import table
from reticent.dashboard.readings import points, worst_case
from reticent.dashboard.requests import calibrate_of
from reticent.dashboard.turns import Turns
from reticent.kernel.adversaries import WorstCase, style_of
from reticent.kernel.errors import NumericalError, ParameterError, ReticentError, UnsupportedError
from reticent.kernel.stopping import checkpoint
from reticent.kernel.text import digits
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
        "message": "",
        "calibrate-table": calibration_table(found, target, what, waiting),
        "calibrate-left-out": words.left_out(found.skipped),
        "python": as_program(*found.found) if found.found else "",
        "command": "\n".join(map(as_command, found.found)),
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
    view, ends = TARGETS[target.name][2], _ends(target)
    lines = []
    for who, worst in ((c.adversary, worst_case(c.mechanism, c.neighbouring)) for (c,) in searched.found.values()):
        name, width = f"worst case where {who.name} is content", 4.0 if who.strongest else 2.0
        lines.append(Line(points(worst, view), name, style_of(who.name), worst.claim, width, who.name))
    if ends is None:
        return picture(lines, view, theme)
    least = {"profile": 2.0 * ends["x0"], "guesses": ends["y0"]}.get(view, 0.0)  # to be seen, and dragged beyond itself
    figure, look = picture(lines, view, theme, least), {"color": GROUNDS[theme].accent, "width": 3}
    shape = {"type": "line", **ends, "line": look, "name": "the target: drag it", "showlegend": True}
    blind = max(target.prior, 1.0 - target.prior) if isinstance(target, Success) else 0.0
    figure["layout"].update(shapes=[shape], meta={"drag": target.name, "blind": blind})
    return figure


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


_QUICK = (Advantage, BayesSecurity, Success)
"""Targets that a curve at screen accuracy can say; others read its tails."""
_MANY, _FEW = 24, 7
_BEYOND = 1.25
"""How far the picture goes beyond what is allowed, or done."""


def budget(turns: Turns, asked: Asked) -> Shown:
    """How many epochs the target still allows; after the answer of the panel, which must not wait for it.

    Raises:
        UnsupportedError: as for ``budget_of``.
    """
    request = calibrate_of(asked.settings)[0]
    with turns.turn(asked.page, asked.turn):
        found = budget_of(request)
        figure = budget_figure(request, found, asked.theme)
    return Shown({"planned": found.sentence(words.goal(request.target))}, {"plan-figure": figure})


@dataclass(frozen=True, slots=True)
class Budget:
    """What a target allows in all, and what is planned.

    Attributes:
        most: steps at which the target is just met, for any attacker; proven.
        planned: steps of the settings.
        per_epoch: steps of one pass over the data.
    """

    most: int
    planned: int
    per_epoch: float

    def sentence(self, limit: str) -> str:
        """What is left, or too much; ``limit`` is the target in words."""
        left = self.most - self.planned
        if left < 0:
            return f"{self._epochs(-left, up=True)} too many: at most {self._epochs(self.most)} keep {limit}."
        return f"{self._epochs(left, 'more ')} keep {limit} for any attacker."

    def _epochs(self, steps: int, which: str = "", *, up: bool = False) -> str:
        """Whole epochs on the safe side, with the steps."""
        epochs = (math.ceil if up else math.floor)(steps / self.per_epoch)
        return f"{epochs:,} {which}epoch{'' if epochs == 1 else 's'} ({steps:,} step{'' if steps == 1 else 's'})"


def budget_of(request: Calibrate) -> Budget:
    """How many steps the target allows.

    Raises:
        UnsupportedError: the release has no epochs, or no number of steps is known to keep the target.
        UnreachableError: not even one step keeps it.
    """
    release = request.release.mechanism
    if release.training is None:
        raise UnsupportedError("epochs are known of DP-SGD only")
    most = answer(replace(request, unknown="steps"))
    return Budget(int(most.value), release.steps, 1.0 / release.sample_rate)


def budget_figure(request: Calibrate, budget: Budget, theme: str) -> Figure:
    """The risk that the target limits, over epochs, with the target and what is planned."""
    release, target, relation = request.release.mechanism, request.target, request.neighbouring
    ground, within = GROUNDS[theme], relation or WorstCase().relation
    end = max(budget.most, budget.planned, 1) * _BEYOND
    quick = isinstance(target, _QUICK) and screen_assessment(WorstCase(), release, within) is not None
    steps = np.unique(np.rint(np.linspace(end / 60.0, end, _MANY if quick else _FEW)).astype(int).clip(1))
    risks = []
    for count in (int(k) for k in steps):
        checkpoint()
        run = release.changed("steps", count)
        known = screen_assessment(WorstCase(), run, within) if quick else None
        risks.append(target.of(known or worst_case(run, within)).value)
    per, up = budget.per_epoch, target.grows_with_risk
    said = "about" if quick else "at most" if up else "at least"
    line = line_through(
        (steps / per).tolist(),
        [risk if math.isfinite(risk) else None for risk in risks],
        f"worst case ({'estimate' if quick else 'bound'})",
        line=COMPARED["B"].line(theme, 3.0),
        hovertemplate=f"After %{{x:.3~g}} epochs: {words.risk_of(target)} {said} %{{text}}.<extra></extra>",
        text=[digits(risk, up=None if quick else up) if math.isfinite(risk) else "" for risk in risks],
    )
    top = 1.1 * max(target.value, *(risk for risk in risks if math.isfinite(risk)))
    drawn = [line]
    for name, xs, ys, colour, dash in (
        ("target", (0.0, end), (target.value, target.value), ground.accent, "solid"),
        (f"planned: {digits(budget.planned / per)} epochs", (budget.planned,) * 2, (0.0, top), ground.quiet, "dot"),
        (f"allowed: {digits(budget.most / per, up=False)}", (budget.most,) * 2, (0.0, top), ground.accent, "dash"),
    ):
        look = {"color": colour, "width": 2, "dash": dash}
        drawn.append(line_through([x / per for x in xs], ys, name, line=look, hoverinfo="skip"))
    layout = {
        **base_layout(theme),
        "xaxis": axis_of(theme, "epochs", range=[0, end / per]),
        "yaxis": axis_of(theme, words.risk_of(target), range=[0, top]),
    }
    return {"data": drawn, "layout": layout}
