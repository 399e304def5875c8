"""The enclosure in d dimensions where delta is 1e-4 to 1e-10: importance sampling of the likelihood ratio.

Theorem: RETICENT:told-mask.
"""

from __future__ import annotations

import numpy as np
import pytest

from reticent.adversaries.relaxed.dimension import enclose, overlaps, relaxed_in, revealed_mask, second_moment
from reticent.kernel.mechanisms import DPSGD
from tests.adversaries.relaxed.relaxed_tail import Estimate, Run, addition, far_out, log_ratios, rare, removal
from tests.conftest import some

RUNS: list[Run] = [(3.0, 0.95, 3, 6), (0.35, 0.03, 3, 6), (1.0, 0.3, 4, 2), (0.7, 0.1, 5, 3), (4.0, 0.9, 5, 8)]


def estimates(run: Run, draws: int, seed: int) -> list[tuple[np.ndarray, Estimate]]:
    """Of addition and of removal, at about ten thresholds each that a first sample chose, where the second is sure."""
    rng, found = np.random.default_rng(seed), []
    for sampler, thresholds in zip((addition, removal), far_out(run), strict=True):
        chosen = thresholds[rare(sampler(run, thresholds, draws // 4, rng))]
        estimate = sampler(run, chosen, draws, rng)
        sure = (estimate.error <= 0.08 * estimate.delta) & (estimate.effective >= 100.0)
        found.append((chosen[sure], Estimate(estimate.delta[sure], estimate.error[sure], estimate.effective[sure])))
    return found


def bounds(run: Run, thresholds: np.ndarray, *, removed: bool) -> list[np.ndarray]:
    """Every bound of one direction: whole moments, the mask told, cut moments."""
    norms = enclose.log_norms(*run)
    found = (
        second_moment.log_deltas(norms, thresholds),
        revealed_mask.log_deltas(*run, thresholds),
        overlaps.over_absent(*run).log_deltas(thresholds),
    )
    return [np.exp(pair[int(removed)]) for pair in found]


def check(run: Run, draws: int, seed: int) -> None:
    """That no bound and neither end is contradicted."""
    curves = relaxed_in(DPSGD(*run[:3]), run[3])
    for removed, (thresholds, estimate) in enumerate(estimates(run, draws, seed)):
        assert len(thresholds) >= 5
        least = estimate.delta - 4.0 * estimate.error
        for bound in bounds(run, thresholds, removed=bool(removed)):
            assert np.all(bound >= least)
        assert np.all(curves.pessimistic.delta(thresholds) >= least)
        # Both ends are of the larger delta of both directions, which at thresholds >= 0 is that of addition.
        assert removed or np.all(curves.optimistic.delta(thresholds) <= estimate.delta + 4.0 * estimate.error)


@pytest.mark.parametrize("run", some([(run,) for run in RUNS], 0, 1))
def test_rare_events_never_contradict_the_enclosure(run: Run) -> None:
    check(run, 16_000 if run in RUNS[:2] else 100_000, 3)


def test_importance_sampling_agrees_with_plain_sampling() -> None:
    run, rng = (1.0, 0.3, 3, 2), np.random.default_rng(8)
    y = rng.normal(size=(40_000, 3, 2))
    ratio = np.exp(log_ratios(y, run[0], [(run[1], 1.0)])[0])[:, None]
    assert ratio.mean() == pytest.approx(1.0, abs=0.015)
    thresholds = np.array([0.05, 0.3, 0.8])
    for sampler, terms in ((addition, np.maximum(ratio - np.exp(thresholds), 0.0)),
                           (removal, np.maximum(1.0 - np.exp(thresholds) * ratio, 0.0))):  # fmt: skip
        plain, weighted = Estimate.of(terms), sampler(run, thresholds, 12_000, rng)
        assert np.all(np.abs(plain.delta - weighted.delta) <= 4.0 * np.hypot(plain.error, weighted.error))
        assert np.all(weighted.error <= 0.05 * weighted.delta)
