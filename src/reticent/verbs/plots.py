"""Curves of several attackers on axes: error rates, confident accusations, epsilon against delta, numbers over noise.

Fonts, widths and sizes are those of the reader's style sheet (``matplotlib.rcParams``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.kernel.adversaries import Assessment, style_of
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.styles import SPARE
from reticent.kernel.text import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reticent.certificates.document.schema import CertifiedAssessment

_SMALLEST = 1e-5
ATTACKERS, CYCLE = "attackers", "cycle"

Who = tuple[str, str, str, str]
"""An attacker by name, its label, the relation and the claim."""
_Line = tuple[Who, np.ndarray, np.ndarray]
"""Whose curve it is, and its points in a panel."""


def plot(
    assessments: Sequence[Assessment],
    ax: Sequence[Axes] | Axes | None = None,
    panels: Sequence[str] | str | None = None,
    *,
    style: str = ATTACKERS,
    legend: bool = True,
) -> list[Any]:
    """Draw each attacker's curve in each panel, with the attacker's own colour and dash.

    Args:
        assessments: whose curves; the legend has the claim of each.
        ax: matplotlib axes, one for each panel; None makes a figure.
        panels: ``"linear"`` (false negative rate over false positive rate), ``"log-log"`` (true positive rate over
            false positive rate from 1e-5) and ``"epsilon-delta"`` (delta over epsilon); by default all three, or
            as many as there are axes.
        style: ``"attackers"``, or ``"cycle"`` for the ``axes.prop_cycle`` of your style sheet; dashes stay where it
            has none.
        legend: one for all panels, outside of the axes: below a figure with ``layout="constrained"`` that has these
            axes alone, otherwise above the first axes. False for none.

    Returns:
        The axes, as a list.

    Raises:
        ParameterError: a panel or the style is unknown, or there are not as many axes as panels.
        UnsupportedError: matplotlib is not installed.
    """
    names = _names(panels, ax, _PANELS)
    drawn = axes_for(ax, len(names))
    for one, name in zip(drawn, names, strict=True):
        _PANELS[name](one, assessments, style)
    return with_legend(drawn, legend)


def plot_certified(
    records: Sequence[CertifiedAssessment],
    ax: Sequence[Axes] | None = None,
    *,
    style: str = ATTACKERS,
    legend: bool = True,
) -> list[Any]:
    """Draw the points that a certificate states, as its page does: error rates, and confident accusations.

    Args:
        records: the assessments of a certificate.
        ax: two matplotlib axes; None makes a figure.
        style, legend: as for ``plot``.

    Returns:
        The axes, as a list.

    Raises:
        ParameterError: there are not two axes, or the style is unknown.
        UnsupportedError: matplotlib is not installed.
    """
    drawn = axes_for(ax, 2)
    names = [(r.adversary, r.label, r.neighbouring, r.claim) for r in records]
    errors = [(np.r_[0.0, r.curve.fpr], np.r_[1.0, r.curve.fnr]) for r in records]
    _draw_errors(drawn[0], [(who, *points) for who, points in zip(names, errors, strict=True)], style)
    found = [(np.asarray(r.curve.fpr), np.asarray(r.curve.tpr)) for r in records]
    _draw_accusations(drawn[1], [(who, *points) for who, points in zip(names, found, strict=True)], style)
    return with_legend(drawn, legend)


def plot_numbers(
    over: tuple[str, Sequence[Any]],
    whose: Sequence[Who],
    numbers: Mapping[str, Sequence[Any]],
    ax: Sequence[Axes] | Axes | None,
    panels: Sequence[str] | str | None,
    style: str,
    legend: bool,
) -> list[Any]:
    """Draw numbers of each attacker over one that the releases differ in, a point for each release.

    Args:
        over: the name of that number, and its value in each row.
        whose: the attacker of each row.
        numbers: what can be drawn: a panel each, with its value in each row.
        ax, panels, style, legend: as for ``plot``.

    Raises:
        ParameterError, UnsupportedError: as for ``plot``.
    """
    names = _names(panels, ax, numbers)
    drawn, x = axes_for(ax, len(names)), np.asarray(over[1], dtype=float)
    for one, name in zip(drawn, names, strict=True):
        y, lines = np.asarray(numbers[name], dtype=float), []
        for who in dict.fromkeys(whose):
            rows = [row for row in np.argsort(x, kind="stable") if whose[row] == who]
            lines.append((who, x[rows], y[rows]))
        _curves(one, lines, style, marker=".")
        one.set(xlabel=over[0].replace("_", " "), ylabel=name)
        one.set_ylim(bottom=0.0)
    return with_legend(drawn, legend)


def axes_for(ax: Sequence[Axes] | Axes | None, count: int) -> list[Any]:
    """The axes given, or new ones.

    Raises:
        ParameterError: there are not ``count`` of them.
        UnsupportedError: none are given, and matplotlib is not installed.
    """
    drawn = _listed(ax)
    if drawn is None:
        return _new_axes(count)
    for one in drawn:
        if not hasattr(one, "plot"):
            raise ParameterError("ax", one, "axes of matplotlib")
    if len(drawn) != count:
        raise ParameterError("ax", len(drawn), f"as many as panels, {count}")
    return drawn


def with_legend(drawn: list[Any], wanted: bool) -> list[Any]:
    """The same axes; what their lines are is said outside of them, in as many columns as fit.

    A relation that is that of all lines is said once, above them.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = drawn[0].figure
    shown: dict[str, Any] = {}
    for one in drawn:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            shown.setdefault(label, handle)
    where: Any = drawn[0]
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    if isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine) and figure.axes == drawn:
        where, place = figure, {"loc": "outside lower center"}
        for old in [*figure.legends] if wanted else ():
            old.remove()
    common = {one for one in Neighbouring if any(f"({one}, " in label for label in shown)}
    labels = list(shown)
    if len(common) == 1:
        (relation,) = common
        place["title"] = f"neighbouring: {relation}"
        labels = [label.replace(f"({relation}, ", "(") for label in shown]
    for columns in range(len(shown), 0, -1) if wanted else ():
        made = where.legend(shown.values(), labels, ncols=columns, **place)
        if columns == 1 or made.get_window_extent().width <= where.bbox.width:
            break
        made.remove()
    return drawn


