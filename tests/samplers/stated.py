"""Samplers with what they need, for tests of all of them."""

from __future__ import annotations

from reticent.registry import parameters_of
from reticent.samplers import SAMPLERS, Sampler

STATED = {"draws_per_step": 2, "max_batch_size": 4, "batches_per_epoch": 5, "uses_per_epoch": 2}


def needed(kind: type[Sampler]) -> dict[str, int]:
    """The fields without which there is none."""
    return {p.name: STATED[p.name] for p in parameters_of(kind) if p.required}


BY_NAME = [kind for kind in SAMPLERS.values() if not needed(kind)]
"""Those of which a name says all."""
