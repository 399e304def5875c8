"""How many digits of each number a certificate states, and which way they are rounded.

Another processor or another linear-algebra library computes the last digits of a composed curve a little
differently. A certificate therefore states the digits that do not depend on the machine, rounded to the safe
side: a lower end down, an upper end and a claimed risk up, a claimed security down. Measured between two
BLAS kernels and thread counts, the differences stay below the slack given here.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

Path = tuple[str, ...]
"""Keys and indices from the root of a record to a leaf, as text."""

_DIGITS = {"mu": (4, 5e-6), "delta_at_epsilon": (5, 5e-7)}
_OTHER = (8, 2e-9)
_FEWER_RISK = ("bayes_security", "fnr")
MEASURES = (
    "advantage",
    "bayes_security",
    "success_at_prior",
    "tpr_at_fpr",
    "epsilon_at_delta",
    "delta_at_epsilon",
    "mu",
    "curve",
)
"""Fields of an assessment that hold computed numbers."""


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Every leaf of JSON data by its path; an empty list or object is a leaf."""
    found: dict[Path, Any] = {}
    waiting = [(path, value)]
    while waiting:
        here, item = waiting.pop()
        if isinstance(item, dict) and item:
            waiting += [((*here, str(key)), item[key]) for key in reversed(item)]
        elif isinstance(item, (list, tuple)) and item:
            waiting += [((*here, str(i)), item[i]) for i in reversed(range(len(item)))]
        else:
            found[here] = item
    return found


def settled(path: Path, number: float) -> float:
    """The number as a certificate states it at ``path`` of an assessment."""
    if path[:2] == ("curve", "fpr"):
        return number
    digits, _ = _DIGITS.get(path[0], _OTHER)
    context = Context(prec=digits, rounding=ROUND_CEILING if _rounds_up(path) else ROUND_FLOOR)
    return float(context.plus(Decimal(number)))


def agrees(path: Path, stated: float, found: float) -> bool:
    """Whether ``stated`` is what the same computation on some machine states where this one found ``found``."""
    _, slack = _DIGITS.get(path[0], _OTHER)
    return any(stated == settled(path, found * (1.0 + shift)) for shift in (0.0, -slack, slack))


def relative_distance(stated: float, found: float) -> float:
    """Distance of two numbers over the larger; 0 for equal ones."""
    return 0.0 if stated == found else abs(stated - found) / max(abs(stated), abs(found))


def replaced(value: Any, new: dict[Path, Any], path: Path = ()) -> Any:
    """JSON data with the leaves at some paths replaced."""
    if isinstance(value, dict):
        return {key: replaced(item, new, (*path, str(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [replaced(item, new, (*path, str(i))) for i, item in enumerate(value)]
    return new.get(path, value)


def shows_more_risk(path: Path, found: float, stated: float) -> bool:
    """Whether ``found`` is riskier than ``stated`` at ``path`` of an assessment."""
    return found < stated if set(path) & set(_FEWER_RISK) else found > stated


def _rounds_up(path: Path) -> bool:
    if path[0] == "curve":
        return path[1] == "tpr"
    return path[-1] == "upper" or (path[-1] == "value" and path[0] != "bayes_security")