def _listed(ax: Sequence[Axes] | Axes | None) -> list[Any] | None:
    return None if ax is None else list(np.atleast_1d(np.asarray(ax, dtype=object)).flat)


def _names(panels: Sequence[str] | str | None, ax: Sequence[Axes] | Axes | None, known: Mapping[str, Any]) -> list[str]:
    if panels is None:
        return list(known)[: None if ax is None else len(_listed(ax) or ())]
    names = [panels] if isinstance(panels, str) else list(panels)
    if not names:
        raise ParameterError("panels", names, "at least one")
    for name in names:
        if name not in known:
            raise ParameterError("panels", name, one_of(name, known))
    return names


def _new_axes(count: int) -> list[Any]:
    """Of the size that a style sheet states; where it states none, wide enough for the panels."""
    try:
        from matplotlib import pyplot as plt
        from matplotlib import rcParams, rcParamsDefault
    except ImportError:
        raise UnsupportedError("plot needs matplotlib: pip install matplotlib") from None
    stated = rcParams["figure.figsize"] != rcParamsDefault["figure.figsize"]
    _, axes = plt.subplots(1, count, figsize=None if stated else (4.6 * count, 4.4), layout="constrained")
    return list(np.atleast_1d(axes).flat)


def _curves(axes: Any, lines: Sequence[_Line], style: str, **more: Any) -> None:
    """Each distinct curve once, with the names of all who share it, in the look of the last."""
    looks = _looks([who for who, _, _ in lines], style)
    shared: dict[tuple[bytes, bytes], list[_Line]] = {}
    for line in lines:
        shared.setdefault((line[1].tobytes(), line[2].tobytes()), []).append(line)
    for together in shared.values():
        who, x, y = together[-1]
        names = "\n".join(f"{label} ({relation}, {claim})" for (_, label, relation, claim), _, _ in together)
        axes.plot(x, y, label=names, **{**more, **looks[who]})


