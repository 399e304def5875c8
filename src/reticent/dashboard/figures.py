"""Pictures for the browser, as plain dictionaries: the classes of plotly cost tens of milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.dashboard.readings import BLIND, Points, points
from reticent.kernel.adversaries import Assessment, WorstCase, style_of
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.styles import Style
from reticent.kernel.text import digits

Figure = dict[str, Any]
LOWEST = 1e-10
"""The smallest delta that is drawn."""
_WIDE = 2.0
"""A bound above its lower end by this factor shows how exact the proof is, not the attacker."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a picture.

    Attributes:
        read: its points.
        name: as the legend has it, with the claim.
        style: how it is drawn.
        claim: how strong it is.
        width: in pixels; the widest lies below all others.
        who: whose line it is, by which the page knows the one before.
    """

    read: Points
    name: str
    style: Style
    claim: Claim
    width: float = 2.0
    who: str = ""


COMPARED = {"A": Style("#6066d0", (8, 3), "#3a3fae", "#a7abff"), "B": style_of(WorstCase.name)}
"""The two settings of a comparison."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a picture is drawn on."""

    ink: str
    quiet: str
    line: str
    accent: str
    label: str
    target: str


GROUNDS = {
    "light": Ground("#1b1b1b", "#5a5f66", "#e3e5e8", "#00508a", "#ffffff", "#b84700"),
    "dark": Ground("#ececec", "#a9afb7", "#343a42", "#7cc0f5", "#1d2126", "#ffb27d"),
}

_LEGEND: dict[str, Any] = {
    "orientation": "h",
    "x": 0,
    "y": 1.01,
    "yanchor": "bottom",
    "traceorder": "normal",
    "font": {"size": 11},
    "itemwidth": 30,
    "itemclick": False,
    "itemdoubleclick": False,
}
"""Above every picture, where it lies on no line; a click on it hides nobody."""
_VISIBLE = 0.004
"""Share of the axis at which an enclosure is wide enough to be seen."""
_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
AXES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "curves": (
        {"title": "false alarms (FPR)", "range": [0, 1], "tickformat": ".0%", "constrain": "domain"},
        {"title": "members missed (FNR)", "range": [0, 1.005], "tickformat": ".0%"},
    ),
    "roc": (
        {"title": "false alarms (FPR)", "type": "log", "range": [-5, 0]},
        {"title": "members found (TPR)", "type": "log", "range": [-5, 0.05]},
    ),
    "profile": (
        {"title": "epsilon", "range": [0, 6]},
        {"title": "delta", "type": "log", "range": [-10, 0.1], "dtick": 1, "exponentformat": "power"},
    ),
    "guesses": (
        {"title": "how likely it is beforehand", "range": [0, 1], "tickformat": ".0%"},
        {"title": "right guesses gained", "range": [0, 0.5], "tickformat": ".3~%"},
    ),
}
"""Axes of each view."""
_GAINS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
_DECADES = [10.0**-n for n in range(6)]
_DECADE_TICKS = {"tickvals": _DECADES, "ticktext": ["100%", "10%", "1%", "0.1%", "0.01%", "0.001%"]}
_GUESSING: dict[str, tuple[list[float], list[float]]] = {
    "curves": ([0.0, 1.0], [1.0, 0.0]),
    "roc": ([1e-6, 1.0], [1e-6, 1.0]),
    "profile": ([], []),
    "guesses": ([0.0, 1.0], [0.0, 0.0]),
}
"""What a guess without the release achieves."""
_HOVER = {
    "curves": "%{{customdata[0]}} false alarms:<br>misses {least} %{{customdata[1]}}<br>of members",
    "roc": "%{{customdata[0]}} false alarms:<br>finds {most} %{{customdata[1]}}<br>of members",
    "profile": "At epsilon %{{customdata[0]}}:<br>delta {most}<br>%{{customdata[1]}}",
    "guesses": "Likely with %{{customdata[0]}}:<br>right %{{customdata[2]}} without,<br>{most} "
    "%{{customdata[1]}} with it<br>",
}
"""Short lines: on a phone a label has half of the picture."""


