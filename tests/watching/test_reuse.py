"""One batch for several steps: the steps share one draw."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import nn

import reticent as rt
from reticent import facts
from reticent.errors import ArtifactError
from reticent.facts.reused_batches import ReusedBatches
from tests.watching.loops import NOISE, RATE, epsilon, faults, private, shuffled

USES = 3
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")


def loop(made, uses=USES, again=lambda features: features, passes=2, **options):
    """Each batch for several steps; ``again`` gives the features that the next of them reads."""
    model, optimizer, loader, criterion = made
    with rt.watch(model, optimizer, loader, **options) as seen:
        for _ in range(passes):
            for features, labels in loader:
                for _ in range(uses):
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
                    features = again(features)
    return seen


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_poisson_batches_count_once_with_less_noise(mode):
    seen = loop(private(mode=mode))
    run = seen.mechanism()
    assert faults(seen) == set()
    assert facts.REUSED_BATCHES in seen.ledger.faults
    assert facts.OTHER_BATCHES not in seen.ledger.faults
    assert seen.ledger.facts[facts.REUSED_BATCHES.key] == ReusedBatches(most=USES, again=24)
    assert (run.steps, run.sample_rate) == (12, pytest.approx(RATE))
    assert run.noise_multiplier == pytest.approx(NOISE / math.sqrt(USES), rel=1e-12)


def test_passes_over_shuffled_records_count_with_the_uses():
    """A record is in one batch of each pass: two passes, three uses of each."""
    seen = loop(shuffled())
    alone = rt.assess(rt.Gaussian(NOISE / math.sqrt(2 * USES)))[0].curve
    assert epsilon(seen) == pytest.approx(rt.epsilon_at_delta(alone, 1e-5), rel=1e-6)


@pytest.mark.parametrize(
    "again", [lambda features: features + 0.0, lambda features: features.mul_(1.0)], ids=["copied", "written"]
)
def test_other_rows_are_no_second_use(again):
    """A copy may hold other records, and so may a tensor that somebody wrote to."""
    seen = loop(private(), again=again)
    assert facts.OTHER_BATCHES in seen.ledger.faults
    assert seen.mechanism().sample_rate == 1.0


def test_a_batch_that_is_kept_for_later_is_no_second_use():
    model, optimizer, loader, criterion = private()
    with rt.watch(model, optimizer, loader) as seen:
        for batches in (list(loader), list(loader)):
            for features, labels in [*batches, *batches]:
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                optimizer.step()
    assert facts.REUSED_BATCHES not in seen.ledger.faults


def test_uses_that_differ_count_as_the_most():
    model, optimizer, loader, criterion = private()
    with rt.watch(model, optimizer, loader) as seen:
        for place, (features, labels) in enumerate(loader):
            for _ in range(1 + place % 3):
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                optimizer.step()
    run = seen.mechanism()
    assert (run.steps, run.noise_multiplier) == (6, pytest.approx(NOISE / math.sqrt(3.0), rel=1e-12))


def test_a_loop_of_ones_own():
    model, loader = nn.Linear(4, 2), private()[2]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            for _ in range(USES):
                nn.functional.cross_entropy(model(features), labels).backward()
                optimizer.step()
                seen.step(noise_multiplier=NOISE, batch_size=len(features))
    run = seen.mechanism()
    assert (run.steps, run.sample_rate) == (6, pytest.approx(RATE))
    assert run.noise_multiplier == pytest.approx(NOISE / math.sqrt(USES), rel=1e-12)


def test_planned_steps_count_beyond():
    seen = loop(private(), planned_steps=40)
    assert seen.mechanism().steps == 12 + 4


def test_more_uses_than_the_most_contradict_themselves():
    ledger = loop(private()).ledger
    stated = ledger.facts | {facts.REUSED_BATCHES.key: ReusedBatches(most=2, again=24)}
    with pytest.raises(ArtifactError, match="allow"):
        rt.certify(ledger.model_copy(update={"facts": stated, "digest": ""}).sealed())


def test_an_attack_on_one_draw_is_within_the_curve():
    """Who adds up the releases of one draw does as well as the curve of one release with less noise, and no better.

    Steps that draw anew hide more: the same sum of their releases is below.
    """
    rng, rate, runs = np.random.default_rng(7), 0.3, 400_000
    noise = rng.normal(size=(runs, USES)) * NOISE
    there = (rng.random(runs) < rate)[:, None] + noise
    law = rt.DPSGD(NOISE / math.sqrt(USES), rate, 1)
    curve = rt.assess(law, adversary="worst-case", neighbouring="add-remove")[0].curve
    threshold = 1.2
    caught, wrong = (there.mean(1) > threshold).mean(), norm.sf(threshold, scale=NOISE / math.sqrt(USES))
    slack = 5.0 / math.sqrt(runs)
    assert caught <= 1.0 - float(curve.beta(wrong)) + slack
    anew = rt.assess(replace(law, noise_multiplier=NOISE, steps=USES), adversary="worst-case")[0].curve
    assert epsilon(law) > rt.epsilon_at_delta(anew, 1e-5)
