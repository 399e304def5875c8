"""What the ledger of a watched loop vouches for: who looked at each condition of the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.mechanism.watch_faults import Fault
from reticent.mechanism.watch_source import Drawn, Source
from reticent.proofs import Status

if TYPE_CHECKING:
    from reticent.mechanism.watched_run import PublicWatchedRun

_STATUS = {Source.SEEN: Status.CHECKED, Source.DECLARED: Status.DECLARED, Source.UNKNOWN: Status.ASSUMED}
_DRAWS = {Drawn.POISSON: "poisson-draws", Drawn.SHUFFLED: "shuffled-draws", Drawn.IN_ORDER: "shuffled-draws"}
_ORDER = (Status.ASSUMED, Status.DECLARED, Status.CHECKED)


def vouched_by_watch(run: PublicWatchedRun) -> dict[str, Status]:
    """Status by key of the condition; of a chain of loops the weakest. What is left out, nobody looked at.

    Args:
        run: the ledger.
    """
    found: dict[str, Status] = {"start-weights": _of_start(([*run.earlier, run])[0])}
    for one in (*run.earlier, run):
        for key, status in _of_loop(one).items():
            found[key] = min(found.get(key, status), status, key=_ORDER.index)
    if run.records_per_user is not None:
        found["records-per-person"] = Status.DECLARED
    return found


def _of_start(run: PublicWatchedRun) -> Status:
    if run.start is None or Fault.STEPS_BEFORE in run.faults:
        return Status.ASSUMED
    return _STATUS[run.start.source]


def _of_loop(run: PublicWatchedRun) -> dict[str, Status]:
    found = {"clipped": _STATUS[run.clipping.source]}
    if Fault.MIXES_RECORDS in run.faults or Fault.PERMUTED_INPUT in run.faults:
        found["clipped"] = Status.ASSUMED
    draws = _DRAWS.get(run.sampler.drawn)
    if draws is not None:
        found[draws] = Status.ASSUMED if Fault.OTHER_BATCHES in run.faults else _STATUS[run.sampler.source]
    if run.randomness.startswith("secure"):
        found["unpredictable-noise"] = Status.CHECKED
    return found
