"""The panel that compares two settings: their curves, their numbers, and where both lie on a map of the advantage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from dash import html

from reticent.accountants.advantage_map import filled_map
from reticent.adversaries import Assessment
from reticent.adversaries.report import AssessmentRecord
from reticent.calibration import Advantage, BayesSecurity, Success
from reticent.dashboard import words
from reticent.dashboard.asked import Asked, Shown
from reticent.dashboard.figures import Figure, axis_of, base_layout, blank, picture
from reticent.dashboard.looks import GROUNDS, SETTINGS
from reticent.dashboard.naming import Line
from reticent.dashboard.pieces import table
from reticent.dashboard.readings import points, record, summary, worst_case
from reticent.dashboard.state import State, mechanism_of, relation_of, target_of
from reticent.dashboard.turns import Turns
from reticent.errors import ReticentError
from reticent.mechanisms import DPSGD, Mechanism, Neighbouring
from reticent.text import digits

_Rows = list[list[float | None]]
_POINTS = 28
_LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)
_DARK = 0.3
_SCALES = {
    "light": [[0, "#eef4f9"], [0.5, "#6aa5cf"], [1, "#00365f"]],
    "dark": [[0, "#1b232b"], [0.5, "#2f77a8"], [1, "#bfe3ff"]],
}


def compared(turns: Turns, asked: Asked) -> Shown:
    """Two settings, and where they lie on the map."""
    b = asked.settings
    a = b.pinned() or b
    relation = relation_of(b) or Neighbouring.ADD_REMOVE
    mechanisms = {"A": mechanism_of(a), "B": mechanism_of(b)}
    if not b["pinned"]:
        del mechanisms["A"]
    with turns.turn(asked.page, asked.turn):
        worst = {name: worst_case(mechanism, relation) for name, mechanism in mechanisms.items()}
        surface = map_figure(mechanisms, relation, asked.theme, limit_of(b))
        rows = comparison_table(record(worst["A"]), record(worst["B"])) if b["pinned"] else ""
    caption = "The map is known for DP-SGD with Poisson sampling at a rate below 1."
    if surface:
        steps = mechanisms["B"].steps
        gaps = "" if surface["data"][0]["zsmooth"] else "; empty where in doubt"
        caption = f"Worst-case advantage at {steps} steps, {relation.value} (estimate{gaps}); a click sets both"
    parts = {
        "compared": _sentence(worst),
        "compare-message": "",
        "compare-table": rows,
        "map-caption": caption,
    }
    return Shown(
        parts, {"compare-figure": overlay(worst, b.picture, asked.theme), "map": surface or blank(asked.theme)}
    )


def _sentence(worst: dict[str, Assessment]) -> str:
    if "A" not in worst:
        return "Keep these settings as A, then change them: what differs is shown here."
    a, b = (summary(worst[name]).advantage.value or 0.0 for name in "AB")
    if a == b:
        return "A and B are alike for the worst case."
    more, less, high, low = ("B", "A", b, a) if b > a else ("A", "B", a, b)
    most, other = digits(high, up=True), digits(low, up=True)
    return f"{more} reveals more than {less} to any attacker: advantage up to {most}, not {other}."


def comparison_table(a: AssessmentRecord, b: AssessmentRecord) -> html.Table:
    """The worst case of two settings, number by number."""
    changes = [
        html.Td(_difference(one.value, other.value), className="n")
        for (_, one), (_, other) in zip(words.columns(a), words.columns(b), strict=True)
    ]
    titles = [title for title, _ in words.columns(a)]
    rows = zip(words.cells(a, {}), words.cells(b, {}), changes, strict=True)
    return table(("worst case", "A", "B", "B − A"), list(zip(titles, rows, strict=True)))


def _difference(a: float | None, b: float | None) -> str:
    """B less A; none is stated where the digits of both say the same."""
    if a is None or b is None:
        return ""
    return "\u2248 0" if words.shown(a) == words.shown(b) else f"{b - a:+.3g}".replace("-", "\u2212", 1)


def overlay(worst: dict[str, Assessment], view: str, theme: str) -> Figure:
    """The worst case of both settings in one view; A is dashed and lies on B, so that both are seen."""
    lines = [
        Line(points(one, view), name, SETTINGS[name], one.claim, 2.8 if name == "B" else 2.4, f"{name}: worst case")
        for name, one in sorted(worst.items(), key=lambda found: -(summary(found[1]).advantage.value or 0.0))
    ]
    return picture(lines, view, theme)


def map_figure(
    settings: Mapping[str, Mechanism], relation: Neighbouring, theme: str, limit: float | None
) -> Figure | None:
    """The worst-case advantage over noise and rate, at the steps of B; None where no such map is known.

    Known for DP-SGD with Poisson sampling. Values are estimates with an error below 1e-8; single cells in
    doubt are interpolated.

    Args:
        limit: the advantage that a target allows: a line of its own.
    """
    marks = {name: run for name, one in settings.items() if (run := one.training) is not None and _on_map(run)}
    if (b := marks.get("B")) is None:
        return None
    noises = _axis([m.noise_multiplier for m in marks.values()])
    rates = _axis([m.sample_rate for m in marks.values()], 1.0)
    floor = 0.9 * min(m.noise_multiplier for m in marks.values())
    values, noises = filled_map(noises, rates, b.steps, relation, floor)
    surface = {
        "type": "heatmap",
        "x": rates,
        "y": noises,
        "z": values,
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": _SCALES[theme],
        "zsmooth": False if any(None in row for row in values) else "best",
        "showscale": False,  # the lines of equal advantage say their level
        "hovertemplate": "Noise %{y:.3g} at rate %{x:.3g}: advantage about %{z:.3f} (estimate).<extra></extra>",
    }
    lines = [
        _isoline(level, values, noises, rates, _readable(level, theme), share=0.85 - 0.25 * (k % 2))
        for k, level in enumerate(_LEVELS)
        if not _same(level, limit)
    ]
    if limit is not None:
        line = _isoline(limit, values, noises, rates, GROUNDS[theme].target, f"<b>target {limit:g}</b>", 0.06)
        line["line"]["width"] = 3
        lines.append(line)
    found = [_mark(name, m, b.steps, theme) for name, m in marks.items()]
    look = {"type": "log", "gridcolor": "rgba(0,0,0,0)", "automargin": True, "tickangle": 0, "tickfont": {"size": 11}}
    layout = {
        **base_layout(theme),
        "xaxis": axis_of(theme, "sample rate", **look, **_ticks(rates)),
        "yaxis": axis_of(theme, "noise multiplier", **look, **_ticks(noises)),
    }
    return {"data": [surface, *[line for line in lines if line["x"]], *found], "layout": layout}


def limit_of(settings: State) -> float | None:
    """The advantage that the target of *Calibrate* allows; None where it is about something else."""
    try:
        target = target_of(settings)
    except ReticentError:
        return None
    match target:
        case Advantage(value=value):
            return value
        case BayesSecurity(value=value):
            return 1.0 - value
        case Success(value=value, prior=0.5):
            return 2.0 * value - 1.0
        case _:
            return None


def _same(level: float, limit: float | None) -> bool:
    """Whether two lines would lie on each other, and their names too."""
    return limit is not None and math.isclose(level, limit, rel_tol=0.1)


def _on_map(mechanism: DPSGD) -> bool:
    return (
        mechanism.sampler.independent
        and 0.05 < mechanism.noise_multiplier < 1000.0
        and 1e-8 < mechanism.sample_rate < 1.0
    )


def _axis(values: list[float], most: float = 1e4) -> tuple[float, ...]:
    """Around all values, a decade and more wide, rounded so that a small change keeps the map."""
    low, high = np.floor(4.0 * np.log10(min(values)) - 2.0) / 4.0, np.ceil(4.0 * np.log10(max(values)) + 2.0) / 4.0
    high = min(high, np.log10(most) - 1e-3)
    return tuple(float(x) for x in np.geomspace(10.0**low, 10.0**high, _POINTS))


def _ticks(values: Sequence[float]) -> Figure:
    """Marks of a logarithmic axis at 1, 2 and 5 in each decade (at 1 alone over many), written in full."""
    digits = (1, 2, 5) if values[-1] < 500.0 * values[0] else (1,)
    decades = range(math.floor(math.log10(values[0])), math.ceil(math.log10(values[-1])) + 1)
    marks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
    kept = [mark for mark in marks if values[0] <= mark <= values[-1]]
    return {"tickvals": kept, "ticktext": [f"{mark:g}" for mark in kept]}


def _isoline(
    level: float,
    values: _Rows,
    noises: tuple[float, ...],
    rates: tuple[float, ...],
    colour: str,
    name: str = "",
    share: float = 0.8,
) -> Figure:
    """Where the advantage is ``level``: between two points of the map in each row; it grows with the rate.

    It is named at this ``share`` of its way up.
    """
    xs, ys = [], []
    for noise, row in zip(noises, values, strict=True):
        whole = [value for value in row if value is not None]
        if len(whole) == len(row) and whole[0] <= level <= whole[-1]:
            xs.append(float(np.exp(np.interp(level, whole, np.log(rates)))))
            ys.append(noise)
    label = [name or f"{level:g}" if k == int(share * len(xs)) else "" for k in range(len(xs))]
    return {
        "type": "scatter",
        "mode": "lines+text",
        "x": xs,
        "y": ys,
        "text": label,
        "textposition": "bottom right" if name else "middle center",
        "textfont": {"color": colour},
        "line": {"color": colour, "width": 0.8},
        "hoverinfo": "skip",
    }


def _readable(level: float, theme: str) -> str:
    """A colour that is read on the map where the advantage is ``level``: the map is dark there, or bright."""
    dark = (level > _DARK) == (theme == "light")
    return "#ffffff" if dark else "#10151a"


def _mark(name: str, mechanism: DPSGD, steps: int, theme: str) -> Figure:
    note = "" if mechanism.steps == steps else f" ({mechanism.steps} steps; the map is for {steps})"
    ground = GROUNDS[theme]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [mechanism.sample_rate],
        "y": [mechanism.noise_multiplier],
        "text": [f"<b>{name}</b>"],
        "marker": {"size": 26, "color": ground.label, "line": {"color": ground.ink, "width": 2}},
        "textposition": "middle center",
        "hovertemplate": f"{name}: noise %{{y:.4g}} at rate %{{x:.4g}}{note}<extra></extra>",
    }