def risk_figure(assessments: Sequence[Assessment], view: str, theme: str) -> Figure:
    """All attackers in one view, with what guessing blindly would do.

    The worst case is the widest and lies below: who equals it is seen on it.
    """
    usual = assessments[0].neighbouring if assessments else None
    return picture([_line_of(one, view, usual) for one in assessments], view, theme)


def _line_of(assessment: Assessment, view: str, usual: Neighbouring | None) -> Line:
    """Under another relation, the worst case has a thin line of its own."""
    name, who = called(assessment, usual), assessment.adversary
    width = 1.6 if assessment.neighbouring is not usual else 4.0 if who.strongest else 2.0
    return Line(points(assessment, view), name, style_of(who.name), assessment.claim, width, who.name)


def picture(lines: Sequence[Line], view: str, theme: str, least: float = 0.0) -> Figure:
    """Lines in one view on axes that hold them, and ``least``; the legend names them in their order."""
    figure = empty(view, theme)
    for line in sorted(lines, key=lambda line: -line.width):
        figure["data"] += traces(line, view, theme)
    layout = figure["layout"]
    if view == "profile":
        layout["xaxis"]["range"] = [0, max(_reach(lines), least)]
    if view == "guesses":
        most = 1.15 * max([least, *(float(np.max(line.read.claimed - BLIND)) for line in lines)])
        layout["yaxis"]["range"] = [0, next((end for end in _GAINS if most < end), 0.52)]
    return figure


def _reach(lines: Sequence[Line]) -> float:
    """The end of the axis of epsilon, in a few steps, so that few changes move it."""
    ends = [line.read.x[line.read.claimed > LOWEST][-1:] for line in lines]
    furthest = max((float(end[0]) for end in ends if len(end)), default=0.0)
    return next((end for end in (1.0, 3.0, 6.0, 12.0) if furthest < end), 24.0)


_MARKS = {Claim.CONDITIONAL: "diamond-open", Claim.ESTIMATE: "circle-open", Claim.EMPIRICAL: "square-open"}
"""On the line of a claim that is not a bound."""


def traces(line: Line, view: str, theme: str) -> list[Figure]:
    """The line of one attacker; below it the enclosure where it can be seen."""
    read, who = line.read, line.name.replace(" where ", "<br>where ")
    drawn = line_through(
        read.x.tolist(),
        _shown(read.claimed, view),
        f"{line.name} ({line.claim.value})",
        meta=line.who,
        line=line.style.line(theme, line.width),
        hovertemplate=f"<b>{who}</b><br>{_sentence(view, line.claim)}<extra></extra>",
        hoverlabel={"namelength": -1},
        customdata=_stated(read, view, line.claim.proven),
    )
    if marked := _MARKS.get(line.claim):
        drawn["mode"] = "lines+markers"
        drawn["marker"] = {"symbol": marked, "size": 8, "maxdisplayed": 14, "color": line.style.on(theme)}
    return [*_band(line, view, theme), drawn]


def empty(view: str, theme: str) -> Figure:
    """The axes of a view with the line of a blind guess."""
    ground = GROUNDS[theme]
    look: Figure = {"tickcolor": ground.line, "tickfont": {"size": 12}}
    x, y = (axis_of(theme, **axis, **look) for axis in AXES[view])
    if view == "roc":
        x.update(_DECADE_TICKS, tickangle=0, tickfont={"size": 11})
        y.update(_DECADE_TICKS)
    layout = {**base_layout(theme), "xaxis": x, "yaxis": y, "hovermode": "closest", "uirevision": view}
    return {"data": [_blind(view, ground.quiet)], "layout": layout}


