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

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
from reticent.attacks.participation import NAMES as PARTICIPATION
from reticent.attacks.participation import NOISE, Check, Plan, participation_checks
from reticent.attacks.replay import NEEDS, counted_by_replay, replay_check
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
        checks: those that were made.
        significance: probability of accusing a correct implementation, at most.
        tests: how many were planned; the p-values are corrected for all of them.
        runs: how many runs were looked at.
        planned: how many there would have been without a failed test.
    """

    checks: tuple[Check, ...]
    significance: float
    tests: int
    runs: int
    planned: int

    @property
    def failed(self) -> tuple[Check, ...]:
        """The tests whose corrected p-value is at most ``significance``."""
        return tuple(c for c in self.checks if c.p_value * self.tests <= self.significance)

    @property
    def accused(self) -> bool:
        """Whether the claim is refuted, with confidence ``1 - significance``."""
        return bool(self.failed)

    @property
    def adjusted_p_value(self) -> float:
        """Smallest p-value, corrected for their number."""
        return min(1.0, self.tests * min((c.p_value for c in self.checks), default=1.0))

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
        found = [self.verdict, *([f"What failed fits this fault best: {self.likely}."] if self.likely else [])]
        if self.runs < self.planned:
            left = f"{self.tests - len(self.checks)} of {self.tests} tests were not made"
            found.append(f"Stopped after {self.runs} of {self.planned} runs; {left}.")
        return found

    def _lines(self) -> list[str]:
        return [*self.headlines, *(f"{name} (p-value {p_value}): {finding}" for name, p_value, finding in self._rows())]

    def _repr_html_(self) -> str:
        return html_table(" ".join(self.headlines), [("test", "p-value", "found"), *self._rows()])

    def _rows(self) -> list[tuple[str, str, str]]:
        failed = self.failed
        return [(f"{'FAILED: ' if c in failed else ''}{c.name}", f"{c.p_value:.2g}", c.finding) for c in self.checks]


class Judging:
    """An audit in progress: each test is made as soon as the runs that it needs are there, at its fixed share.

    So the audit may stop whenever a test has failed, and no correct loop is accused more often
    (RETICENT:audit-stops; docs/theory/auditing.md).

    Args:
        setup: the runs, from :func:`experiments`.
        significance: of the verdict, in (0, 1).

    Raises:
        ParameterError: ``significance`` is outside (0, 1).
    """

    def __init__(self, setup: Sequence[Experiment], *, significance: float = SIGNIFICANCE, seed: int = 0) -> None:
        self._significance = checks.open_fraction(significance=significance)
        self._setup, self._seen = setup, _Seen(setup[0].claim, seed, {})
        self._missing = Counter(experiment.name for experiment in setup)
        self._made: list[Check | None] = [None] * len(TESTS)

    def see(self, number: int, run: Released) -> None:
        """Take what run ``number`` of the setup released, and make the tests that waited for it."""
        name = self._setup[number].name
        self._seen.runs.setdefault(name, []).append(run)
        self._missing[name] -= 1
        if self._missing[name]:
            return
        for place, (needs, test) in enumerate(TESTS):
            if name in needs and not any(self._missing[one] for one in needs):
                self._made[place] = test(self._seen)

    @property
    def report(self) -> MechanicsReport:
        """What is known now."""
        made = [check for check in self._made if check is not None]
        counted = not any(self._missing[name] for name in _REPLAYS[1])
        if counted and (size := self._seen.counted) < 1.0:
            made.append(Check("clipping", 1.0, f"stronger than claimed, which is safe: a record counts {size:.3g}"))
        runs = len(self._setup) - sum(self._missing.values())
        return MechanicsReport(tuple(made), self._significance, len(TESTS), runs, len(self._setup))


@dataclass(frozen=True)
class _Seen:
    """What was released so far: runs by name, in the order in which they came."""

    claim: DPSGD
    seed: int
    runs: dict[str, list[Released]]

    def noise(self, name: str) -> np.ndarray:
        """Releases in units of the claimed deviation."""
        return self.runs[name][0].sums / self.claim.noise_multiplier

    @property
    def replays(self) -> dict[str, Released]:
        return {name.removeprefix(REPLAY): runs[0] for name, runs in self.runs.items() if name.startswith(REPLAY)}

    @cached_property
    def counted(self) -> float:
        """What a record counts. Clipping below the claim is safe, and known exactly from the replays."""
        found = counted_by_replay(self.replays, LAYERS, self.claim)
        return found if found is not None and found < 0.99 else 1.0

    @property
    def batches(self) -> tuple[np.ndarray, DPSGD]:
        """Records of each batch of the chorus, with noise, and the claim for these."""
        size = self.counted
        counted = replace(self.claim, noise_multiplier=self.claim.noise_multiplier / size)
        return self.runs["chorus"][0].sums[:, 0] / size, counted

    @property
    def spread(self) -> np.ndarray:
        return self.runs["spread"][0].sums @ spread_records(LAYERS, 1.0, 1, self.seed)[1]

    @cached_property
    def participation(self) -> dict[str, Check]:
        sums = np.stack([run.sums for run in self.runs["participation"]])
        rate, told = self.claim.sample_rate, min(NOISE, self.claim.noise_multiplier)
        return {check.name: check for check in participation_checks(sums, self.followed, rate, told)}

    @property
    def followed(self) -> int:
        """How many records are followed."""
        return len(Plan.of(self.claim.sample_rate, self.claim.steps, self.claim.dataset_size or 0).records)


def _beside(seen: _Seen, name: str, title: str) -> Check:
    noise = seen.noise(name)[:, 1:]
    return noise_beside(title, (noise**2).sum(axis=1), noise.shape[1])


def _tails(seen: _Seen) -> Check:
    first, second, beside, under = (seen.noise(name) for name in ("silence", "second silence", "chorus", "whisper"))
    return noise_tails(first, second, beside[:, 1:], under[:, 1:])


def _short(seen: _Seen) -> Check:
    told = min(short_gradients.NOISE, seen.claim.noise_multiplier)
    return short_gradients.counts_alone(seen.runs[short_gradients.NAME][0].sums, seen.followed, told)


_REPLAYS = tuple(tuple(f"{REPLAY}{name}" for name in needs) for needs in NEEDS)
_COUNTED = ("chorus", *_REPLAYS[1])
_Test = tuple[tuple[str, ...], Callable[[_Seen], Check]]
TESTS: tuple[_Test, ...] = (
    (("silence",), lambda s: noise_scale(s.noise("silence"))),
    (("silence",), lambda s: noise_shape(s.noise("silence"))),
    (("silence", "second silence", "chorus", "whisper"), _tails),
    (("silence",), lambda s: noise_of_each_step(s.noise("silence"))),
    (("silence",), lambda s: noise_of_each_layer(s.noise("silence"), sizes(LAYERS))),
    (("chorus",), lambda s: _beside(s, "chorus", "noise beside large gradients")),
    (("whisper",), lambda s: _beside(s, "whisper", "noise beside small gradients")),
    (("silence",), lambda s: repeated("noise across coordinates", "coordinates", s.noise("silence").T, None)),
    (("silence",), lambda s: repeated("noise across steps", "steps", s.noise("silence"), None)),
    (
        ("silence", "second silence"),
        lambda s: repeated("noise across runs", "steps of two runs", s.noise("silence"), s.noise("second silence")),
    ),
    (("spread",), lambda s: spread_effect(s.spread, s.claim)),
    (_COUNTED, lambda s: sampling_rate(*s.batches)),
    (_COUNTED, lambda s: large_batches(*s.batches)),
    (("chorus",), lambda s: moves_between_steps(s.runs["chorus"][0].moves)),
    *((("participation",), lambda s, name=name: s.participation[name]) for name in PARTICIPATION),
    ((short_gradients.NAME,), _short),
    *(
        (needs, lambda s, number=number: replay_check(number, s.replays, LAYERS, s.claim))
        for number, needs in enumerate(_REPLAYS)
    ),
)
"""Every test with the runs that it needs; each has an equal share of the significance, whenever the audit stops."""


def audit_mechanics(
    train: TrainFunction, claim: DPSGD, *, significance: float = SIGNIFICANCE, seed: int = 0, whole: bool = False
) -> MechanicsReport:
    """Run the implementation and test what it released, until a test fails or all runs are done, about two dozen.

    Args:
        train: the implementation.
        claim: what it says that it does: Poisson sampling, with batch_size and dataset_size.
        significance: probability of accusing a correct implementation, at most.
        seed: of the simulated null distribution and of the signs of the spread gradient.
        whole: go on when a test has failed: every test is made, and the likely fault is a better guess.

    Raises:
        UnsupportedError: the claim is not Poisson sampling.
        ParameterError: the claim lacks sizes or noise.
    """
    setup = experiments(claim, seed)
    return judge(setup, (one.perform(train) for one in setup), significance=significance, seed=seed, whole=whole)


def judge(
    setup: Sequence[Experiment],
    runs: Iterable[Released],
    *,
    significance: float = SIGNIFICANCE,
    seed: int = 0,
    whole: bool = True,
) -> MechanicsReport:
    """Test what the runs of :func:`experiments` released against the claim of the first; arrays in, p-values out.

    Raises:
        ParameterError: ``significance`` is outside (0, 1).
    """
    judging = Judging(setup, significance=significance, seed=seed)
    for number, run in enumerate(runs):
        judging.see(number, run)
        if judging.report.accused and not whole:
            break
    return judging.report
