"""Strategies of correlated noise, and how far one record can move what is released, over all patterns of participation.

The strategy C is lower triangular (a tree: one row per node). A record that adds x_t u_t to the sum of step t, with
|x_t u_t| <= 1, moves the release by C x; docs/theory/matrix-mechanism.md has the proofs.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from reticent.kernel.errors import ParameterError, UnsupportedError

NAMES = ("identity", "prefix", "square-root", "bisr", "tree")
_CGD = "lambda-cgd="
_BANDED = "banded="
_LARGEST_DENSE = 2048
MOST_ENTRIES = 10_000
"""So many numbers a strategy may have that is stated by them."""
_LONGEST = 400_000
_HELD = 9
"""Arrays that are held at once weigh as many passes over one."""
_TURN = 500.0
"""What one step of a recurrence in Python weighs in passes."""
_UNIT = 2.0**-53
_WANTED = f"{', '.join(NAMES)}, lambda-cgd=0.9, banded=4, Toeplitz coefficients (1,0.5,...), or rows [[1],[0.5,1]]"


class Strategy(NamedTuple):
    """The strategy C of a number of releases.

    Attributes:
        text: its name, its coefficients, or a matrix as JSON.
        bands: most coefficients that count, of ``bisr`` those of its inverse; None keeps all.
        steps: number of releases, >= 1.
    """

    text: str
    bands: int | None
    steps: int

    @property
    def named(self) -> bool:
        """Whether a name says all coefficients; of each that is Toeplitz they are not negative and do not increase."""
        return self.text in NAMES or self.text.startswith(_CGD)

    @property
    def inverted(self) -> bool:
        """Whether its coefficients come from those of its inverse, one after the other."""
        return self.text == "bisr" and 1 < self.width < self.steps

    @property
    def dense(self) -> bool:
        """Whether it is no Toeplitz matrix, or is not given as one."""
        return self.text == "tree" or self.banded or self.text.lstrip().startswith("[")

    @property
    def banded(self) -> bool:
        """Whether only its bands and the norms of its columns are stated."""
        return self.text.startswith(_BANDED)

    @property
    def width(self) -> int:
        """The most coefficients that a Toeplitz strategy may have."""
        return min(self.steps, self.bands or self.steps)


class Sensitivity(NamedTuple):
    """Largest norm by which one record of norm at most 1 moves the release.

    Attributes:
        attained: some data set reaches it.
        proven: none exceeds it; the same number where it is exact, but for rounding.
    """

    attained: float
    proven: float


def check(strategy: Strategy) -> None:
    """Whether it is a strategy; nothing is computed for those that have a name.

    Raises:
        ParameterError: it is none.
    """
    if strategy.named:
        _cancelled(strategy)
        return
    if len(strategy.text) > _LONGEST:
        raise ParameterError("strategy", strategy.text[:60], f"a text of at most {_LONGEST} characters")
    if strategy.banded:
        _columns(strategy)
    elif coefficients(strategy) is None:
        matrix(strategy)


def work(strategy: Strategy, participations: int, separation: int) -> float:
    """How many numbers ``sensitivity`` goes through, at least; nothing is computed.

    Args:
        participations: of one record, at most, >= 1.
        separation: least number of steps from one to the next, >= 1.
    """
    steps = strategy.steps
    most = min(participations, -(-steps // separation))
    falls = most == 1 or strategy.banded or _falls(strategy)
    passes = _HELD + (1 if falls and most * separation >= steps else most)
    turn = _TURN + strategy.width / 16.0 if strategy.inverted else 0.0  # products go sixteen times as fast as passes
    return float(steps) * (passes + turn) * (1.0 if falls and strategy.text != "tree" else steps)


def coefficients(strategy: Strategy) -> np.ndarray | None:
    """The first column of a Toeplitz strategy, without trailing zeros; None where the strategy is no such matrix.

    Raises:
        ParameterError: it is no strategy.
    """
    match strategy.text:
        case "identity":
            found = np.ones(1)
        case "prefix":
            found = np.ones(strategy.width)
        case "square-root":
            found = _root(strategy.width)
        case "bisr":
            return _inverse_of_root(strategy) if strategy.width > 1 else np.ones(1)
        case _ if strategy.named and not strategy.dense:
            found = np.cumprod(np.append(1.0, np.full(strategy.steps - 1, _cancelled(strategy))))
        case _ if strategy.dense:
            return None
        case _:
            found = _numbers(strategy.text)
    found = found[: strategy.width]
    return np.trim_zeros(found, "b")


def _root(width: int) -> np.ndarray:
    """The Toeplitz root of the prefix sums: binomial(2j, j) / 4^j."""
    return np.append(1.0, np.cumprod(1.0 - 0.5 / np.arange(1, width)))


@lru_cache(maxsize=8)
def _inverse_of_root(strategy: Strategy) -> np.ndarray:
    """The power series 1 / p, p the first ``width`` terms of (1 - x)^(1/2): each number is a sum of earlier ones."""
    width, found = strategy.width, np.zeros(strategy.steps)
    found[:width] = _root(width)
    shares = np.ascontiguousarray((found[1:width] / (2.0 * np.arange(1, width) - 1.0))[::-1])
    for step in range(width, strategy.steps):
        found[step] = shares @ found[step - width + 1 : step]
    return found


def _cancelled(strategy: Strategy) -> float:
    """The share of the last noise that ``lambda-cgd`` takes back; 0 for all others.

    Raises:
        ParameterError: it is no share, or bands are to be kept.
    """
    if not strategy.text.startswith(_CGD):
        return 0.0
    try:
        share = float(strategy.text.removeprefix(_CGD))
    except ValueError:
        share = math.nan
    if not 0.0 <= share <= 1.0:
        raise ParameterError("strategy", strategy.text[:60], "lambda-cgd=L with L from 0 to 1")
    if strategy.bands is not None:
        raise ParameterError("bands", strategy.bands, "left out with lambda-cgd", shown=False)
    return share


def _numbers(text: str) -> np.ndarray:
    try:
        found = np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise ParameterError("strategy", text, _WANTED) from None
    return _usable(found, text)


def _usable(values: np.ndarray, text: str) -> np.ndarray:
    if values.size > MOST_ENTRIES or not np.all(np.isfinite(values)) or values.flat[0] == 0.0:
        raise ParameterError("strategy", text[:60], f"at most {MOST_ENTRIES} finite numbers, the first not 0")
    if np.max(np.abs(values)) > 1e12:
        raise ParameterError("strategy", text[:60], "numbers of at most 1e12")
    return values


@lru_cache(maxsize=32)
def matrix(strategy: Strategy) -> np.ndarray:
    """The strategy as a matrix with one column per step.

    Raises:
        ParameterError: it is no lower triangular matrix of this size.
        UnsupportedError: too many steps for a dense matrix.
    """
    steps = strategy.steps
    if steps > _LARGEST_DENSE:
        raise UnsupportedError(
            f"this strategy is handled as a dense matrix, up to {_LARGEST_DENSE} steps; Toeplitz coefficients that do "
            "not increase may have any number"
        )
    first = coefficients(strategy)
    if first is not None:
        padded = np.concatenate([first, np.zeros(steps - len(first))])
        apart = np.subtract.outer(np.arange(steps), np.arange(steps))
        return np.where(apart >= 0, padded[np.abs(apart)], 0.0)
    return _tree(steps) if strategy.text == "tree" else _dense(strategy.text, steps)


@lru_cache(maxsize=8)
def _columns(strategy: Strategy) -> tuple[int, np.ndarray]:
    """Bands, and the norm of each column, of a strategy of which no more is stated.

    Raises:
        ParameterError: it states something else.
    """
    bands, _, runs = strategy.text.removeprefix(_BANDED).partition(":")
    wanted = f"banded=W, W bands and columns of norm 1, or banded=W:1x{strategy.steps}, norms and how many columns"
    try:
        pairs = [run.partition("x")[::2] for run in runs.split(",")] if runs else [("1", str(strategy.steps))]
        lengths, width = [int(many or "1") for _, many in pairs], int(bands)
        values = np.array([float(norm) for norm, _ in pairs])
    except ValueError:
        raise ParameterError("strategy", strategy.text[:60], wanted) from None
    if width < 1 or min(lengths) < 1 or sum(lengths) != strategy.steps or np.any(values < 0.0):
        raise ParameterError("strategy", strategy.text[:60], wanted)
    return min(width, strategy.steps), np.repeat(_usable(values, strategy.text), lengths)


def banded(bands: int, norms: np.ndarray) -> str:
    """How a strategy is stated by its bands and the norms of its columns.

    Norms that follow each other and differ by at most a millionth count as the largest of them; by more, where there
    would be more than 10,000 numbers.

    Args:
        norms: of all columns, > 0.
    """

    def runs(tenths: int) -> list[tuple[float, int]]:
        found, low, high, many = list[tuple[float, int]](), norms[0], norms[0], 0
        for norm in norms.tolist():
            if min(low, norm) < (1.0 - 10.0 ** (0.1 * tenths - 6.0)) * max(high, norm):
                found.append((high, many))
                low, high, many = norm, norm, 0
            low, high, many = min(low, norm), max(high, norm), many + 1
        return [*found, (high, many)]

    least = bisect_left(range(60), True, key=lambda tenths: len(runs(tenths)) <= MOST_ENTRIES)
    return f"{_BANDED}{bands}:" + ",".join(f"{float(norm)!r}x{many}" for norm, many in runs(least))


def _tree(steps: int) -> np.ndarray:
    """Binary tree aggregation: a row for every dyadic interval that is complete within the run."""
    rows = []
    size = 1
    while size <= steps:
        for start in range(0, steps - size + 1, size):
            row = np.zeros(steps)
            row[start : start + size] = 1.0
            rows.append(row)
        size *= 2
    return np.array(rows)


def _dense(text: str, steps: int) -> np.ndarray:
    try:
        rows = json.loads(text)
        lengths = [len(row) for row in rows]
        values = np.array([float(x) for row in rows for x in row])
    except (ValueError, TypeError, RecursionError):
        raise ParameterError("strategy", text[:60], _WANTED) from None
    if lengths != list(range(1, steps + 1)):
        raise ParameterError("strategy", text[:60], f"a lower triangle: rows of 1, 2, ..., {steps} numbers")
    found = np.zeros((steps, steps))
    found[np.tril_indices(steps)] = _usable(values, text)
    if np.any(np.diag(found) == 0.0):
        raise ParameterError("strategy", text[:60], "a matrix without zeros on its diagonal")
    return found


def bandwidth(strategy: Strategy) -> int:
    """Rows that one column reaches: columns at least this many steps apart are orthogonal."""
    if strategy.text in ("prefix", "square-root"):
        return strategy.width
    if strategy.named:  # what is held apart by its inverse reaches to the end, also where it is too small for a float
        alone = {"identity": True, "tree": False, "bisr": strategy.width == 1}
        return 1 if alone.get(strategy.text, _cancelled(strategy) == 0.0) else strategy.steps
    if strategy.banded:
        return _columns(strategy)[0]
    first = coefficients(strategy)
    if first is not None:
        return len(first)
    rows, columns = np.nonzero(matrix(strategy))
    return int(np.max(rows - columns)) + 1


def column_norms(strategy: Strategy) -> np.ndarray:
    """Norm of each column: how far one participation at that step moves the release.

    Returns:
        Shape (steps,), >= 0.
    """
    first = coefficients(strategy)
    if first is None:
        return _columns(strategy)[1] if strategy.banded else np.sqrt(np.sum(matrix(strategy) ** 2, axis=0))
    energy = np.cumsum(first**2)
    return np.sqrt(energy[np.minimum(np.arange(strategy.steps)[::-1], len(first) - 1)])


@lru_cache(maxsize=256)
def sensitivity(strategy: Strategy, participations: int, separation: int) -> Sensitivity:
    """Over all patterns of at most ``participations`` steps that are at least ``separation`` apart.

    Exact for one participation, for orthogonal columns (bandwidth at most ``separation``), and for Toeplitz
    coefficients that are not negative and do not increase; else between a pattern that exists and a bound by absolute
    values.

    Args:
        participations: of one record, at most, >= 1.
        separation: least number of steps from one to the next, >= 1.

    Raises:
        ParameterError: columns may overlap, and no more than their norms is stated.
    """
    norms, steps = column_norms(strategy), strategy.steps
    most = min(participations, -(-steps // separation))
    if most == 1:
        return _enclosed(float(norms.max()), strategy, most)
    first = coefficients(strategy)
    if first is not None and _falls(strategy):
        return _enclosed(_of_pattern(first, steps, most, separation), strategy, most)
    if bandwidth(strategy) <= separation:
        together = math.sqrt(_heaviest(norms**2, most, separation))
        return Sensitivity(together, together)
    if strategy.banded:
        wanted = f"at least {bandwidth(strategy)}, the bands: how columns overlap is not stated"
        raise ParameterError("separation", separation, wanted)
    c = matrix(strategy)
    gram = c.T @ c
    rows = np.array([_heaviest(np.abs(gram[i]), most, separation, through=i) for i in range(steps)])
    proven = math.sqrt(_heaviest(rows, most, separation))
    reached = [np.arange(start, steps, separation)[:most] for start in range(min(separation, steps))]
    attained = max(float(np.linalg.norm(c[:, pattern].sum(axis=1))) for pattern in reached)
    attained = max(attained, float(norms.max()))
    return Sensitivity(min(attained, proven), proven)


def positive(strategy: Strategy) -> bool:
    """Whether no number of the matrix is known to be less than 0, nor left open."""
    if strategy.named or strategy.banded:
        return strategy.named
    first = coefficients(strategy)
    return bool(np.all((matrix(strategy) if first is None else first) >= 0.0))


def _falls(strategy: Strategy) -> bool:
    """Whether it is Toeplitz, and its coefficients are not negative and do not increase: by name, or as they are."""
    if strategy.named:
        return strategy.text != "tree"
    first = coefficients(strategy)
    return first is not None and bool(np.all(first >= 0.0) and np.all(np.diff(first) <= 0.0))


def _enclosed(size: float, strategy: Strategy, most: int) -> Sensitivity:
    """Both ends of a norm, where coefficients are rounded: docs/theory/matrix-mechanism.md, "Rounding"."""
    error = 0.0
    if strategy.named and strategy.text not in ("identity", "prefix", "tree"):
        error = 4.0 * (strategy.steps + most) * size
    if strategy.inverted:
        error += 8.0 * (strategy.width + 1) * most * math.sqrt(strategy.steps)
    return Sensitivity(max(size - error * _UNIT, 0.0), size + error * _UNIT)


def _of_pattern(first: np.ndarray, steps: int, most: int, separation: int) -> float:
    """Norm of the sum of the columns 0, separation, 2 separation, ... of a Toeplitz matrix."""
    if most * separation >= steps:  # each place has all columns before it: sums along rows of ``separation`` places
        rows = np.zeros((-(-steps // separation), separation))
        rows.flat[: len(first)] = first
        return float(np.linalg.norm(np.cumsum(rows, axis=0).flat[:steps]))
    total = np.zeros(steps)
    for index in range(most):
        start = index * separation
        reach = min(len(first), steps - start)
        total[start : start + reach] += first[:reach]
    return float(np.linalg.norm(total))


def _heaviest(weights: np.ndarray, most: int, separation: int, through: int | None = None) -> float:
    """Largest sum of at most ``most`` weights >= 0 at places at least ``separation`` apart, one of them ``through``."""
    if through is None and weights.min() == weights.max():
        return float(most * weights[0])
    taken = 0.0
    usable = weights.astype(float)
    if through is not None:
        taken, most = float(weights[through]), most - 1
        usable = usable.copy()
        usable[max(0, through - separation + 1) : through + separation] = 0.0
    best = np.zeros(len(usable) + 1)  # over the first t places, with as many picks as rounds so far
    for _ in range(most):
        earlier = np.concatenate([np.zeros(separation - 1), best])[: len(usable)]
        better = np.maximum.accumulate(np.concatenate([[0.0], earlier + usable]))
        if np.array_equal(better, best):
            break
        best = better
    return taken + float(best[-1])
