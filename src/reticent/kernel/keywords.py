"""What every door does with its arguments: unknown keywords are answered, and numbers are made Python's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from reticent.kernel.errors import ParameterError
from reticent.kernel.text import did_you_mean

MEANT = {
    "sigma": "noise_multiplier",
    "noise": "noise_multiplier",
    "noise_scale": "noise_multiplier",
    "q": "sample_rate",
    "sampling_rate": "sample_rate",
    "sampling_probability": "sample_rate",
    "eps": "epsilon",
    "iterations": "steps",
    "num_steps": "steps",
    "clip_norm": "max_grad_norm",
    "clip": "max_grad_norm",
    "attacker": "adversary",
    "relation": "neighbouring",
    "flip": "flip_probability",
}
"""Our names of what other tools call otherwise."""

P = ParamSpec("P")
Answer = TypeVar("Answer")
Kind = TypeVar("Kind")


def own_number(value: Any) -> Any:
    """A number as ``int`` or ``float``, and everything else as it is.

    Python computes with a float32 in its seven digits: a bound would end below the truth.
    """
    if isinstance(value, (int, float)) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def hinting(function: Callable[P, Answer]) -> Callable[P, Answer]:
    """``function``, which gets numbers as Python's own.

    Its ``TypeError`` about an unknown keyword says which one was probably meant.
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> Answer:
        given: Any = (map(own_number, args), {name: own_number(value) for name, value in kwargs.items()})
        progress = kwargs.get("progress")
        if progress is not None and not callable(progress):
            raise ParameterError("progress", progress, "a function, or None")
        try:
            return function(*given[0], **given[1])
        except TypeError:
            parameters = inspect.signature(function).parameters
            names = [name for name in parameters if name != "self"]
            wrong = next((name for name in kwargs if name not in names), None)
            if wrong is None or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
                raise
            ours = MEANT.get(wrong)
            meant = f" (did you mean {ours}?)" if ours in names else did_you_mean(wrong, names)
            raise TypeError(f"no argument {wrong!r}{meant}; there are {', '.join(names)}") from None

    return called


def hinted(kind: type[Kind]) -> type[Kind]:
    """A class decorator: ``hinting`` for what makes an object of the class, once."""
    if kind.__init__ is not object.__init__ and not hasattr(kind.__init__, "__wrapped__"):
        kind.__init__ = hinting(kind.__init__)  # type: ignore[method-assign]
    return kind
