"""The panel that searches: what each attacker would allow, and what the worst case has there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reticent.adversaries import Adversary, Assessment, WorstCase, style_of
from reticent.calibration import (
    Advantage,
    BayesSecurity,
    Calibration,
    EpsilonAtDelta,
    Success,
    Target,
    TprAtFpr,
    Unknown,
    UnreachableError,
    calibrate,
    of_release,
)
from reticent.dashboard.catalogue import TARGETS
from reticent.dashboard.figures import Figure, empty, fitted, traces
from reticent.dashboard.looks import GROUNDS
from reticent.dashboard.naming import Line, names_of
from reticent.dashboard.readings import assessed, points, summary
from reticent.errors import NumericalError, ParameterError, UnsupportedError
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.stopping import checkpoint


@dataclass(frozen=True, slots=True)
class Searched:
    """What each attacker would allow, the worst case first; and why some allow nothing that is known."""

    found: tuple[Calibration, ...]
    skipped: dict[str, str]


_solved = lru_cache(maxsize=128)(calibrate)


@lru_cache(maxsize=128)
def worst_there(calibration: Calibration) -> float:
    """The risk that the target limits, under the worst case, at the answer."""
    return calibration.worst_case().value


def search(
    mechanism: Mechanism,
    unknown: Unknown,
    target: Target,
    adversaries: tuple[Adversary, ...],
    relation: Neighbouring | None,
) -> Searched:
    """Search for each attacker in turn.

    Raises:
        UnsupportedError: the mechanism has no such parameter.
        ParameterError: a number is missing for the worst case.
    """
    of_release(unknown, mechanism).put(mechanism, 1.0)
    found, skipped = [], {}
    for who in adversaries:
        checkpoint()
        try:
            found.append(_solved(mechanism, unknown, target, who, relation))
        except (UnsupportedError, UnreachableError, ParameterError, NumericalError) as error:
            skipped[who.name] = str(error)
    return Searched(tuple(found), skipped)


def for_anybody(mechanism: Mechanism, unknown: Unknown, target: Target, relation: Neighbouring | None) -> Calibration:
    """What the worst case allows.

    Raises:
        UnsupportedError: nothing that is known.
    """
    found = search(mechanism, unknown, target, (WorstCase(),), relation)
    if not found.found:
        raise UnsupportedError("; ".join(found.skipped.values()))
    return found.found[0]


def calibration_figure(searched: Searched, target: Target, theme: str) -> Figure:
    """The worst-case curve at what each attacker allows, and the target as a line to be dragged."""
    view = TARGETS[target.name][3]
    figure, there = empty(view, theme), [assessed(WorstCase(), c.mechanism, c.neighbouring) for c in searched.found]
    for c, worst in zip(searched.found, there, strict=True):
        label = f"worst case where {c.adversary.name} is content"
        width = 4.0 if isinstance(c.adversary, WorstCase) else 2.0
        figure["data"] += traces(worst, view, style_of(c.adversary.name), label, theme, width)
    figure["layout"].update(_line(target, theme))
    figure["layout"].setdefault("annotations", []).extend(_allowed(searched.found, there, view, theme))
    return fitted(figure, there, view, _least(target))


def _allowed(found: Sequence[Calibration], there: Sequence[Assessment], view: str, theme: str) -> list[dict[str, Any]]:
    """Who allows each line; the riskiest on its outer side."""
    risks = [summary(one).advantage.value or 0.0 for one in there]
    order = sorted(range(len(found)), key=lambda k: -risks[k])
    name = [c.adversary.name for c in found]
    return names_of(
        [Line(points(there[k], view), name[k], style_of(name[k]), risks[k] == max(risks)) for k in order], view, theme
    )


def _least(target: Target) -> float:
    """How far the axis has to go for the target to be seen, and dragged beyond itself."""
    match target:
        case EpsilonAtDelta(value=value):
            return 2.0 * value
        case Success(value=value, prior=prior):
            return value - max(prior, 1.0 - prior)
        case _:
            return 0.0


def _line(target: Target, theme: str) -> dict[str, Any]:
    ends = _ends(target)
    if ends is None:
        return {}
    accent = GROUNDS[theme].accent
    shape = {"type": "line", **ends, "line": {"color": accent, "width": 3}, "name": "target"}
    places = {"curves": (0.99, 0.86), "roc": (0.99, 0.02), "guesses": (0.5, 0.99)}
    x, y = places.get(TARGETS[target.name][3], (0.99, 0.99))
    note = {"text": "the target: drag it", "xref": "paper", "yref": "paper", "x": x, "y": y, "showarrow": False}
    blind = max(target.prior, 1.0 - target.prior) if isinstance(target, Success) else 0.0
    meta = {"drag": target.name, "blind": blind}
    return {"shapes": [shape], "annotations": [{**note, "font": {"color": accent}}], "meta": meta}


def _ends(target: Target) -> dict[str, float] | None:
    """Where the line lies: errors that add up to at least 1 - advantage, or one rate, or one epsilon."""
    match target:
        case Advantage(value=value):
            return {"x0": 0.0, "y0": 1.0 - value, "x1": 1.0 - value, "y1": 0.0}
        case BayesSecurity(value=value):
            return {"x0": 0.0, "y0": value, "x1": value, "y1": 0.0}
        case TprAtFpr(value=value):
            return {"x0": 1e-5, "y0": value, "x1": 1.0, "y1": value}
        case EpsilonAtDelta(value=value):
            return {"x0": value, "y0": 1e-10, "x1": value, "y1": 1.0}
        case Success(value=value, prior=prior):
            gain = value - max(prior, 1.0 - prior)
            return {"x0": 0.0, "y0": gain, "x1": 1.0, "y1": gain}
        case _:
            return None
