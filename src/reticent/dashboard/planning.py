"""The budget of a training: how many epochs a target still allows, and how the risk grows with them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from reticent.adversaries import WorstCase
from reticent.adversaries.screen import screen_assessment
from reticent.calibration import Advantage, BayesSecurity, Success
from reticent.dashboard import words
from reticent.dashboard.asked import Asked, Shown
from reticent.dashboard.calibrating import answer
from reticent.dashboard.figures import Figure, axis_of, base_layout, line_through
from reticent.dashboard.looks import GROUNDS, SETTINGS
from reticent.dashboard.readings import worst_case
from reticent.dashboard.requests import calibrate_of
from reticent.dashboard.turns import Turns
from reticent.errors import UnsupportedError
from reticent.stopping import checkpoint
from reticent.text import digits
from reticent.verbs import Calibrate

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
        line=SETTINGS["B"].line(theme, 3.0),
        hovertemplate=f"After %{{x:.3~g}} epochs: {words.risk_of(target)} {said} %{{text}}.<extra></extra>",
        text=[digits(risk, up=None if quick else up) if math.isfinite(risk) else "" for risk in risks],
    )
    ends, accent = end / per, {"color": ground.accent, "width": 2.5}
    limit = line_through([0.0, ends], [target.value] * 2, "target", line=accent, hoverinfo="skip")
    layout = {
        **base_layout(theme),
        "xaxis": axis_of(theme, "epochs", range=[0, ends]),
        "yaxis": axis_of(theme, words.risk_of(target), rangemode="tozero"),
        "shapes": [
            _upright(budget.planned / per, ground.quiet, "dot"),
            _upright(budget.most / per, ground.accent, "dash"),
        ],
        "annotations": [
            _note(budget.planned / per, ends, f"planned: {digits(budget.planned / per)}", ground.ink, 0.13),
            _note(budget.most / per, ends, f"allowed: {digits(budget.most / per, up=False)}", ground.accent, 0.02),
            _named(*_third(line), line["name"], line["line"]["color"], -14) | {"bgcolor": f"{ground.label}bb"},
            _named(0.0, target.value, "target", ground.accent, 10),
        ],
    }
    return {"data": [line, limit], "layout": layout}


def _third(line: Figure) -> tuple[float, float]:
    """The last point of the first third of a line."""
    known = [(x, y) for x, y in zip(line["x"], line["y"], strict=True) if y is not None]
    return known[len(known) // 3] if known else (0.0, 0.0)


def _named(x: float, y: float, name: str, colour: str, up: int) -> Figure:
    """The name of a line, ``up`` pixels above it."""
    place = {"x": x, "y": y, "xanchor": "left", "xshift": 6, "yshift": up, "showarrow": False}
    return {**place, "text": name, "font": {"color": colour, "size": 12}}


def _upright(x: float, colour: str, dash: str) -> Figure:
    line = {"color": colour, "width": 1.5, "dash": dash}
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _note(x: float, end: float, text: str, colour: str, y: float) -> Figure:
    side = {"xanchor": "left", "xshift": 5} if x < 0.5 * end else {"xanchor": "right", "xshift": -5}
    place = {"x": x, "yref": "paper", "y": y, **side, "showarrow": False}
    return {**place, "text": text, "font": {"color": colour, "size": 12}}