def blank(theme: str) -> Figure:
    """No picture at all."""
    return {"data": [], "layout": {**base_layout(theme), "xaxis": {"visible": False}, "yaxis": {"visible": False}}}


def axis_of(theme: str, title: str, **more: Any) -> Figure:
    """An axis with its title; ``more`` as plotly calls it."""
    ground = GROUNDS[theme]
    named = {"title": {"text": title, "standoff": 8}, "zeroline": False, "ticks": "outside"}
    return {**named, "gridcolor": ground.line, "linecolor": ground.quiet, **more}


def base_layout(theme: str) -> Figure:
    """Fonts and colours of every picture."""
    ground = GROUNDS[theme]
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 13, "color": ground.ink},
        "margin": {"l": 68, "r": 26, "t": 12, "b": 52},
        "legend": _LEGEND,
        "hoverlabel": {
            "bgcolor": ground.label,
            "bordercolor": ground.quiet,
            "font": {"color": ground.ink, "family": _FONT, "size": 12},
            "align": "left",
        },
        "autosize": True,
    }


def line_through(x: Sequence[float], y: Sequence[float | None], name: str, **more: Any) -> Figure:
    """A line; ``more`` as plotly calls it."""
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, **more}


def band_between(
    x: Sequence[float], least: Sequence[float | None], most: Sequence[float | None], name: str, colour: str
) -> list[Figure]:
    """What lies between two lines that are not drawn."""
    unseen: Any = {"line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    upper = line_through(x, most, name, **unseen, fill="tonexty", fillcolor=colour)
    return [line_through(x, least, "", **unseen), upper]


def _blind(view: str, colour: str) -> Figure:
    line = {"color": colour, "width": 1.2, "dash": "dot"}
    return line_through(*_GUESSING[view], "guessing", line=line, hoverinfo="skip")


def _band(line: Line, view: str, theme: str) -> list[Figure]:
    read = line.read
    if read.least is None or read.most is None or not _is_visible(read.least, read.most, view):
        return []
    ends = _shown(read.least, view), _shown(read.most, view)
    return band_between(read.x.tolist(), *ends, f"{line.name}: enclosure of the truth", _faint(line.style.on(theme)))


def _is_visible(least: np.ndarray, most: np.ndarray, view: str) -> bool:
    if view in ("roc", "profile"):
        low, high = (np.log10(np.maximum(end, 1e-6 if view == "roc" else LOWEST)) for end in (least, most))
        return bool(np.max(high - low) > 10 * _VISIBLE)
    return bool(np.max(most - least) > _VISIBLE)


def _shown(values: np.ndarray, view: str) -> list[float | None]:
    if view == "profile":
        return [float(v) if v > LOWEST / 100 else None for v in values]
    if view == "roc":
        return np.maximum(values, 1e-12).tolist()
    if view == "guesses":
        return np.maximum(values - BLIND, 0.0).tolist()
    return values.tolist()


_SAFE: dict[str, tuple[bool | None, bool]] = {
    "curves": (False, False),
    "roc": (False, True),  # fewer false alarms find fewer members
    "profile": (True, True),
    "guesses": (None, True),
}
"""Which way place and number of a bound are rounded."""


def _stated(read: Points, view: str, bound: bool) -> list[list[str]]:
    """Place and number of each label in three digits; those of a bound on the safe side."""
    scale, unit = (1.0, "") if view == "profile" else (100.0, "%")
    blind = [BLIND] if view == "guesses" else []
    ways = (*_SAFE[view], None) if bound else (None, None, None)
    rows = zip(read.x, read.claimed, *blind, strict=True)
    return [[digits(scale * x, 3, up=way) + unit for x, way in zip(row, ways, strict=False)] for row in rows]


def _sentence(view: str, claim: Claim) -> str:
    bound = claim.proven
    text = _HOVER[view].format(least="at least" if bound else "about", most="at most" if bound else "about")
    return text + f" ({claim.value})."


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"


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
