"""The curves of a certificate as drawing instructions: a pure function of the numbers in the document.

The page draws them as SVG with the colours of its style sheet. No plotting library is involved, because its
output differs between versions and fonts, and ``verify`` compares the page character by character.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reticent.certificates.document.schema import CertifiedAssessment, CurvePoints
from reticent.kernel.messages import Figure, Message

WIDTH, HEIGHT = 400, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 24, 10, 44
_DECADES = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One curve in both pictures.

    Attributes:
        style: number of its colour and dash pattern in the style sheet.
        names: of the attackers that share it.
        linear: points "x,y x,y ..." of false alarms against misses.
        logarithmic: points of false alarms against people found, both on logarithmic axes.
        found: share of insiders found at 1% false alarms, or None where the curve has no such point.
    """

    style: int
    names: tuple[Message, ...]
    linear: str
    logarithmic: str
    found: float | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its place in the picture and its label."""

    place: float
    label: Figure


def lines(assessments: Sequence[CertifiedAssessment], names: Sequence[Message]) -> list[Line]:
    """One line for each distinct curve, with the names of all who share it."""
    shared: dict[tuple[tuple[float, ...], ...], list[Message]] = {}
    for record, name in zip(assessments, names, strict=True):
        key = (tuple(record.curve.fpr), tuple(record.curve.fnr), tuple(record.curve.tpr))
        shared.setdefault(key, []).append(name)
    return [
        _line(index, tuple(together), CurvePoints(fpr=list(fpr), fnr=list(fnr), tpr=list(tpr)))
        for index, ((fpr, fnr, tpr), together) in enumerate(shared.items())
    ]


def across(x: float) -> float:
    """Horizontal place of a share in [0, 1]."""
    return round(_LEFT + x * (WIDTH - _LEFT - _RIGHT), 1)


def down(y: float) -> float:
    """Vertical place of a share in [0, 1]; 0 is at the bottom."""
    return round(_TOP + (1.0 - y) * (HEIGHT - _TOP - _BOTTOM), 1)


def decades(x: float) -> float:
    """A share on the logarithmic axis from 0.001% to 100%, as a share of its length."""
    return min(1.0, max(0.0, 1.0 + math.log10(max(x, 1e-300)) / _DECADES))


def ticks(place: str) -> list[Tick]:
    """Marks of an axis: ``x`` and ``y`` are linear, ``log x`` and ``log y`` logarithmic."""
    where = across if place.endswith("x") else down
    if place.startswith("log"):
        return [
            Tick(where(1.0 - n / _DECADES), Figure(f"{100.0 / 10**n:.{max(0, n - 2)}f}", "%"))
            for n in range(_DECADES, -1, -1)
        ]
    return [Tick(where(n / 4), Figure(str(25 * n), "%")) for n in range(5)]


def _line(index: int, names: tuple[Message, ...], curve: CurvePoints) -> Line:
    straight = zip([0.0, *curve.fpr], [1.0, *curve.fnr], strict=True)
    bent = zip(curve.fpr, curve.tpr, strict=True)
    found = dict(zip(curve.fpr, curve.tpr, strict=True)).get(0.01)
    return Line(
        style=index % 7,
        names=names,
        linear=" ".join(f"{across(x)},{down(y)}" for x, y in straight),
        logarithmic=" ".join(f"{across(decades(x))},{down(decades(y))}" for x, y in bent if y > 0.0),
        found=found,
    )
