"""The panel that compares: two settings with their curves, and on a map of the advantage; or two certificates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dash import html

from reticent.accountants.advantage_map import filled_map
from reticent.calibration import Advantage, BayesSecurity, Success
from reticent.certificates.page.page import document_in
from reticent.dashboard.asked import Asked, Shown
from reticent.dashboard.figures import (
    COMPARED,
    GROUNDS,
    Figure,
    Line,
    axis_of,
    base_layout,
    blank,
    line_through,
    picture,
)
from reticent.dashboard.pieces import answer_table
from reticent.dashboard.readings import points, summary, worst_case
from reticent.dashboard.requests import assess_of, calibrate_of, differ_of
from reticent.dashboard.state import State
from reticent.dashboard.turns import Turns
from reticent.kernel.adversaries import Assessment, WorstCase
from reticent.kernel.errors import ReticentError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.text import digits
from reticent.verbs import Differ, Differences
from reticent.verbs.side_by_side import Learnt

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
    a = b.pinned()
    requests = {name: assess_of(one) for name, one in (("A", a), ("B", b)) if one is not None}
    relation = requests["B"].neighbouring or WorstCase.relation
    releases = {name: request.mechanism for name, request in requests.items()}
    said, rows = "Keep these settings as A, then change them: what differs is shown here.", list[Any]()
    with turns.turn(asked.page, asked.turn):
        worst = {name: worst_case(release, relation) for name, release in releases.items()}
        surface = map_figure(releases, relation, asked.theme, limit_of(b))
        if a is not None:
            found = differ_of(a, b).answer()
            said, rows = _sentence(found.summary.learnt[0]), differences(found)
    caption = "The map is known for DP-SGD with Poisson sampling at a rate below 1."
    if surface:
        steps = releases["B"].steps
        gaps = "" if surface["data"][0]["zsmooth"] else "; empty where in doubt"
        caption = f"Worst-case advantage at {steps} steps, {relation.value} (estimate{gaps}); a click sets both"
    parts = {"compared": said, "message": "", "compare-table": rows, "map-caption": caption}
    return Shown(
        parts, {"compare-figure": overlay(worst, b.picture, asked.theme), "map": surface or blank(asked.theme)}
    )


def _sentence(advantage: Learnt) -> str:
    if advantage.more == "same":
        return "A and B are alike for the worst case."
    ends = {"A": advantage.a.value or 0.0, "B": advantage.b.value or 0.0}
    less, more = sorted(ends, key=ends.__getitem__)
    most, other = digits(ends[more], up=True), digits(ends[less], up=True)
    return f"{more} reveals more than {less} to any attacker: advantage up to {most}, not {other}."


def two_certificates(a: tuple[str, str], b: tuple[str, str]) -> list[Any]:
    """Two certificates, each the text and the name of its file.

    Raises:
        ArtifactError: one is no certificate.
    """
    (one, first), (other, second) = a, b
    told = f"A is {first}, B is {second}. Neither is checked here: Open does that, one by one."
    found = Differ(a=document_in(one, first), b=document_in(other, second)).answer()
    return [html.P(told, className="quiet"), *differences(found)]


def differences(found: Differences) -> list[Any]:
    """Who learns more from which, and, folded, every line that differs."""
    if not found.rows():
        return [html.P("Both say the same.", className="good")]
    return [answer_table(found.summary), html.Details([html.Summary(found.title()), answer_table(found)])]


def overlay(worst: dict[str, Assessment], view: str, theme: str) -> Figure:
    """The worst case of both settings in one view; A is dashed and lies on B, so that both are seen."""
    lines = [
        Line(points(one, view), f"{name}: worst case", COMPARED[name], one.claim, 2.8 if name == "B" else 2.4)
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
    places: dict[tuple[float, float], dict[str, int]] = {}
    for name, m in marks.items():
        places.setdefault((m.sample_rate, m.noise_multiplier), {})[name] = m.steps
    found = [_mark(place, steps, b.steps, theme) for place, steps in places.items()]
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
        target = calibrate_of(settings)[0].target
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
    place = "bottom right" if name else "middle center"
    look: Figure = {"line": {"color": colour, "width": 0.8}, "textfont": {"color": colour}, "textposition": place}
    return line_through(xs, ys, name, **look, mode="lines+text", text=label, hoverinfo="skip", showlegend=False)


def _readable(level: float, theme: str) -> str:
    """A colour that is read on the map where the advantage is ``level``: the map is dark there, or bright."""
    dark = (level > _DARK) == (theme == "light")
    return "#ffffff" if dark else "#10151a"


def _mark(place: tuple[float, float], steps: Mapping[str, int], shown: int, theme: str) -> Figure:
    """One setting, or both where they differ in steps alone."""
    names, ground = ", ".join(steps), GROUNDS[theme]
    others = [f"; {name} has {count} steps, the map is for {shown}" for name, count in steps.items() if count != shown]
    told = f"{names}: noise %{{y:.4g}} at rate %{{x:.4g}}{''.join(others)}<extra></extra>"
    size = 20 + 6 * len(names)
    look: Figure = {"marker": {"size": size, "color": ground.label, "line": {"color": ground.ink, "width": 2}}}
    look.update(mode="markers+text", text=[f"<b>{names}</b>"], textposition="middle center", showlegend=False)
    return line_through([place[0]], [place[1]], names, **look, hovertemplate=told)
