"""Gradients of single records between Opacus's backward pass and the clipping: whether the program changed them.

Nobody can see from numbers what a change reads. One that takes away the mean of the batch puts other records into the
share of each, and clipping does not bound what one record moves then. So the clipping counts as unknown, unless the
program states it. A copy, and the mean over several views of each record, change nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import torch

from reticent.watching.detectors.base import Detector, Loop, Step, Undos
from reticent.watching.detectors.clipping import Clipping
from reticent.watching.events import Backward, hooks_of
from reticent.watching.hooks import owner_of
from reticent.watching.models import bare, entrance
from reticent.watching.optimisers import by_opacus

_TAKERS = ("capture_activations_hook", "capture_backprops_hook", "rearrange_grad_samples")
_MOST_PARTS = 64
_RELATIVE, _OF_HALVES = 1e-4, 1e-2


class RecordGradients(Detector):
    """Gradients of single records that the program changes.

    Kind: clipping and gradients of single records.

    Seen: the gradients from Opacus's backward pass to the clipping: in the first steps, in one of sixteen later ones,
    and where noise is measured. A copy, and the mean over views of each
    record, are no change. Others make the clipping unknown, unless it is declared (``clipping="flat"``); so does a hook
    of the program that gives other gradients in the backward pass. What the program takes by itself
    (``grad_sample_mode="no_op"``) is declared.

    Not seen: what is written to the clipped sum; changes in few later steps, or with expanded weights; gradients of a
    pass that begins with ``torch.autograd.backward``, or in another thread than the forward pass; records that are
    mixed in the backward pass by a hook of a tensor or by an ``autograd.Function``, or by hooks that were hung into a
    layer after the watch began.
    """

    of_opacus = True

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._looks = self._exact = False
        """Whether the gradients that come next are looked at, and at their values too."""
        self._passes = Backward(lambda _loss, _each: None, self.guarded(self.gave))
        self._left: dict[Any, deque[tuple[Any, int, torch.Tensor | None]]] | None = None
        """Of each parameter, what Opacus left since the last clipping: the object, its count of writes, its marks."""

    def attach(self) -> Undos:
        """Look at the first gradients, and at hooks of the program that give others."""
        takers, changed = takers_of(self._model), self._loop.of(Clipping).not_by_opacus
        self._takes = bool(takers) and not self._loop.ghost
        if self._takes:
            self._look(exact=True)
        if taken_by_the_program(self._model, takers):
            self._loop.of(Clipping).of_the_program()
        yield self._leave
        yield entrance(self._model).register_forward_hook(self.hook(self._gives)).remove
        yield hooks_of(bare(self._model), lambda hook: hasattr(owner_of(hook), _TAKERS[1]), changed)

    def _gives(self, *_: Any) -> None:
        if self._looks and torch.is_grad_enabled():
            self._passes.on()

    def _look(self, exact: bool) -> None:
        """Look at the gradients that come next.

        Args:
            exact: at their values too, which takes a pass over them; without, a change leads to such a look.
        """
        self._looks, self._exact = True, exact or self._exact

    def _leave(self) -> None:
        """Look no more."""
        self._looks = self._exact = False
        self._left = None
        self._passes.off()

    def gave(self) -> None:
        """A backward pass is over, in which Opacus left gradients of records."""
        self._left = self._left or {}
        for p in self._optimizer.params:
            found = getattr(p, "grad_sample", None)
            newest = found[-1] if isinstance(found, list) and found else found
            parts = self._left.setdefault(p, deque(maxlen=_MOST_PARTS))
            if isinstance(newest, torch.Tensor) and not (parts and parts[-1][0]() is newest):
                parts.append((ref(newest), newest._version, _marks(newest) if self._exact else None))

    def on_clip(self, size: int | None, batches: int) -> None:
        """What is clipped must be what Opacus left."""
        if self._looks:
            self._compare()

    def on_noise(self, step: Step) -> None:
        """Gradients are looked at where noise is measured, and now and then."""
        if self._takes and (step.measured or step.close):
            self._look(exact=step.measured)

    def _compare(self) -> None:
        """They are about to be clipped."""
        exact, left = self._exact, self._left
        self._leave()
        if left is None:  # nobody saw a backward pass
            return
        same = _same_values if exact else _same_objects
        if all(same(_parts(p), left.get(p, ())) for p in self._optimizer.params):
            return
        if exact:
            self._loop.of(Clipping).not_by_opacus()
        else:
            self._look(exact=True)


def takers_of(model: Any) -> list[Any]:
    """What takes the gradients of records from the layers of a model, by hooks: Opacus, as a rule."""
    hooks = [hook for layer in bare(model).modules() for hook in layer._backward_hooks.values()]
    owners = {id(one): one for one in map(owner_of, hooks) if hasattr(one, _TAKERS[1])}
    return list(owners.values())


@contextmanager
def silent(takers: Iterable[Any]) -> Iterator[None]:
    """These hooks of Opacus are off: they would take this backward pass for one of the loop's."""
    before = [(one, one.hooks_enabled) for one in takers]
    try:
        for one, _ in before:
            one.hooks_enabled = False
        yield
    finally:
        for one, enabled in before:
            one.hooks_enabled = enabled


