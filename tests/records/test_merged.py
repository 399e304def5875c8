"""Many releases as few: the same risk or more, and never less."""

from __future__ import annotations

import random
import time

import pytest

import reticent as rt
from reticent.kernel.mechanisms import DPSGD
from reticent.records.release import coarse
from reticent.samplers import Shuffled
from tests.watching.loops import network

DRAW = random.Random(7)  # noqa: S311


def mu_squared(parts):
    return sum(part.steps / part.noise_multiplier**2 for part in parts)


def test_equal_releases_are_one_and_others_are_not():
    parts = [DPSGD(1.1, 0.01, 3), DPSGD(1.1, 0.02, 5), DPSGD(1.1, 0.01, 4), DPSGD(1.3, 0.01, 1)]
    assert coarse(parts) == [DPSGD(1.1, 0.01, 7), DPSGD(1.1, 0.02, 5), DPSGD(1.3, 0.01, 1)]
    passes = [DPSGD(1.1, 0.1, 10, sampler=Shuffled(10))] * 2
    assert coarse(passes) == passes  # each is so many epochs of its own


def test_noise_is_rounded_down_and_no_step_is_lost():
    parts = [DPSGD(DRAW.uniform(0.5, 4.0), rate, 1 + at % 3) for at in range(300) for rate in (0.01, 0.02)]
    few = coarse(parts)
    assert len(few) <= 32
    for rate in (0.01, 0.02):
        before, after = ([part for part in all_ if part.sample_rate == rate] for all_ in (parts, few))
        assert sum(part.steps for part in after) == sum(part.steps for part in before)
        assert mu_squared(before) <= mu_squared(after) <= 1.5 * mu_squared(before)
        ordered = sorted(part.noise_multiplier for part in before for _ in range(part.steps))
        rounded = sorted(part.noise_multiplier for part in after for _ in range(part.steps))
        assert all(low <= noise for low, noise in zip(rounded, ordered, strict=True))
    assert coarse([*parts, DPSGD(0.0, 1.0, 2)])[-1] == DPSGD(0.0, 1.0, 2)


@pytest.mark.slow
def test_a_look_at_the_risk_is_quick_where_noise_changes_in_each_step():
    with rt.watch(network(), sampler="poisson") as seen:
        taken = []
        for step in range(1000):
            seen.step(noise_multiplier=1.1 + 0.001 * step + 0.1 * (step % 7), sample_rate=0.01)
            if step % 200 == 199:
                started = time.process_time()
                seen.risk()
                taken.append(time.process_time() - started)
    assert sorted(taken)[2] < 0.05
