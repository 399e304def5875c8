"""How gradients of records are clipped, and what keeps clipping from bounding what one record moves."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reticent.facts.base import Fact, Severity, Word
from reticent.facts.draws import VOUCHED
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """Our loop clips by itself. A layer or a loss that mixes records later than in the first step, nobody sees."""
    if run.clipping.source not in VOUCHED or NOT_LOOKED_AT.key in run.facts:
        return {}
    return {"clipped": Status.DECLARED if run.config is None else Status.CHECKED}


def _changed(run: RunLedger) -> bool:
    return run.clipping.smallest != run.clipping.largest


class Mixing(StrEnum):
    """Where records were mixed, as far as anybody saw."""

    BATCH = "batch"
    PADDING = "padding"
    MODEL = "model"
    MEAN = "mean"
    """The loss divides by what all records add up to."""
    PAIRS = "pairs"
    LOSS = "loss"
    PASSES = "passes"
    """Two forward passes waited for their backward pass."""
    CLIPPING = "clipping"


Layers = Annotated[tuple[Word, ...], Field(min_length=1)]
"""Names of the layers that mix records, or where else records were mixed."""

MIXES_RECORDS = Fact("mixes-records", stated=Layers)
PERMUTED_INPUT = Fact("permuted-convolution")
UNKNOWN_CLIPPING = Fact("unknown-clipping", shown=lambda run: run.clipping.kind == "unknown", vouches=_vouches)
UNCLIPPED = Fact("trained-without-clipping")
NOT_LOOKED_AT = Fact("mixing-not-looked-at", Severity.WARNING)
MADE_ROWS = Fact("rows-without-records", Severity.WARNING)
PERMUTED_GRADIENTS = Fact("wrong-gradients", Severity.WARNING)
CLIP_AND_NOISE_DIFFER = Fact("clip-and-noise-differ", Severity.WARNING)
ADAPTIVE_COUNT = Fact("adaptive-clipping-counts-records", Severity.WARNING, lambda run: run.clipping.kind == "adaptive")
CHANGED_CLIP_NORM = Fact("changed-clip-norm", Severity.NOTE, _changed)
