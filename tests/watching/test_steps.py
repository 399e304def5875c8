"""Steps as they were seen: levels of noise, rates, norms and divisors of many are told in few segments."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from reticent import facts
from reticent.watching.steps import SeenStep, Steps
from tests.watching.loops import Loop, passes
from tests.watching.programs import NOISE, RATE, network, private, reading

DIVISOR = {facts.PRIVATE_DIVISOR}


def step(noise, rate=None, norm=1.0):
    return SeenStep(noise, norm, None, rate, None, None, 1, None)


@pytest.mark.parametrize("count", [1025, 1500, 5000])
def test_very_many_levels_of_noise_are_rounded_down(count):
    steps, levels = Steps(), [1.0 + index / count for index in range(count)]
    for noise in np.random.default_rng(0).permutation(levels):
        steps.add(step(float(noise)))
    found = steps.segments(None)
    assert len(found) <= 1024
    assert sum(s.steps for s in found) == count
    stated = sorted(s.noise_multiplier for s in found for _ in range(s.steps))
    assert all(low <= real for low, real in zip(stated, levels, strict=True))
    assert sum(s**-2 for s in stated) <= 1.02 * sum(s**-2 for s in levels)


def test_rates_below_that_of_the_record_are_kept_for_each_segment():
    steps = Steps()
    steps.add(step(1.0, 0.1))
    steps.add(step(1.0, 0.2))
    assert [s.sample_rate for s in steps.segments(0.2)] == [0.1, None]
    assert steps.rates == {0.1, 0.2}


def test_clip_norms_are_remembered_from_the_least_to_the_largest():
    steps = Steps()
    for norm in (2.0, 0.5, 1.0):
        steps.add(step(1.0, norm=norm))
    assert steps.clip_norms == (0.5, 2.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 1e-200, 1e200])
def test_numbers_that_no_step_has(value):
    step = SeenStep(value, value, value, value, None, None, 1, None)
    assert 0.0 <= step.noise_multiplier <= 1e100
    assert step.sample_rate is not None
    assert 0.0 < step.sample_rate <= 1.0
    bounds = 0.0 < value < math.inf
    assert (SeenStep(1.1, value, 1.0, None, None, None, 1, None).noise_multiplier == 1.1) == bounds
    for number in (step.clip_norm, step.divisor):
        assert number is None or 0.0 < number < math.inf


FOLLOWING = {
    "always": lambda step, size: 2 * size,
    "a share of it": lambda step, size: (10 + size) / 2,
    "small batches": lambda step, size: min(size, 10),
    "each third step": lambda step, size: 10 if step % 3 else size,
}
OF_THE_PROGRAM = {
    "one": lambda step, size: 10,
    "two": lambda step, size: 10 if step < 6 else 20,
    "a schedule": lambda step, size: 5 + step,
    "once by chance": lambda step, size: 7 if step == 0 else 10,
}
SIZES = (7, 12, 9, 8, 14, 10, 11, 7, 9, 13)


def realised(toy):
    toy.optimizer.expected_batch_size = max(1, len(toy.labels))


def by_size(divisor):
    """A loop of one's own without a loader, whose steps divide by what follows the size of the batch or not."""

    def update(toy):
        size = SIZES[toy.step]
        toy.optimizer.step()
        numbers = {"noise_multiplier": NOISE, "sample_rate": RATE, "batch_size": size}
        toy.seen.step(**numbers, divisor=divisor(toy.step, size))

    def made():
        model = network()
        return model, torch.optim.SGD(model.parameters(), lr=0.1), None, None

    nothing = {"backward": lambda toy: None, "batches": lambda toy: [(None, None)] * len(SIZES)}
    return Loop(made=made, **nothing, update=update, options={"sampler": "poisson"})


LOOPS = {f"a divisor of the program, {name}": by_size(divisor) for name, divisor in OF_THE_PROGRAM.items()}
LOOPS |= {
    f"a divisor that follows the size, {name}": by_size(divisor).but(errors=DIVISOR)
    for name, divisor in FOLLOWING.items()
}
LOOPS |= {
    f"Opacus that divides by the realised batch, {drawn}": Loop(
        made=lambda poisson=poisson: private(reading(size=50), poisson_sampling=poisson),
        batches=passes(4),  # all of one size, which tells nothing, once in 1e9 runs
        before=realised,
        errors=DIVISOR if poisson else set(),
        beside=True,
    )
    for drawn, poisson in {"poisson": True, "shuffled": False}.items()
}


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("name", LOOPS)
def test_divisors(name):
    """The number of records that were drawn is private, and the size of the noise tells what a sum was divided by."""
    LOOPS[name].check()


@pytest.mark.parametrize(("divisor", "most"), [(FOLLOWING["always"], True), (OF_THE_PROGRAM["one"], False)])
def test_the_risk_while_it_runs_knows_the_divisor(divisor, most):
    asked = []
    by_size(divisor).but(leaves=lambda toy: asked.append(toy.seen.risk().advantage)).watched()
    assert (asked == [1.0]) == most
