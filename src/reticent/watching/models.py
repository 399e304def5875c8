"""What a model is made of: layers that mix records, trained coordinates, device, and a fingerprint of its weights."""

from __future__ import annotations

import gc
import hashlib
import platform
from typing import Any

import torch
from torch import nn

import reticent
from reticent.facts.base import word
from reticent.kernel.lazy import installed
from reticent.watching.optimisers import of_opacus

_OF_PROCESSES = "DifferentiallyPrivateDistributedDataParallel"

_PACKAGES = ("torch", "opacus", "transformers", "peft", "lightning", "accelerate")


def bare(model: Any) -> nn.Module:
    """The module inside the wrappers of Opacus, ``torch.compile`` and several processes, or the module itself."""
    for wrapper in ("_orig_mod", "_module", "_orig_mod"):
        inner = getattr(model, wrapper, None)
        model = inner if isinstance(inner, nn.Module) else model
    of_processes = (nn.parallel.DistributedDataParallel, *of_opacus("distributed", _OF_PROCESSES))
    return model.module if isinstance(model, of_processes) else model


def entrance(model: Any) -> nn.Module:
    """What a loop calls: the bare module, or what is around one that is compiled, whose own hooks are not compiled."""
    return model if hasattr(model, "_orig_mod") else bare(model)


def trained(model: Any) -> list[nn.Parameter]:
    """Parameters that training moves."""
    return [p for p in bare(model).parameters() if p.requires_grad]


def trains(module: nn.Module) -> bool:
    """Whether the module, or a layer in it that has parameters to train, is in training mode.

    A frozen model in evaluation mode may have a head that trains.
    """
    return module.training or any(
        layer.training and any(p.requires_grad for p in layer.parameters(recurse=False)) for layer in module.modules()
    )


def fingerprint(model: Any) -> str:
    """SHA-256 of the bytes that ``safetensors.torch.save(model.state_dict())`` writes for the bare model."""
    from safetensors.torch import save

    tensors = {name: t for name, t in bare(model).state_dict().items() if isinstance(t, torch.Tensor)}
    state = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    return hashlib.sha256(save(state)).hexdigest()


def living(*kinds: type) -> list[Any]:
    """The objects of these kinds that the process holds now: found by their classes, to which each of them refers."""
    heirs = set().union(*map(_heirs, kinds))
    return [one for one in gc.get_referrers(*heirs) if type(one) in heirs] if heirs else []


def _heirs(kind: type) -> set[type]:
    return {kind}.union(*map(_heirs, kind.__subclasses__()))


def device_of(model: Any) -> str:
    """Where the parameters lie, with the name of the accelerator."""
    kinds = sorted({str(p.device) for p in bare(model).parameters()})
    named = [f"{kind} ({torch.cuda.get_device_name(kind)})" if kind.startswith("cuda") else kind for kind in kinds]
    return word(", ".join(named)) or "none"


def versions() -> dict[str, str]:
    """Of Python, reticent and the packages that a training loop may use."""
    packages = {name: found for name in _PACKAGES if (found := installed(name)) is not None}
    return {"python": platform.python_version(), "reticent": reticent.__version__, **packages}
