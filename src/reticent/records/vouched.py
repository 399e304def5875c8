"""Which conditions of ``reticent.proofs`` a ledger establishes: ``checked`` for what was seen, ``declared`` else.

What is left out is assumed: nobody looked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.mechanisms.gradients import Gradients, GradientsRecord
from reticent.pairs import Neighbouring
from reticent.proofs import Status
from reticent.records.parts import Drawn, Generator, Randomness, Source
from reticent.records.rules import section
from reticent.records.selected_run import vouched_by_selection
from reticent.records.watch_faults import Fault
from reticent.samplers.base import seen_as

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

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
_SOURCES = {Source.SEEN: Status.CHECKED, Source.DECLARED: Status.DECLARED}
_ORDER = (Status.ASSUMED, Status.DECLARED, Status.CHECKED)
_SECRET = (Randomness.FRESH, Generator.SECURE)
_BLIND = frozenset(Drawn) - {Drawn.WEIGHTED, Drawn.UNKNOWN}
"""Draws that look at no record: one that has another value moves nobody."""


def by(run: RunLedger) -> dict[str, Status]:
    """What a ledger establishes, and the loops that it continues: what all of them do, the weakest.

    The loop of ``reticent train`` draws, clips and counts itself. Of another loop, statistics of other records that
    went into the features before, and a layer or a loss that mixes records later than in the first step, cannot be
    seen. So clipping that was seen, and features that were seen to stay the same, still rest on the word of the
    program. Where a fault voids one of them, nothing is established.
    """
    if any(fault.voids for fault in run.faults):
        return {}
    each = [_of_loop(one, alike=one.gradients == run.gradients) for one in run.loops]
    everywhere = set.intersection(*(set(found) for found in each))
    found = {key: min((one[key] for one in each), key=_ORDER.index) for key in each[-1] if key in everywhere}
    if run.earlier:  # each loop has its plan; how many loops there would be, nobody planned
        found.pop("planned-steps", None)
    start = _of_start(run.loops[0])
    return found if start is None else {**found, "start-weights": start}


def _of_loop(run: RunLedger, alike: bool) -> dict[str, Status]:
    """What one loop establishes; the form of its model only where it is that of the whole chain."""
    ours, found = run.config is not None, form_of(run.gradients) if alike else {}
    if ours:
        found["fixed-plan"] = Status.CHECKED
    elif "same-features" in found:
        found["same-features"] = Status.DECLARED
    if run.clipping.source in _SOURCES and Fault.NOT_LOOKED_AT not in run.faults:
        found["clipped"] = Status.CHECKED if ours else Status.DECLARED
    other = Fault.OTHER_BATCHES in run.faults or Fault.PUBLIC_DRAWS in run.faults
    as_drawn = not other and (run.sampler.times_per_epoch or 1) == 1
    kind = seen_as(run.sampler.drawn)
    if kind is not None and run.sampler.source in _SOURCES and as_drawn:
        found |= dict.fromkeys((kind.condition.key, "drawn-anew"), _SOURCES[run.sampler.source])
    if ours or run.divisor is not None:
        found["public-divisor"] = Status.CHECKED  # one number for all steps, or one for each stage of the plan
    if run.environment.randomness in _SECRET:
        found["unpredictable-noise"] = Status.CHECKED
    if run.records_per_user is not None:
        found["records-per-person"] = Status.DECLARED
    planned = _of_plan(run)
    if planned is not None:
        found["planned-steps"] = planned
    return found | ({} if run.selection is None else vouched_by_selection(run.selection))


def form_of(record: GradientsRecord | None) -> dict[str, Status]:
    """What the form of the model ensures; ``known-share`` is about the share in the record, or more."""
    if record is None:
        return {}
    keys = _FORMS[record.kind] + (_WITH_THE_SAME_FEATURES[record.kind] if record.features == "same" else ())
    return dict.fromkeys(keys, Status.CHECKED)


def _of_start(run: RunLedger) -> Status | None:
    """Who vouches that the start weights do not depend on the records: our trainer draws them from a seed itself."""
    if run.config is not None:
        kind = section(run.config, "model").get("kind", "custom")
        return None if kind == "custom" else Status.CHECKED
    return None if run.start is None else _SOURCES.get(run.start.source)


def _of_plan(run: RunLedger) -> Status | None:
    """Who vouches that the number of steps was fixed beforehand, or is counted as planned; None if nobody does.

    The watch itself does where it stopped the loop, and neither noise nor rate changed along the run: then the number
    follows from what was known before the first step. Why a loop ended before, nobody sees.
    """
    plan = run.planned
    if plan is None or run.steps > plan.steps:
        return None
    if run.config is not None:
        return Status.CHECKED if run.steps == plan.steps and not run.looks_to_stop else None
    equal = len({(part.noise_multiplier, part.sample_rate) for part in run.segments}) == 1
    stopped = plan.stop_at is not None and run.steps == plan.steps
    return Status.CHECKED if stopped and equal else Status.DECLARED


def rearranges(run: RunLedger, neighbouring: Neighbouring) -> bool:
    """Whether a record may have decided who else was in a batch of one loop, as far as its ledger shows.

    Draws of each record by itself leave the others where they are. So do batches of all records. Batches of a fixed
    size that are counted as such have a theorem of their own. Our loop draws by itself and looks at no record; but
    places in a table of one's own follow hashes, so one that is replaced moves others.
    """
    drawn, other = run.sampler.drawn, Fault.OTHER_BATCHES in run.faults
    if run.config is not None:
        kind, table = seen_as(drawn), section(run.config, "data").get("table")
        by_place = kind is not None and kind.public_places and run.first.sample_rate != 1.0
        return neighbouring is Neighbouring.REPLACE and table is not None and by_place
    if not other and neighbouring is not Neighbouring.ADD_REMOVE and drawn in _BLIND:
        return False
    if other or Fault.PUBLIC_DRAWS in run.faults:
        return True
    once = all(segment.batches == 1 for segment in run.segments)
    alone = drawn in (Drawn.POISSON, Drawn.RANDOM_ALLOCATION) or (drawn is Drawn.FIXED_SIZE and once)
    return not alone and not (run.sampler.batches_per_epoch == 1 and once)
