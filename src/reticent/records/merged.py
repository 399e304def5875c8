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


def merged(parts: list[DPSGD]) -> list[DPSGD]:
    """Equal releases as one: the curve of independent releases does not depend on their order."""
    return _with([part.noise_multiplier for part in parts], parts)


def coarse(parts: list[DPSGD]) -> list[DPSGD]:
    """At most 32 releases: noise is rounded down to a grid where there are more, which adds risk and never hides it."""
    noises, step = [part.noise_multiplier for part in parts], _STEP
    while step < 1.0 and _left(noises, parts) > _MOST_PARTS:
        noises = [_down(noise, step) for noise in noises]
        step *= 2.0
    return _with(noises, parts)


def _left(noises: list[float], parts: list[DPSGD]) -> int:
    """How many there would be."""
    alone = sum(not _by_coins(part) for part in parts)
    keys = zip(_keys(noises, parts), parts, strict=True)
    return alone + len({key for key, part in keys if _by_coins(part)})


def _with(noises: list[float], parts: list[DPSGD]) -> list[DPSGD]:
    """The releases with this noise each; equal ones as one, where batches are drawn by coins."""
    found: dict[Hashable, list[tuple[DPSGD, float]]] = {}
    for key, part, noise in zip(_keys(noises, parts), parts, noises, strict=True):
        found.setdefault(key, []).append((part, noise))
    whole = []
    for same in found.values():
        groups = [same] if _by_coins(same[0][0]) else [[one] for one in same]
        whole += [_as_one(group) for group in groups]
    return whole


def _keys(noises: list[float], parts: list[DPSGD]) -> list[Hashable]:
    return [(_SAME(part), noise) for part, noise in zip(parts, noises, strict=True)]


def _as_one(group: list[tuple[DPSGD, float]]) -> DPSGD:
    part, noise = group[0]
    if len(group) == 1 and noise == part.noise_multiplier:
        return part
    return replace(part, noise_multiplier=noise, steps=sum(one.steps for one, _ in group))


def _by_coins(part: DPSGD) -> bool:
    return part.sampler.independent


def _down(noise: float, step: float) -> float:
    return min(math.exp(step * math.floor(math.log(noise) / step)), noise) if noise else 0.0
