"""A sampler by its name, as ledgers and configurations have it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from reticent.kernel.samplers import SAMPLERS, Sampler
from reticent.kernel.samplers.base import needed
from reticent.kernel.text import one_of, stated


def called(given: Any) -> Sampler:
    """The sampler with this name; or one, without the batches of its passes.

    Raises:
        ValueError: there is none that needs no setting of its own.
    """
    if isinstance(given, Sampler):
        plain = given.in_batches(None)
        if stated(plain):
            raise ValueError(f"must be a sampler without settings of its own, and is {given!r}")
        return plain
    named = [name for name, kind in SAMPLERS.items() if not needed(kind)]
    if given not in named:
        raise ValueError(f"must be {one_of(given, named)}")
    return SAMPLERS[given]()


Named = Annotated[Sampler, PlainValidator(called), PlainSerializer(lambda sampler: sampler.name, return_type=str)]
