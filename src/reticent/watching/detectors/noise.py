"""Whether the noise that an optimizer states was added, and is what moved the weights.

Each step: the noisy gradients were not replaced by others, by torch's count of writes. In the first steps and in each
that is measured: what is released is the sum and noise that torch drew, as much as is stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import attrgetter, is_
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from reticent import facts
from reticent.facts import Fact
from reticent.watching import optimisers
from reticent.watching.detectors.base import Detector, Loop, Step, Undos
from reticent.watching.events import around
from reticent.watching.secure_noise import NORMAL, drawn

_GRAD, _VERSION = attrgetter("grad"), attrgetter("_version")


class NoisyGradients(Detector):
    """Gradients that move the weights and are not the noisy ones.

    Kind: noise.

    Seen: that nobody writes to the noisy gradients, and that the optimizer steps with them and with no others.

    Not seen: what is written to them by ``.data``; an optimizer of the program's own, inside Opacus's, that reads other
    gradients than the noisy ones, such as ``grad_sample``, and leaves ``.grad`` as it is.

    Attributes:
        kept: parameters whose noisy gradients are released.
    """

    of_opacus = True

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._armed = self._close = False
        """Whether noise was added for the step that comes; whether gradients are compared before they are divided."""
        self.kept: list[Any] = []
        self._grads: list[torch.Tensor] = []
        self._versions: list[int] = []

    def attach(self) -> Undos:
        """Several processes add their gradients up between the noise and the step."""
        if hasattr(self._optimizer, "reduce_gradients"):
            yield around(self._optimizer, "reduce_gradients", self.guarded(self.on_step), self.guarded(self._keep))

    def on_noise(self, step: Step) -> None:
        """How closely the step is looked at."""
        self._close = step.close or step.measured

    def after_noise(self) -> None:
        """Noise lies in the gradients for a step that has not begun."""
        self._armed = True
        if self._close:
            self._keep()

    def on_scale(self) -> None:
        """Nobody wrote to them since."""
        if self._close and self._changed():
            self._found(facts.CHANGED_GRADIENTS)

    def after_scale(self, divisor: float) -> None:
        """Take the gradients as they are now for those that are released."""
        self._keep()

    def on_step(self) -> None:
        """They are about to be used, by the optimizer or by other processes that add theirs."""
        if self._changed():
            self._found(facts.CHANGED_GRADIENTS)

    def after_step(self) -> None:
        """Each step needs new noise."""
        if not self._armed:
            self._found(facts.UNRECORDED_STEPS)
        self._armed = False

    def _keep(self) -> None:
        kept: list[Any] = []
        grads: list[torch.Tensor] = []
        for p in self._params():
            if p.requires_grad and (grad := p.grad) is not None:
                kept.append(p)
                grads.append(grad)
        self.kept, self._grads, self._versions = kept, grads, list(map(_VERSION, grads))

    def _changed(self) -> bool:
        """Whether there are others now, or one that got no noise."""
        kept, grads, versions = self.kept, self._grads, self._versions
        self.kept, self._grads, self._versions = [], [], []
        now = self._params()
        same = len(now) == len(kept) and all(map(is_, now, kept))
        if not same and _bare(now, kept):
            return True
        return not all(map(is_, map(_GRAD, kept), grads)) or list(map(_VERSION, grads)) != versions

    def _params(self) -> list[Any]:
        return [p for group in self._optimizer.param_groups for p in group["params"]]


class AddedNoise(Detector):
    """Noise that is less than the optimizer states, or no noise that was drawn.

    Kind: noise.

    Seen: what torch draws while noise is added: each gradient is its sum and one draw that is large enough, in the
    first four steps and every 128th, and in each step of an optimizer that overrides something.

    Not seen: noise that code inside Opacus stops adding, or adds too little of, between these steps; that the sum over
    several processes is what each of them added to it: it is compared that all end at the same weights.
    """

    of_opacus = True

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._overridden = False
        self._drawn: DrawnNoise | None = None
        """The noise of the step that is being taken, where it is looked at."""

    def on_noise(self, step: Step) -> AbstractContextManager[Any] | None:
        """See what torch draws meanwhile."""
        optimizer = self._optimizer
        if step.close or not step.usual:
            self._overridden = optimisers.noise_is_overridden(optimizer)
        self._drawn = DrawnNoise(optimizer) if self._overridden or step.measured else None
        return self._drawn

    def after_noise(self) -> None:
        """Each gradient must be its sum and noise."""
        if self._drawn is not None:
            self._drawn.look(self._found)

    def after_scale(self, divisor: float) -> None:
        """They were divided by one number, or changed by code of the program."""
        drawn, self._drawn = self._drawn, None
        if drawn is not None:
            divided = drawn.divisor()
            if divided is None:
                self._found(facts.UNKNOWN_NOISE)
            elif not math.isclose(divided, divisor, rel_tol=1e-4):
                self._loop.catch_up()
                self._loop.steps.divided(divided)


class DrawnNoise(TorchFunctionMode):
    """The noise of one step: whether it is what torch or ``secure_noise`` drew while noise was added.

    It is entered meanwhile.
    """

    def __init__(self, optimizer: Any) -> None:
        """Prepare for the noise that the optimizer states. The first of several processes adds it."""
        super().__init__()
        deviation = float(optimizer.noise_multiplier) * float(optimizer.max_grad_norm)
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