def taken_by_the_program(model: Any, takers: list[Any]) -> bool:
    """Whether code of the program takes them: Opacus has no hooks there, they are overridden, or ask its sampler.

    Expanded weights need no hooks: torch takes the gradients.
    """
    if not takers:
        expand = "GradSampleModuleExpandedWeights"
        return expand not in (type(model).__name__, type(getattr(model, "_orig_mod", None)).__name__)
    kinds = set(map(type, bare(model).modules()))
    tables = [getattr(one, name, {}) for one in takers for name in ("GRAD_SAMPLERS", "NORM_SAMPLERS")]
    asked = [how for table in tables for kind, how in table.items() if kind in kinds]
    taken = [getattr(type(one), name) for one in takers for name in _TAKERS]
    return not all(map(by_opacus, [*taken, *asked]))


def _parts(p: Any) -> list[torch.Tensor]:
    found = getattr(p, "grad_sample", None)
    return found if isinstance(found, list) else [] if found is None else [found]


def _same_objects(parts: list[torch.Tensor], left: Any) -> bool:
    parts = parts[-_MOST_PARTS:]
    newest = list(left)[-len(parts) :] if parts else []
    return len(newest) == len(parts) and all(
        known() is part and version == part._version for part, (known, version, _) in zip(parts, newest, strict=True)
    )


def _same_values(parts: list[torch.Tensor], left: Any) -> bool:
    """Whether each record has the gradient that was left for it, or the mean of several that were left, in order."""
    if not parts:
        return True
    parts = parts[-_MOST_PARTS:]
    now, known = torch.cat(list(map(_marks, parts))), [marks for _, _, marks in left if marks is not None]
    if not len(now):
        return True
    were = torch.cat(known) if known else torch.zeros(0, dtype=torch.float64)
    if _near(now, were[-len(now) :], parts):
        return True
    views = len(were) // len(now)
    if views < 2 or len(were) != views * len(now):
        return False
    return _near(now, were.view(views, -1).mean(0), parts) or _near(now, were.view(-1, views).mean(1), parts)


def _near(now: torch.Tensor, were: torch.Tensor, parts: list[torch.Tensor]) -> bool:
    if len(now) != len(were):
        return False
    coarse = any(part.element_size() < 4 for part in parts)
    most = (_OF_HALVES if coarse else _RELATIVE) * float(were.abs().max())
    return bool(((now - were).abs() <= most).all())


def _marks(gradients: torch.Tensor) -> torch.Tensor:
    """A number for the gradient of each record: its product with a fixed vector."""
    rows = gradients.detach().reshape(len(gradients), gradients.shape[1:].numel()).float()
    vector = torch.arange(1, rows.shape[1] + 1, dtype=torch.float32, device=rows.device).sin_()
    with torch.autocast(rows.device.type, enabled=False):  # a backward pass may run inside one, and no step does
        return (rows @ vector).double().cpu()
