"""What a program declares to ``watch``, compared with what is seen."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from reticent.facts.steps import Drawn, SamplerRecord, Source
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.text import one_of
from reticent.watching import models, optimisers

_DECLARED = "poisson, fixed-size or shuffled, or left out: other draws are seen, as those of rt.random_allocation are"
_CLIPPINGS = ("flat", "per-layer", "adaptive", "automatic")


def innermost(optimizer: Any) -> Any:
    """The optimizer inside wrappers of other libraries, such as that of accelerate."""
    while hasattr(optimizer, "optimizer") and not optimisers.is_private(optimizer):
        optimizer = optimizer.optimizer
    return optimizer


def check_together(model: Any, optimizer: Any) -> None:
    """Refuse an optimizer that cannot be the one that moves this model.

    Raises:
        ParameterError: it is none, has no parameter of the model, or is not the private one.
        UnsupportedError: each of several processes has a part of the weights.
    """
    bare = models.bare(model)
    if not isinstance(bare, nn.Module):
        raise ParameterError("model", type(model).__name__, "a torch module, bare or wrapped by Opacus")
    kind = type(optimizer).__name__
    wrapped = any(hasattr(p, "summed_grad") for p in bare.parameters())
    if wrapped and not optimisers.is_private(optimizer):
        raise ParameterError("optimizer", kind, "the private one that make_private returned for this model")
    if hasattr(optimizer, "world_size") and not hasattr(optimizer, "reduce_gradients"):
        raise UnsupportedError(
            f"{kind} is not watched: each process has a part of the weights (FSDP); of several processes give it a "
            "model in DifferentiallyPrivateDistributedDataParallel"
        )
    if optimizer is None:
        return
    if not hasattr(optimizer, "param_groups"):
        raise ParameterError("optimizer", kind, "an optimizer of torch or Opacus")
    own = {id(p) for p in bare.parameters()}
    if own and not any(id(p) in own for group in optimizer.param_groups for p in group["params"]):
        raise ParameterError("optimizer", kind, "the one that has the parameters of this model")


def check_compiled(model: Any) -> None:
    """Refuse a layer that was compiled in place in one graph: a watch looks in between.

    Raises:
        ParameterError: there is one.
    """
    for layer in (model, *models.bare(model).modules()):
        call = getattr(layer, "_compiled_call_impl", None)
        context = inspect.getclosurevars(call).nonlocals.get("self") if inspect.isfunction(call) else None
        if getattr(getattr(context, "callback", None), "_one_graph", False):
            hint = "compiled without fullgraph=True, as a watch looks at what each layer gets"
            raise ParameterError("model", f"{type(layer).__name__}.compile(fullgraph=True)", hint)


def clipping(said: str | None, optimizer: Any) -> tuple[Any, Source]:
    """How the loop clips, and who says so.

    Args:
        said: what the program declares.
        optimizer: Opacus's, or None.

    Raises:
        ParameterError: it is unknown, or contradicts the optimizer.
    """
    if said is not None and said not in _CLIPPINGS:
        raise ParameterError("clipping", said, one_of(said, _CLIPPINGS))
    seen = "unknown" if optimizer is None else optimisers.clipping_of(optimizer)
    if seen != "unknown":
        if said not in (None, seen):
            raise ParameterError("clipping", said, f"what the optimizer does, {seen}, or left out")
        return seen, Source.SEEN
    if said is not None:
        return said, Source.DECLARED
    # A loop of one's own declares its clipping with the noise multiplier: noise over the norm of clipping.
    return ("flat", Source.DECLARED) if optimizer is None else ("unknown", Source.UNKNOWN)


def sampler(said: str | None, seen: SamplerRecord) -> Drawn | None:
    """How the program says that records are drawn.

    Raises:
        ParameterError: it is unknown, or contradicts the loader.
    """
    if said is None:
        return None
    if said not in (Drawn.POISSON, Drawn.SHUFFLED, Drawn.FIXED_SIZE):
        raise ParameterError("sampler", said, _DECLARED)
    if seen.drawn not in (Drawn.UNKNOWN, said):
        raise ParameterError("sampler", said, f"what the loader does, {seen.drawn}, or left out")
    return Drawn(said)


def unit_of(said: str, *, private: bool, records_per_user: int | None) -> Unit:
    """The unit that is meant.

    Args:
        said: its name.
        private: whether an optimizer is watched that clips the gradients of records.
        records_per_user: what is stated about persons.

    Raises:
        ParameterError: there is none of this name, or clients contradict what is seen or stated.
    """
    if said not in set(Unit):
        raise ParameterError("unit", said, one_of(said, Unit))
    unit = Unit(said)
    if unit is Unit.CLIENT and private:
        raise ParameterError("unit", said, "record: Opacus's optimizer clips records, and not the updates of clients")
    if unit is Unit.CLIENT and records_per_user is not None:
        hint = "left out with unit client: a client is protected with all its records"
        raise ParameterError("records_per_user", records_per_user, hint, shown=False)
    return unit
