"""Pictures for the browser, as plain dictionaries: the classes of plotly cost tens of milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.adversaries import Assessment, style_of
from reticent.dashboard.looks import GROUNDS
from reticent.dashboard.naming import LOWEST, Line, called, names_of
from reticent.dashboard.readings import BLIND, Points, points
from reticent.mechanisms import Neighbouring
from reticent.proofs import Claim

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
    usual = assessments[0].neighbouring if assessments else None
    return picture([_line_of(one, view, usual) for one in assessments], view, theme)


def _line_of(assessment: Assessment, view: str, usual: Neighbouring | None) -> Line:
    """Under another relation, the worst case has a thin line of its own."""
    name, who = called(assessment, usual), assessment.adversary
    width = 1.6 if assessment.neighbouring is not usual else 4.0 if who.strongest else 2.0
    return Line(points(assessment, view), name, style_of(who.name), assessment.claim, width, name, who.name)


def picture(lines: Sequence[Line], view: str, theme: str, least: float = 0.0, beside: Sequence[Figure] = ()) -> Figure:
    """Lines in one view with their names and the notes ``beside``, on axes that hold them, and ``least``."""
    figure = empty(view, theme)
    for line in sorted(lines, key=lambda line: -line.width):
        figure["data"] += traces(line, view, theme)
    layout = figure["layout"]
    if view == "profile":
        layout["xaxis"]["range"] = [0, max(_reach(lines), least)]
    if view == "guesses":
        most = 1.15 * max([least, *(float(np.max(line.read.claimed - BLIND)) for line in lines)])
        layout["yaxis"]["range"] = [0, next((end for end in _GAINS if most < end), 0.52)]
    ends = [_ends(layout[name]) for name in ("xaxis", "yaxis")]
    notes = names_of(lines, lambda line: _shares(line, view, *ends), theme, beside)
    for note in notes:
        note["x"], note["y"] = (low + note[key] * (high - low) for key, (low, high) in zip("xy", ends, strict=True))
    layout["annotations"] = [*notes, *beside]
    return figure


def _ends(axis: Figure) -> tuple[float, float]:
    low, high = axis["range"]
    return low, high


def _shares(line: Line, view: str, across: tuple[float, float], up: tuple[float, float]) -> np.ndarray:
    """The points of a line as shares of the axes."""
    x, y = line.read.x, np.array(_shown(line.read.claimed, view), dtype=float)
    log_x, log_y = (axis.get("type") == "log" for axis in AXES[view])
    with np.errstate(all="ignore"):
        places = (np.log10(x) if log_x else x), (np.log10(y) if log_y else y)
    return np.stack([(at - low) / (high - low) for at, (low, high) in zip(places, (across, up), strict=True)])


def _reach(lines: Sequence[Line]) -> float:
    """The end of the axis of epsilon, in a few steps, so that few changes move it."""
    ends = [line.read.x[line.read.claimed > LOWEST][-1:] for line in lines]
    furthest = max((float(end[0]) for end in ends if len(end)), default=0.0)
    return next((end for end in (1.0, 3.0, 6.0, 12.0) if furthest < end), 24.0)


_MARKS = {Claim.CONDITIONAL: "diamond-open", Claim.ESTIMATE: "circle-open", Claim.EMPIRICAL: "square-open"}
"""On the line of a claim that is not a bound."""


def traces(line: Line, view: str, theme: str) -> list[Figure]:
    """The line of one attacker; below it the enclosure where it can be seen."""
    read, who = line.read, line.label.replace(" where ", "<br>where ")
    drawn = line_through(
        read.x.tolist(),
        _shown(read.claimed, view),
        f"{line.label} ({line.claim.value})",
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


def _band(line: Line, view: str, theme: str) -> list[Figure]:
    read = line.read
    if read.least is None or read.most is None or not _is_visible(read.least, read.most, view):
        return []
    ends = _shown(read.least, view), _shown(read.most, view)
    return band_between(read.x.tolist(), *ends, f"{line.label}: enclosure of the truth", _faint(line.style.on(theme)))


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
