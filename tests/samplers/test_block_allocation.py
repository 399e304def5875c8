"""One step of each block: the laws of the draws, and that the pairs dominate, by all draws of small cases."""

from __future__ import annotations

import math
from itertools import islice, product

import numpy as np
import pytest

from reticent.accountants import compose
from reticent.mechanisms import DPSGD, Neighbouring
from reticent.pairs import AllocatedPersonPair
from reticent.samplers import BlockAllocation, RandomAllocation
from reticent.training.randomness import SeededSource, Stream

ADD = Neighbouring.ADD_REMOVE


def delta_by_draws(noise: float, blocks: list[int], epsilon: float, rng: np.random.Generator) -> tuple[float, float]:
    """E[(1 - e^(epsilon - L))_+] with the target present, over all its places; and four standard errors."""
    places = np.array([np.concatenate(rows) for rows in product(*(np.eye(steps) for steps in blocks))])
    noisy = places[rng.integers(len(places), size=400_000)] + noise * rng.normal(size=(400_000, sum(blocks)))
    each = (noisy @ places.T - 0.5 * np.square(places).sum(axis=1)) / noise**2
    loss = np.logaddexp.reduce(each, axis=1) - math.log(len(places))
    gain = np.maximum(-np.expm1(epsilon - loss), 0.0)
    return float(gain.mean()), 4.0 * float(gain.std()) / math.sqrt(400_000)


@pytest.mark.parametrize(("steps", "blocks"), [(6, [3, 3]), (5, [3, 2]), (4, [1, 1, 1, 1])])
def test_the_ends_enclose_the_game_itself(steps: int, blocks: list[int]) -> None:
    """Blocks of one length are exact; of two lengths the truth lies between those of the shorter and the longer."""
    run = DPSGD(1.2, 1.0 / steps, steps, sampler=BlockAllocation(steps, len(blocks)))
    found, rng = compose(run, ADD), np.random.default_rng(7)
    for epsilon in (0.0, 1.0):
        truth, error = delta_by_draws(1.2, blocks, epsilon, rng)
        below, above = float(found.optimistic.delta(epsilon)), float(found.pessimistic.delta(epsilon))
        assert below - error <= truth <= above + error
        if len(set(blocks)) == 1:
            assert above == pytest.approx(below, rel=1e-3, abs=0)


def test_the_bound_of_several_uses_is_that_of_blocks() -> None:
    """FELDMAN2025, Lemma 3.2; blocks are epochs, so persons and replaced records are a chain of neighbours too."""
    blocks, uses = (DPSGD(2.0, 0.1, 20, sampler=kind(10, 3)) for kind in (BlockAllocation, RandomAllocation))
    assert blocks.parts_under(ADD) == uses.parts_under(ADD)
    (part,) = DPSGD(2.0, 0.1, 20, sampler=BlockAllocation(10, 3), records_per_user=2).parts_under(ADD)
    assert (part.pair, part.count) == (AllocatedPersonPair(2.0, 3, 2, False), 6)
    (part,) = blocks.parts_under(Neighbouring.REPLACE)
    assert (part.pair, part.count) == (AllocatedPersonPair(2.0, 3, 1, True), 6)


def test_each_record_is_in_one_step_of_each_block() -> None:
    source = SeededSource(3, Stream.SAMPLING)
    drawn = np.zeros((600, 7, 40), dtype=int)
    batches = islice(BlockAllocation(7, 3).batches(source, 40, 0.1, 6), 4200)
    for step, batch in zip(drawn.reshape(-1, 40), batches, strict=True):
        step[batch] += 1
    for first, last in ((0, 3), (3, 5), (5, 7)):
        block = drawn[:, first:last]
        assert np.all(block.sum(axis=1) == 1)
        share = 1.0 / (last - first)
        assert np.abs(block.mean(axis=(0, 2)) - share).max() < 6 * math.sqrt(share * (1 - share) / 24_000)