def _looks(whose: Sequence[Who], style: str) -> dict[Who, dict[str, Any]]:
    """How each is drawn: a second line of one attacker in a spare style."""
    from matplotlib import rcParams

    if style not in (ATTACKERS, CYCLE):
        raise ParameterError("style", style, one_of(style, (ATTACKERS, CYCLE)))
    cycle, taken, looks = list(rcParams["axes.prop_cycle"]), [], {}
    for place, who in enumerate(dict.fromkeys(whose)):
        look = style_of(who[0])
        if look in taken:
            look = next((one for one in SPARE if one not in taken), look)
        taken.append(look)
        looks[who] = {**look.matplotlib(), **(cycle[place % len(cycle)] if style == CYCLE else {})}
    return looks


def _line(one: Assessment, x: np.ndarray, y: np.ndarray) -> _Line:
    return (one.adversary.name, one.adversary.label, one.neighbouring.value, one.claim.value), x, y


def _blind(axes: Any, x: Sequence[float], y: Sequence[float]) -> None:
    """What needs no attack, as thin as the frame."""
    from matplotlib import rcParams

    axes.plot(x, y, color="#888888", linewidth=rcParams["axes.linewidth"], linestyle=":", label="blind guess")


def _linear(axes: Any, assessments: Sequence[Assessment], style: str) -> None:
    fpr = np.concatenate([np.geomspace(1e-4, 0.01, 60), np.linspace(0.01, 1.0, 240)[1:]])
    _draw_errors(axes, [_line(one, fpr, one.curve.beta(fpr)) for one in assessments], style)


def _draw_errors(axes: Any, lines: Sequence[_Line], style: str) -> None:
    _blind(axes, [0, 1], [1, 0])
    _curves(axes, lines, style)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="false negative rate")


def _log_log(axes: Any, assessments: Sequence[Assessment], style: str) -> None:
    fpr = np.geomspace(_SMALLEST, 1.0, 240)
    _draw_accusations(axes, [_line(one, fpr, one.curve.power(fpr)) for one in assessments], style)


def _draw_accusations(axes: Any, lines: Sequence[_Line], style: str) -> None:
    _blind(axes, [_SMALLEST, 1], [_SMALLEST, 1])
    _curves(axes, [(who, x, np.clip(y, _SMALLEST, 1.0)) for who, x, y in lines], style)
    axes.set(xscale="log", yscale="log", xlim=(_SMALLEST, 1), ylim=(_SMALLEST, 1.2))
    axes.set(xlabel="false positive rate", ylabel="true positive rate")


def _epsilon_delta(axes: Any, assessments: Sequence[Assessment], style: str) -> None:
    end = max(1.0, *(_epsilon_where_small(one) for one in assessments))
    epsilon = np.linspace(0.0, end, 160)
    _curves(axes, [_line(one, epsilon, _positive(one.curve.delta(epsilon))) for one in assessments], style)
    axes.set(yscale="log", xlim=(0, end), ylim=(1e-8, 1), xlabel="epsilon", ylabel="delta")


def _positive(delta: Any) -> np.ndarray:
    """What a logarithmic axis can show."""
    return np.where(np.asarray(delta, dtype=float) > 0.0, delta, np.nan)


def _epsilon_where_small(one: Assessment) -> float:
    """Epsilon at which delta is about 1e-8, at most 60."""
    epsilon = np.geomspace(0.1, 60.0, 40)
    small = np.flatnonzero(np.asarray(one.curve.delta(epsilon)) <= 1e-8)
    return float(epsilon[small[0]]) if len(small) else 60.0


_PANELS: dict[str, Callable[[Any, Sequence[Assessment], str], None]] = {
    "linear": _linear,
    "log-log": _log_log,
    "epsilon-delta": _epsilon_delta,
}
