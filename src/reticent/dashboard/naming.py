"""Names on the lines of a picture, and what its reader may wonder about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.adversaries import Assessment, style_of
from reticent.dashboard.looks import GROUNDS
from reticent.dashboard.readings import BLIND, Points, points
from reticent.mechanisms import Neighbouring
from reticent.styles import Style
from reticent.text import digits

LOWEST = 1e-10
"""The smallest delta that is drawn."""
_LOGS = {"curves": (False, False), "roc": (True, True), "profile": (False, True), "guesses": (False, False)}
_PLACES: dict[str, tuple[float, tuple[float, float], tuple[int, int], tuple[int, int]]] = {
    # where the worst case is named, between where the others are, how far from the line each (right and down)
    "curves": (0.45, (0.13, 0.62), (-14, 20), (30, -34)),
    "roc": (0.45, (0.18, 0.6), (-30, -24), (34, 34)),
    "profile": (0.30, (0.65, 0.88), (44, -14), (-12, 18)),
    "guesses": (0.58, (0.46, 0.32), (44, -20), (-10, -22)),
}
_ALIKE = 6
"""Decimals at which two lines are one."""
_WIDE = 2.0
"""A bound above its lower end by this factor shows how exact the proof is, not the attacker."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a picture.

    Attributes:
        read: its points.
        name: as it is written beside it.
        style: how it is drawn.
        outer: whether its name is on the side of more risk, where no other line is.
    """

    read: Points
    name: str
    style: Style
    outer: bool


def names(assessments: Sequence[Assessment], view: str, theme: str) -> list[dict[str, Any]]:
    """A name for each attacker's line, beside it and tied to it."""
    usual = assessments[0].neighbouring if assessments else None
    lines = [  # under another relation, the worst case has a line of its own
        Line(points(one, view), called(one, usual), style_of(one.adversary.name), one.adversary.strongest)
        for one in assessments
    ]
    return names_of(lines, view, theme)


def names_of(lines: Sequence[Line], view: str, theme: str) -> list[dict[str, Any]]:
    """A name for each line, those of most risk first; one for all who share a line, so that nobody vanishes."""
    together: dict[tuple[float, ...], list[Line]] = {}
    for line in lines:
        together.setdefault(tuple(np.round(line.read.claimed[::8], _ALIKE)), []).append(line)
    groups = list(together.values())
    return [note for k, group in enumerate(groups) for note in _name(group, k, len(groups), view, theme)]


def _name(group: Sequence[Line], k: int, count: int, view: str, theme: str) -> list[dict[str, Any]]:
    of_worst, (first, last), outwards, inwards = _PLACES[view]
    outer, colour = group[0].outer, group[0].style.on(theme)
    share = of_worst if k == 0 else 1.0 - of_worst if outer else first + (last - first) * (k - 1) / max(count - 2, 1)
    read = group[0].read
    at = _at(read, view, share)
    x, y = float(read.x[at]), float(read.claimed[at])
    if view == "guesses":
        y -= float(BLIND[at])
    log_x, log_y = _LOGS[view]
    if (log_x and x <= 0.0) or (log_y and y <= LOWEST):
        return []
    cramped = view == "curves" and y < 0.15  # no room between the line and the axes
    right, down = outwards if outer and not cramped else inwards
    return [
        {
            "x": math.log10(x) if log_x else x,
            "y": math.log10(y) if log_y else y,
            "text": _together([line.name for line in group]),
            "font": {"color": colour, "size": 12},
            "showarrow": True,
            "arrowhead": 0,
            "arrowwidth": 1,
            "arrowcolor": colour,
            "ax": right,
            "ay": down,
            "xanchor": "left" if right > 0 else "right",
            "standoff": 3,
            "bgcolor": f"{GROUNDS[theme].label}bb",
        }
    ]


def _together(found: Sequence[str]) -> str:
    """Names of one line, below each other; a relation that all share is said once."""
    relations = {name.partition(", ")[2] for name in found}
    shared = f", {relations.pop()}" if len(relations) == 1 and "" not in relations else ""
    return ("<br>= ".join(name.removesuffix(shared) for name in found) + shared).replace(", ", ",<br>")


def called(assessment: Assessment, usual: Neighbouring | None) -> str:
    """The attacker's name, with the relation where it is not the usual one."""
    name = assessment.adversary.name
    return name if assessment.neighbouring is usual else f"{name}, {assessment.neighbouring.value}"


def _at(read: Points, view: str, share: float) -> int:
    """The point that lies ``share`` of the way along the line."""
    if view == "roc":
        return int(np.argmin(np.abs(np.log10(np.maximum(read.x, 1e-12)) / 5.0 + 1.0 - share)))
    if view == "profile":
        logs = np.log10(np.maximum(read.claimed, LOWEST / 10.0))
        return int(np.argmin(np.abs(logs - logs[0] - share * (math.log10(LOWEST) - logs[0]))))
    return int(np.argmin(np.abs(read.x / float(read.x[-1]) - share)))


def remarks(assessments: Sequence[Assessment], view: str) -> list[str]:
    """What a reader of the picture may wonder about, one sentence each."""
    if view == "guesses":
        return ["The gain over a blind guess, which always names what is likelier beforehand."]
    if view != "profile":
        return []
    kinks = ((a.adversary.name, _kink(points(a, view))) for a in assessments)
    return [
        f"The kink of {name} near delta {digits(delta, 1)} is one of the proof: below it the error of its arithmetic "
        "is larger than what the attacker gains, until the worst case limits both."
        for name, delta in kinks
        if delta is not None
    ]


def _kink(read: Points) -> float | None:
    """The delta below which an enclosure that was narrow is wide; None where it stays as it is."""
    if read.least is None or read.most is None:
        return None
    wide = read.most > _WIDE * np.maximum(read.least, 1e-300)
    if wide[0] or not wide.any():
        return None
    delta = float(read.claimed[int(np.argmax(wide))])
    return delta if delta > LOWEST else None
