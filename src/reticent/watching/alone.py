"""Whether the records of a batch are mixed by hand: in the first step, a record alone against the record in its batch.

- The forward pass: a copy of the model reads the batch, and then one record of it. The output of that record must be
  the same. Dropout is off in the copy.
- The loss: what the output of one record adds to the gradient of another must be nothing (second derivatives of the
  loss by the outputs of the model).

Where either cannot be computed, nothing is said. It is looked at once, so a loop that begins to mix later is not seen.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from reticent.errors import UnsupportedError
from reticent.records.watch_faults import Fault

_RELATIVE, _ABSOLUTE = 1e-3, 1e-5


class AloneInFirstStep:
    """Looks at one forward and one backward pass of a model, the first with two records or more, and then no more."""

    def __init__(self, model: nn.Module, found: Callable[[Fault], None]) -> None:
        self._model, self._found = model, found
        self._target: nn.Module | None = None
        self._inside = False
        self._output: torch.Tensor | None = None
        self._handles: list[Any] = []

    def attach(self) -> Callable[[], None]:
        """Begin to look; what is returned ends it, if it has not ended by itself."""
        before, after = _Before(self), _After(self)
        for module in (self._model, *self._model.children()):  # Lightning calls a child, not the module itself
            self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(module.register_forward_hook(after))
        if not _LOOKING:
            _OWN.append(torch.Tensor.backward)
            torch.Tensor.backward = _backward  # type: ignore[method-assign, assignment]
        _LOOKING.append(self)
        return self.close

    def close(self) -> None:
        """Put everything back."""
        while self._handles:
            self._handles.pop().remove()
        if self in _LOOKING:
            _LOOKING.remove(self)
            if not _LOOKING:
                torch.Tensor.backward = _OWN.pop()  # type: ignore[method-assign]
        self._output = None

    def before_backward(self, loss: torch.Tensor) -> bool:
        """A backward pass begins from here: whether it was looked at."""
        if self._output is None or not loss.requires_grad:
            return False
        self._try(lambda: self._mixes_in_loss(loss))
        self.close()
        return True

    def given(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """A module is about to read these."""
        inside, self._inside = self._inside, self._inside or module is self._model
        if inside or self._target is not None or not module.training or not torch.is_grad_enabled():
            return
        tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor)]
        if any(t.requires_grad and t.grad_fn is not None for t in tensors):
            self._found(Fault.TRAINED_OUTSIDE)
        size = next((len(t) for t in tensors if t.dim() > 0), 0)
        if size > 1:
            self._target = module
            self._try(lambda: _mixes_in_forward(module, args, kwargs, size))

    def gave(self, module: nn.Module, output: Any) -> None:
        """A module gave this."""
        self._inside = self._inside and module is not self._model
        if module is self._target and module.training and torch.is_grad_enabled():
            first = _first_tensor(output)
            several = first is not None and len(first) > 1 and first.requires_grad
            self._output = first if several else None

    def _try(self, mixes: Callable[[], bool]) -> None:
        devices = sorted({p.device.index or 0 for p in self._model.parameters() if p.is_cuda})
        try:
            with torch.random.fork_rng(devices=devices), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mixed = mixes()
        except Exception:  # unknown layers may raise anything; the loop must go on
            return
        if mixed:
            self._found(Fault.MIXES_RECORDS)

    def _mixes_in_loss(self, loss: torch.Tensor) -> bool:
        output = self._output
        if output is None or loss.numel() != 1:
            return False
        with _silent(self._model):
            return _mixes_in_loss(loss, output)


_LOOKING: list[AloneInFirstStep] = []
"""Who waits for a backward pass; several loops may be watched."""

_OWN: list[Any] = []


def _backward(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    own, looked = _OWN[0], [one.before_backward(tensor) for one in [*_LOOKING]]
    if not any(looked):
        return own(tensor, *args, **kwargs)
    with warnings.catch_warnings():  # Opacus's hooks say it again at the loop's own line
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        return own(tensor, *args, **kwargs)


def _mixes_in_loss(loss: torch.Tensor, output: torch.Tensor) -> bool:
    (slope,) = torch.autograd.grad(loss, output, create_graph=True, retain_graph=True)
    if not slope.requires_grad:
        return False
    weights = torch.linspace(0.5, 1.5, slope[0].numel(), dtype=slope.dtype, device=slope.device).view_as(slope[0])
    (curvature,) = torch.autograd.grad((slope[0] * weights).sum(), output, retain_graph=True, allow_unused=True)
    if curvature is None:
        return False
    across = float(curvature[1:].abs().max())
    return across > _RELATIVE * float(slope.detach().abs().max()) and across > 1e-12


@contextmanager
def _silent(model: nn.Module) -> Iterator[None]:
    """Opacus's hooks of the backward pass are off: they would take this pass for one of the loop's.

    Raises:
        UnsupportedError: there are hooks of somebody else, which cannot be turned off.
    """
    owners = {id(one): one for module in model.modules() for hook in _backward_hooks(module) for one in [_owner(hook)]}
    if any(not hasattr(one, "hooks_enabled") for one in owners.values()):
        raise UnsupportedError("the model has hooks of its own in the backward pass")
    before = [(one, one.hooks_enabled) for one in owners.values()]
    try:
        for one, _ in before:
            one.hooks_enabled = False
        yield
    finally:
        for one, enabled in before:
            one.hooks_enabled = enabled


def _backward_hooks(module: nn.Module) -> list[Any]:
    return [*module._backward_hooks.values(), *module._backward_pre_hooks.values()]


def _owner(hook: Any) -> Any:
    """The object whose method a hook is."""
    return getattr(getattr(hook, "func", hook), "__self__", None)


def _mixes_in_forward(model: nn.Module, args: Any, kwargs: dict[str, Any], size: int) -> bool:
    twin = copy.deepcopy(model)
    for layer in twin.modules():
        layer._forward_hooks.clear()
        layer._forward_pre_hooks.clear()
        layer._backward_hooks.clear()
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.p = 0.0
    with torch.no_grad():
        together = _first_tensor(twin(*_cut(args, size, size), **_cut(kwargs, size, size)))
        alone = _first_tensor(twin(*_cut(args, size, 1), **_cut(kwargs, size, 1)))
    if together is None or alone is None or len(together) != size or len(alone) != 1:
        return False
    return _differ(together[:1], alone)


class _Before:
    """The hook: a class, because models are pickled and copied with their hooks."""

    reticent_watches = True

    def __init__(self, watch: AloneInFirstStep) -> None:
        self._watch = watch

    def __call__(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        self._watch.given(module, args, kwargs)

    def __deepcopy__(self, _memo: Any) -> _Before:
        return self


class _After(_Before):
    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        self._watch.gave(module, output)


def _first_tensor(output: Any) -> torch.Tensor | None:
    """The first tensor of an output with one row for each record: of a tuple, a dictionary, or a model's output."""
    if isinstance(output, torch.Tensor):
        return output if output.dim() > 0 else None
    parts = (
        list(output.values()) if isinstance(output, dict) else list(output) if isinstance(output, (list, tuple)) else []
    )
    return next((found for part in parts if (found := _first_tensor(part)) is not None), None)


def _cut(given: Any, size: int, count: int) -> Any:
    """The first ``count`` records of whatever has one row for each."""
    if isinstance(given, torch.Tensor):
        return given[:count].detach() if given.dim() > 0 and len(given) == size else given
    if isinstance(given, dict):
        return {name: _cut(value, size, count) for name, value in given.items()}
    if isinstance(given, (list, tuple)):
        return type(given)(_cut(value, size, count) for value in given)
    return given


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or not one.is_floating_point():
        return False
    gap = float((one - other).abs().max())
    return gap > _RELATIVE * float(other.abs().max()) + _ABSOLUTE
