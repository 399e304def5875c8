"""Which of many records are looked at, and looks that draw nothing from what the program draws."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

DICE = random.Random()  # noqa: S311
"""What decides that; of its own: nobody's noise comes from it."""


def some_of(count: int, most: int) -> list[int]:
    """At most so many of the numbers from 0 to below ``count``, each once."""
    return DICE.sample(range(count), min(most, count))


@contextmanager
def as_before(devices: Sequence[int] = ()) -> Iterator[Callable[[], bool]]:
    """Random numbers that are drawn inside come again afterwards; gives what says whether there were any."""
    of_python, of_numpy, before = random.getstate(), np.random.get_state(), _states(devices)
    with torch.random.fork_rng(devices=devices):
        try:
            yield lambda: _states(devices) != before
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)


def _states(devices: Sequence[int]) -> list[Any]:
    used = [torch.default_generator, *(torch.cuda.default_generators[at] for at in devices)]
    of_numpy = np.random.get_state(legacy=False)
    place = of_numpy["state"]["key"].tobytes(), of_numpy["state"]["pos"], of_numpy["has_gauss"]
    return [*(one.get_state().numpy().tobytes() for one in used), random.getstate(), place]
