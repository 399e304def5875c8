"""Steps that were planned and did not run: a stop that may depend on outputs is charged at the plan.

A run that is stopped after a look at what it released may reveal something by the moment. The first steps of a run of
fixed length reveal no more than the whole run. So a run of at most N steps counts as N steps. Whoever looks at the
records themselves, or at their loss, releases one thing more, which no plan covers: the condition ``planned-steps``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import model_validator

from reticent.io.models import Closed, Count

if TYPE_CHECKING:
    from reticent.records.watched_run import PublicWatchedRun, Segment


class PlannedSteps(Closed):
    """How many noisy steps there were to be at most.

    Attributes:
        steps: as many.
        stop_at: the risk at which the watch itself stops the loop, as it was typed: then no step beyond these can be
            taken. None where somebody only says how many there will be.
    """

    steps: Count
    stop_at: str | None = None

    @model_validator(mode="after")
    def _target_in_short(self) -> PlannedSteps:
        if self.stop_at is not None and not 0 < len(self.stop_at) <= 100:
            raise ValueError("stop_at must be a target such as advantage=0.1")
        return self


def charged(run: PublicWatchedRun) -> tuple[Segment, ...]:
    """The steps that count: those that ran, and those that were planned beyond them as the worst of what ran."""
    rest = 0 if run.planned is None else run.planned.steps - run.steps
    if rest <= 0:
        return run.segments
    batches = run.sampler.batches_per_epoch
    many = max(part.batches for part in run.segments)
    begun = None if batches is None else -(-rest * many // batches)  # further passes that are started
    if len(run.segments) == 1:
        (only,) = run.segments
        whole = None if batches is None else -(-run.steps // batches)
        unbroken = only.batches == 1 and whole is not None and only.passes == whole
        passes = -(-(run.steps + rest) // (batches or 1)) if unbroken else _more(only.passes, begun)
        return (only.model_copy(update={"steps": only.steps + rest, "passes": passes}),)
    worst = run.segments[0].model_copy(
        update={
            "noise_multiplier": min(part.noise_multiplier for part in run.segments),
            "sample_rate": _largest_rate(run),
            "steps": rest,
            "batches": many,
            "passes": _more(1, begun),  # it may begin within a pass
            "mixed_passes": max(part.mixed_passes for part in run.segments),
        }
    )
    return (*run.segments, worst)


def _more(passes: int | None, begun: int | None) -> int | None:
    return None if passes is None or begun is None else passes + begun


def _largest_rate(run: PublicWatchedRun) -> float | None:
    usual = run.sampler.sample_rate
    rates = [part.sample_rate or usual for part in run.segments]
    known = [rate for rate in rates if rate is not None]
    return max(known) if known else None
