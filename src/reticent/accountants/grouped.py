"""Fewer kinds of steps: near kinds of sampled Gaussian steps as one, on the side that is asked for.

Less noise and a larger rate only help an attacker. Noise: who has the output adds the rest of it. Rate: a pair of a
smaller rate p is p/p' of the pair of rate p', and else a pair of equal laws; the hockey-stick divergences are jointly
convex, so each is at most p/p' times as large. By DONG2022:Theorem 3.2 that holds after composition too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace

from reticent.accountants.steps import Step, Steps
from reticent.pairs.antipodal import AntipodalGaussianPair
from reticent.pairs.gaussian import GaussianPair

MANY = 32
"""Kinds of steps beyond which their number decides what is computed."""

_CLOSEST = 2.0**-8  # of the logarithms of noise and rate within a group; doubled until the groups are few

_Sampled = GaussianPair | AntipodalGaussianPair


def stronger(steps: Steps, most: int = MANY) -> Steps:
    """About ``most`` kinds of steps that no attacker can tell apart less well than ``steps``.

    Args:
        steps: what is composed; as they are where they are few.
        most: kinds of sampled Gaussian steps.
    """
    return _grouped(steps, most, min, max)


def fewer_below(steps: Steps, most: int = MANY) -> Steps:
    """About ``most`` kinds of steps that no attacker can tell apart better than ``steps``; arguments as there."""
    return _grouped(steps, most, max, min)


def _grouped(steps: Steps, most: int, noise: Callable[..., float], rate: Callable[..., float]) -> Steps:
    sampled = [step for step in steps if isinstance(step.pair, _Sampled)]
    if len(sampled) <= most:
        return steps
    width, groups = _CLOSEST, _near(sampled, _CLOSEST)
    while len(groups) > most:
        width *= 2.0
        groups = _near(sampled, width)
    others = [step for step in steps if not isinstance(step.pair, _Sampled)]
    return [*others, *(_one(group, noise, rate) for group in groups.values())]


def _near(steps: list[Step], width: float) -> dict[Hashable, list[Step]]:
    groups: dict[Hashable, list[Step]] = {}
    for step in steps:
        pair = step.pair
        assert isinstance(pair, _Sampled)
        cell = (math.floor(math.log(value) / width) for value in (pair.noise_multiplier, pair.sample_rate))
        groups.setdefault((type(pair), getattr(pair, "shift", None), *cell), []).append(step)
    return groups


def _one(group: list[Step], noise: Callable[..., float], rate: Callable[..., float]) -> Step:
    pairs = [step.pair for step in group if isinstance(step.pair, _Sampled)]
    one = replace(
        pairs[0],
        noise_multiplier=noise(pair.noise_multiplier for pair in pairs),
        sample_rate=rate(pair.sample_rate for pair in pairs),
    )
    return Step(one, sum(step.count for step in group))
