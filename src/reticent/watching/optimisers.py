"""What a private optimizer of Opacus really does: the norm to which it clips, its noise, its divisor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, Literal

import torch

from reticent.facts.steps import Generator

Kind = Literal["flat", "per-layer", "adaptive", "automatic", "unknown"]


@dataclass(slots=True)
class Release:
    """One noisy update as the optimizer made it.

    Attributes:
        noise_multiplier: noise standard deviation over the norm to which each record's gradient was brought.
        differ: the noise was scaled to another norm than that of clipping.
        divisor: what the noisy sum was divided by.
    """

    noise_multiplier: float
    differ: bool
    divisor: float


@cache
def of_opacus(module: str, *names: str) -> tuple[Any, ...]:
    """Classes of Opacus; none where it is not installed."""
    try:
        found = import_module(f"opacus.{module}")
    except ImportError:
        return ()
    return tuple(getattr(found, name) for name in names)


def is_private(optimizer: Any) -> bool:
    """Whether this is an optimizer of Opacus."""
    return isinstance(optimizer, of_opacus("optimizers", "DPOptimizer"))


_KINDS: dict[str, Kind] = {
    "AdaClipDPOptimizer": "adaptive",
    "SimpleDistributedPerLayerOptimizer": "per-layer",  # of several processes the first adds the noise of all
    "DPPerLayerOptimizer": "per-layer",
    "DistributedDPOptimizerFastGradientClipping": "flat",
    "DPOptimizerFastGradientClipping": "flat",
    "DistributedDPOptimizer": "flat",
    "DPOptimizer": "flat",
}
"""How the optimizers of Opacus clip; a class comes before those that it is made from."""


def clipping_of(optimizer: Any) -> Kind:
    """How an optimizer of Opacus clips; unknown where its way of clipping was overridden."""
    own = type(optimizer)
    for known, kind in zip(of_opacus("optimizers", *_KINDS), _KINDS.values(), strict=True):
        if isinstance(optimizer, known):
            same = all(getattr(own, name, None) is getattr(known, name, None) for name in _CLIPS)
            return kind if same and not _overridden(optimizer, _CLIPS) else "unknown"
    return "unknown"


_CLIPS = ("clip_and_accumulate", "accumulate", "pre_step", "params", "grad_samples", "_get_flat_grad_sample")
"""What decides what is summed up."""
_NOISES = ("add_noise", "scale_grad", "reduce_gradients", "params", "accumulated_iterations")
"""What decides what becomes of the sum."""


def noise_is_overridden(optimizer: Any) -> bool:
    """Whether code of the program decides what becomes of Opacus's noise, or of a number that it is made from."""
    return _overridden(optimizer, _NOISES)


def method_of(optimizer: Any, name: str) -> Any:
    """What the program calls by this name: on this object or in its class, without what a watch put around it."""
    method = vars(optimizer).get(name)
    while hasattr(method, "reticent_watches"):
        method = method.reticent_watches
    return getattr(type(optimizer), name, None) if method is None else method


def by_opacus(method: Any) -> bool:
    """Whether a function or property is Opacus's own, wherever it is found; ``secure_noise`` may be around it."""
    method = getattr(method, "fget", method)
    while hasattr(method, "reticent_noise"):
        method = method.reticent_noise
    return str(getattr(method, "__globals__", {}).get("__name__")).startswith("opacus.")


def _overridden(optimizer: Any, names: tuple[str, ...]) -> bool:
    methods = [method_of(optimizer, name) for name in names]
    return not all(method is None or by_opacus(method) for method in methods)


def is_ghost(optimizer: Any) -> bool:
    """Whether clipping happens in the backward pass, without gradients of single records."""
    return isinstance(optimizer, of_opacus("optimizers", "DPOptimizerFastGradientClipping"))


def clip_norm(optimizer: Any, model: Any, ghost: bool) -> float:
    """The L2 norm over all parameters to which this optimizer brings each record's gradient now."""
    if hasattr(optimizer, "max_grad_norms"):
        return math.sqrt(sum(float(norm) ** 2 for norm in optimizer.max_grad_norms))
    owner = model if ghost and hasattr(model, "max_grad_norm") else optimizer
    return float(owner.max_grad_norm)


