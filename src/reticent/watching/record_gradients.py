"""Gradients of single records between Opacus's backward pass and the clipping: whether the program changed them.

Nobody can see from numbers what a change reads. One that takes away the mean of the batch puts other records into the
share of each, and clipping does not bound what one record moves then. So the clipping counts as unknown, unless the
program states it. A copy, and the mean over several views of each record, change nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import torch

from reticent.watching.events import Backward, hooks_of
from reticent.watching.hooks import Hook, looks, owner_of
from reticent.watching.models import bare, entrance
from reticent.watching.optimisers import by_opacus

_TAKERS = ("capture_activations_hook", "capture_backprops_hook", "rearrange_grad_samples")
_MOST_PARTS = 64
_RELATIVE, _OF_HALVES = 1e-4, 1e-2


class RecordGradients:
    """Compares the gradients that are about to be clipped with those that Opacus left, where it is told to look.

    Attributes:
        looks: whether the gradients that come next are looked at.
    """

    def __init__(self, model: Any, optimizer: Any, changed: Callable[[], None]) -> None:
        self._model, self._optimizer, self._changed = model, optimizer, changed
        self._found = lambda _: changed()
        self.looks = self._exact = False
        self._passes = Backward(lambda _loss, _each: None, self.left)
        self._left: dict[Any, deque[tuple[Any, int, torch.Tensor | None]]] | None = None
        """Of each parameter, what Opacus left since the last clipping: the object, its count of writes, its marks."""

    def attach(self) -> Callable[[], None]:
        """Begin to look where it is told to; what is returned ends it."""
        handle = entrance(self._model).register_forward_hook(Hook(self._gave))

        def undo() -> None:
            handle.remove()
            self.leave()

        return undo

    def _gave(self, *_: Any) -> None:
        if self.looks and torch.is_grad_enabled():
            self._passes.on()

    def look(self, exact: bool) -> None:
        """Look at the gradients that come next.

        Args:
            exact: at their values too, which takes a pass over them; without, a change leads to such a look.
        """
        self.looks, self._exact = True, exact or self._exact

    def leave(self) -> None:
        """Look no more."""
        self.looks = self._exact = False
        self._left = None
        self._passes.off()

    @looks
    def left(self) -> None:
        """A backward pass is over, in which Opacus left gradients of records."""
        self._left = self._left or {}
        for p in self._optimizer.params:
            found = getattr(p, "grad_sample", None)
            newest = found[-1] if isinstance(found, list) and found else found
            parts = self._left.setdefault(p, deque(maxlen=_MOST_PARTS))
            if isinstance(newest, torch.Tensor) and not (parts and parts[-1][0]() is newest):
                parts.append((ref(newest), newest._version, _marks(newest) if self._exact else None))

    def clipped(self) -> None:
        """They are about to be clipped."""
        exact, left = self._exact, self._left
        self.leave()
        if left is None:  # nobody saw a backward pass
            return
        same = _same_values if exact else _same_objects
        if all(same(_parts(p), left.get(p, ())) for p in self._optimizer.params):
            return
        if exact:
            self._changed()
        else:
            self.look(exact=True)


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


def follow_hooks(model: Any, changed: Callable[[], None]) -> Callable[[], None]:
    """Call ``changed`` where a hook of the program gives other gradients for a layer; what is returned ends that.

    Opacus takes the gradients of records from what such hooks give.
    """
    return hooks_of(bare(model), lambda hook: hasattr(owner_of(hook), _TAKERS[1]), changed)


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
    return (rows @ vector).double().cpu()
