"""Which conditions of ``reticent.proofs`` a ledger establishes: ``checked`` for what was seen, ``declared`` else.

What is left out is assumed: nobody looked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.mechanisms.gradients import Gradients, GradientsRecord
from reticent.pairs import Neighbouring
from reticent.proofs import Status
from reticent.records.selected_run import vouched_by_selection
from reticent.records.watch_faults import Fault
from reticent.records.watch_source import Drawn, Source
from reticent.samplers.base import seen_as

if TYPE_CHECKING:
    from reticent.records.run_ledger import PublicLedger
    from reticent.records.watched_run import PublicWatchedRun


_FORMS = {
    Gradients.FIXED: ("one-direction", "linear-head", "known-share"),
    Gradients.ONE_DIRECTION: ("one-direction", "linear-head", "known-share"),
    Gradients.LINEAR_HEAD: ("linear-head", "known-share"),
    Gradients.ANY: (),
}
_WITH_THE_SAME_FEATURES = {
    Gradients.FIXED: ("same-features", "fixed-length", "independent-directions"),
    Gradients.ONE_DIRECTION: ("same-features",),
    Gradients.LINEAR_HEAD: ("same-features",),
    Gradients.ANY: (),
}


def form_of(record: GradientsRecord | None) -> dict[str, Status]:
    """What the form of the model ensures; ``known-share`` is about the share in the record, or more."""
    if record is None:
        return {}
    keys = _FORMS[record.kind] + (_WITH_THE_SAME_FEATURES[record.kind] if record.features == "same" else ())
    return dict.fromkeys(keys, Status.CHECKED)


def of_run(ledger: PublicLedger) -> dict[str, Status]:
    """What a ledger of ``reticent train`` establishes: its loop draws, clips and counts itself."""
    from reticent.records.run_warnings import Randomness

    found = {
        ledger.sampler.condition.key: Status.CHECKED,
        "clipped": Status.CHECKED,
        "drawn-anew": Status.CHECKED,
        "fixed-plan": Status.CHECKED,
        "public-divisor": Status.CHECKED,
        **form_of(ledger.gradients),
    }
    if ledger.steps == ledger.planned_steps and not ledger.looks_to_stop:  # why a run stopped, nobody sees
        found["planned-steps"] = Status.CHECKED
    if ledger.randomness is Randomness.FRESH:
        found["unpredictable-noise"] = Status.CHECKED
    model = ledger.config.get("model")
    if isinstance(model, dict) and model.get("kind", "custom") != "custom":
        found["start-weights"] = Status.CHECKED  # drawn from a seed by the loop itself
    if ledger.records_per_user is not None:
        found["records-per-person"] = Status.DECLARED
    if ledger.selection is not None:
        found |= vouched_by_selection(ledger.selection)
    return found


def of_watched(run: PublicWatchedRun) -> dict[str, Status]:
    """What a ledger of a watched loop establishes, and the loops that it continues: what all of them do, the weakest.

    Where a fault voids one, nothing. Statistics of other records that went into the features before the loop, and a
    layer or a loss that mixes records later than in the first step, cannot be seen. So clipping that was seen, and
    features that were seen to stay the same, still rest on the word of the program.
    """
    loops = (*run.earlier, run)
    if any(fault.voids for one in loops for fault in one.faults):
        return {}
    each = [_of_loop(one, alike=one.gradients == run.gradients) for one in loops]
    everywhere = set.intersection(*(set(found) for found in each))
    found = {key: min((one[key] for one in each), key=_ORDER.index) for key in each[-1] if key in everywhere}
    if run.earlier:  # each loop has its plan; how many loops there would be, nobody planned
        found.pop("planned-steps", None)
    start = _SOURCES.get(loops[0].start.source) if loops[0].start is not None else None
    if start is not None:
        found["start-weights"] = start
    return found


_SOURCES = {Source.SEEN: Status.CHECKED, Source.DECLARED: Status.DECLARED}
_ORDER = (Status.ASSUMED, Status.DECLARED, Status.CHECKED)


def _of_loop(run: PublicWatchedRun, alike: bool) -> dict[str, Status]:
    """What one loop establishes; the form of its model only where it is that of the whole chain."""
    found = form_of(run.gradients) if alike else {}
    if "same-features" in found:
        found["same-features"] = Status.DECLARED
    if run.clipping.source in _SOURCES and Fault.NOT_LOOKED_AT not in run.faults:
        found["clipped"] = Status.DECLARED
    other = Fault.OTHER_BATCHES in run.faults or Fault.PUBLIC_DRAWS in run.faults
    as_drawn = not other and (run.sampler.times_per_epoch or 1) == 1
    kind = seen_as(run.sampler.drawn)
    if kind is not None and run.sampler.source in _SOURCES and as_drawn:
        found |= dict.fromkeys((kind.condition.key, "drawn-anew"), _SOURCES[run.sampler.source])
    if run.divisor is not None:
        found["public-divisor"] = Status.CHECKED  # one number for all steps
    if run.randomness == "secure generator":
        found["unpredictable-noise"] = Status.CHECKED
    if run.records_per_user is not None:
        found["records-per-person"] = Status.DECLARED
    planned = _planned_status(run)
    if planned is not None:
        found["planned-steps"] = planned
    return found


_BLIND = frozenset(Drawn) - {Drawn.WEIGHTED, Drawn.UNKNOWN}
"""Draws that look at no record: one that has another value moves nobody."""


def rearranges(run: PublicWatchedRun, neighbouring: Neighbouring) -> bool:
    """Whether a record may have decided who else was in a batch of one loop, as far as its ledger shows.

    Draws of each record by itself leave the others where they are. So do batches of all records. Batches of a fixed
    size that are counted as such have a theorem of their own.
    """
    drawn, other = run.sampler.drawn, Fault.OTHER_BATCHES in run.faults
    if not other and neighbouring is not Neighbouring.ADD_REMOVE and drawn in _BLIND:
        return False
    if other or Fault.PUBLIC_DRAWS in run.faults:
        return True
    once = all(segment.batches == 1 for segment in run.segments)
    alone = drawn in (Drawn.POISSON, Drawn.RANDOM_ALLOCATION) or (drawn is Drawn.FIXED_SIZE and once)
    return not alone and not (run.sampler.batches_per_epoch == 1 and once)


def _planned_status(run: PublicWatchedRun) -> Status | None:
    """Who vouches that the number of steps was fixed beforehand, or is counted as planned; None if nobody does.

    The watch itself does where it stopped the loop, and neither noise nor rate changed along the run: then the number
    follows from what was known before the first step. Why a loop ended before, it cannot see.
    """
    plan = run.planned
    if plan is None or run.steps > plan.steps:
        return None
    equal = len({(part.noise_multiplier, part.sample_rate) for part in run.segments}) == 1
    stopped = plan.stop_at is not None and run.steps == plan.steps
    return Status.CHECKED if stopped and equal else Status.DECLARED