def release_of(optimizer: Any, clipped_to: float, size: int | None, batches: int) -> Release:
    """What the optimizer just released.

    Args:
        optimizer: of Opacus, after it added noise.
        clipped_to: largest norm to which gradients of this step were clipped.
        size: realised number of records.
        batches: whose gradients of records were clipped last, together.
    """
    scale, noise = float(optimizer.max_grad_norm), _noise(optimizer, size)
    same = scale == clipped_to or math.isclose(scale, clipped_to, rel_tol=1e-6)
    divisor = 1.0
    if optimizer.loss_reduction == "mean":
        added = optimizer.accumulated_iterations if is_ghost(optimizer) else batches  # asks all parameters
        divisor = float(optimizer.expected_batch_size) * added
    return Release(noise if same else noise * scale / clipped_to, not same, divisor)


def first_of(optimizer: Any) -> Any:
    """A parameter that this optimizer moves; the first where it moves none."""
    own = [p for group in optimizer.param_groups for p in group["params"]]
    return next((p for p in own if p.requires_grad), own[0])


def waiting(p: Any, ghost: bool) -> tuple[int | None, int, int]:
    """(records, batches, empty batches) whose gradients wait to be clipped, seen at one parameter; None if unknown."""
    grads = getattr(p, "_norm_sample" if ghost else "grad_sample", None)
    if grads is None:
        return None, 1, 0
    if type(grads) is list:
        sizes = list(map(len, grads))
        return sum(sizes), len(sizes), sizes.count(0)
    size = grads.size(0)
    return size, 1, not size


def is_pending(optimizer: Any) -> bool:
    """Whether clipped gradients of earlier batches wait to be released with those of the next step."""
    if not adds_noise(optimizer):  # what has no noise is not marked as released
        return bool(optimizer._is_last_step_skipped)
    sums = [getattr(p, "summed_grad", None) for group in optimizer.param_groups for p in group["params"]]
    return any(found is not None and not hasattr(found, "_processed") for found in sums)


def count_clipped(optimizer: Any, clipped_to: float) -> int | None:
    """Records whose gradient norm exceeds the clip norm, of those that wait to be clipped; None if unknown."""
    if hasattr(optimizer, "max_grad_norms"):
        return None  # each layer has a norm of its own
    with torch.no_grad():
        if is_ghost(optimizer):
            norms = [p._norm_sample for p in optimizer.params if getattr(p, "_norm_sample", None) is not None]
        else:
            norms = [g.reshape(len(g), -1).norm(2, dim=-1) for g in optimizer.grad_samples if len(g)]
        if not norms:
            return 0
        whole = torch.stack([norm.to(norms[0].device) for norm in norms], dim=1).norm(2, dim=1)
        return int((whole > clipped_to).sum())


def randomness_of(optimizer: Any) -> Generator:
    """Where the noise comes from."""
    secure_mode = getattr(optimizer, "secure_mode", False) and optimizer.generator is not None
    if secure_mode or is_secured(optimizer):
        return Generator.SECURE
    return Generator.DEFAULT if optimizer.generator is None else Generator.OF_PROGRAM


def processes() -> int:
    """How many processes train together, as torch knows it."""
    import torch.distributed as distributed

    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def adds_up(optimizer: Any) -> bool:
    """Whether each step is made of the gradients of several processes."""
    return hasattr(optimizer, "reduce_gradients") and processes() > 1


def adds_noise(optimizer: Any) -> bool:
    """Whether this process adds the noise: of several the first does, for all."""
    return not (hasattr(optimizer, "reduce_gradients") and optimizer.rank)


def is_secured(optimizer: Any) -> bool:
    """Whether its noise comes from ``secure_noise``."""
    return hasattr(method_of(optimizer, "add_noise"), "reticent_noise")


@cache
def before_1_6() -> bool:
    """Whether an Opacus is installed that states, under adaptive clipping, the noise of the gradients alone."""
    return tuple(map(int, version("opacus").split(".")[:2])) < (1, 6)


def _noise(optimizer: Any, size: int | None) -> float:
    """Noise multiplier of gradient and count together.

    Adaptive ghost clipping sets its own noise for gradients and releases the number of unclipped records with noise
    ``size / 20`` for it (ANDREW2021, Theorem 1).
    """
    adjusted, nominal = vars(optimizer).get("_adjusted_noise_multiplier"), float(optimizer.noise_multiplier)
    if not adjusted and nominal and hasattr(optimizer, "unclipped_num_std") and before_1_6():
        return float(nominal**-2 + (2.0 * optimizer.unclipped_num_std) ** -2) ** -0.5  # it states that of gradients
    if not adjusted:
        return nominal
    if not size:
        return 0.0
    together = float(float(adjusted) ** -2 + (size / 10.0) ** -2) ** -0.5
    return min(together, nominal) if math.isclose(together, nominal, rel_tol=1e-9) else together
