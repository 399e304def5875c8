"""Pictures for the browser, as plain dictionaries: the classes of plotly cost tens of milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.adversaries import Assessment, style_of
from reticent.dashboard.looks import GROUNDS
from reticent.dashboard.naming import LOWEST, called, names
from reticent.dashboard.readings import BLIND, Points, points
from reticent.proofs import Claim
from reticent.styles import Style

Figure = dict[str, Any]

_VISIBLE = 0.004
"""Share of the axis at which an enclosure is wide enough to be seen."""
_ROUNDING = 1e-9
"""Of a last digit that is shown: 0.1 stays 0.1."""
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
    "curves": "%{{customdata[0]:.3~%}} false alarms:<br>misses {least} %{{customdata[1]:.1%}}<br>of members",
    "roc": "%{{customdata[0]:.3~%}} false alarms:<br>finds {most} %{{customdata[1]:.3~%}}<br>of members",
    "profile": "At epsilon %{{customdata[0]:.2f}}:<br>delta {most}<br>%{{customdata[1]:.2e}}",
    "guesses": "Likely with %{{customdata[0]:.0%}}:<br>right %{{customdata[2]:.1%}} without,<br>{most} "
    "%{{customdata[1]:.1%}} with it<br>",
}
"""Short lines: on a phone a label has half of the picture."""


def risk_figure(assessments: Sequence[Assessment], view: str, theme: str) -> Figure:
    """All attackers in one view, with what guessing blindly would do.

    The worst case is the widest and lies below: who equals it is seen on it.
    """
    first = assessments[0].neighbouring if assessments else None
    figure = empty(view, theme)
    for assessment in sorted(assessments, key=lambda a: not a.adversary.strongest):
        name = assessment.adversary.name
        label = called(assessment, first)
        width = 0.0 if assessment.neighbouring is first else 1.6
        figure["data"] += traces(assessment, view, style_of(name), label, theme, width)
    figure["layout"]["annotations"] = names(assessments, view, theme)
    return fitted(figure, assessments, view)


def fitted(figure: Figure, assessments: Sequence[Assessment], view: str, least: float = 0.0) -> Figure:
    """The picture with axes that hold these lines, and ``least``: in a few steps, so that few changes move them."""
    if view == "profile":
        figure["layout"]["xaxis"]["range"] = [0, max(_reach(assessments), least)]
    if view == "guesses":
        gains = [float(np.max(points(a, view).claimed - BLIND)) for a in assessments]
        most = 1.15 * max([least, *gains])
        figure["layout"]["yaxis"]["range"] = [0, next((end for end in _GAINS if most < end), 0.52)]
    return figure


def _reach(assessments: Sequence[Assessment]) -> float:
    ends = [read.x[read.claimed > LOWEST][-1:] for read in (points(a, "profile") for a in assessments)]
    furthest = max((float(end[0]) for end in ends if len(end)), default=0.0)
    return next((end for end in (1.0, 3.0, 6.0, 12.0) if furthest < end), 24.0)


_MARKS = {Claim.CONDITIONAL: "diamond-open", Claim.ESTIMATE: "circle-open", Claim.EMPIRICAL: "square-open"}
"""On the line of a claim that is not a bound."""


def traces(assessment: Assessment, view: str, look: Style, label: str, theme: str, width: float) -> list[Figure]:
    """The line of one attacker; below it the enclosure where it can be seen."""
    read = points(assessment, view)
    wide = width or (4.0 if assessment.adversary.strongest else 2.0)
    marked = _MARKS.get(assessment.claim)
    who = label.replace(" where ", "<br>where ")
    line = line_through(
        read.x.tolist(),
        _shown(read.claimed, view),
        f"{label} ({assessment.claim.value})",
        meta=assessment.adversary.name,
        line=look.line(theme, wide),
        hovertemplate=f"<b>{who}</b><br>{_sentence(view, assessment.claim)}<extra></extra>",
        hoverlabel={"namelength": -1},
        customdata=_stated(read, view, assessment.claim.proven),
    )
    if marked:
        line["mode"] = "lines+markers"
        line["marker"] = {"symbol": marked, "size": 8, "maxdisplayed": 14, "color": look.on(theme)}
    return [*_band(read, view, look, label, theme), line]


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
        "showlegend": False,
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
    unseen: Any = {"line": {"width": 0}, "hoverinfo": "skip"}
    upper = line_through(x, most, name, **unseen, fill="tonexty", fillcolor=colour)
    return [line_through(x, least, "", **unseen), upper]


def _blind(view: str, colour: str) -> Figure:
    line = {"color": colour, "width": 1.2, "dash": "dot"}
    return line_through(*_GUESSING[view], "guessing", line=line, hoverinfo="skip")


def _band(read: Points, view: str, look: Style, label: str, theme: str) -> list[Figure]:
    if read.least is None or read.most is None or not _is_visible(read.least, read.most, view):
        return []
    ends = _shown(read.least, view), _shown(read.most, view)
    return band_between(read.x.tolist(), *ends, f"{label}: enclosure of the truth", _faint(look.on(theme)))


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


def _stated(read: Points, view: str, bound: bool) -> list[list[float]]:
    """Place and number of each label; those of a bound so that the digits shown are rounded to the safe side."""
    at, number = read.x, read.claimed
    if bound and view == "roc":  # fewer false alarms find fewer members
        at, number = _to_digits(at, np.floor), np.minimum(_to_digits(number, np.ceil), 1.0)
    elif bound and view == "curves":
        at, number = _to_digits(at, np.floor), np.floor(1e3 * number + _ROUNDING) / 1e3
    elif bound and view == "profile":
        at, number = np.ceil(1e2 * at - _ROUNDING) / 1e2, np.minimum(_to_digits(number, np.ceil), 1.0)
    elif bound:
        number = np.minimum(np.ceil(1e3 * number - _ROUNDING) / 1e3, 1.0)
    blind = [BLIND] if view == "guesses" else []
    found: list[list[float]] = np.stack([at, number, *blind], axis=1).tolist()
    return found


def _to_digits(values: np.ndarray, way: np.ufunc) -> np.ndarray:
    """Three significant digits of numbers >= 0; ``way`` is ``np.floor`` or ``np.ceil``."""
    scale = 10.0 ** (2.0 - np.floor(np.log10(np.maximum(values, 1e-300))))
    slack = _ROUNDING if way is np.floor else -_ROUNDING
    return np.where(values > 0.0, way(values * scale + slack) / scale, 0.0)


def _sentence(view: str, claim: Claim) -> str:
    bound = claim.proven
    text = _HOVER[view].format(least="at least" if bound else "about", most="at most" if bound else "about")
    return text + f" ({claim.value})."


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"
