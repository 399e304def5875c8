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
from reticent.facts.clipping import Mixing
from reticent.kernel.errors import UnsupportedError
from reticent.watching.detectors import divisors, paddings, pairings
from reticent.watching.detectors.base import Detector, Undos
from reticent.watching.detectors.closer_looks import some_of
from reticent.watching.detectors.collating import Collating
from reticent.watching.detectors.mixed_inputs import Yielded
from reticent.watching.detectors.mixed_outputs import Given, Read, differ, has_hooks, mixes_in_forward, tensors_in
from reticent.watching.detectors.record_gradients import silent
from reticent.watching.detectors.weights import Buffers, changed_buffers
from reticent.watching.events import Backward, Undo
from reticent.watching.hooks import Hook, owner_of
from reticent.watching.models import bare, entrance, trains

_RELATIVE = 1e-3
_ENOUGH, _OF_A_SIZE = 8, 3
"""Records that are enough to be grouped; batches of one size after which nobody waits for another."""

_MOST_LOSSES = 8
"""Of other models, which may come before that of this one; to try each costs a backward pass."""


class AloneInFirstStep(Detector):
    """Batches, layers and losses in which one record changes what another one adds.

    Looks at one forward and one backward pass, the first with two records or more, and then no more. Where these are
    too few to tell, as two of which mixup exchanges none, later ones are looked at, too.

    Kind: records that mix.

    Seen: *Batches* that are mixed before the model: the first that it reads, up to one with eight records, against what
    the loader gave: mixup, cutmix, and what takes away the mean of the batch. Fewer rows of the model than the batch
    has records, unless they are some of these, as they are or scaled. *Layers*: in the first step, and where it has
    fewer than eight records in the next with eight, too, with hooks of the program that change outputs, the first and
    the last record alone, or among copies of itself, against the same record in its batch: in all outputs, in a loss
    that the model gives, and in the rows that each layer gets. *Losses*, where ``loss.backward()`` is called by the
    loop or by a trainer: the second derivatives across records. *Means that others divide*, in the graph of the loss: a
    mean of torch with weights of classes, with labels that are ignored (padding), or over some of the records; a mean
    over positions as many as the longest record has; a mean over, or a division by, the count of all tokens of the
    batch, as by the sum of a mask, where two batches have two such counts; and in two batches of different sizes
    whether the loss is the mean, or the sum, that Opacus takes it for (``loss_reduction``), where nothing but sums,
    means and plain operations lie on the way. *Labels of other records*, there too: numbers of the records, one for
    each, that are spread over a square, as a column of outputs is by a list of labels; products and distances with as
    many vectors without a gradient as there are records, as texts or the outputs themselves, if they are others in the
    second batch; and the order of numbers of the records, by which the hardest are chosen. Where a look was not
    possible, the ledger says ``mixing-not-looked-at``, a warning: the model reads an object without tensors that can be
    found, the collate function or the model cannot be copied, workers or an iterator were there before the watch, or
    the loop computes other lengths from padded records. The condition ``clipped`` is assumed then, as nobody stated it.

    Not seen: what the loop does with a batch before the forward pass, such as augmentation, where it is none of these;
    a layer or a loss that begins to mix after the first step, or mixes in some batches only, as from a list of earlier
    batches, by values that are cut out of the graph (``detach``), by a hinge between two records, by a loss whose
    second derivatives torch lacks, or by a model that cannot be copied; weights of records in the loss that the program
    computes from other records, as from the counts of classes in the batch (``pos_weight``); a sum that it divides by a
    number of its own from the records, where that is none of the positions that are not 0 or -100 in a tensor of the
    batch: by the sum of weights or of a 0/1 column (``(l * h).sum() / h.sum()``, ``(w[y] * l).sum() / w[y].sum()``), by
    the length of the longest record, or by a mean of lengths; a mean over records that the program chose from the
    losses of all (``l[h].mean()``), though one of torch over chosen outputs is seen; whether the loss is a mean where
    the batches of the first steps have one size each, or operations that may divide lie on the way; outputs that depend
    on nothing of other records but their number, of models that draw random numbers, or by less than eight roundings on
    a GPU or in half precision;
    ``batch_first=False`` under Opacus for data whose first axis holds the records, where sequences are as long as the
    batch has records; and the loss where the loop calls ``torch.autograd.backward`` itself, or runs forward and
    backward passes in two threads (the ledger says ``mixing-not-looked-at``).
    """

    def _start(self) -> None:
        """Nothing was seen since the watch was entered."""
        loop, model = self._loop, self._loop.model
        self._model = bare(model)
        self._yielded, self._records_first = Yielded(loop.loader), getattr(model, "batch_first", True)
        whole = entrance(model)
        self._entrances = [whole] if whole is not self._model else list(self._model.modules())
        """What the loop may call. Compiled code is looked at from outside."""
        self._own = {id(module) for module in self._entrances}
        self._target: nn.Module | None = None
        self._passes = Backward(self.guarded(self.before_backward), lambda: None)
        self._waits_for_loss = self._saw_loss = False
        """Whether outputs wait for a backward pass, and whether any was ever seen."""
        self._outermost: nn.Module | None = None
        self._hooked: Callable[[Any], bool] | None = None
        """Says of an output whether hooks of the program changed it so that it mixes records."""
        self._before = False
        """Whether another part of the model was called for this backward pass, as an encoder before its head."""
        self._outputs: list[torch.Tensor] = []
        self._made, self._beside = False, list[torch.Tensor]()
        """Whether rows that hold no record went through the model; and what it gave of the last."""
        self._places, self._losses = set[int](), list[torch.Tensor]()
        """Single numbers among the outputs that mix records: their places, and these numbers."""
        self._squares: list[pairings.Square] = []
        """Of the first batch, where a second one has to tell what they are."""
        self._paddings = paddings.Paddings(loop.of(Collating).padded)
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
        self._undo: list[Undo] = []

    def attach(self) -> Undos:
        """Look at the first batches, if that does not end by itself before."""
        self._start()
        before, after = (Hook(_not_compiled(self.guarded(look))) for look in (self.given, self.gave))
        yield self.close
        for module in self._entrances:  # Lightning calls a child, not the module itself
            self._undo.append(module.register_forward_pre_hook(before, with_kwargs=True).remove)
            self._undo.append(module.register_forward_hook(after).remove)
        self._undo.extend(self._yielded.attach())
        yield register_optimizer_step_pre_hook(self.hook(self._settle)).remove

    def close(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()
        if self._paddings.unseen if self._target is not None else self._made:
            self._found(facts.NOT_LOOKED_AT)
        if self._squares or (self._count and not self._chance):  # no other batch came
            where = Mixing.PAIRS if self._squares else Mixing.MEAN
            self._squares, self._count = [], None
            self._found(facts.MIXES_RECORDS.because(where))
        self._passes.off()
        self._outputs, self._losses = [], []

    def _settle(self, optimizer: Any, *_: Any) -> None:
        """A step: of gradients that Opacus clipped somebody must have seen the loss."""
        self._passes.off()
        waits, self._waits_for_loss = self._waits_for_loss, False
        moved = (p for group in optimizer.param_groups for p in group["params"])
        if waits and self._undo and any(hasattr(p, "summed_grad") for p in moved):
            self._found(facts.NOT_LOOKED_AT)

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

    def given(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        """A module is about to read these."""
        if id(module) not in self._own:  # of a copy of the model, which has its hooks
            return
        if self._loop.no_records:
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
            read = Read(bare(module), args, kwargs, size)
            self._look_at_padding(read, tensors, reads=first or waited)
            if first or before < _ENOUGH <= size:
                self._look_at_forward_pass(read)

    def _look_at_forward_pass(self, read: Read) -> None:
        if self._try(lambda: self._mixes_in_forward(read), Mixing.MODEL) is None:
            self._found(facts.NOT_LOOKED_AT)
        if has_hooks(read.model):
            self._try(lambda: self._without_hooks(read), Mixing.MODEL)
        buffers = self._loop.of(Buffers)
        self._try(lambda: buffers.looked_at(read.model, changed_buffers(read)), Mixing.MODEL)

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
        self._counts = divisors.counts_of([t for batch in batches for t in batch], size)

    def _records_of(self, tensors: list[torch.Tensor]) -> int:
        """How many records a model is about to read: before them may come a state, or a table of classes."""
        rows = [n for n in map(len, tensors) if n > 1] or list(map(len, tensors[:1]))
        drawn = {len(t) for batch in self._yielded.batches for t in batch}
        return next((n for n in rows if n in drawn), next(iter(rows), 0))

    def gave(self, module: nn.Module, args: Any, output: Any) -> None:
        """A module gave this."""
        if self._loop.no_records and module in self._entrances:
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

    def _mixes_in_forward(self, read: Read) -> bool | None:
        try:
            found, self._places = mixes_in_forward(read)
        except Exception:  # it cannot be copied, or does not read a copy
            return None
        return found

    def _without_hooks(self, read: Read) -> None:
        """Hooks of the program, which may write down what they see, are called for a look only if they change it."""
        with torch.no_grad():
            plain = Given(read).of(range(read.size))

        def mixes(output: Any) -> bool:
            changed = any(map(differ, map(torch.Tensor.detach, tensors_in(output, numbers=True)), plain))
            return changed and mixes_in_forward(read, hooked=True)[0]

        self._hooked = mixes

    def _look_at_padding(self, read: Read, tensors: list[torch.Tensor], reads: bool) -> None:
        self._size, batches = read.size, self._yielded.batches

        def look() -> None:
            self._paddings.look(batches, tensors, read.size)
            self._counts |= {one.tokens - less for one in self._paddings.found for less in (0, read.size)}

        self._try(look, Mixing.PADDING)
        for one in self._paddings.found if reads else []:
            self._try(partial(paddings.counts_in_outputs, read, one), Mixing.PADDING)

    def _mixes_in_loss(self, loss: torch.Tensor) -> Mixing | bool | None:
        """Whether, and where, the loss mixes records; None where it is not one of these outputs."""
        if self._losses and {t.grad_fn for t in self._losses} & {node for node, _ in divisors.nodes(loss)}:
            return True
        if not self._outputs or divisors.of_another(loss, self._outputs, self._model):
            return None
        lengths, earlier = {t.length for t in self._paddings.found}, self._count
        count = divisors.divides_by_counts(loss, self._outputs, self._size, self._counts, lengths)
        self._chance, self._count = self._chance or count is None, count or earlier
        if count == math.inf or (count and earlier and earlier != count):
            self._count = None
            return Mixing.MEAN
        if self._reduces_otherwise(loss):
            return Mixing.MEAN
        found, before = pairings.squares(loss, self._outputs), self._squares
        if before:
            self._squares = []
            return Mixing.PAIRS if pairings.of_their_batches(before, found) else False
        if divisors.divides_by_others(loss, len(self._outputs[0])):
            return Mixing.MEAN
        if pairings.pairs_records(loss, self._outputs):
            return Mixing.PAIRS
        self._squares = found
        mixed = self._mixes_by_slopes(loss)
        if mixed is not False:
            self._squares = []
        return mixed

    def _reduces_otherwise(self, loss: torch.Tensor) -> bool:
        """Whether Opacus takes the loss for a mean over records, and it is a sum; or the other way round."""
        by, size = divisors.divided_by(loss, self._outputs), len(self._outputs[0])
        others = {n: one for n, one in self._divided.items() if n != size}
        if by is None:
            return False
        self._divided[size] = by
        if self._reduction == "mean":
            return any(math.isclose(one, by) for one in others.values())
        return self._reduction == "sum" and any(math.isclose(one / n, by / size) for n, one in others.items())

    def _mixes_by_slopes(self, loss: torch.Tensor) -> Mixing | bool | None:
        with _silent(self._model):
            if any(paddings.counts_in_loss(loss, self._outputs, one) for one in self._paddings.found):
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
    hooks = [
        hook
        for one in model.modules()
        for hooks in (one._backward_hooks, one._backward_pre_hooks)
        for hook in hooks.values()
    ]
    owners = {id(one): one for one in map(owner_of, hooks)}
    if any(not hasattr(one, "hooks_enabled") for one in owners.values()):
        raise UnsupportedError("the model has hooks of its own in the backward pass")
    gathered = [(p, p.grad_sample) for p in model.parameters() if hasattr(p, "grad_sample")]
    try:
        with silent(owners.values()):
            yield
    finally:
        for p, gradients in gathered:
            p.grad_sample = gradients


def _not_compiled(look: Callable[..., None]) -> Callable[..., None]:
    """A look that ``torch.compile`` would make a part of its code, where somebody compiles at all."""
    return torch.compiler.disable(look) if "torch._dynamo" in sys.modules else look
