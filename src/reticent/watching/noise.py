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

from reticent.watching import optimisers
from reticent.watching.secure_noise import Generating, generate

_GRAD, _VERSION = attrgetter("grad"), attrgetter("_version")
_ONE_IN = 1e-12
"""How rarely noise that is right is taken for too little."""


class NoisyGradients:
    """Follows the gradients of one private optimizer from the noise to the step."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._sharded = hasattr(optimizer, "world_size") and not hasattr(optimizer, "reduce_gradients")
        self.elsewhere = self._sharded or getattr(optimizer, "rank", 0) != 0
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
        if deviation == 0.0 or self.elsewhere:
            return True
        with torch.no_grad():
            gaps = [p.grad - p.summed_grad.view_as(p) for p in self._optimizer.params if p.grad is not None]
            exact = [gap if gap.element_size() > 2 else gap.float() for gap in gaps]
            length = sum((float(norm) / deviation) ** 2 for norm in torch._foreach_norm(exact)) if exact else 0.0
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


class DrawnNoise:
    """The noise of one step that code of the program adds: whether it is what Opacus's own function drew meanwhile."""

    def __init__(self, optimizer: Any, elsewhere: bool) -> None:
        """Look from now on; ``elsewhere``: another process adds the noise."""
        self._elsewhere = elsewhere
        trained = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        self._sums = [(p, p.summed_grad, getattr(p.summed_grad, "_version", None)) for p in trained]
        self._drawn: list[tuple[Any, float, torch.Tensor]] = []
        self._noisy: list[torch.Tensor] = []
        self._generating = Generating(type(optimizer), self._told)
        self._generating.__enter__()

    def leave(self) -> None:
        """Look no more."""
        self._generating.__exit__()

    def added(self, deviation: float) -> bool:
        """Whether each gradient is its sum and one draw with this standard deviation, or a larger one."""
        self.leave()
        self._noisy = [p.grad.detach().clone() for p, _, _ in self._sums]
        return all(self._is_noisy(p, total, version, deviation) for p, total, version in self._sums)

    def _is_noisy(self, p: Any, total: torch.Tensor | None, version: int | None, deviation: float) -> bool:
        drawn = [(std, noise) for reference, std, noise in self._drawn if reference is total]
        if total is None or p.summed_grad is not total or total._version != version:
            return False
        enough = all(std >= deviation * (1.0 - 1e-9) for std, _ in drawn) and len(drawn) == (not self._elsewhere)
        return enough and _equal(p.grad, sum((noise for _, noise in drawn), start=total).view_as(p))

    def divisor(self) -> float | None:
        """The one number by which all noisy gradients were divided since; None where they were changed otherwise."""
        pairs = [(n.double(), p.grad.double()) for n, (p, _, _) in zip(self._noisy, self._sums, strict=True)]
        factor = sum(float((n * g).sum()) for n, g in pairs) / (sum(float((n * n).sum()) for n, _ in pairs) or 1.0)
        of = [torch.finfo(n.dtype) for n in self._noisy]
        same = all(torch.allclose(g, factor * n, 4.0 * f.eps, f.tiny) for (n, g), f in zip(pairs, of, strict=True))
        return float(f"{1.0 / factor:.6g}") if same and factor > 0.0 else None

    def _told(self, own: Any) -> Any:
        """``own``, and what it draws is written down, unless somebody put it or torch's in the place of another."""
        known = own is generate or (optimisers.by_opacus(own) and not optimisers.torch_is_replaced())

        def draw(std: float, reference: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
            noise: torch.Tensor = own(std, reference, *args, **kwargs)
            if known:
                self._drawn.append((reference, float(std), noise))
            return noise

        draw.around = self._told  # type: ignore[attr-defined]
        return draw


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
