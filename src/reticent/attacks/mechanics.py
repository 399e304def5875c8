"""Is this DP-SGD what it claims to be? Tests of a whole implementation, with p-values.

Short runs on a :class:`~reticent.attacks.white_box.Probe` are enough:

* *silence*, twice: every gradient is zero, so what is released is noise and nothing else;
* *chorus*: all records have the same huge gradient in one coordinate, so the noisy sum counts the batch;
* *spread chorus*: all records have the same huge gradient, spread over every coordinate of every layer;
* *whisper*: all records have the same tiny gradient in one coordinate, so that a batch's sum is below the clip norm;
* *participation*, several times, a few epochs long and with little noise: who was in which batch;
* *short gradients*, with hardly any noise: what a record counts (:mod:`~reticent.attacks.short_gradients`);
* *replays*: other data with the same randomness (:mod:`~reticent.attacks.replay`).

If the implementation does what it claims, each p-value is uniform or larger, so that with the Bonferroni
correction it is accused with probability at most ``significance``. No test knows any particular bug.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent.attacks import short_gradients
from reticent.attacks.diagnosis import likely_fault
from reticent.attacks.experiments import LAYERS, REPLAY, Experiment, experiments
from reticent.attacks.noise_checks import (
    noise_beside,
    noise_of_each_layer,
    noise_of_each_step,
    noise_scale,
    noise_shape,
    noise_tails,
    repeated,
)
from reticent.attacks.participation import Check, Plan, participation_checks
from reticent.attacks.replay import replay_checks
from reticent.attacks.sum_checks import (
    large_batches,
    moves_between_steps,
    sampling_rate,
    spread_effect,
)
from reticent.attacks.white_box import Released, TrainFunction, sizes, spread_records
from reticent.kernel import checks
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.text import Brief, html_table

SIGNIFICANCE = 0.001
"""Probability of accusing a correct loop, unless another is asked for: all tests of one audit together."""


@dataclass(frozen=True, slots=True, repr=False)
class MechanicsReport(Brief):
    """All tests of one implementation; printed as the verdict and a line for each test.

    Attributes:
        checks: in the order in which they ran.
        significance: probability of accusing a correct implementation, at most.
    """

    checks: tuple[Check, ...]
    significance: float

    @property
    def failed(self) -> tuple[Check, ...]:
        """The tests whose corrected p-value is at most ``significance``."""
        return tuple(c for c in self.checks if c.p_value * len(self.checks) <= self.significance)

    @property
    def accused(self) -> bool:
        """Whether the claim is refuted, with confidence ``1 - significance``."""
        return bool(self.failed)

    @property
    def adjusted_p_value(self) -> float:
        """Smallest p-value, corrected for their number."""
        return min(1.0, len(self.checks) * min(c.p_value for c in self.checks))

    @property
    def likely(self) -> str | None:
        """The fault that fits the failed tests best, in words for people; None if nothing failed."""
        return likely_fault(self.checks, self.failed)

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.accused:
            return f"REFUTED: the loop does not do what it claims; p-value {self.adjusted_p_value:.2g} for all tests."
        return (
            f"NOT REFUTED at significance {self.significance:g}: no test found a fault; docs/reference/attacks.md "
            "lists what they cannot see."
        )

    @property
    def headlines(self) -> list[str]:
        """The verdict, and the fault that fits what failed."""
        return [self.verdict, *([f"What failed fits this fault best: {self.likely}."] if self.likely else [])]

    def _lines(self) -> list[str]:
        return [*self.headlines, *(f"{name} (p-value {p_value}): {finding}" for name, p_value, finding in self._rows())]

    def _repr_html_(self) -> str:
        return html_table(" ".join(self.headlines), [("test", "p-value", "found"), *self._rows()])

    def _rows(self) -> list[tuple[str, str, str]]:
        failed = self.failed
        return [(f"{'FAILED: ' if c in failed else ''}{c.name}", f"{c.p_value:.2g}", c.finding) for c in self.checks]


def audit_mechanics(
    train: TrainFunction, claim: DPSGD, *, significance: float = SIGNIFICANCE, seed: int = 0
) -> MechanicsReport:
    """Run the implementation about two dozen times and test what it released.

    Args:
        train: the implementation.
        claim: what it says that it does: Poisson sampling, with batch_size and dataset_size.
        significance: probability of accusing a correct implementation, at most.
        seed: of the simulated null distribution and of the signs of the spread gradient.

    Raises:
        UnsupportedError: the claim is not Poisson sampling.
        ParameterError: the claim lacks sizes or noise.
    """
    setup = experiments(claim, seed)
    return judge(setup, [experiment.perform(train) for experiment in setup], significance=significance, seed=seed)


def judge(
    setup: Sequence[Experiment], runs: Sequence[Released], *, significance: float = SIGNIFICANCE, seed: int = 0
) -> MechanicsReport:
    """Test what the runs of :func:`experiments` released against the claim of the first; arrays in, p-values out.

    Args:
        significance: of the verdict, in (0, 1).

    Raises:
        ParameterError: ``significance`` is outside (0, 1).
    """
    checks.open_fraction(significance=significance)
    claim = setup[0].claim
    level, records = claim.noise_multiplier, claim.dataset_size or 0
    seen = {experiment.name: run for experiment, run in zip(setup, runs, strict=True)}
    told = {experiment.name: experiment.claim.noise_multiplier for experiment in setup}
    noise, second = (seen[name].sums / level for name in ("silence", "second silence"))
    chorus, whisper, spread = (seen[name].sums for name in ("chorus", "whisper", "spread"))
    beside, under = chorus[:, 1:] / level, whisper[:, 1:] / level
    replays = {name.removeprefix(REPLAY): run for name, run in seen.items() if name.startswith(REPLAY)}
    replayed = replay_checks(replays, LAYERS, claim)
    # Clipping below the claim is safe. What a record counts there is known exactly from the replays.
    size = replayed.counted if replayed.counted is not None and replayed.counted < 0.99 else 1.0
    batch, counted = chorus[:, 0] / size, replace(claim, noise_multiplier=level / size)
    followed = len(Plan.of(claim.sample_rate, claim.steps, records).records)
    participation = np.stack([run.sums for one, run in zip(setup, runs, strict=True) if one.name == "participation"])
    found = (
        noise_scale(noise),
        noise_shape(noise),
        noise_tails(noise, second, beside, under),
        noise_of_each_step(noise),
        noise_of_each_layer(noise, sizes(LAYERS)),
        noise_beside("noise beside large gradients", (beside**2).sum(axis=1), beside.shape[1]),
        noise_beside("noise beside small gradients", (under**2).sum(axis=1), under.shape[1]),
        repeated("noise across coordinates", "coordinates", noise.T, None),
        repeated("noise across steps", "steps", noise, None),
        repeated("noise across runs", "steps of two runs", noise, second),
        spread_effect(spread @ spread_records(LAYERS, 1.0, 1, seed)[1], claim),
        sampling_rate(batch, counted),
        large_batches(batch, counted),
        moves_between_steps(seen["chorus"].moves),
        *participation_checks(participation, followed, claim.sample_rate, told["participation"]),
        short_gradients.counts_alone(seen[short_gradients.NAME].sums, followed, told[short_gradients.NAME]),
        *replayed.checks,
    )
    if size < 1.0:
        found = (*found, Check("clipping", 1.0, f"stronger than claimed, which is safe: a record counts {size:.3g}"))
    return MechanicsReport(found, significance)
