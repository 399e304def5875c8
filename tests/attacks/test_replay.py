"""Replays: the same randomness with other data shows what depends on the data, and nothing else does."""

from __future__ import annotations

import os
import random
import secrets
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks import more_bugs, planted_bugs, unseen_bugs
from reticent.attacks.diagnosis import FAULTS, likely_fault
from reticent.attacks.experiments import LAYERS, experiments
from reticent.attacks.participation import Check
from reticent.attacks.replay import NAMES, NEEDS, counted_by_replay, replay_check, same_randomness
from reticent.kernel.mechanisms import DPSGD

CLAIM = DPSGD(noise_multiplier=1.0, sample_rate=0.2, steps=4, max_grad_norm=2.0, batch_size=24, dataset_size=120)


def draws():
    return (
        torch.rand(3).tolist(),
        np.random.rand(),
        random.random(),  # noqa: S311
        os.urandom(8),
        secrets.randbits(64),
        np.random.default_rng().random(),
    )


def test_everything_that_is_drawn_is_replayed_and_goes_on_afterwards():
    before = torch.get_rng_state()
    with same_randomness(7_654_321):
        first = draws()
    assert torch.equal(torch.get_rng_state(), before)
    with same_randomness(7_654_321):
        assert draws() == first
    with same_randomness(7_654_322):
        assert all(a != b for a, b in zip(draws(), first, strict=True))
    assert all(a != b for a, b in zip(draws(), first, strict=True))


def performed(trainer, claim, needed):
    """Those of the replays that are needed."""
    replays = {e.name.removeprefix("replay "): e for e in experiments(claim) if e.seed is not None}
    return {name: replays[name].perform(trainer) for name in needed}


def replayed(trainer, claim=CLAIM):
    runs = performed(trainer, claim, {name for needed in NEEDS for name in needed})
    checks = tuple(replay_check(number, runs, LAYERS, claim) for number in range(len(NAMES)))
    return SimpleNamespace(checks=checks, counted=counted_by_replay(runs, LAYERS, claim))


def test_a_correct_loop_changes_nothing_that_it_may_not_and_one_that_cannot_be_replayed_is_not_accused():
    result = replayed(planted_bugs.Loop())
    assert [check.name for check in result.checks] == list(NAMES)
    assert all(check.p_value == 1.0 and "not tested" not in check.finding for check in result.checks)
    assert result.counted == pytest.approx(1.0, abs=1e-4)
    secret = replayed(more_bugs.SecretLoop(), replace(CLAIM, steps=1))
    assert all(check.p_value == 1.0 and check.finding.startswith("not tested") for check in secret.checks)
    assert secret.counted is None


def test_many_normalised_gradients_are_no_fault_and_stronger_clipping_is_measured():
    """Each grows by a third of a per cent with its length: of forty in a batch that is more than the tolerance."""
    crowded = replace(CLAIM, sample_rate=0.9, noise_multiplier=0.1, batch_size=108, steps=2)
    result = replayed(more_bugs.Normalised(), crowded)
    assert all(check.p_value == 1.0 for check in result.checks), result.checks
    assert replayed(more_bugs.StrongerClippingByLayer()).counted == pytest.approx(5**-0.5, abs=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("faults", "fault", "number"),
    [
        (more_bugs, "no noise at large gradients", 0),
        (more_bugs, "a norm in half precision", 0),
        (more_bugs, "a raw update beside the step", 0),
        (more_bugs, "a closure overwrites the gradient", 0),
        (unseen_bugs, "the best model at the end", 0),
        (more_bugs, "the median as clip norm", 2),
        (more_bugs, "noise on touched rows only", 1),
        (more_bugs, "biases unclipped", 1),
        (more_bugs, "noise shrinks with the batch", 3),
        (more_bugs, "a learning rate from the loss", 4),
    ],
)
def test_each_fault_that_depends_on_the_data_is_seen_by_its_replay(faults, fault, number):
    runs = performed(faults.FAULTS[fault](), CLAIM, NEEDS[number])
    assert replay_check(number, runs, LAYERS, CLAIM).p_value < 1e-6


def test_the_fault_that_fits_best_is_named():
    def named(*failing):
        checks = [
            Check(name, 0.0 if name in failing else 0.5, "x") for name in {n for row in FAULTS.values() for n in row}
        ]
        return likely_fault(checks, [check for check in checks if check.p_value == 0.0])

    assert named() is None
    for fault, expected in FAULTS.items():
        assert named(*expected) == fault
    assert named("noise tails") == "the noise is cut off, or not normal"
    assert named("replay: other labels") == "the loss or the labels decide how far a step goes"
