"""Which fault explains the tests that failed? A guess for people; it decides nothing.

Each row says which tests a fault is expected to fail. The row that explains most of what failed, and expects least that
did not, comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from reticent.attacks.participation import Check
from reticent.attacks.replay import NAMES as _REPLAYS

_BESIDE = ("noise beside large gradients", "noise around spread gradients", "noise beside small gradients")
_CLIPPING = ("canary effect", "spread gradients", "sampling rate", "batch sizes", "canaries against the curve")
_SIZE = ("noise scale", "noise shape", "noise tails", "noise of each step", "noise of each layer", *_BESIDE)

FAULTS: dict[str, tuple[str, ...]] = {
    "gradients are not clipped, or not each record by itself": (*_CLIPPING, *_REPLAYS[:2], "a record counts once"),
    "a part of the gradient is left out of the clipping": ("canary effect", "spread gradients", *_REPLAYS[:2]),
    "each part of a gradient is clipped by itself": ("spread gradients",),
    "a record counts more than once: views, micro-batches or the divisor": (
        "a record counts once",
        "sampling rate",
        "batch sizes",
        "spread gradients",
        "canary effect",
        "replay: fewer records",
    ),
    "the noise is smaller or larger than claimed": _SIZE,
    "the noise of some steps or layers is wrong": ("noise of each step", "noise of each layer", "noise shape"),
    "the noise is cut off, or not normal": ("noise shape", "noise tails"),
    "the noise depends on the records": (*_BESIDE, *_REPLAYS[:4]),
    "the clip norm depends on the batch": ("replay: fewer records", "replay: few and short gradients"),
    "noise is drawn for some coordinates only": (*_BESIDE, "replay: fewer records", "replay: small gradients"),
    "the same noise is used again": ("noise across steps", "noise across coordinates", "noise of each layer"),
    "every run draws the same numbers: a fixed seed": (
        "noise across runs",
        "same batch in every run",
        "first batch",
        "rate of each record",
        "pairs of records",
    ),
    "noise and batches come from one seed": ("noise and batches",),
    "batches are drawn at another rate": ("sampling rate", "rate of each record", "once per epoch", "large batches"),
    "batches are shuffled or of a fixed size, not drawn by independent coins": (
        "batch sizes",
        "once per epoch",
        "gaps",
        "large batches",
        "large noisy batches",
    ),
    "large batches are cut": ("large batches", "large noisy batches", "batch sizes"),
    "a record is put into batches without a coin": ("first batch", "same batch in every run", "rate of each record"),
    "gradients of earlier steps come back before the noise": (
        *_CLIPPING,
        "a record counts once",
        "rate of each record",
        "gaps",
        "once per epoch",
        "pairs of records",
    ),
    "weights move by something that was not released": ("weights between steps", "replay: longer gradients"),
    "the loss or the labels decide how far a step goes": ("replay: other labels", "replay: longer gradients"),
}


def likely_fault(checks: Sequence[Check], failed: Sequence[Check]) -> str | None:
    """The fault that fits the failed tests best; None if none failed.

    Args:
        checks: all tests.
        failed: those that failed.
    """
    if not failed:
        return None
    names, tested = {c.name for c in failed}, {c.name for c in checks if not c.finding.startswith("not tested")}

    def fit(expected: tuple[str, ...]) -> float:
        wanted = tested.intersection(expected)
        return len(names & wanted) / max(1, len(names | wanted))

    return max(FAULTS, key=lambda fault: fit(FAULTS[fault]))
