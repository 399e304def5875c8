"""Pictures of an audit: the measured curve with its band and the claims, as SVG and PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reticent.auditing import AuditReport
from reticent.kernel.curves import TradeOff
from reticent.kernel.text import printable

# Okabe-Ito, darkened where thin lines need it; dashes tell coinciding curves apart.
_COLOURS = ("#b84700", "#0067a8", "#00724f", "#98467a", "#7a5600", "#3a3fae")
_ON_PAGE = {
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#777777": "var(--quiet)",
    "#bbbbbb": "var(--line)",
    "#e4e4e4": "var(--line)",
    **{colour: f"var(--s{k})" for k, colour in enumerate(_COLOURS, 1)},
}
_STYLED, _PAINT = re.compile(r'style="[^"]*"'), re.compile("#[0-9a-f]{6}")
_LONGEST_NAME = 30
_DASHES: tuple[tuple[int, tuple[int, ...]], ...] = ((0, (6, 2)), (0, (2, 2)), (0, (8, 2, 2, 2)), (0, (1, 1)))
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "reticent",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "axes.titlesize": 10,
    "text.color": "#000000",
}


def audit_figure(report: AuditReport, claims: Mapping[str, TradeOff]) -> Figure:
    """Two panels: error rates on linear axes, and the ROC on logarithmic axes down to one non-member."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(10.5, 4.8), layout="constrained")
        linear, logarithmic = figure.subplots(1, 2)
        draw_audit(linear, logarithmic, report, claims)
        linear.set_title("Errors of the attack (lower is riskier)")
        logarithmic.set_title("Confident accusations (higher is riskier)")
        handles, labels = linear.get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=2)
        for text in legend.get_texts():
            text.set_parse_math(False)  # names are foreign text
    return figure


def draw_audit(linear: Axes, logarithmic: Axes, report: AuditReport, claims: Mapping[str, TradeOff]) -> None:
    """The measured curve with its band, and the claims by name, on two axes that somebody made."""
    smallest = 1.0 / len(report.scores.non_member)
    _linear(linear, report, claims)
    _logarithmic(logarithmic, report, claims, np.geomspace(max(0.3 * smallest, 1e-6), 1.0, 400))


def histogram_figure(report: AuditReport) -> Figure:
    """How the scores of members and non-members are distributed: one record may be recognised in it; private."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.0, 3.2), layout="constrained")
        axes = figure.subplots()
        both = np.concatenate([report.scores.member, report.scores.non_member])
        edges = np.linspace(both.min(), both.max(), 41).tolist()
        axes.hist(report.scores.non_member, edges, color="#0067a8", alpha=0.5, label="non-members")
        axes.hist(report.scores.member, edges, color="#b84700", histtype="step", linewidth=1.6, label="members")
        axes.set(xlabel="score: higher looks more like a member", ylabel="records")
        axes.legend()
    return figure


def svg(figure: Figure) -> str:
    """The figure as an SVG element without prolog, metadata or outside references."""
    with mpl.rc_context(_STYLE):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def on_the_page(drawn: str) -> str:
    """The picture in the colours of the page's style sheet, which follow the reader's light or dark."""
    return _STYLED.sub(lambda found: _PAINT.sub(lambda one: _ON_PAGE.get(one[0], one[0]), found[0]), drawn)


def png(figure: Figure) -> bytes:
    """The figure as a PNG of 150 dots per inch."""
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def _linear(axes: Axes, report: AuditReport, claims: Mapping[str, TradeOff]) -> None:
    grid = np.linspace(0.0, 1.0, 401)
    curve = report.curve
    axes.plot(
        [0, 1], [1, 0], color="#777777", linewidth=mpl.rcParams["axes.linewidth"], linestyle=":", label="guessing"
    )
    label = f"band at confidence {report.confidence:g}"
    axes.fill_between(grid, curve.lower(grid), curve.upper(grid), step="post", color="#bbbbbb", alpha=0.6, label=label)
    axes.step([0.0, *curve.alpha], [1.0, *curve.beta], where="post", color=mpl.rcParams["text.color"], label="measured")
    for index, (name, claim) in enumerate(claims.items()):
        axes.plot(grid, claim.beta(grid), label=f"claim: {printable(name, _LONGEST_NAME)}", **_line(index))
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="false negative rate")


def _logarithmic(axes: Axes, report: AuditReport, claims: Mapping[str, TradeOff], grid: np.ndarray) -> None:
    curve, floor = report.curve, 0.3 / len(report.scores.member)
    axes.plot(grid, grid, color="#777777", linewidth=mpl.rcParams["axes.linewidth"], linestyle=":")
    low, high = np.clip(1.0 - curve.upper(grid), floor, 1.0), np.clip(1.0 - curve.lower(grid), floor, 1.0)
    axes.fill_between(grid, low, high, color="#bbbbbb", alpha=0.6)
    axes.plot(grid, np.clip(1.0 - curve.estimate(grid), floor, 1.0), color=mpl.rcParams["text.color"])
    for index, claim in enumerate(claims.values()):
        axes.plot(grid, np.clip(claim.power(grid), floor, 1.0), **_line(index))
    axes.set(xscale="log", yscale="log", xlim=(grid[0], 1), ylim=(floor, 1.1))
    axes.set(xlabel="false positive rate", ylabel="true positive rate")


def _line(index: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _DASHES[index % len(_DASHES)],
    }
