"""Whether the noise that an optimizer states was added, and is what moved the weights.

Each step: the noisy gradients were not replaced by others, by torch's count of writes. In the first steps and in each
that is measured: what is released is the sum and noise that torch drew, as much as is stated, and no value was changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter, is_
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from reticent import facts
from reticent.facts import Fact
from reticent.watching.secure_noise import NORMAL, drawn

_GRAD, _VERSION = attrgetter("grad"), attrgetter("_version")


class NoisyGradients:
    """Follows the gradients of one private optimizer from the noise to the step."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self.sharded = hasattr(optimizer, "world_size") and not hasattr(optimizer, "reduce_gradients")
        """Whether each of several processes has a part of the weights, and of the noise."""
        self._kept: list[Any] = []
        self._grads: list[torch.Tensor] = []
        self._versions: list[int] = []
        self._values: list[torch.Tensor] = []
        self.released: Callable[[list[Any]], None] | None = None
        """Called with the parameters whose gradients got noise."""

    def keep(self, values: bool) -> None:
        """Take the gradients as they are now for those that are released.

        Args:
            values: compare them one by one before the step, as well as the counts of writes.
        """
        kept: list[Any] = []
        grads: list[torch.Tensor] = []
        for p in self._params():
            if p.requires_grad and (grad := p.grad) is not None:
                kept.append(p)
                grads.append(grad)
        self._kept, self._grads, self._versions = kept, grads, list(map(_VERSION, grads))
        self._values = [grad.detach().clone() for grad in grads] if values else []
        if self.released is not None:
            self.released(kept)

    def changed(self) -> bool:
        """Whether the optimizer, which is about to step, finds others there now, or one that got no noise."""
        kept, grads, versions, values = self._kept, self._grads, self._versions, self._values
        self._kept, self._grads, self._versions, self._values = [], [], [], []
        if self.sharded:
            return False
        now = self._params()
        same = len(now) == len(kept) and all(map(is_, now, kept))
        if not same and _bare(now, kept):
            return True
        if not all(map(is_, map(_GRAD, kept), grads)) or list(map(_VERSION, grads)) != versions:
            return True
        return bool(values) and not all(map(_equal, grads, values))

    def _params(self) -> list[Any]:
        return [p for group in self._optimizer.param_groups for p in group["params"]]


class DrawnNoise(TorchFunctionMode):
    """The noise of one step: whether it is what torch or ``secure_noise`` drew while noise was added.

    It is entered meanwhile.
    """

    def __init__(self, optimizer: Any, deviation: float) -> None:
        """Prepare; ``deviation``: of the noise that the optimizer states. The first of several processes adds it."""
        super().__init__()
        self._secure_mode = getattr(optimizer, "secure_mode", False)
        self._generator, self._deviation = optimizer.generator, 0.0 if getattr(optimizer, "rank", 0) else deviation
        trained = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        self._sums = [(p, p.summed_grad, getattr(p.summed_grad, "_version", None)) for p in trained]
        self._drawn: list[tuple[float, torch.Tensor]] = []
        self._noisy: list[torch.Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        found = function(*args, **given)
        if function is drawn or (function is NORMAL and given.get("generator") is self._generator):
            self._drawn.append((_least(given.get("std", args[1] if len(args) > 1 else 1.0)), found))
        return found

    def look(self, found: Callable[[Fact], None]) -> None:
        """Noise was added: each gradient must be its sum and one draw with this standard deviation, or a larger one."""
        self._noisy = [p.grad.detach().clone() for p, _, _ in self._sums]
        if self._secure_mode:  # Opacus draws one number that it throws away, and half the sum of four tensors is noise
            parts = [self._drawn[first + 1 : first + 5] for first in range(0, len(self._drawn), 5)]
            self._drawn = [(part[0][0], sum((noise for _, noise in part[1:]), start=part[0][1]) / 2) for part in parts]
        for one in self._sums:
            deviation = self._noise_of(*one)
            if deviation is None:
                found(facts.UNKNOWN_NOISE)
            elif not deviation >= self._deviation * (1.0 - 1e-9):
                found(facts.TOO_LITTLE_NOISE)

    def _noise_of(self, p: Any, total: torch.Tensor | None, version: int | None) -> float | None:
        """The standard deviation of the noise of one gradient; None where it is no noise that was drawn."""
        if total is None or p.summed_grad is not total or total._version != version:
            return None
        for place, (std, noise) in enumerate(self._drawn):
            if noise.shape == total.shape and _equal(p.grad, (total + noise).view_as(p)):
                del self._drawn[place]  # it hides one gradient
                return std
        return 0.0 if _equal(p.grad, total.view_as(p)) else None

    def divisor(self) -> float | None:
        """The one number by which all noisy gradients were divided since; None where they were changed otherwise."""
        pairs = [(n.double(), p.grad.double()) for n, (p, _, _) in zip(self._noisy, self._sums, strict=True)]
        factor = sum(float((n * g).sum()) for n, g in pairs) / (sum(float((n * n).sum()) for n, _ in pairs) or 1.0)
        of = [torch.finfo(n.dtype) for n in self._noisy]
        same = all(torch.allclose(g, factor * n, 4.0 * f.eps, f.tiny) for (n, g), f in zip(pairs, of, strict=True))
        return float(f"{1.0 / factor:.6g}") if same and factor > 0.0 else None


def _least(deviation: Any) -> float:
    """Of numbers, or of tensors, whose numbers were rounded when they were made."""
    if not isinstance(deviation, torch.Tensor):
        return float(deviation)
    return float(deviation.min()) * (1.0 + torch.finfo(deviation.dtype).eps) if deviation.numel() else math.inf


def _bare(now: list[Any], kept: list[Any]) -> bool:
    """Whether a parameter is moved by a gradient that is none of those that were released.

    Of a parameter that was frozen during the run zeros may be left.
    """
    known = set(map(id, kept))
    others = [p.grad for p in now if id(p) not in known]
    return any(grad is not None and (grad.is_sparse or bool(grad.any())) for grad in others)


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())
