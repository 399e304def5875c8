"""Whether the noise that an optimizer states was added, and is what moved the weights.

Each step: the noisy gradients were not replaced by others, by torch's count of writes. In the first step and in
each that is measured: as much noise as is stated lies between the sum and what is released, and no value was changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter, is_
from typing import Any

import torch
from scipy.special import chdtri

_GRAD, _VERSION = attrgetter("grad"), attrgetter("_version")
_ONE_IN = 1e-12
"""How rarely noise that is right is taken for too little."""


class NoisyGradients:
    """Follows the gradients of one private optimizer from the noise to the step."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._sharded = hasattr(optimizer, "world_size") and not hasattr(optimizer, "reduce_gradients")
        self._elsewhere = self._sharded or getattr(optimizer, "rank", 0) != 0
        """Whether the noise lies elsewhere: the first of several processes adds it."""
        self._kept: list[Any] = []
        self._grads: list[torch.Tensor] = []
        self._versions: list[int] = []
        self._values: list[torch.Tensor] = []
        self.released: Callable[[list[Any]], None] | None = None
        """Called with the parameters whose gradients got noise."""
        self._length, self._count = 0.0, 0

    def enough(self, deviation: float) -> bool:
        """Whether noise of this standard deviation was just added, as far as its length can tell."""
        if deviation == 0.0 or self._elsewhere:
            return True
        with torch.no_grad():
            gaps = [p.grad - p.summed_grad.view_as(p) for p in self._optimizer.params if p.grad is not None]
            exact = [gap if gap.element_size() > 2 else gap.float() for gap in gaps]
            length = sum(float(norm) ** 2 for norm in torch._foreach_norm(exact)) / deviation**2 if exact else 0.0
        count = sum(gap.numel() for gap in gaps)
        self._length, self._count = self._length + length, self._count + count
        return length >= _least(count) and self._length >= _least(self._count)

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
        if self._sharded:
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


def _bare(now: list[Any], kept: list[Any]) -> bool:
    """Whether a parameter is moved by a gradient that is none of those that were released.

    Of a parameter that was frozen during the run zeros may be left.
    """
    known = set(map(id, kept))
    others = [p.grad for p in now if id(p) not in known]
    return any(grad is not None and (grad.is_sparse or bool(grad.any())) for grad in others)


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())


def _least(count: int) -> float:
    """What the squares of so many standard normal numbers exceed together, but for one case in 10^12."""
    if count < 10_000:
        return float(chdtri(count, 1.0 - _ONE_IN)) * (1.0 - 1e-3)
    return count - 8.0 * math.sqrt(2.0 * count) - 1e-3 * count
