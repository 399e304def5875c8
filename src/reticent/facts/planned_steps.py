"""Steps that were planned and did not run: a stop that may depend on outputs is charged at the plan.

A run that is stopped after a look at what it released may reveal something by the moment. The first steps of a run of
fixed length reveal no more than the whole run. So a run of at most N steps counts as N steps. Whoever looks at the
records themselves, or at their loss, releases one thing more, which no plan covers: the condition ``planned-steps``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import model_validator

from reticent.facts.base import Fact, Reading, Severity
from reticent.facts.plan import planned_segments
from reticent.io.models import Closed, Count
from reticent.kernel.errors import ReticentError
from reticent.kernel.messages import Figure, Message
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.facts.steps import Segment
    from reticent.records.ledger import RunLedger


class PlannedSteps(Closed):
    """How many noisy steps there were to be at most.

    Attributes:
        steps: as many.
        stop_at: the risk at which the watch itself stops the loop, as it was typed: then no step beyond these can be
            taken. None where somebody only says how many there will be.
    """

    steps: Count
    stop_at: str | None = None

    def __str__(self) -> str:
        return f"of at most {self.steps} planned"

    @model_validator(mode="after")
    def _target_in_short(self) -> PlannedSteps:
        if self.stop_at is not None and not 0 < len(self.stop_at) <= 100:
            raise ValueError("stop_at must be a target such as advantage=0.1")
        return self


def planned(run: RunLedger) -> PlannedSteps | None:
    """What a ledger says of it; None where nothing is stated."""
    found: PlannedSteps | None = run.facts.get("planned-steps")
    return found


def unplanned(run: RunLedger) -> RunLedger:
    """The same where nothing is planned."""
    return run.model_copy(
        update={"facts": {key: value for key, value in run.facts.items() if key != PLANNED_STEPS.key}}
    )


def _beyond(run: RunLedger) -> int:
    """Steps that ran, less those that were planned."""
    plan = planned(run)
    return 0 if plan is None else run.steps - plan.steps


def _charged(run: RunLedger, reading: Reading) -> Reading:
    """The steps that ran, and those that were planned beyond them as the worst of both."""
    rest, ran = -_beyond(run), reading.segments
    if rest <= 0:
        return reading
    batches = run.sampler.batches_per_epoch
    many = max(part.batches for part in ran)
    begun = None if batches is None else -(-rest * many // batches)  # further passes that are started
    changes = bool(run.asked.get("schedule")) and batches is None
    if len(ran) == 1 and not changes:
        (only,) = ran
        whole = None if batches is None else -(-run.steps // batches)
        unbroken = only.batches == 1 and whole is not None and only.passes == whole
        passes = -(-(run.steps + rest) // (batches or 1)) if unbroken else _more(only.passes, begun)
        return replace(reading, segments=(only.model_copy(update={"steps": only.steps + rest, "passes": passes}),))
    both = (*ran, *_of_plan(run)) if changes else ran
    worst = {
        "noise_multiplier": min(part.noise_multiplier for part in both),
        "sample_rate": max((part.sample_rate for part in both if part.sample_rate is not None), default=None),
        "max_grad_norm": min((part.max_grad_norm for part in both if part.max_grad_norm is not None), default=None),
        "steps": rest,
        "batches": many,
        "passes": _more(1, begun),  # it may begin within a pass
        "mixed_passes": max(part.mixed_passes for part in ran),
    }
    return replace(reading, segments=(*ran, ran[0].model_copy(update=worst)))


def _more(passes: int | None, begun: int | None) -> int | None:
    return None if passes is None or begun is None else passes + begun


def _of_plan(run: RunLedger) -> tuple[Segment, ...]:
    """The steps of the configuration. A plan that nobody can read hides nothing."""
    try:
        return planned_segments(run.asked, run.dataset_size, run.first.noise_multiplier)
    except (ValueError, ReticentError):
        return (run.first.model_copy(update={"noise_multiplier": 0.0, "sample_rate": 1.0}),)


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """Who vouches that the number of steps was fixed beforehand, or is counted as planned.

    The watch itself does where it stopped the loop, and neither noise nor rate changed along the run: then the number
    follows from what was known before the first step. Why a loop ended before, nobody sees. Of several loops each has
    its plan; how many there would be, nobody planned.
    """
    plan = planned(run)
    if plan is None or run.steps > plan.steps or run.earlier:
        return {}
    if run.config is not None:
        kept = run.steps == plan.steps and not run.looks_to_stop
        return dict.fromkeys(("fixed-plan", *(("planned-steps",) if kept else ())), Status.CHECKED)
    equal = len({(part.noise_multiplier, part.sample_rate) for part in run.segments}) == 1
    stopped = plan.stop_at is not None and run.steps == plan.steps
    return {"planned-steps": Status.CHECKED if stopped and equal else Status.DECLARED}


def _silent(run: RunLedger) -> bool:
    """Our trainer always has a plan."""
    return run.config is None and None in map(planned, run.loops)


def _shows(plan: PlannedSteps) -> Iterable[tuple[Message, Message]]:
    found, stop = Message("fact.at-most", steps=Figure(str(plan.steps))), plan.stop_at
    yield Message("fact.planned"), found if stop is None else found.under("stops").given(target=stop)


PLANNED_STEPS = Fact(
    "planned-steps",
    Severity.NOTE,
    stated=PlannedSteps,
    effect=_charged,
    vouches=_vouches,
    silent={"planned-steps": _silent},
    shows=_shows,
)
STOPPED_EARLY = Fact(
    "stopped-early", Severity.WARNING, lambda run: run.config is not None and _beyond(run) < 0, ours=True
)
STOPPED_BEFORE_PLAN = Fact("stopped-before-plan", Severity.WARNING, lambda run: run.config is None and _beyond(run) < 0)
MORE_THAN_PLANNED = Fact("more-than-planned", Severity.WARNING, lambda run: _beyond(run) > 0)
