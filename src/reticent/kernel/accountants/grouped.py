"""Fewer kinds of steps: near kinds of sampled Gaussian steps as one, on the side that is asked for.

Less noise and a larger rate only help an attacker. Noise: who sees the output can add noise to it. Rate: a pair of a
smaller rate p is a mixture of the pair of rate p', with weight p/p', and of a pair of equal laws; hockey-stick
divergences are jointly convex, so each is at most p/p' times that of rate p'. By DONG2022:Theorem 3.2 this holds
after composition too (docs/theory/composition.md, "Many kinds of steps").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace

from reticent.kernel.accountants.steps import Step, Steps
from reticent.kernel.pairs.antipodal import AntipodalGaussianPair
from reticent.kernel.pairs.gaussian import GaussianPair

MANY = 32
"""Kinds of steps beyond which their number decides what is computed."""

_CLOSEST = 2.0**-8  # of the logarithms of noise and rate within a group; doubled until the groups are few

_Sampled = GaussianPair | AntipodalGaussianPair


def stronger(steps: Steps, most: int = MANY) -> Steps:
    """About ``most`` kinds of steps that are at least as easy to tell apart as ``steps``.

    Args:
        steps: what is composed; as they are where they are few.
        most: kinds of sampled Gaussian steps.
    """
    return _grouped(steps, most, min, max)


def fewer_below(steps: Steps, most: int = MANY) -> Steps:
    """About ``most`` kinds of steps that are at most as easy to tell apart; arguments as of ``stronger``."""
    return _grouped(steps, most, max, min)


def _grouped(steps: Steps, most: int, noise: Callable[..., float], rate: Callable[..., float]) -> Steps:
    sampled = [(step.pair, step.count) for step in steps if isinstance(step.pair, _Sampled)]
    if len(sampled) <= most:
        return steps
    width, groups = _CLOSEST, _near(sampled, _CLOSEST)
    while len(groups) > most:
        width *= 2.0
        groups = _near(sampled, width)
    others = [step for step in steps if not isinstance(step.pair, _Sampled)]
    return [*others, *(_one(group, noise, rate) for group in groups.values())]


_Counted = tuple[_Sampled, int]


def _near(steps: list[_Counted], width: float) -> dict[Hashable, list[_Counted]]:
    groups: dict[Hashable, list[_Counted]] = {}
    for pair, count in steps:
        noise, rate = (math.floor(math.log(value) / width) for value in (pair.noise_multiplier, pair.sample_rate))
        groups.setdefault((type(pair), getattr(pair, "shift", None), noise, rate), []).append((pair, count))
    return groups


def _one(group: list[_Counted], noise: Callable[..., float], rate: Callable[..., float]) -> Step:
    one: _Sampled = replace(
        group[0][0],
        noise_multiplier=noise(pair.noise_multiplier for pair, _ in group),
        sample_rate=rate(pair.sample_rate for pair, _ in group),
    )
    return Step(one, sum(count for _, count in group))
