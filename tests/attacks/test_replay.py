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
from reticent.attacks.replay import NAMES, counted_by_replay, replay_check, same_randomness
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


def replayed(trainer, claim=CLAIM):
    runs = {e.name.removeprefix("replay "): e.perform(trainer) for e in experiments(claim) if e.seed is not None}
    checks = tuple(replay_check(number, runs, LAYERS, claim) for number in range(len(NAMES)))
    return SimpleNamespace(checks=checks, counted=counted_by_replay(runs, LAYERS, claim))


def failed(trainer):
    return {check.name for check in replayed(trainer).checks if check.p_value < 1e-6}


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


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("no noise at large gradients", NAMES[0]),
        ("a norm in half precision", NAMES[0]),
        ("a raw update beside the step", NAMES[0]),
        ("a closure overwrites the gradient", NAMES[0]),
        ("the median as clip norm", NAMES[2]),
        ("noise on touched rows only", NAMES[1]),
        ("biases unclipped", NAMES[1]),
        ("noise shrinks with the batch", NAMES[3]),
        ("a learning rate from the loss", NAMES[4]),
    ],
)
def test_each_fault_that_depends_on_the_data_is_seen_by_its_replay(fault, test):
    assert test in failed(more_bugs.FAULTS[fault]())


@pytest.mark.filterwarnings("ignore")
def test_weights_that_a_private_loss_chooses_are_seen():
    assert NAMES[0] in failed(unseen_bugs.FAULTS["the best model at the end"]())


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
