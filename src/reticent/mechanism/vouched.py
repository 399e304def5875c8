"""Which conditions of ``reticent.proofs`` a ledger establishes: ``checked`` for what was seen, ``declared`` else.

What is left out stays as it is: nobody looked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.mechanism.gradients import Gradients, GradientsRecord
from reticent.mechanism.sampling import Sampler
from reticent.proofs import Status

if TYPE_CHECKING:
    from reticent.mechanism.run_ledger import PublicLedger
    from reticent.mechanism.watched_run import PublicWatchedRun

_DRAWS = {
    Sampler.POISSON: "poisson-draws",
    Sampler.FIXED_SIZE: "fixed-size-draws",
    Sampler.SHUFFLED: "shuffled-draws",
}

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
    from reticent.mechanism.run_ledger import Randomness

    found = {
        _DRAWS[ledger.sampler]: Status.CHECKED,
        "clipped": Status.CHECKED,
        "planned-steps": Status.CHECKED,
        "public-divisor": Status.CHECKED,
        **form_of(ledger.gradients),
    }
    if ledger.randomness is Randomness.FRESH:
        found["unpredictable-noise"] = Status.CHECKED
    model = ledger.config.get("model")
    if isinstance(model, dict) and model.get("kind", "custom") != "custom":
        found["start-weights"] = Status.CHECKED  # drawn from a seed by the loop itself
    if ledger.records_per_user is not None:
        found["records-per-person"] = Status.DECLARED
    return found


def of_watched(run: PublicWatchedRun) -> dict[str, Status]:
    """What a ledger of a watched loop establishes; nothing where a fault voids it.

    Statistics of other records that went into the features before the loop, a layer of one's own that mixes records, or
    a loss that does, cannot be seen. So clipping that was seen, and features that were seen to stay the same, still
    stand on the word of the program.
    """
    from reticent.mechanism.watch_faults import Fault
    from reticent.mechanism.watched_run import Drawn, Source

    if any(fault.voids for fault in run.faults):
        return {}
    status = {Source.SEEN: Status.CHECKED, Source.DECLARED: Status.DECLARED}
    found = form_of(run.gradients)
    if "same-features" in found:
        found["same-features"] = Status.DECLARED
    if run.clipping.source in status:
        found["clipped"] = Status.DECLARED
    drawn = {Drawn.POISSON: "poisson-draws", Drawn.SHUFFLED: "shuffled-draws", Drawn.IN_ORDER: "shuffled-draws"}
    as_drawn = Fault.OTHER_BATCHES not in run.faults and (run.sampler.times_per_epoch or 1) == 1
    if run.sampler.drawn in drawn and run.sampler.source in status and as_drawn:
        found[drawn[run.sampler.drawn]] = status[run.sampler.source]
    if run.divisor is not None:
        found["public-divisor"] = Status.CHECKED  # one number for all steps
    if run.randomness == "secure generator":
        found["unpredictable-noise"] = Status.CHECKED
    if run.records_per_user is not None:
        found["records-per-person"] = Status.DECLARED
    return found
