"""A keyword that does not exist is answered with the nearest one that does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from reticent.text import did_you_mean

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


def hinting(function: Callable[P, Answer]) -> Callable[P, Answer]:
    """``function``, whose ``TypeError`` about an unknown keyword says which one was probably meant."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> Answer:
        try:
            return function(*args, **kwargs)
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
