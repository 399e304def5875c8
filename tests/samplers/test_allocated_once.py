"""Random allocation that is drawn once and kept, in several parts of one ledger: one draw for all, or several.

A training whose noise changed after some epochs was certified as if the steps had been drawn again.

Theorems: RETICENT:kept-allocation.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.kernel.accountants import compose
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.pairs import GaussianPair, Neighbouring
from reticent.kernel.risk import advantage
from reticent.mechanisms import Selection
from reticent.pairs import AllocatedGaussianPair, Geometric
from reticent.samplers import AllocatedOnce, RandomAllocation
from tests.pairs.allocation import games, ratios

pytestmark = pytest.mark.usefixtures("coarse")

ADD, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.ZERO_OUT


def simulated(runs: tuple[DPSGD, ...], share: str, count: int = 40_000) -> tuple[float, float]:
    """(advantage, four standard errors) of who sees all noisy sums, by simulation of the likelihood ratio.

    Args:
        share: how the hidden step of a run follows from those before: ``one`` position in the pass for all runs,
            ``turned`` by a public permutation, or drawn ``anew``.
    """
    rng = np.random.default_rng(7)
    widest = math.lcm(*(run.sampler.batches_per_epoch or 1 for run in runs))
    ratio: np.ndarray = np.ones((count, 1))
    for run in runs:
        bins = run.sampler.batches_per_epoch or 1
        losses = np.zeros((count, bins))
        for _ in range(run.steps // bins):  # the target is absent
            noisy = rng.normal(0.0, run.noise_multiplier, (count, bins))
            losses += (noisy - 0.5) / run.noise_multiplier**2
        step = np.arange(widest) // (widest // bins)
        step = rng.permutation(bins)[step] if share == "turned" else step
        each = np.exp(losses)
        ratio = ratio * (each.mean(axis=1, keepdims=True) if share == "anew" else each[:, step])
    gain = np.maximum(1.0 - ratio.mean(axis=1), 0.0)
    return float(gain.mean()), 4.0 * float(gain.std()) / math.sqrt(count)


def once(noise: float, bins: int, epochs: int, **more: int) -> DPSGD:
    return DPSGD(noise, 1 / bins, bins * epochs, sampler=AllocatedOnce(bins), **more)


def test_one_assignment_is_less_noise() -> None:
    kept = DPSGD(2.0, 0.25, 16, sampler=AllocatedOnce())
    assert kept.parts_under(ADD)[0].pair == AllocatedGaussianPair(1.0, 4)
    assert kept.parts_under(ADD)[0].count == 1
    fresh = DPSGD(2.0, 0.25, 16, sampler=RandomAllocation())
    assert advantage(compose(fresh, ADD).pessimistic) < advantage(compose(kept, ADD).optimistic)


@pytest.mark.parametrize("share", ["one", "turned", "anew"])
@pytest.mark.parametrize(
    "runs",
    [(once(2.0, 4, 3), once(3.0, 4, 5)), (once(2.0, 2, 2), once(2.0, 4, 3))],
)
def test_the_truth_is_enclosed_whatever_they_share(runs: tuple[DPSGD, ...], share: str) -> None:
    found, (truth, error) = compose(Ledger(runs), ADD), simulated(runs, share)
    assert advantage(found.optimistic) <= truth + error
    assert advantage(found.pessimistic) >= truth - error
    if share == "one" and runs[0].sampler == runs[1].sampler:
        assert advantage(found.pessimistic) <= truth + error + 1e-4


@pytest.mark.parametrize("neighbouring", [ADD, ZERO, Neighbouring.REPLACE])
@pytest.mark.parametrize("records", [1, 2])
def test_equal_parts_are_one_run_of_all_epochs(neighbouring: Neighbouring, records: int) -> None:
    part, whole = (once(4.0, 4, epochs, records_per_user=records) for epochs in (1, 4))
    noise = DPSGD(9.0, 1.0, 1, records_per_user=records)
    found, other = Ledger((part, noise, part, part, part)).parts_under(neighbouring)
    (one,) = whole.parts_under(neighbouring)
    assert getattr(found.pair, "redrawn", False) == (records > 1)
    assert one == (replace(found, pair=replace(found.pair, redrawn=False)) if records > 1 else found)
    assert [other] == list(noise.parts_under(neighbouring))


@pytest.mark.parametrize(
    ("runs", "records", "epsilon"),
    [
        ((once(0.2, 2, 1), once(0.2, 2, 1)), 2, 62.5),
        ((once(0.2, 3, 1), once(0.25, 3, 1)), 3, 70.0),
        ((once(0.2, 4, 1),) * 3, 2, 90.0),
    ],
)
def test_records_of_one_person_that_meet_in_some_runs_only(
    runs: tuple[DPSGD, ...], records: int, epsilon: float
) -> None:
    """Each run with draws of its own, simulated: a smaller delta was claimed than is reached.

    The bound of whoever is told the steps supposed that records meet in all runs alike.
    """
    ledger = Ledger(tuple(replace(run, records_per_user=records) for run in runs))
    rng, count, theirs = np.random.default_rng(7), 40_000, [1.0] * records
    loss = np.zeros(count)
    for run in runs:
        seen = games(rng, count, run.steps, run.noise_multiplier, theirs)
        loss += ratios(seen, run.noise_multiplier, theirs)
    gain = np.maximum(-np.expm1(epsilon - loss), 0.0)
    truth, error = gain.mean(), 4.0 * gain.std() / math.sqrt(count)
    assert float(ledger.parts_under(ADD)[0].pair.curve.delta(epsilon)) >= truth - error


def test_copies_of_any_run_count_in_whatever_order() -> None:
    """The largest of ten sums tells both copies, once they lie in one step: delta is at least that of this event."""
    alone, listed = once(1.0, 10, 2), replace(once(1.0, 10, 2), copies=2)
    epsilon, mu = 7.695, math.sqrt(10.0)  # of both runs together, where all copies lie in one step
    cuts = np.linspace(2.0, 9.0, 701)
    reached = float(np.max(0.1 * ndtr(mu - cuts) - math.exp(epsilon) * 10.0 * ndtr(-cuts)))
    found = [
        float(Ledger(runs).parts_under(ADD)[0].pair.curve.delta(epsilon)) for runs in ((alone, listed), (listed, alone))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=0)
    assert reached > 5e-4
    assert min(found) > 1.1 * reached


def test_parts_without_a_hidden_step_hide_nothing() -> None:
    told = Ledger((once(2.0, 1, 4), once(2.0, 4, 1), once(0.0, 4, 1)))
    assert [part.pair for part in told.parts_under(ADD)][:2] == [
        AllocatedGaussianPair(2.0, 4),
        GaussianPair(1.0, 1.0, 1.0),
    ]


def test_an_epoch_that_was_begun_counts_whole() -> None:
    whole, other = once(2.0, 4, 2), once(3.0, 4, 1)
    begun = replace(whole, steps=whole.steps - 3)
    assert Ledger((begun, other)).parts_under(ADD) == Ledger((whole, other)).parts_under(ADD)


def test_the_run_of_a_selection_may_be_such_a_ledger() -> None:
    kept = [Selection(Ledger(parts), Geometric(5)) for parts in ((once(4.0, 4, 1),) * 4, (once(4.0, 4, 4),))]
    assert kept[0].parts_under(ADD)[0].pair == kept[1].parts_under(ADD)[0].pair
