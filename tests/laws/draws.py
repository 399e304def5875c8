"""How each sampler draws, by its own words: every outcome of every draw of a few records, and how likely it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, permutations, product

import numpy as np

from tests.laws.experiments import Sums, all_coins

Draws = list[tuple[np.ndarray, float]]
"""How often each record is in each step, shape (steps, records), and how likely that is."""


def anew(one: Draws, steps: int) -> Draws:
    """Each step drawn by itself."""
    return [
        (np.array([draw[0] for draw in drawn]), float(np.prod([draw[1] for draw in drawn])))
        for drawn in product([(mask[0], chance) for mask, chance in one], repeat=steps)
    ]


def coins(records: int, rate: float, draws: int = 1) -> Draws:
    """One step of Poisson sampling; several draws are summed."""
    return [
        (np.reshape(toss, (draws, records)).sum(axis=0, keepdims=True), chance)
        for toss, chance in all_coins(rate, draws * records)
    ]


def chosen(records: int, size: int) -> Draws:
    """One batch of a fixed size."""
    sets = list(combinations(range(records), size))
    return [(np.isin(np.arange(records), batch)[None].astype(int), 1.0 / len(sets)) for batch in sets]


def cut(records: int, rate: float, most: int) -> Draws:
    """One step of Poisson sampling of whose batch at most so many are kept."""
    found = []
    for toss, chance in all_coins(rate, records):
        drawn = np.flatnonzero(toss)
        kept = list(combinations(drawn, min(most, len(drawn))))
        found += [(np.isin(np.arange(records), batch)[None].astype(int), chance / len(kept)) for batch in kept]
    return found


def allocated(records: int, blocks: Sequence[int]) -> Draws:
    """One epoch in which each record draws one step of each block."""
    starts = np.cumsum([0, *blocks[:-1]])
    return _alone(records, sum(blocks), [starts + np.array(place) for place in product(*map(range, blocks))])


def of_steps(records: int, steps: int, uses: int) -> Draws:
    """One epoch in which each record draws a set of so many steps."""
    return _alone(records, steps, [np.array(chosen) for chosen in combinations(range(steps), uses)])


def _alone(records: int, all_steps: int, own: Sequence[np.ndarray]) -> Draws:
    """Each record draws one of its own sets of steps, all alike."""
    found = []
    for places in product(own, repeat=records):
        mask = np.zeros((all_steps, records), dtype=int)
        for record, steps in enumerate(places):
            mask[steps, record] = 1
        found.append((mask, len(own) ** -float(records)))
    return found


def orders(records: int, size: int) -> Draws:
    """One epoch of shuffled batches."""
    steps, all_orders = -(-records // size), list(permutations(range(records)))
    batches = [[order[k * size : (k + 1) * size] for k in range(steps)] for order in all_orders]
    masks = [np.array([np.isin(np.arange(records), batch) for batch in epoch]).astype(int) for epoch in batches]
    return [(mask, 1.0 / len(masks)) for mask in masks]


def sums(draws: Draws, gradients: Sequence[float]) -> Sums:
    """The law of the sums of all steps, where each record always has the same gradient."""
    law: Counter[tuple[float, ...]] = Counter()
    for mask, chance in draws:
        law[tuple(np.round(mask @ np.asarray(gradients), 9).tolist())] += chance
    return law
