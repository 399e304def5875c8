"""Whether Opacus adds the noise that an optimizer states, and whether that is what moves the weights."""

from __future__ import annotations

from operator import attrgetter, is_
from typing import Any

import torch

from reticent import facts
from reticent.watching import optimisers
from reticent.watching.detectors.base import Detector, Loop, Step, Undos
from reticent.watching.events import around

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


class OwnNoise(Detector):
    """Noise, or what it is divided by, that code of the program decides.

    Kind: noise.

    Seen: that the methods that add the noise and divide are Opacus's own, in the class of the optimizer and on the
    object, in the first steps, in one of sixteen later ones and where anything changed; ``rt.secure_noise`` may be
    around them.

    Not seen: noise that code inside Opacus stops adding, or adds too little of; that the sum over several processes is
    what each of them added to it: it is compared that all end at the same weights.
    """

    of_opacus = True

    def on_noise(self, step: Step) -> None:
        """Nobody knows what the program adds by itself."""
        if (step.close or not step.usual) and optimisers.noise_is_overridden(self._optimizer):
            self._found(facts.UNKNOWN_NOISE)


def _bare(now: list[Any], kept: list[Any]) -> bool:
    """Whether a parameter is moved by a gradient that is none of those that were released.

    Of a parameter that was frozen during the run zeros may be left.
    """
    known = set(map(id, kept))
    others = [p.grad for p in now if id(p) not in known]
    return any(grad is not None and (grad.is_sparse or bool(grad.any())) for grad in others)
