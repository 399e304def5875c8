"""A sampler by its name, or by its name and settings, as ledgers and configurations have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from reticent.kernel.registry import parameters_of
from reticent.kernel.samplers import SAMPLERS, Sampler
from reticent.kernel.samplers.base import needed
from reticent.kernel.text import one_of, stated


def called(given: Any) -> Sampler:
    """The sampler with this name, with these settings and their ``name``; or one, without the batches of its passes.

    Raises:
        ValueError: there is none, or a ledger could not tell its settings.
    """
    if not isinstance(given, Sampler):
        own = dict(given) if isinstance(given, Mapping) else {"name": given}
        name, named = own.pop("name", None), [name for name, kind in SAMPLERS.items() if not needed(kind)]
        if name not in named:
            raise ValueError(f"must be {one_of(name, named)}")
        other = own.keys() - {p.name for p in parameters_of(SAMPLERS[name])}
        if other:
            raise ValueError(f"has no setting {min(other)}")
        given = SAMPLERS[name](**own)
    plain: Sampler = given.in_batches(None)
    alone = not needed(type(plain)) and type(plain).of_uses(plain.uses) == plain
    if stated(plain) and not alone:
        raise ValueError(f"must be a sampler without settings of its own, or with uses_per_epoch, and is {given!r}")
    return plain


def _told(sampler: Sampler) -> str | dict[str, Any]:
    own = stated(sampler)
    return {"name": sampler.name, **own} if own else sampler.name


Named = Annotated[Sampler, PlainValidator(called), PlainSerializer(_told)]
