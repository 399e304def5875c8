"""How many digits of each number a certificate states, and which way they are rounded.

Another processor or another linear-algebra library computes the last digits of a composed curve a little
differently. A certificate therefore states the digits that do not depend on the machine, rounded to the safe
side: a lower end down, an upper end and a claimed risk up, a claimed security down. Measured between two
BLAS kernels and thread counts, the differences stay below the slack given here.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from reticent.kernel.messages import is_message
from reticent.kernel.risk.questions import MEASURES

Path = tuple[str, ...]
"""Keys and indices from the root of a record to a leaf, as text."""
Settle = Callable[[Path, float], float]
"""From a path and the number that was computed there to the number that the document states."""

_DIGITS = {"mu": (4, 5e-6), "mu_at_rates_above": (4, 5e-6), "delta_at_epsilon": (5, 5e-7)}
_OTHER = (8, 2e-9)
_CONTEXTS = {
    (digits, up): Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    for digits in {_OTHER[0], *(digits for digits, _ in _DIGITS.values())}
    for up in (False, True)
}
COMPUTED = (*(one.field for one in MEASURES.values()), "mu_at_rates_above", "curve")
"""Fields of an assessment that hold computed numbers."""


def leaves(value: Any) -> dict[Path, Any]:
    """Every leaf of JSON data by its path; an empty list or object is a leaf, and so is a message."""
    found: dict[Path, Any] = {}
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        here, item = waiting.pop()
        if isinstance(item, dict) and item and not is_message(item):
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
    # From the shortest text of the number, so that 0.9 stays 0.9; floats keep the order of decimals.
    return float(_CONTEXTS[digits, _rounds_up(path)].create_decimal(repr(number)))


def agrees(path: Path, stated: float, found: float, tolerance: float = 0.0) -> bool:
    """Whether ``stated`` is what the same computation on some machine states where this one found ``found``.

    Args:
        path: of the number inside an assessment.
        stated: the number in the document.
        found: the number before rounding.
        tolerance: relative difference of the computed numbers to allow, if it exceeds the usual slack.
    """
    if stated == settled(path, found):
        return True
    digits, usual = _DIGITS.get(path[0], _OTHER)
    slack = max(usual, tolerance)
    low, high = sorted((settled(path, found * (1.0 - slack)), settled(path, found * (1.0 + slack))))
    return low <= stated <= high and len(Decimal(repr(stated)).normalize().as_tuple().digits) <= digits


def stated(value: Any, settle: Settle, path: Path) -> Any:
    """JSON data at ``path`` of a document, with the numbers that it states instead of those that were computed."""
    if isinstance(value, dict):
        return {key: stated(item, settle, (*path, str(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [stated(item, settle, (*path, str(i))) for i, item in enumerate(value)]
    return settle(path, value) if isinstance(value, float) else value


def _rounds_up(path: Path) -> bool:
    if path[0] == "curve":
        return path[1] == "tpr"
    return path[-1] == "upper" or (path[-1] == "value" and path[0] != "bayes_security")
