"""Whether the records of a batch are mixed by hand: in the first step, a record alone against the record in its batch.

- The forward pass: a copy of the model reads the batch, and then one record of it. The output of that record must be
  the same. Dropout is off in the copy. Each layer at which Opacus takes the gradients of records must get fewer rows of
  one record than of all: it takes rows of a table, such as positions or prototypes, for records where they are as many.
- The loss: what the output of one record adds to the gradient of another must be nothing (second derivatives of the
  loss by the outputs of the model), a mean must not be divided by what other records weigh (``divisors``), and a record
  must not be compared with the labels of others (``pairings``).

Where either cannot be computed, nothing is said. It is looked at once, so a loop that begins to mix later is not seen.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from reticent.errors import UnsupportedError
from reticent.records.watch_faults import Fault
from reticent.watching.divisors import divides_by_others
from reticent.watching.hooks import Hook
from reticent.watching.models import bare, entrance, trains
from reticent.watching.pairings import pairs_records

_RELATIVE, _ABSOLUTE = 1e-3, 1e-5
_MOST_LOSSES = 8
"""Of other models, which may come before that of this one; to try each costs a backward pass."""


class AloneInFirstStep:
    """Looks at one forward and one backward pass of a model, the first with two records or more, and then no more."""

    def __init__(self, model: Any, found: Callable[[Fault], None]) -> None:
        self._model, self._found = bare(model), found
        whole = entrance(model)
        self._entrances = [whole] if whole is not self._model else list(self._model.modules())
        """What the loop may call. Compiled code is looked at from outside."""
        self._own = {id(module) for module in self._entrances}
        self._target: nn.Module | None = None
        self._outermost: nn.Module | None = None
        self._before = False
        """Whether another part of the model was called for this backward pass, as an encoder before its head."""
        self._outputs: list[torch.Tensor] = []
        self._tries = _MOST_LOSSES
        self._handles: list[Any] = []

    def attach(self) -> Callable[[], None]:
        """Begin to look; what is returned ends it, if it has not ended by itself."""
        before, after = _Before(self), _After(self)
        for module in self._entrances:  # Lightning calls a child, not the module itself
            self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(module.register_forward_hook(after))
        if not _LOOKING:
            _OWN.append(torch.autograd.backward)
            torch.autograd.backward = _backward
        _LOOKING.append(self)
        return self.close

    def close(self) -> None:
        """Put everything back."""
        while self._handles:
            self._handles.pop().remove()
        if self in _LOOKING:
            _LOOKING.remove(self)
            if not _LOOKING:
                torch.autograd.backward = _OWN.pop()
        self._outputs = []

    def before_backward(self, loss: torch.Tensor) -> bool:
        """A backward pass begins from here: whether it was looked at."""
        self._before = False
        if not self._outputs or not loss.requires_grad:
            return False
        self._tries -= 1
        looked = self._try(lambda: self._mixes_in_loss(loss)) is not None
        if looked or not self._tries:
            self.close()
        return looked

    def given(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """A module is about to read these."""
        if id(module) not in self._own:  # of a copy of the model, which has its hooks
            return
        if self._outermost is not None and self._outermost is not module:
            return
        self._outermost = module
        if self._target is not None or not torch.is_grad_enabled() or not trains(module):
            return
        tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor)]
        if not self._before and any(t.requires_grad and t.grad_fn is not None for t in tensors):
            self._found(Fault.TRAINED_OUTSIDE)
        self._before = True
        size = next((len(t) for t in tensors if t.dim() > 0), 0)
        if size > 1:
            self._target = module
            self._try(lambda: _mixes_in_forward(module, args, kwargs, size))

    def gave(self, module: nn.Module, output: Any) -> None:
        """A module gave this."""
        if module is not self._outermost:
            return
        self._outermost = None
        if module is self._target and torch.is_grad_enabled():
            trained = [t for t in _tensors(output) if t.requires_grad and len(t) > 1]
            self._outputs = [t for t in trained if len(t) == len(trained[0])]

    def _try(self, mixes: Callable[[], bool | None]) -> bool | None:
        devices = sorted({p.device.index or 0 for p in self._model.parameters() if p.is_cuda})
        try:
            with torch.random.fork_rng(devices=devices), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mixed = mixes()
        except Exception:  # unknown layers may raise anything; the loop must go on
            return False
        if mixed:
            self._found(Fault.MIXES_RECORDS)
        return mixed

    def _mixes_in_loss(self, loss: torch.Tensor) -> bool | None:
        """Whether the loss mixes records; None where it is not one of these outputs."""
        if divides_by_others(loss, len(self._outputs[0])) or pairs_records(loss, self._outputs):
            return True
        with _silent(self._model):
            try:
                return _mixes_in_loss(loss, self._outputs)
            except RuntimeError:  # between two of them lies what has no second derivative
                return _mixes_in_loss(loss, self._outputs[:1])


_LOOKING: list[AloneInFirstStep] = []
"""Who waits for a backward pass; several loops may be watched."""

_OWN: list[Any] = []


def _backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
    own, loss = _OWN[0], _whole(tensors, grad_tensors)
    looked = [] if loss is None else [one.before_backward(loss) for one in [*_LOOKING]]
    if not any(looked):
        return own(tensors, grad_tensors, *args, **kwargs)
    with warnings.catch_warnings():  # Opacus's hooks say it again at the loop's own line
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        return own(tensors, grad_tensors, *args, **kwargs)


def _whole(tensors: Any, gradients: Any) -> torch.Tensor | None:
    """The number whose slopes are those of a backward pass from these tensors, with these gradients."""
    many = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    given = [gradients] if gradients is None or isinstance(gradients, torch.Tensor) else list(gradients)
    given = given * len(many) if given == [None] else given
    try:
        parts = [t if g is None else (t * g).sum() for t, g in zip(many, given, strict=True)]
        whole = parts[0] if len(parts) == 1 else torch.stack([part.reshape(()) for part in parts]).sum()
    except (RuntimeError, TypeError, ValueError):
        return None
    return whole if isinstance(whole, torch.Tensor) and whole.numel() == 1 else None


def _mixes_in_loss(loss: torch.Tensor, outputs: list[torch.Tensor]) -> bool | None:
    slopes = torch.autograd.grad(loss, outputs, create_graph=True, retain_graph=True, allow_unused=True)
    if all(slope is None for slope in slopes):
        return None
    found = [(slope, output) for slope, output in zip(slopes, outputs, strict=True) if slope is not None]
    one = sum(_some_sum(slope[0]) for slope, _ in found if slope.requires_grad)
    if not isinstance(one, torch.Tensor):
        return False
    others = torch.autograd.grad(one, [output for _, output in found], retain_graph=True, allow_unused=True)
    return any(_across(slope, other) for (slope, _), other in zip(found, others, strict=True) if other is not None)


def _some_sum(slope: torch.Tensor) -> torch.Tensor:
    weights = torch.linspace(0.5, 1.5, slope.numel(), dtype=slope.dtype, device=slope.device)
    return (slope * weights.view_as(slope)).sum()


def _across(slope: torch.Tensor, curvature: torch.Tensor) -> bool:
    across = float(curvature[1:].abs().max())
    return across > _RELATIVE * float(slope.detach().abs().max()) and across > 1e-12


@contextmanager
def _silent(model: nn.Module) -> Iterator[None]:
    """Opacus's hooks of the backward pass are off: they would take this pass for one of the loop's.

    Expanded weights of torch need no hooks; what they gather is put back.

    Raises:
        UnsupportedError: there are hooks of somebody else, which cannot be turned off.
    """
    owners = {id(one): one for module in model.modules() for hook in _backward_hooks(module) for one in [_owner(hook)]}
    if any(not hasattr(one, "hooks_enabled") for one in owners.values()):
        raise UnsupportedError("the model has hooks of its own in the backward pass")
    before = [(one, one.hooks_enabled) for one in owners.values()]
    gathered = [(p, p.grad_sample) for p in model.parameters() if hasattr(p, "grad_sample")]
    try:
        for one, _ in before:
            one.hooks_enabled = False
        yield
    finally:
        for one, enabled in before:
            one.hooks_enabled = enabled
        for p, gradients in gathered:
            p.grad_sample = gradients


def _backward_hooks(module: nn.Module) -> list[Any]:
    return [*module._backward_hooks.values(), *module._backward_pre_hooks.values()]


def _owner(hook: Any) -> Any:
    """The object whose method a hook is."""
    return getattr(getattr(hook, "func", hook), "__self__", None)


def _mixes_in_forward(model: nn.Module, args: Any, kwargs: dict[str, Any], size: int) -> bool:
    model = bare(model)
    known: dict[int, Any] = {id(p): nn.Parameter(p.orig_weight.detach().clone()) for p in _expanded(model)}
    known |= {id(one): one for layer in model.modules() for one in _wrappers(layer)}  # not all can be copied
    twin = copy.deepcopy(model, known)
    for layer in twin.modules():
        layer._forward_hooks.clear()
        layer._forward_pre_hooks.clear()
        layer._backward_hooks.clear()
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.p = 0.0
    rows = _Rows(model, twin)
    with torch.no_grad():
        together = list(_tensors(twin(*_cut(args, size, size), **_cut(kwargs, size, size))))
        of_all = rows.taken()
        try:
            alone = list(_tensors(twin(*_cut(args, size, 1), **_cut(kwargs, size, 1))))
        except Exception:  # the model wants more than one record
            rows.taken()
            return _reaches_others(twin, args, kwargs, size)
    if any(all_ == one and one[1] == size for all_, one in zip(of_all, rows.taken(), strict=False)):
        return True
    pairs = [(all_[:1], one) for all_, one in zip(together, alone, strict=False) if 1 < len(all_) <= size]
    return any(_differ(row, one) for row, one in pairs if len(one) == 1)


def _expanded(model: nn.Module, recurse: bool = True) -> Iterator[Any]:
    """Weights that torch expands for each record, in the place of the parameters of a model in its forward pass."""
    yield from (p for p in model.parameters(recurse) if hasattr(p, "orig_weight"))


def _wrappers(layer: nn.Module) -> list[Any]:
    """Opacus's, whose hooks this layer has."""
    return [owner for owner in map(_owner, layer._forward_hooks.values()) if hasattr(owner, "hooks_enabled")]


