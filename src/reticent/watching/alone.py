"""Whether the records of a batch are mixed by hand: in the first step, a record alone against the record in its batch.

- The batch: what the model reads against what the loader gave (``mixed_inputs``), and a record with the padding that
  the longest of its batch gives it against the record without (``paddings``).
- The forward pass: a copy of the model reads the batch, and then other batches with one of its records
  (``mixed_outputs``).
- The loss: what the output of one record adds to the gradient of another must be nothing (second derivatives of the
  loss by the outputs of the model), a mean must not be divided by what other records weigh or by their lengths
  (``divisors``), and a record must not be compared with the labels of others (``pairings``).

Where either cannot be computed, nothing is said. It is looked at once, so a loop that begins to mix later is not seen.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from reticent import facts
from reticent.errors import UnsupportedError
from reticent.facts import Fact
from reticent.facts.clipping import Mixing
from reticent.watching.call_counters import changed_buffers
from reticent.watching.closer_looks import some_of
from reticent.watching.divisors import counts_of, divided_by, divides_by_counts, divides_by_others, nodes, of_another
from reticent.watching.events import Backward
from reticent.watching.hooks import Hook, looks, owner_of
from reticent.watching.mixed_inputs import Yielded
from reticent.watching.mixed_outputs import Given, differ, has_hooks, mixes_in_forward, tensors_in
from reticent.watching.models import bare, entrance, trains
from reticent.watching.paddings import Paddings, counts_in_loss, counts_in_outputs
from reticent.watching.pairings import Square, of_their_batches, pairs_records, squares
from reticent.watching.record_gradients import silent

_RELATIVE = 1e-3
_ENOUGH, _OF_A_SIZE = 8, 3
"""Records that are enough to be grouped; batches of one size after which nobody waits for another."""

_MOST_LOSSES = 8
"""Of other models, which may come before that of this one; to try each costs a backward pass."""


class AloneInFirstStep:
    """Looks at one forward and one backward pass of a model, the first with two records or more, and then no more.

    Where these are too few to tell, as two of which mixup exchanges none, later ones are looked at, too.
    """

    def __init__(
        self,
        model: Any,
        loader: Any,
        found: Callable[[Fact], None],
        buffers: Callable[[nn.Module, dict[str, bool]], None],
        padded: torch.Tensor,
    ) -> None:
        """Prepare; nothing is looked at before ``attach``.

        Args:
            model: the module, bare or wrapped.
            loader: that the loop reads, or None.
            found: called with each fault.
            buffers: called with a module, and the buffers that its forward pass changes.
            padded: what the loader's collate function pads, a table of ``paddings.places``.
        """
        self._model, self._found, self._buffers = bare(model), found, buffers
        self._yielded, self._records_first = Yielded(loader), getattr(model, "batch_first", True)
        whole = entrance(model)
        self._entrances = [whole] if whole is not self._model else list(self._model.modules())
        """What the loop may call. Compiled code is looked at from outside."""
        self._own = {id(module) for module in self._entrances}
        self._target: nn.Module | None = None
        self._passes = Backward(self.before_backward, lambda: None)
        self._waits_for_loss = self._saw_loss = False
        """Whether outputs wait for a backward pass, and whether any was ever seen."""
        self._outermost: nn.Module | None = None
        self._hooked: Callable[[Any], bool] | None = None
        """Says of an output whether hooks of the program changed it so that it mixes records."""
        self._before = False
        """Whether another part of the model was called for this backward pass, as an encoder before its head."""
        self._outputs: list[torch.Tensor] = []
        self.no_records, self._made, self._beside = False, False, list[torch.Tensor]()
        """Whether rows that hold no record go through the model, as the program says; whether any did; and what it gave
        of the last."""
        self._places, self._losses = set[int](), list[torch.Tensor]()
        """Single numbers among the outputs that mix records: their places, and these numbers."""
        self._squares: list[Square] = []
        """Of the first batch, where a second one has to tell what they are."""
        self._paddings = Paddings(padded)
        self._count: float | None = None
        """By which a loss was divided; another one in another batch has to tell that it is no chance."""
        self._chance = False
        """Whether another batch was divided by none."""
        self._size, self._counts = 0, set[int]()
        """Records of the batch, and what follows from the lengths of all of them."""
        self._tries = _MOST_LOSSES
        self._divided = dict[int, float]()
        """By what the losses of batches of so many records were divided."""
        own_loss = hasattr(model, "get_norm_sample")  # in ghost mode make_private returns it
        self._reduction = None if own_loss else getattr(model, "loss_reduction", None)
        self._given = 0
        """Batches that the loader gave before the last look."""
        self._waits = False
        """Whether a later batch has to tell: there were too few records to group, or as many in each."""
        self._handles: list[Any] = []

    def attach(self) -> Callable[[], None]:
        """Begin to look; what is returned ends it, if it has not ended by itself."""
        before, after = Hook(_not_compiled(self.given)), Hook(_not_compiled(self.gave))
        for module in self._entrances:  # Lightning calls a child, not the module itself
            self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(module.register_forward_hook(after))
        self._yielded.attach()
        settling = register_optimizer_step_pre_hook(self._settle)

        def undo() -> None:
            settling.remove()
            self.close()

        return undo

    def close(self) -> None:
        """Put everything back."""
        while self._handles:
            self._handles.pop().remove()
        self._yielded.close()
        if self._paddings.unseen if self._target is not None else self._made:
            self._found(facts.NOT_LOOKED_AT)
        if self._squares or (self._count and not self._chance):  # no other batch came
            where = Mixing.PAIRS if self._squares else Mixing.MEAN
            self._squares, self._count = [], None
            self._found(facts.MIXES_RECORDS.because(where))
        self._passes.off()
        self._outputs, self._losses = [], []

    @looks
    def _settle(self, optimizer: Any, *_: Any) -> None:
        """A step: of gradients that Opacus clipped somebody must have seen the loss."""
        self._passes.off()
        waits, self._waits_for_loss = self._waits_for_loss, False
        moved = (p for group in optimizer.param_groups for p in group["params"])
        if waits and self._handles and any(hasattr(p, "summed_grad") for p in moved):
            self._found(facts.NOT_LOOKED_AT)

    @looks
    def before_backward(self, loss: torch.Tensor, _each: Any = None) -> None:
        """A backward pass begins from here; before that of the model there may be one of another."""
        self._before = self._waits_for_loss = False
        self._saw_loss = True
        if not (self._outputs or self._losses) or not loss.requires_grad:
            return
        if any(len(other) != len(own) for own in self._outputs for other in self._beside):
            self._found(facts.NOT_LOOKED_AT)
        self._tries -= 1
        looked = self._try(lambda: self._mixes_in_loss(loss), Mixing.LOSS) is not None
        if looked:
            self._passes.off()
        if (
            looked and not self._squares and not self._paddings.waits and not self._waits and not self._count
        ) or not self._tries:
            self.close()

    @looks
    def given(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """A module is about to read these."""
        if id(module) not in self._own:  # of a copy of the model, which has its hooks
            return
        if self.no_records:
            self._try(lambda: self._yielded.gave_rows_of([args, kwargs]), Mixing.PASSES)
            return
        if self._outermost is not None and self._outermost is not module:
            return
        self._outermost = module
        if not torch.is_grad_enabled() or not trains(module):
            return
        tensors = list(tensors_in([args, kwargs]))
        if self._target not in (None, module):
            return
        first, waited, before = self._target is None, self._paddings.waits, self._size
        if first and not self._before and any(t.requires_grad and t.grad_fn is not None for t in tensors):
            self._found(facts.TRAINED_OUTSIDE)
        self._before = True
        if first and not tensors:
            self._found(facts.NOT_LOOKED_AT)
        size = self._records_of(tensors)
        self._look_at_groups(tensors, size)
        if size > 1 or not first:
            self._target = module
            self._try(lambda: self._yielded.mixed([*args, kwargs]), Mixing.BATCH)
            self._look_at_padding(module, args, kwargs, tensors, size, reads=first or waited)
            if first or before < _ENOUGH <= size:
                self._look_at_forward_pass(module, args, kwargs, size)

    def _look_at_forward_pass(self, module: nn.Module, args: Any, kwargs: dict[str, Any], size: int) -> None:
        if self._try(lambda: self._mixes_in_forward(module, args, kwargs, size), Mixing.MODEL) is None:
            self._found(facts.NOT_LOOKED_AT)
        if has_hooks(module):
            self._try(lambda: self._without_hooks(module, args, kwargs, size), Mixing.MODEL)
        self._try(lambda: self._buffers(bare(module), changed_buffers(module, args, kwargs, size)), Mixing.MODEL)

    def _look_at_groups(self, tensors: list[torch.Tensor], size: int) -> None:
        before, self._given = self._given, self._yielded.given
        one_by_one = self._target is None or self._given == before + 1  # else the loop keeps batches for later
        if size and self._records_first and one_by_one:
            self._try(lambda: self._yielded.grouped(tensors, size), Mixing.BATCH)
        tried, self._size = _MOST_LOSSES - self._tries, size
        self._try(lambda: self._count_in([tensors, *self._yielded.batches], size), Mixing.MEAN)
        alike = self._reduction is not None and not self._divided.keys() - {size}
        self._waits = 0 < self._yielded.most < _ENOUGH or (alike and tried < _OF_A_SIZE)

    def _count_in(self, batches: list[list[torch.Tensor]], size: int) -> None:
        self._counts = counts_of([t for batch in batches for t in batch], size)

    def _records_of(self, tensors: list[torch.Tensor]) -> int:
        """How many records a model is about to read: before them may come a state, or a table of classes."""
        rows = [n for n in map(len, tensors) if n > 1] or list(map(len, tensors[:1]))
        drawn = {len(t) for batch in self._yielded.batches for t in batch}
        return next((n for n in rows if n in drawn), next(iter(rows), 0))

    @looks
    def gave(self, module: nn.Module, args: Any, output: Any) -> None:
        """A module gave this."""
        if self.no_records and module in self._entrances:
            self._made, self._beside = True, [t for t in tensors_in(output) if t.requires_grad]
        if module is not self._outermost:
            return
        self._outermost = None
        if self._hooked is not None:
            unhooked, self._hooked = self._hooked, None
            self._try(lambda: unhooked(output), Mixing.MODEL)
        if module is self._target and torch.is_grad_enabled():
            trained = [t for t in tensors_in(output) if t.requires_grad and len(t) > 1]
            self._outputs = [t for t in trained if len(t) == len(trained[0])]
            all_ = tensors_in(output, numbers=True)
            self._losses = [t for place, t in enumerate(all_) if place in self._places and t.requires_grad]
            if self._outputs or self._losses:
                self._passes.on()
                self._waits_for_loss = not self._saw_loss

    def _try(self, mixes: Callable[[], Mixing | bool | None], where: Mixing) -> Mixing | bool | None:
        """What a look says, which itself may know better where records are mixed."""
        devices = sorted({p.device.index or 0 for p in self._model.parameters() if p.is_cuda})
        try:
            with torch.random.fork_rng(devices=devices), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mixed = mixes()
        except Exception:  # unknown layers may raise anything; the loop must go on
            return False
        if mixed:
            self._found(facts.MIXES_RECORDS.because(mixed if isinstance(mixed, Mixing) else where))
        return mixed

    def _mixes_in_forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any], size: int) -> bool | None:
        try:
            found, self._places = mixes_in_forward(module, args, kwargs, size)
        except Exception:  # it cannot be copied, or does not read a copy
            return None
        return found

    def _without_hooks(self, module: nn.Module, args: Any, kwargs: dict[str, Any], size: int) -> None:
        """Hooks of the program, which may write down what they see, are called for a look only if they change it."""
        with torch.no_grad():
            plain = Given(bare(module), args, kwargs, size).of(range(size))

        def mixes(output: Any) -> bool:
            changed = any(map(differ, map(torch.Tensor.detach, tensors_in(output, numbers=True)), plain))
            return changed and mixes_in_forward(module, args, kwargs, size, hooked=True)[0]

        self._hooked = mixes

    def _look_at_padding(
        self,
        module: nn.Module,
        args: Any,
        kwargs: dict[str, Any],
        read: list[torch.Tensor],
        size: int,
        reads: bool,
    ) -> None:
        self._size, batches = size, self._yielded.batches

        def look() -> None:
            self._paddings.look(batches, read, size)
            self._counts |= {one.tokens - less for one in self._paddings.found for less in (0, size)}

        self._try(look, Mixing.PADDING)
        for one in self._paddings.found if reads else []:
            counts = partial(counts_in_outputs, bare(module), args, kwargs, size, one)
            self._try(counts, Mixing.PADDING)

    def _mixes_in_loss(self, loss: torch.Tensor) -> Mixing | bool | None:
        """Whether, and where, the loss mixes records; None where it is not one of these outputs."""
        if self._losses and {t.grad_fn for t in self._losses} & {node for node, _ in nodes(loss)}:
            return True
        if not self._outputs or of_another(loss, self._outputs, self._model):
            return None
        lengths, earlier = {t.length for t in self._paddings.found}, self._count
        count = divides_by_counts(loss, self._outputs, self._size, self._counts, lengths)
        self._chance, self._count = self._chance or count is None, count or earlier
        if count == math.inf or (count and earlier and earlier != count):
            self._count = None
            return Mixing.MEAN
        if self._reduces_otherwise(loss):
            return Mixing.MEAN
        found, before = squares(loss, self._outputs), self._squares
        if before:
            self._squares = []
            return Mixing.PAIRS if of_their_batches(before, found) else False
        if divides_by_others(loss, len(self._outputs[0])):
            return Mixing.MEAN
        if pairs_records(loss, self._outputs):
            return Mixing.PAIRS
        self._squares = found
        mixed = self._mixes_by_slopes(loss)
        if mixed is not False:
            self._squares = []
        return mixed

    def _reduces_otherwise(self, loss: torch.Tensor) -> bool:
        """Whether Opacus takes the loss for a mean over records, and it is a sum; or the other way round."""
        by, size = divided_by(loss, self._outputs), len(self._outputs[0])
        others = {n: one for n, one in self._divided.items() if n != size}
        if by is None:
            return False
        self._divided[size] = by
        if self._reduction == "mean":
            return any(math.isclose(one, by) for one in others.values())
        return self._reduction == "sum" and any(math.isclose(one / n, by / size) for n, one in others.items())

    def _mixes_by_slopes(self, loss: torch.Tensor) -> Mixing | bool | None:
        with _silent(self._model):
            if any(counts_in_loss(loss, self._outputs, one) for one in self._paddings.found):
                return Mixing.PADDING
            try:
                return _mixes_in_loss(loss, [*self._outputs, *self._beside])
            except RuntimeError:  # between two of them lies what has no second derivative
                return _mixes_in_loss(loss, self._outputs[:1])


def _mixes_in_loss(loss: torch.Tensor, outputs: list[torch.Tensor]) -> bool | None:
    slopes = torch.autograd.grad(loss, outputs, create_graph=True, retain_graph=True, allow_unused=True)
    if all(slope is None for slope in slopes):
        return None
    found = [(slope, output) for slope, output in zip(slopes, outputs, strict=True) if slope is not None]
    records = len(outputs[0])
    half = [0, *(1 + at for at in some_of(records - 2, (records - 1) // 2))]
    return any(_reaches_others(found, some, records) for some in ([0], half))


def _reaches_others(found: list[tuple[torch.Tensor, torch.Tensor]], some: list[int], records: int) -> bool:
    """Whether the slopes at the outputs of some records depend on the outputs of the others."""
    others = [at for at in range(records) if at not in set(some)]
    one = sum(_some_sum(slope[some]) for slope, _ in found if slope.requires_grad)
    if not isinstance(one, torch.Tensor):
        return False
    curved = torch.autograd.grad(one, [output for _, output in found], retain_graph=True, allow_unused=True)
    return any(_across(slope, c[others]) for (slope, _), c in zip(found, curved, strict=True) if c is not None)


def _some_sum(slope: torch.Tensor) -> torch.Tensor:
    weights = torch.linspace(0.5, 1.5, slope.numel(), dtype=slope.dtype, device=slope.device)
    return (slope * weights.view_as(slope)).sum()


def _across(slope: torch.Tensor, curvature: torch.Tensor) -> bool:
    across = float(curvature.abs().max())
    return across > _RELATIVE * float(slope.detach().abs().max()) and across > 1e-12


@contextmanager
def _silent(model: nn.Module) -> Iterator[None]:
    """Opacus's hooks of the backward pass are off.

    Expanded weights of torch need no hooks; what they gather is put back.

    Raises:
        UnsupportedError: there are hooks of somebody else, which cannot be turned off.
    """
    owners = {
        id(one): one for module in model.modules() for hook in _backward_hooks(module) for one in [owner_of(hook)]
    }
    if any(not hasattr(one, "hooks_enabled") for one in owners.values()):
        raise UnsupportedError("the model has hooks of its own in the backward pass")
    gathered = [(p, p.grad_sample) for p in model.parameters() if hasattr(p, "grad_sample")]
    try:
        with silent(owners.values()):
            yield
    finally:
        for p, gradients in gathered:
            p.grad_sample = gradients


def _backward_hooks(module: nn.Module) -> list[Any]:
    return [*module._backward_hooks.values(), *module._backward_pre_hooks.values()]


def _not_compiled(look: Callable[..., None]) -> Callable[..., None]:
    """A look that ``torch.compile`` would make a part of its code, where somebody compiles at all."""
    return torch.compiler.disable(look) if "torch._dynamo" in sys.modules else look
