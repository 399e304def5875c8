"""Pairs of two samplers: random allocation, and Poisson batches that are cut (docs/theory/sampling.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reticent import pairs
from reticent.mechanisms.sampling import Sampler
from reticent.pairs import Neighbouring, Part

if TYPE_CHECKING:
    from reticent.mechanisms.dpsgd import DPSGD


def allocated_parts(run: DPSGD, neighbouring: Neighbouring, batches: int, *, attained: bool) -> tuple[Part, ...]:
    """Epochs of one hidden step for each record, with noise: FELDMAN2025:Theorem 3.1.

    Args:
        attained: see ``Mechanism.parts_under``: an epoch that was broken off, and several uses in an epoch, only
            dominate. All records but one may have gradients 0.
    """
    noise, uses, replaced = run.noise_multiplier, run.uses_per_epoch or 1, neighbouring is Neighbouring.REPLACE
    epochs = run.steps // batches if attained else -(-run.steps // batches)
    if epochs == 0 or (attained and uses > 1):
        return ()
    if run.sampler is Sampler.ALLOCATED_ONCE:
        return kept_parts([noise / math.sqrt(epochs)], batches, run.records, neighbouring)
    pair = _allocated(noise, batches // uses, run.records, replaced)
    return (_part(pair, epochs * uses, *(("FELDMAN2025:Lemma 3.2",) if uses > 1 else ())),)


def kept_parts(noises: Sequence[float], batches: int, records: int, neighbouring: Neighbouring) -> tuple[Part, ...]:
    """Runs whose hidden steps were drawn once: with one draw, or each with its own.

    Two draws may have to do with each other in any way. By RETICENT:kept-allocation the worst is one draw for all, in
    as few steps as the shortest epoch has. That is of one record: with draws of their own, records of one person meet
    in some runs and not in others.

    Args:
        noises: of each run, as if it were one epoch.
        batches: of the shortest epoch.
        records: of one person.
    """
    noise = 1.0 / math.hypot(*(1.0 / each for each in noises))
    pair = _allocated(noise, batches, records, neighbouring is Neighbouring.REPLACE, min(len(noises), records) > 1)
    return (_part(pair, 1, "RETICENT:kept-allocation"),)


def _part(pair: pairs.Pair, count: int, *keys: str) -> Part:
    chain = ("RETICENT:allocation-chain",) if isinstance(pair, pairs.AllocatedPersonPair) else ()
    return Part(pair, count, ("FELDMAN2025:Theorem 3.1", "RETICENT:allocation-enclosure", *keys, *chain))


def _allocated(noise: float, bins: int, records: int, replaced: bool, redrawn: bool = False) -> pairs.Pair:
    if bins == 1:
        return pairs.GaussianPair(noise, 1.0, records * (2.0 if replaced else 1.0))
    if records == 1 and not replaced:
        return pairs.AllocatedGaussianPair(noise, bins)
    return pairs.AllocatedPersonPair(noise, bins, records, replaced, redrawn)


def truncated_parts(run: DPSGD, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
    """Of one record: a public coin says whether the batch is full without the target.

    Args:
        attained: the other records have gradients 0, so that nobody sees whether a batch is full.
    """
    noise, rate = run.noise_multiplier, run.sample_rate
    share, full_rate = saturation(rate, run.dataset_size or 1, run.max_batch_size or 1)
    keys = ("RETICENT:truncated-dominance",)
    used = (1.0 - share) * rate + share * full_rate
    if noise == 0.0:
        return (Part(pairs.Disclosure(used, displaces=True), run.steps, keys),)
    if attained:
        return (Part(pairs.poisson_gaussian(noise, used, neighbouring), run.steps, keys),)
    below = pairs.poisson_gaussian(noise, rate, neighbouring)
    if share == 0.0:
        return (Part(below, run.steps, keys),)
    ordered = neighbouring is Neighbouring.ADD_REMOVE
    full = (
        pairs.GaussianPair(noise, full_rate, 2.0) if ordered else pairs.SymmetrisedGaussianPair(noise, full_rate, 2.0)
    )
    return (Part(pairs.MixedPair(below, full, share), run.steps, keys),)


def saturation(rate: float, records: int, most: int) -> tuple[float, float]:
    """(probability that ``most`` of the other records are drawn, or more; of the target to be in the batch then).

    Args:
        rate: probability of each coin, in (0, 1].
        records: the target counted.
        most: the size at which batches are cut.
    """
    from scipy.special import bdtrc  # lists of mechanisms are read without it

    if most >= records:
        return 0.0, rate
    if rate == 1.0:
        return 1.0, most / records
    share = float(bdtrc(most - 1, records - 1, rate))
    if not share > 0.0:
        return 0.0, rate
    return share, min(float(bdtrc(most, records, rate)) * most / (share * records), rate)
