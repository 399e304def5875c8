"""A number, or a column of them with one for each of several kinds of steps: what formulas of both need."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

Numbers = Any
"""A number; or a column of them, one for each of several laws."""

_ROOT_HALF, _FAR_OUT = 0.5**0.5, 30.0


class Functions(NamedTuple):
    """What the formulas take, for numbers or for columns: numpy takes ten times as long for a number."""

    log: Any
    log1p: Any
    exp: Any
    expm1: Any
    cos: Any
    least: Any
    most: Any
    log_sum: Any
    log_tail: Any


def functions(of: Numbers) -> Functions:
    """Those for ``of``."""
    return _OF_COLUMNS if isinstance(of, np.ndarray) else _OF_NUMBERS


def _log_sum(one: float, other: float) -> float:
    return max(one, other) + math.log1p(math.exp(-abs(one - other)))


def _log_tail(z: float) -> float:
    """log P(N > z); for z <= 0 a bound on any sum of nodes of the density, spacing at most 0.55 sd."""
    if z <= 0.0:
        return 0.25
    return math.log(0.5 * math.erfc(z * _ROOT_HALF)) if z < _FAR_OUT else float(log_ndtr(-z))


def _log_tails(z: np.ndarray) -> np.ndarray:
    return np.where(z > 0.0, log_ndtr(-z), 0.25)


_OF_NUMBERS = Functions(math.log, math.log1p, math.exp, math.expm1, math.cos, min, max, _log_sum, _log_tail)
_OF_COLUMNS = Functions(np.log, np.log1p, np.exp, np.expm1, np.cos, np.minimum, np.maximum, np.logaddexp, _log_tails)


def any_of(condition: bool | np.ndarray) -> bool:
    """Whether it holds for one kind at least."""
    return condition if isinstance(condition, bool) else bool(condition.any())


def joined(*parts: Numbers) -> np.ndarray:
    """Along the last axis, numbers as well as arrays."""
    return np.concatenate([part if isinstance(part, np.ndarray) else [part] for part in parts], axis=-1)


def against_rows(value: Numbers) -> np.ndarray:
    """One value for each kind, against frequencies and cells."""
    return np.asarray(value)[..., None]
