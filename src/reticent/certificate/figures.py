"""Pictures of the curves in a certificate, as inline SVG or PNG; one line per adversary."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reticent.certificate.schema import CertifiedAssessment

# Okabe-Ito: distinguishable with colour-blind eyes; dashes tell coinciding curves apart.
_COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES: tuple[tuple[int, tuple[int, ...]], ...] = ((0, ()), (0, (6, 2)), (0, (2, 2)), (0, (8, 2, 2, 2)), (0, (1, 1)))
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
}


def curves_figure(assessments: Sequence[CertifiedAssessment]) -> Figure:
    """Two panels: the trade-off curve on linear axes, and the ROC on logarithmic axes."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(10.5, 4.6), layout="constrained")
        linear, logarithmic = figure.subplots(1, 2)
        _linear_panel(linear, assessments)
        _log_panel(logarithmic, assessments)
        handles, labels = linear.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def svg(figure: Figure) -> str:
    """The figure as an SVG element without prolog, metadata or outside references."""
    with mpl.rc_context(_STYLE):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def save_png(figure: Figure, path: Path) -> None:
    """The figure as a PNG file of 150 dots per inch."""
    figure.savefig(path, format="png", dpi=150)


def _linear_panel(axes: Axes, assessments: Sequence[CertifiedAssessment]) -> None:
    axes.plot([0, 1], [1, 0], color="#999999", linewidth=0.8, label="no information")
    for index, record in enumerate(assessments):
        axes.plot([0.0, *record.curve.fpr], [1.0, *record.curve.fnr], label=_label(record), **_line(index))
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="false negative rate")
    axes.set_title("Errors that the attacker cannot escape (lower is riskier)", fontsize=10)


def _log_panel(axes: Axes, assessments: Sequence[CertifiedAssessment]) -> None:
    axes.plot([1e-5, 1], [1e-5, 1], color="#999999", linewidth=0.8)
    for index, record in enumerate(assessments):
        axes.plot(record.curve.fpr, [max(t, 1e-6) for t in record.curve.tpr], **_line(index))
    axes.set(xscale="log", yscale="log", xlim=(1e-5, 1), ylim=(1e-5, 1.1))
    axes.set(xlabel="false positive rate", ylabel="true positive rate")
    axes.set_title("Confident accusations (higher is riskier)", fontsize=10)


def _line(index: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _DASHES[index % len(_DASHES)],
        "linewidth": 2.4 if index == 0 else 1.6,
    }


def _label(record: CertifiedAssessment) -> str:
    return f"{record.adversary}, {record.neighbouring} ({record.claim})"
