"""Names on the lines of a picture, and what its reader may wonder about."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from reticent.adversaries import Assessment
from reticent.dashboard.readings import Points, points
from reticent.mechanisms import Neighbouring
from reticent.proofs import Claim
from reticent.styles import Style
from reticent.text import digits

LOWEST = 1e-10
"""The smallest delta that is drawn."""
_SHARES = (0.45, 0.2, 0.62, 0.3, 0.75, 0.12, 0.54, 0.86, 0.37)
"""How far along a line its name may be tied to it, in the order in which they are tried."""
_OFF = [
    (round(far * math.cos(turn)), round(far * math.sin(turn)))
    for far in (30, 48, 70, 96, 126)
    for turn in (2.3, -0.75, -2.5, 0.7, 2.8, -0.35, 1.9, -1.2)
]
"""How far from its line a name may stand, in pixels to the right and down: near places are tried first."""
_PLOTS = ((214, 244), (736, 360))
"""Pixels of a picture inside of its axes, on a phone and at a desk."""
_LETTER, _ROW, _ROOM = 7.4, 16.0, 3.0
"""Pixels of a letter, of a row of letters, and around both."""
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
        claim: how strong it is.
        width: in pixels; the widest lies below all others.
        label: what it is called where there is room.
        who: whose line it is, by which the page knows the one before.
    """

    read: Points
    name: str
    style: Style
    claim: Claim
    width: float = 2.0
    label: str = ""
    who: str = ""


@dataclass(frozen=True, slots=True)
class _Box:
    """The place of a name, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def holds(self, points: np.ndarray) -> int:
        """How many of these points lie in it."""
        x, y = points
        return int(np.sum((self.left < x) & (x < self.right) & (self.top < y) & (y < self.bottom)))

    def meets(self, other: _Box) -> bool:
        """Whether two names would lie on each other."""
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.bottom <= other.top or other.bottom <= self.top)


class _Plot:
    """One size of a picture: its lines in pixels, and the names that stand in it."""

    def __init__(self, lines: Sequence[np.ndarray], size: tuple[int, int]) -> None:
        self.size, self.boxes = size, list[_Box]()
        between = [np.concatenate([line, (line[:, 1:] + line[:, :-1]) / 2.0], axis=1) for line in lines]
        self._points = np.concatenate([self._pixels(line) for line in between], axis=1)

    def _pixels(self, shares: np.ndarray) -> np.ndarray:
        return np.stack([shares[0] * self.size[0], (1.0 - shares[1]) * self.size[1]])

    def box(self, at: np.ndarray, off: tuple[int, int], text: str) -> _Box:
        """Where a name would stand that is tied to ``at``."""
        (x, y), rows = self._pixels(at), text.split("<br>")
        wide, high = _LETTER * max(map(len, rows)) + 2 * _ROOM, _ROW * len(rows) + 2 * _ROOM
        left = x + off[0] - _ROOM if off[0] > 0 else x + off[0] + _ROOM - wide
        return _Box(left, y + off[1] - high / 2, left + wide, y + off[1] + high / 2)

    def reserve(self, x: float, y: float, text: str) -> None:
        """Keep the place of a note at these shares of the axes, which is as far beside it as it is along them."""
        left, top = (self.size[0] - _LETTER * len(text)) * x, (self.size[1] - _ROW) * (1.0 - y)
        self.boxes.append(_Box(left, top, left + _LETTER * len(text), top + _ROW))

    def cost(self, box: _Box) -> int:
        """What a name would hide there: points of lines, other names, and what lies outside."""
        outside = box.left < 0 or box.top < 0 or box.right > self.size[0] or box.bottom > self.size[1]
        taken = outside or any(map(box.meets, self.boxes))
        return self._points.shape[1] if taken else box.holds(self._points)


def names_of(
    lines: Sequence[Line], shares: Callable[[Line], np.ndarray], theme: str, notes: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """A name for each line, tied to it, where it hides no line; one for all who share a line, so that nobody vanishes.

    Args:
        lines: the first has the first choice.
        shares: the points of a line, as shares of the axes.
        notes: that stand in the picture already.
    """
    together: dict[tuple[float, ...], list[Line]] = {}
    for line in lines:
        together.setdefault(tuple(np.round(line.read.claimed[::8], _ALIKE)), []).append(line)
    seen = {id(group[0]): _within(shares(group[0])) for group in together.values()}
    blind = np.linspace([0.0, 1.0], [1.0, 0.0], 100).T
    plots = [_Plot([blind, *(line for line in seen.values())], size) for size in _PLOTS]
    for plot, note in product(plots, notes):
        plot.reserve(note["x"], note["y"], note["text"])
    drawn = [(group, seen[id(group[0])]) for group in together.values() if seen[id(group[0])].shape[1]]
    return [_named(group, points, plots, theme) for group, points in drawn]


def _within(shares: np.ndarray) -> np.ndarray:
    """The points that are seen."""
    return shares[:, np.all((shares >= 0.0) & (shares <= 1.0), axis=0)]


def _named(group: Sequence[Line], points: np.ndarray, plots: Sequence[_Plot], theme: str) -> dict[str, Any]:
    text, colour = _together([line.name for line in group]), group[0].style.on(theme)
    along = np.cumsum(np.append(0.0, np.hypot(*np.diff(points, axis=1))))
    found, least = None, np.inf
    for off, share in product(_OFF, _SHARES):
        at = points[:, int(np.searchsorted(along, share * along[-1]))]
        cost = 0
        for plot in plots:
            cost += plot.cost(plot.box(at, off, text)) if cost < least else 0
        if cost < least:
            found, least = (at, off), cost
        if not cost:
            break
    at, (right, down) = found or (points[:, 0], _OFF[0])
    for plot in plots:
        plot.boxes.append(plot.box(at, (right, down), text))
    return {
        "x": float(at[0]),
        "y": float(at[1]),
        "text": text,
        "font": {"color": colour, "size": 12},
        "showarrow": True,
        "arrowhead": 0,
        "arrowwidth": 1,
        "arrowcolor": colour,
        "ax": right,
        "ay": down,
        "xanchor": "left" if right > 0 else "right",
        "standoff": 3,
    }


def _together(found: Sequence[str]) -> str:
    """Names of one line, below each other; a relation that all share is said once."""
    relations = {name.partition(", ")[2] for name in found}
    shared = f", {relations.pop()}" if len(relations) == 1 and "" not in relations else ""
    return ("<br>= ".join(name.removesuffix(shared) for name in found) + shared).replace(", ", ",<br>")


def called(assessment: Assessment, usual: Neighbouring | None) -> str:
    """The attacker's name, with the relation where it is not the usual one."""
    name = assessment.adversary.name
    return name if assessment.neighbouring is usual else f"{name}, {assessment.neighbouring.value}"


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