class _Rows:
    """Notes how many rows the layers get at which Opacus takes gradients of records, in a copy of the model."""

    def __init__(self, model: nn.Module, twin: nn.Module) -> None:
        self._noted: list[tuple[str, int]] = []
        for name, layer in model.named_modules():
            owners, expanded = _wrappers(layer), list(_expanded(layer, recurse=False))
            if expanded or (owners and any(p.requires_grad for p in layer.parameters())):
                first = not owners or owners[0].batch_first or type(layer).__name__ == "RNNLinear"
                twin.get_submodule(name).register_forward_pre_hook(partial(self._note, name, 0 if first else 1))

    def _note(self, name: str, axis: int, _layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        if inputs and isinstance(inputs[0], torch.Tensor) and inputs[0].ndim > axis:
            self._noted.append((name, inputs[0].shape[axis]))

    def taken(self) -> list[tuple[str, int]]:
        """Layers in the order of their calls, and rows, since this was asked last."""
        noted, self._noted = self._noted, []
        return noted


def _reaches_others(twin: nn.Module, args: Any, kwargs: dict[str, Any], size: int) -> bool:
    """Whether the first row of the output, if it has no more rows than there are records, depends on other records."""
    inputs = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.is_floating_point()]
    with torch.enable_grad():
        fresh = {id(t): t.detach().clone().requires_grad_() for t in inputs if t.dim() > 0 and len(t) == size}
        put = [fresh.get(id(one), one) for one in args]
        output = next(_tensors(twin(*put, **{name: fresh.get(id(one), one) for name, one in kwargs.items()})), None)
        if output is None or not 1 < len(output) <= size or not fresh:
            return False
        slopes = torch.autograd.grad(_some_sum(output[0]), list(fresh.values()), allow_unused=True)
    return any(slope is not None and bool(slope[1:].any()) for slope in slopes)


class _Before(Hook):
    def __init__(self, watch: AloneInFirstStep) -> None:
        self._given, self._gave = _not_compiled(watch.given), _not_compiled(watch.gave)

    def __call__(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        self._given(module, args, kwargs)


class _After(_Before):
    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        self._gave(module, output)


def _not_compiled(look: Callable[..., None]) -> Callable[..., None]:
    """A look that ``torch.compile`` would make a part of its code, where somebody compiles at all."""
    return torch.compiler.disable(look) if "torch._dynamo" in sys.modules else look


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    """The tensors of an output, but for single numbers: of a tuple, a dictionary, or a model's output."""
    if isinstance(output, torch.Tensor):
        if output.dim() > 0:
            yield output
        return
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, (list, tuple)) else ()
    for part in parts:
        yield from _tensors(part)


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
