"""Argument checks with one message form: *name must be allowed, got value*.

Each helper takes exactly one keyword argument, so that the message names it, and returns the
value as a float (or int, or float64 array). NaN never passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from reticent.kernel.errors import ParameterError
from reticent.kernel.text import nearest, one_of

Choice = TypeVar("Choice", bound=StrEnum)

_LARGEST_COUNT = 10**15


def _one(kwargs: dict[str, Any]) -> tuple[str, Any]:
    ((name, value),) = kwargs.items()
    return name, value


def _real(name: str, value: object, allowed: str) -> float:
    if type(value) is float:  # nearly always: what follows takes a microsecond
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ParameterError(name, value, allowed)
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        raise ParameterError(name, value, allowed) from None


def _number(kwargs: dict[str, Any], allowed: str, holds: Callable[[float], bool]) -> float:
    name, value = _one(kwargs)
    x = _real(name, value, allowed)
    if not holds(x):
        raise ParameterError(name, value, allowed)
    return x


def positive(**kwargs: Any) -> float:
    """A finite number > 0."""
    return _number(kwargs, "a finite number > 0", lambda x: 0.0 < x < math.inf)


def non_negative(**kwargs: Any) -> float:
    """A finite number >= 0."""
    return _number(kwargs, "a finite number >= 0", lambda x: 0.0 <= x < math.inf)


def finite(**kwargs: Any) -> float:
    """A finite number."""
    return _number(kwargs, "a finite number", math.isfinite)


def fraction(**kwargs: Any) -> float:
    """A number in [0, 1]."""
    return _number(kwargs, "a number in [0, 1]", lambda x: 0.0 <= x <= 1.0)


def open_fraction(**kwargs: Any) -> float:
    """A number strictly between 0 and 1."""
    return _number(kwargs, "a number strictly between 0 and 1", lambda x: 0.0 < x < 1.0)


def rate(**kwargs: Any) -> float:
    """A number in (0, 1]."""
    return _number(kwargs, "a number in (0, 1]", lambda x: 0.0 < x <= 1.0)


def _whole(kwargs: dict[str, Any], least: int) -> int:
    name, value = _one(kwargs)
    if type(value) is int and value >= least:  # nearly always
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or int(value) < least:
        raise ParameterError(name, value, f"a whole number >= {least}")
    return int(value)


def count(**kwargs: Any) -> int:
    """A whole number >= 1, and at most 1e15: whole numbers beyond are not exact in floating point.

    Raises:
        ParameterError: it is none.
    """
    if (value := _whole(kwargs, 1)) > _LARGEST_COUNT:
        raise ParameterError(*_one(kwargs), f"a whole number from 1 to {_LARGEST_COUNT:.0e}")
    return value


def seed(**kwargs: Any) -> int:
    """A whole number >= 0.

    Raises:
        ParameterError: it is none.
    """
    return _whole(kwargs, 0)


def member(kind: type[Choice], **kwargs: Any) -> Choice:
    """A member of the enumeration ``kind``, or the text that spells one.

    Raises:
        ParameterError: it is none.
    """
    name, value = _one(kwargs)
    try:
        return kind(value)
    except ValueError:
        raise ParameterError(name, value, one_of(value, kind)) from None


def strict_member(kind: type[Choice], **kwargs: Any) -> Choice:
    """A member of the enumeration ``kind`` itself; for a text that spells one, the message has what to write.

    Raises:
        ParameterError: it is none.
    """
    name, value = _one(kwargs)
    if isinstance(value, kind):
        return value
    meant = nearest(value, kind)
    if meant is not None:
        home = f"{kind.__module__}.{kind.__name__}"
        allowed = f"a member of {home}: write {name}={kind.__name__}.{kind(meant).name}"
    else:
        allowed = f"one of {', '.join(f'{kind.__name__}.{known.name}' for known in kind)}"
    raise ParameterError(name, value, allowed)


def _array(kwargs: dict[str, Any], allowed: str, holds: Callable[[np.ndarray], Any]) -> np.ndarray:
    name, value = _one(kwargs)
    try:
        given = np.asarray(value)
        x = given.astype(float, copy=False)
    except (TypeError, ValueError):  # a list of lists of several lengths, or no numbers
        raise ParameterError(name, value, allowed) from None
    if given.dtype.kind in "US" or not np.all(holds(x)):
        raise ParameterError(name, value, allowed)
    return x


def probabilities(**kwargs: Any) -> np.ndarray:
    """An array (any shape) of numbers in [0, 1], as float64."""
    return _array(kwargs, "numbers in [0, 1]", lambda x: (x >= 0.0) & (x <= 1.0))


def log_probabilities(**kwargs: Any) -> np.ndarray:
    """An array (any shape) of natural logarithms of probabilities: numbers <= 0, -inf allowed."""
    return _array(kwargs, "logarithms of probabilities (numbers <= 0)", lambda x: x <= 0.0)


def reals(**kwargs: Any) -> np.ndarray:
    """An array (any shape) of numbers that are not NaN; infinities allowed."""
    return _array(kwargs, "numbers, not NaN", lambda x: ~np.isnan(x))
