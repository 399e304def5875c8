"""A table as LaTeX: the cells that text shows, in a tabular of booktabs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from reticent.kernel.text import digits, in_latex, printable

_NUMBER = re.compile(r"-?(?:inf|nan|[\d.]+(?:e[+-]\d+)?)")


def tabular(
    comments: Iterable[str],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    ends: Iterable[Sequence[Any]] = (),
) -> str:
    """Rows between the lines of booktabs; columns of numbers are aligned to the right.

    Args:
        comments: lines above.
        columns: names of the columns.
        rows: the cells as text shows them.
        ends: for each row the last cells with both ends, ``lower`` and ``upper``, where None is infinite; a cell that
            has an end has both behind it, rounded outwards.
    """
    across = [[cell for cell in column if cell] for column in zip(*rows, strict=True)] or [[] for _ in columns]
    aligned = "".join("r" if cells and all(map(_NUMBER.fullmatch, cells)) else "l" for cells in across)
    body = [[_set(cell) for cell in row] for row in rows]
    for row, numbers in zip(body, ends, strict=False):
        for place, number in enumerate(numbers, len(row) - len(numbers)):
            row[place] += _between(number)
    lines = [" & ".join(row) + r" \\" for row in body]
    return "\n".join(
        [
            *(f"% {printable(comment)}" for comment in comments),
            rf"\begin{{tabular}}{{{aligned}}}",
            r"\toprule",
            " & ".join(map(in_latex, columns)) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _set(cell: str) -> str:
    """A number as papers print it, with a power of ten or the sign of infinity; anything else as it is."""
    if not _NUMBER.fullmatch(cell):
        return in_latex(cell)
    mantissa, _, power = cell.replace("inf", r"\infty").partition("e")
    if power:
        return rf"${mantissa} \times 10^{{{int(power)}}}$"
    return f"${mantissa}$" if mantissa.startswith(("-", "\\")) else mantissa


def _between(number: Any) -> str:
    if number is None:
        return ""
    low = -math.inf if number.lower is None else number.lower
    high = math.inf if number.upper is None else number.upper
    if not (math.isfinite(low) or math.isfinite(high)):
        return ""
    return f" [{_set(digits(low, up=False))}, {_set(digits(high, up=True))}]"
