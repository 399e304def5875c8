"""Which fault explains the tests that failed? A guess for people; it decides nothing.

Each row says which tests a fault is expected to fail. The row that explains most of what failed, and expects least that
did not, comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from reticent.attacks.participation import Check
from reticent.attacks.replay import NAMES as _REPLAYS
from reticent.attacks.short_gradients import NAME as _SHORT

_LONGER, _FEWER, _FEW_SHORT, _SMALL, _LABELS = _REPLAYS
_BESIDE = ("noise beside large gradients", "noise beside small gradients")
_MASKS = ("rate of each record", "gaps", "pairs of records", "once per epoch", "large batches")
_COUNTS = ("large noisy batches", "a record counts once")
_SIZE = ("noise scale", "noise shape", "noise tails", "noise of each step", "noise of each layer", *_BESIDE)

FAULTS: dict[str, tuple[str, ...]] = {
    "gradients are not clipped": (*_COUNTS, "spread gradients", "sampling rate", "noise and batches", _LONGER, _FEWER),
    "clipping looks at a batch, not at each record": (*_COUNTS, *_MASKS, "noise and batches", _LONGER, _FEWER),
    "a part of the gradient is left out of the clipping": ("spread gradients", _LONGER, _FEWER),
    "each part of a gradient is clipped by itself": ("spread gradients",),
    "a record counts more than once: views, micro-batches or the divisor": (
        *_COUNTS,
        "spread gradients",
        "sampling rate",
        "noise and batches",
        _FEWER,
    ),
    "what a record counts depends on the others in its batch": (_LONGER, _FEWER, _FEW_SHORT, _SHORT),
    "the loss is divided by the batch's size, items or class weights before clipping": (_SHORT,),
    "gradients of other lengths count otherwise: a norm that overflows": (*_MASKS, _LONGER),
    "gradients of earlier steps come back before the noise": (
        *_COUNTS,
        *_MASKS,
        "spread gradients",
        "sampling rate",
        "same batch in every run",
        _FEWER,
    ),
    "the noise is smaller or larger than claimed": (*_SIZE, "noise and batches"),
    "the noise of some steps or layers is wrong": ("noise of each step", "noise of each layer", *_BESIDE),
    "the noise is cut off, or not normal": ("noise shape", "noise tails"),
    "the noise depends on the records": (*_BESIDE, "noise tails", _LONGER, _SMALL),
    "the noise shrinks where gradients are small": (
        "noise beside small gradients",
        "noise tails",
        _FEW_SHORT,
        _SMALL,
    ),
    "noise is drawn for some coordinates only": (*_BESIDE, "noise tails", _FEWER, _SMALL),
    "the same noise is used again": (
        "noise across steps",
        "noise across coordinates",
        "noise shape",
        "noise of each layer",
    ),
    "every run draws the same numbers: a fixed seed": (
        "noise across runs",
        "same batch in every run",
        "rate of each record",
        "gaps",
        "pairs of records",
    ),
    "noise and batches come from one seed": ("noise and batches",),
    "batches are drawn at another rate": (*_MASKS, "spread gradients", "sampling rate", "large noisy batches"),
    "batches are shuffled, not drawn by independent coins": (
        "gaps",
        "once per epoch",
        "large batches",
        "large noisy batches",
    ),
    "records are drawn together or by turns": (
        "pairs of records",
        "gaps",
        "once per epoch",
        "large batches",
        "large noisy batches",
    ),
    "batches are cut or passed over by their size, or all have one size": ("large batches", "large noisy batches"),
    "a record may be drawn twice into one batch": ("a record counts once", "noise and batches", _FEWER),
    "a record is put into batches without a coin": ("same batch in every run",),
    "weights move by something that was not released": ("weights between steps", _LONGER),
    "a step uses another gradient than the noisy one, or a private loss chooses the weights": (_LONGER,),
    "the loss or the labels decide how far a step goes": (_LABELS, _LONGER),
}
_WEIGHT = {name: 1.0 / sum(name in row for row in FAULTS.values()) for row in FAULTS.values() for name in row}


def likely_fault(checks: Sequence[Check], failed: Sequence[Check]) -> str | None:
    """The fault that fits the failed tests best; None if none failed.

    Fit is the weight of the tests in common over the weight of all. A test that few faults fail weighs more.
    """
    if not failed:
        return None
    names, tested = {c.name for c in failed}, {c.name for c in checks if not c.finding.startswith("not tested")}

    def weight(some: set[str]) -> float:
        return sum(_WEIGHT.get(name, 1.0) for name in some)

    def fit(expected: tuple[str, ...]) -> float:
        wanted = tested.intersection(expected)
        return weight(names & wanted) / max(1e-9, weight(names | wanted))

    return max(FAULTS, key=lambda fault: fit(FAULTS[fault]))
