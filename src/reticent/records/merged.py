"""The releases of a loop as few: equal ones are counted once, and noise is rounded down where there are too many."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import fields, replace
from operator import attrgetter

from reticent.mechanisms import DPSGD

_MOST_PARTS, _STEP = 32, 0.001

_SAME = attrgetter(*(f.name for f in fields(DPSGD) if f.name not in ("noise_multiplier", "steps")))
"""What two releases must share, beside their noise, to be counted as one."""


Releases = list[tuple[DPSGD, float]]
"""Each with the noise that is counted for it."""


def coarse(parts: list[DPSGD]) -> list[DPSGD]:
    """Equal releases as one: the curve of independent releases does not depend on their order.

    Where more than 32 are left, noise is rounded down to a grid, which adds risk and never hides it.
    """
    noises, step = [part.noise_multiplier for part in parts], _STEP
    while step < 1.0 and len(_equal(noises, parts)) > _MOST_PARTS:
        noises = [_down(noise, step) for noise in noises]
        step *= 2.0
    return [_as_one(group) for group in _equal(noises, parts)]


def _equal(noises: list[float], parts: list[DPSGD]) -> list[Releases]:
    """Those with the same noise together, where batches are drawn by coins; others each alone."""
    found: dict[Hashable, Releases] = {}
    for place, (part, noise) in enumerate(zip(parts, noises, strict=True)):
        key: Hashable = (_SAME(part), noise) if part.sampler.independent else place
        found.setdefault(key, []).append((part, noise))
    return list(found.values())


def _as_one(group: Releases) -> DPSGD:
    part, noise = group[0]
    if len(group) == 1 and noise == part.noise_multiplier:
        return part
    return replace(part, noise_multiplier=noise, steps=sum(one.steps for one, _ in group))


def _down(noise: float, step: float) -> float:
    return min(math.exp(step * math.floor(math.log(noise) / step)), noise) if noise else 0.0
