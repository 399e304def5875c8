"""Do the noisy sums count every record once, in batches as claimed? Tests with p-values.

Sums are in units of the clip norm, so a clipped record counts at most 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special, stats

from reticent.attacks.participation import Check, two_sided, worst_of
from reticent.attacks.replay import CERTAIN
from reticent.kernel.mechanisms import DPSGD

_TAILS = [1e-18, 1.0 - 1e-16]  # quantiles of a binomial law between which it is summed
_CUTS = (0.05, 0.2, 0.8, 0.95)
_SAME = 1e-5


def spread_effect(along: np.ndarray, claim: DPSGD) -> Check:
    """Along a gradient spread over all layers the run adds up to Binomial(steps * records, q) and noise, or to less."""
    trials = claim.steps * (claim.dataset_size or 1)
    total = float(along.sum())
    finding = f"spread gradients add up to rate {total / trials:.4g} where {claim.sample_rate:.4g} is expected"
    return Check("spread gradients", _tail(total, trials, claim), finding)


def large_batches(batch: np.ndarray, claim: DPSGD) -> Check:
    """Steps whose noisy count lies above a limit: binomial. A batch that is cut never does, none below is no chance."""
    size, q, s = claim.dataset_size or 1, claim.sample_rate, claim.noise_multiplier
    one = replace(claim, steps=1)
    found = []
    for level in _CUTS:
        limit = size * q + float(special.ndtri(level)) * np.sqrt(size * q * (1.0 - q) + s**2)
        share, above = _tail(limit, size, one), int((batch > limit).sum())
        words = f"{above} of {len(batch)} counts are above {limit:.4g} where {share * len(batch):.3g} are expected"
        found.append((two_sided(above, len(batch), share), words))
    return worst_of("large noisy batches", found)


def moves_between_steps(moves: tuple[np.ndarray, np.ndarray] | None) -> Check:
    """Between two steps weights may move by what was released, and not by what the records of the chorus add.

    All records push coordinate 0. How much the other weights moved, as a multiple of where they were, tells what
    happened between the steps (nothing, or a decay); coordinate 0 must have moved alike.
    """
    name = "weights between steps"
    if moves is None:
        return Check(name, 1.0, "not tested: the loop shows no weights")
    change, where = moves
    if not change.any():
        return Check(name, 1.0, "weights stay between steps as the step left them")
    factor = (change[:, 1:] * where[:, 1:]).sum(axis=1) / np.maximum((where[:, 1:] ** 2).sum(axis=1), 1e-30)
    rest = change - factor[:, None] * where
    # The weights away from coordinate 0 must follow the multiple, else this test knows nothing.
    usual, first = float(np.abs(rest[:, 1:]).max()), float(np.abs(rest[:, 0]).max())
    size = float(np.abs(where).max())
    if usual > _SAME * size:
        return Check(name, 1.0, "not tested: weights move between steps in a way that is no decay")
    step = int(np.abs(rest[:, 0]).argmax())
    if first > 10.0 * _SAME * size:
        return Check(name, CERTAIN, f"after step {step} a weight moves by {first:.3g} with the records' gradient")
    return Check(name, 1.0, "weights move between steps by a decay alone")


def sampling_rate(batch: np.ndarray, claim: DPSGD) -> Check:
    """All batches together are Binomial(steps * records, q) records, and noise."""
    trials = claim.steps * (claim.dataset_size or 1)
    total = float(batch.sum())
    upper, lower = _tail(total, trials, claim), _tail(total, trials, claim, below=True)
    finding = f"records take part at rate {total / trials:.4g} where {claim.sample_rate:.4g} is claimed"
    return Check("sampling rate", min(1.0, 2.0 * min(upper, lower)), finding)


def _tail(total: float, trials: int, claim: DPSGD, *, below: bool = False) -> float:
    """P(Binomial(trials, q) + N(0, steps s^2) beyond the total), summed over the binomial between ``_TAILS``."""
    low, high = stats.binom.ppf(_TAILS, trials, claim.sample_rate)
    counts = np.arange(max(0, int(low) - 1), min(trials, int(high) + 2) + 1)
    weights = stats.binom.pmf(counts, trials, claim.sample_rate)
    scale = claim.noise_multiplier * np.sqrt(claim.steps)
    further = (total - counts) / scale
    tail = float(special.ndtr(further if below else -further) @ weights)
    return min(tail + max(0.0, 1.0 - float(weights.sum())), 1.0)
