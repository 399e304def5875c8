"""Curves of several attackers on axes: error rates, confident accusations, and epsilon against delta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.adversaries import Assessment, Claim, style_of
from reticent.errors import ParameterError, UnsupportedError
from reticent.text import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reticent.certificates.schema import CertifiedAssessment

_SMALLEST = 1e-5

_Line = tuple[str, str, str, np.ndarray, np.ndarray]
"""Attacker, relation and claim; then the points of a curve in a panel."""


def plot(
    assessments: Sequence[Assessment],
    axes: Sequence[Axes] | Axes | None = None,
    panels: Sequence[str] | str | None = None,
) -> Any:
    """Draw each attacker's curve in each panel, with the attacker's own colour and dash.

    Args:
        assessments: whose curves; estimates say so in the legend.
        axes: matplotlib axes, one for each panel; None makes a figure.
        panels: ``"linear"`` (false negative rate over false positive rate), ``"log-log"`` (true positive rate over
            false positive rate from 1e-5) and ``"epsilon-delta"`` (delta over epsilon); by default all three, or
            as many as there are axes.

    Returns:
        The axes, as a list.

    Raises:
        ParameterError: a panel is unknown, or there are not as many axes as panels.
        UnsupportedError: matplotlib is not installed.
    """
    given = _listed(axes)
    names = _names(panels, given)
    drawn = axes_for(given, len(names))
    for one, name in zip(drawn, names, strict=True):
        _PANELS[name](one, assessments)
        one.legend(frameon=False, fontsize="small")
    return drawn


def plot_certified(records: Sequence[CertifiedAssessment], axes: Sequence[Axes] | None = None) -> list[Any]:
    """Draw the points that a certificate states, as its page does: error rates, and confident accusations.

    Args:
        records: the assessments of a certificate.
        axes: two matplotlib axes; None makes a figure.

    Returns:
        The axes, as a list.

    Raises:
        ParameterError: there are not two axes.
        UnsupportedError: matplotlib is not installed.
    """
    linear, logarithmic = axes_for(axes, 2)
    names = [(r.adversary, r.neighbouring, r.claim) for r in records]
    errors = [(np.r_[0.0, r.curve.fpr], np.r_[1.0, r.curve.fnr]) for r in records]
    _draw_errors(linear, [(*who, *points) for who, points in zip(names, errors, strict=True)])
    found = [(np.asarray(r.curve.fpr), np.asarray(r.curve.tpr)) for r in records]
    _draw_accusations(logarithmic, [(*who, *points) for who, points in zip(names, found, strict=True)])
    for one in (linear, logarithmic):
        one.legend(frameon=False, fontsize="small")
    return [linear, logarithmic]


def axes_for(axes: Sequence[Axes] | Axes | None, count: int) -> list[Any]:
    """The axes given, or new ones.

    Raises:
        ParameterError: there are not ``count`` of them.
        UnsupportedError: none are given, and matplotlib is not installed.
    """
    drawn = _listed(axes)
    if drawn is None:
        return _new_axes(count)
    for one in drawn:
        if not hasattr(one, "plot"):
            raise ParameterError("axes", one, "axes of matplotlib")
    if len(drawn) != count:
        raise ParameterError("axes", len(drawn), f"as many as panels, {count}")
    return drawn


def _listed(axes: Sequence[Axes] | Axes | None) -> list[Any] | None:
    return None if axes is None else list(np.atleast_1d(np.asarray(axes, dtype=object)).flat)


def _names(panels: Sequence[str] | str | None, axes: list[Any] | None) -> list[str]:
    if panels is None:
        return list(_PANELS)[: len(axes) if axes is not None else None]
    names = [panels] if isinstance(panels, str) else list(panels)
    if not names:
        raise ParameterError("panels", names, "at least one")
    for name in names:
        if name not in _PANELS:
            raise ParameterError("panels", name, one_of(name, _PANELS))
    return names


def _new_axes(count: int) -> list[Any]:
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise UnsupportedError("plot needs matplotlib: pip install matplotlib") from None
    _, axes = plt.subplots(1, count, figsize=(4.6 * count, 4.0), layout="constrained")
    return list(np.atleast_1d(axes).flat)


def _curves(axes: Any, lines: Sequence[_Line]) -> None:
    """Each distinct curve once, with the names of all who share it, in the style of the last."""
    shared: dict[tuple[bytes, bytes], list[_Line]] = {}
    for line in lines:
        shared.setdefault((line[3].tobytes(), line[4].tobytes()), []).append(line)
    for together in shared.values():
        who, _, _, x, y = together[-1]
        axes.plot(x, y, label="; ".join(map(_label, together)), **style_of(who).matplotlib())


def _label(line: _Line) -> str:
    who, neighbouring, claim = line[:3]
    return f"{who} ({neighbouring}{'' if claim == Claim.BOUND else f', {claim}'})"


def _line(one: Assessment, x: np.ndarray, y: np.ndarray) -> _Line:
    return one.adversary.name, one.neighbouring, one.claim, x, y


def _linear(axes: Any, assessments: Sequence[Assessment]) -> None:
    fpr = np.concatenate([np.geomspace(1e-4, 0.01, 60), np.linspace(0.01, 1.0, 240)[1:]])
    _draw_errors(axes, [_line(one, fpr, one.curve.beta(fpr)) for one in assessments])


def _draw_errors(axes: Any, lines: Sequence[_Line]) -> None:
    axes.plot([0, 1], [1, 0], color="#888888", linewidth=0.8, linestyle=":", label="blind guess")
    _curves(axes, lines)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="false negative rate")
    axes.set_title("Mistakes that cannot be avoided", fontsize="medium")


def _log_log(axes: Any, assessments: Sequence[Assessment]) -> None:
    fpr = np.geomspace(_SMALLEST, 1.0, 240)
    _draw_accusations(axes, [_line(one, fpr, one.curve.power(fpr)) for one in assessments])


def _draw_accusations(axes: Any, lines: Sequence[_Line]) -> None:
    axes.plot([_SMALLEST, 1], [_SMALLEST, 1], color="#888888", linewidth=0.8, linestyle=":", label="blind guess")
    _curves(axes, [(*line[:4], np.clip(line[4], _SMALLEST, 1.0)) for line in lines])
    axes.set(xscale="log", yscale="log", xlim=(_SMALLEST, 1), ylim=(_SMALLEST, 1.2))
    axes.set(xlabel="false positive rate", ylabel="true positive rate")
    axes.set_title("Confident accusations", fontsize="medium")


def _epsilon_delta(axes: Any, assessments: Sequence[Assessment]) -> None:
    end = max(1.0, *(_epsilon_where_small(one) for one in assessments))
    epsilon = np.linspace(0.0, end, 160)
    _curves(axes, [_line(one, epsilon, _positive(one.curve.delta(epsilon))) for one in assessments])
    axes.set(yscale="log", xlim=(0, end), ylim=(1e-8, 1), xlabel="epsilon", ylabel="delta")
    axes.set_title("(epsilon, delta)", fontsize="medium")


def _positive(delta: Any) -> np.ndarray:
    """What a logarithmic axis can show."""
    return np.where(np.asarray(delta, dtype=float) > 0.0, delta, np.nan)


def _epsilon_where_small(one: Assessment) -> float:
    """Epsilon at which delta is about 1e-8, at most 60."""
    epsilon = np.geomspace(0.1, 60.0, 40)
    small = np.flatnonzero(np.asarray(one.curve.delta(epsilon)) <= 1e-8)
    return float(epsilon[small[0]]) if len(small) else 60.0


_PANELS: dict[str, Callable[[Any, Sequence[Assessment]], None]] = {
    "linear": _linear,
    "log-log": _log_log,
    "epsilon-delta": _epsilon_delta,
}
