"""Scripts that are public come out as is true of them with three lines added; see ``public_loops``."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import facts
from reticent.facts.base import Severity
from tests.watching.public_loops import BATCH, LOOPS, RECORDS, made_private

pytestmark = pytest.mark.filterwarnings("ignore")

FAST = {
    "by_parts",
    "char_lstm",
    "ctgan",
    "ctgan_mended",
    "dcgan_unseeded",
    "flow",
    "imdb_mended",
    "tan_on_training_records",
}
"""The others take a second each."""


def parts_of(ledger):
    """Of what a ledger amounts to: how many steps were taken, by sampler, noise multiplier and sample rate."""
    release = ledger.mechanism()
    found = Counter()
    for part in getattr(release, "parts", [release]):
        found[part.sampler.name, round(float(part.noise_multiplier), 9), part.sample_rate] += part.steps
    return found


def loops():
    """Each with its name; those that are answered wrongly are marked, and most are slow."""
    for name, loop in LOOPS.items():
        wrong = [pytest.mark.xfail(reason=loop.wrong, strict=True)] if loop.wrong else []
        yield pytest.param(loop, id=name, marks=wrong if name in FAST else [*wrong, pytest.mark.slow])


@pytest.mark.parametrize("loop", list(loops()))
def test_the_answer_is_what_is_true_of_the_script(loop):
    stated, ledgers = loop.run(rt.watch)
    said = {fault for ledger in ledgers for fault in ledger.ledger.faults if fault.severity is not Severity.NOTE}
    assert said - {facts.SIZE_PUBLIC, facts.BASE_MODEL} == loop.faults
    wanted = {
        (loop.kind, round(stated if math.isnan(noise) else noise, 9), rate): steps
        for (noise, rate), steps in loop.parts.items()
    }
    assert sum(map(parts_of, ledgers), Counter()) == wanted


def test_a_penalty_on_slopes_does_not_run_in_opacus():
    """As CTGAN and WGAN-GP have it: a backward pass through gradients of a critic whose records are clipped."""
    loader = DataLoader(TensorDataset(torch.randn(RECORDS, 4)), batch_size=BATCH)
    network = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    critic, *_ = made_private(network, partial(torch.optim.SGD, lr=0.1), loader, 1.0, 1.0)
    between = torch.randn(BATCH, 4, requires_grad=True)
    slopes = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
    with pytest.raises(IndexError, match="pop from empty list"):
        (slopes.norm(dim=1) - 1.0).pow(2).mean().backward()
