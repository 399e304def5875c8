"""Pictures for the browser, as plain dictionaries: the classes of plotly cost tens of milliseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.adversaries import Assessment, style_of
from reticent.dashboard.looks import GROUNDS
from reticent.dashboard.readings import Points, points
from reticent.proofs import Claim
from reticent.styles import Style

Figure = dict[str, Any]

_VISIBLE = 0.004
"""Share of the axis at which an enclosure is wide enough to be seen."""
_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
_LOWEST = 1e-10
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
        {"title": "delta", "type": "log", "range": [-10, 0.1], "dtick": 2, "exponentformat": "power"},
    ),
    "guesses": (
        {"title": "how likely it is beforehand", "range": [0, 1], "tickformat": ".0%"},
        {"title": "right guesses", "range": [0.495, 1.005], "tickformat": ".0%"},
    ),
}
"""Axes of each view."""
_DECADES = [10.0**-n for n in range(6)]
_DECADE_TICKS = {"tickvals": _DECADES, "ticktext": ["100%", "10%", "1%", "0.1%", "0.01%", "0.001%"]}
_GUESSING: dict[str, tuple[list[float], list[float]]] = {
    "curves": ([0.0, 1.0], [1.0, 0.0]),
    "roc": ([1e-6, 1.0], [1e-6, 1.0]),
    "profile": ([], []),
    "guesses": ([0.0, 0.5, 1.0], [1.0, 0.5, 1.0]),
}
"""What a guess without the release achieves."""
_HOVER = {
    "curves": "Accusing %{{x:.3~%}} of outsiders wrongly,<br>this attacker misses {least} %{{y:.1%}} of members",
    "roc": "Accusing %{{x:.3~%}} of outsiders wrongly,<br>this attacker finds {most} %{{y:.3~%}} of members",
    "profile": "At epsilon %{{x:.2f}}, delta is {most} %{{y:.2e}}",
    "guesses": "Likely with %{{x:.0%}} beforehand:<br>guessed right from %{{customdata:.1%}} to {most} %{{y:.1%}}",
}


def risk_figure(assessments: Sequence[Assessment], view: str, theme: str) -> Figure:
    """All attackers in one view, with what guessing blindly would do.

    The worst case is the widest and lies below: who equals it is seen on it.
    """
    first = assessments[0].neighbouring if assessments else None
    figure = empty(view, theme)
    for assessment in sorted(assessments, key=lambda a: a.adversary.name != "worst-case"):
        name = assessment.adversary.name
        label = name if assessment.neighbouring is first else f"{name}, {assessment.neighbouring.value}"
        width = 0.0 if assessment.neighbouring is first else 1.6
        figure["data"] += traces(assessment, view, style_of(name), label, theme, width)
    if view == "profile":
        figure["layout"]["xaxis"]["range"] = [0, reach(assessments)]
    figure["layout"]["annotations"] = _names(assessments, view, theme)
    return figure


def _names(assessments: Sequence[Assessment], view: str, theme: str) -> list[Figure]:
    """A name on each line; one label for all who share it, so that nobody vanishes below another."""
    lines: dict[tuple[float, ...], list[Assessment]] = {}
    for assessment in assessments:
        lines.setdefault(tuple(np.round(points(assessment, view).claimed[::8], 6)), []).append(assessment)
    found = []
    for place, together in enumerate(lines.values()):
        read = points(together[0], view)
        at = int(np.argmin(np.abs(_along(read.x, view) - (0.12 + 0.11 * place))))
        x, y = float(read.x[at]), float(read.claimed[at])
        if view in ("roc", "profile") and y <= _LOWEST:
            continue
        found.append(
            {
                "x": math.log10(x) if view == "roc" else x,
                "y": math.log10(y) if view in ("roc", "profile") else y,
                "text": " = ".join(one.adversary.name for one in together),
                "font": {"color": style_of(together[0].adversary.name).on(theme), "size": 12},
                "showarrow": False,
                "xanchor": "left",
                "yanchor": "top" if view in ("roc", "guesses") else "bottom",
                "xshift": 4,
            }
        )
    return found


def _along(x: np.ndarray, view: str) -> np.ndarray:
    """How far along its axis each point lies, from 0 to 1."""
    if view == "roc":
        return 1.0 + np.log10(np.maximum(x, 1e-12)) / 5.0
    return x / max(float(x[-1]), 1e-12)


def reach(assessments: Sequence[Assessment]) -> float:
    """How far the axis of epsilon goes: in a few steps, so that it does not move with every change."""
    ends = [read.x[read.claimed > _LOWEST][-1:] for read in (points(a, "profile") for a in assessments)]
    furthest = max((float(end[0]) for end in ends if len(end)), default=0.0)
    return next((end for end in (1.0, 3.0, 6.0, 12.0) if furthest < end), 24.0)


_MARKS = {Claim.CONDITIONAL: "diamond-open", Claim.ESTIMATE: "circle-open", Claim.EMPIRICAL: "square-open"}
"""On the line of a claim that is not a bound."""


def traces(assessment: Assessment, view: str, look: Style, label: str, theme: str, width: float = 0.0) -> list[Figure]:
    """The line of one attacker; below it the enclosure where it can be seen."""
    read = points(assessment, view)
    wide = width or (4.0 if assessment.adversary.name == "worst-case" else 2.0)
    marked = _MARKS.get(assessment.claim)
    line = {
        "type": "scatter",
        "mode": "lines+markers" if marked else "lines",
        "x": read.x.tolist(),
        "y": _shown(read.claimed, view),
        "name": f"{label} ({assessment.claim.value})",
        "meta": assessment.adversary.name,
        "line": look.line(theme, wide),
        "hovertemplate": _sentence(view, assessment.claim) + f"<extra>{label}</extra>",
        "hoverlabel": {"namelength": -1},
    }
    if marked:
        line["marker"] = {"symbol": marked, "size": 8, "maxdisplayed": 14, "color": look.on(theme)}
    if view == "guesses":
        line["customdata"] = np.maximum(read.x, 1.0 - read.x).tolist()
    return [*_band(read, view, look, label, theme), line]


def empty(view: str, theme: str) -> Figure:
    """The axes of a view with the line of a blind guess."""
    ground = GROUNDS[theme]
    x, y = ({**axis, "title": {"text": axis["title"], "standoff": 8}} for axis in AXES[view])
    for axis in (x, y):
        axis.update(
            gridcolor=ground.line, zeroline=False, linecolor=ground.quiet, ticks="outside", tickcolor=ground.line
        )
        axis.update(tickfont={"size": 12})
    if view == "roc":
        x.update(_DECADE_TICKS)
        y.update(_DECADE_TICKS)
    layout = {**base_layout(theme), "xaxis": x, "yaxis": y, "hovermode": "closest", "uirevision": view}
    return {"data": [_blind(view, ground.quiet)], "layout": layout}


def blank(theme: str) -> Figure:
    """No picture at all."""
    return {"data": [], "layout": {**base_layout(theme), "xaxis": {"visible": False}, "yaxis": {"visible": False}}}


def base_layout(theme: str) -> Figure:
    """Fonts and colours of every picture."""
    ground = GROUNDS[theme]
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 13, "color": ground.ink},
        "margin": {"l": 68, "r": 26, "t": 12, "b": 52},
        "showlegend": False,
        "hoverlabel": {
            "bgcolor": ground.label,
            "bordercolor": ground.quiet,
            "font": {"color": ground.ink, "family": _FONT, "size": 13},
            "align": "left",
        },
        "autosize": True,
    }


def _blind(view: str, colour: str) -> Figure:
    xs, ys = _GUESSING[view]
    line = {"color": colour, "width": 1.2, "dash": "dot"}
    return {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "line": line, "hoverinfo": "skip", "name": "guessing"}


def _band(read: Points, view: str, look: Style, label: str, theme: str) -> list[Figure]:
    if read.least is None or read.most is None or not _is_visible(read.least, read.most, view):
        return []
    ends = {"least": _shown(read.least, view), "most": _shown(read.most, view)}
    common = {"type": "scatter", "mode": "lines", "x": read.x.tolist(), "hoverinfo": "skip", "line": {"width": 0}}
    fill = {"fill": "tonexty", "fillcolor": _faint(look.on(theme)), "name": f"{label}: enclosure of the truth"}
    return [{**common, "y": ends["least"], "name": ""}, {**common, "y": ends["most"], **fill}]


def _is_visible(least: np.ndarray, most: np.ndarray, view: str) -> bool:
    if view in ("roc", "profile"):
        low, high = (np.log10(np.maximum(end, 1e-6 if view == "roc" else _LOWEST)) for end in (least, most))
        return bool(np.max(high - low) > 10 * _VISIBLE)
    return bool(np.max(most - least) > _VISIBLE)


def _shown(values: np.ndarray, view: str) -> list[float | None]:
    if view == "profile":
        return [float(v) if v > _LOWEST / 100 else None for v in values]
    if view == "roc":
        return np.maximum(values, 1e-12).tolist()
    return values.tolist()


def _sentence(view: str, claim: Claim) -> str:
    bound = claim.proven
    text = _HOVER[view].format(least="at least" if bound else "about", most="at most" if bound else "about")
    return text + f" ({claim.value})."


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"
