"""A sampler by its name: as ledgers and configurations have it, and what to write where Python wants a sampler."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from reticent.errors import ParameterError
from reticent.samplers import SAMPLERS, Sampler
from reticent.samplers.base import needed
from reticent.text import nearest, one_of, stated


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


def sampler_given(given: object) -> Sampler:
    """What was given for a sampler.

    Raises:
        ParameterError: it is none, such as a name; the message says what to write.
    """
    if isinstance(given, Sampler):
        return given
    meant = nearest(given, SAMPLERS)
    if meant is None:
        raise ParameterError(
            "sampler", given, f"one of {', '.join(f'{kind.__name__}()' for kind in SAMPLERS.values())}"
        )
    kind = SAMPLERS[meant]
    place = kind.__module__.rpartition(".")[0]
    raise ParameterError("sampler", given, f"a sampler of {place}: write sampler={kind.__name__}()")
