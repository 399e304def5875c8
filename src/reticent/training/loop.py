"""The training loop: real sampling, empty batches included, and a record of what it did."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from opacus.grad_sample import GradSampleModule
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from reticent.facts.steps import Segment
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.mechanisms.gradients import Obstacle
from reticent.training.checkpoint import Checkpoint, Moving
from reticent.training.factored import LinearModel
from reticent.training.hooks import RunContext, Step, StepHook, StopTraining, Update, flat
from reticent.training.model_form import head_of
from reticent.training.models import check_private_model
from reticent.training.optimiser import PrivateOptimizer
from reticent.training.randomness import Source
from reticent.training.settings import batches_of, segments_of

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FitRecord:
    """What a loop did.

    Attributes:
        batch_sizes: realised records per step.
        clipped: records per step whose gradient norm exceeded the clip norm.
        seconds: wall time.
        segments: equal steps in order, as they were executed.
        factored: every gradient was taken as a product of what a linear layer got, one vector for each record, and of
            what its output wanted.
    """

    batch_sizes: tuple[int, ...]
    clipped: tuple[int, ...]
    seconds: float
    segments: tuple[Segment, ...]
    factored: bool = False

    @property
    def steps(self) -> int:
        """Noisy updates executed, those with an empty batch included."""
        return len(self.batch_sizes)


def fit(
    context: RunContext,
    optimiser: Callable[[list[nn.Parameter]], Optimizer],
    sampling: Source,
    noise: Source,
    hooks: Sequence[StepHook] = (),
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> FitRecord:
    """Train ``context.model`` in place with DP-SGD on the cross-entropy of its logits.

    Args:
        context: model, training records, settings, and what else hooks see.
        optimiser: makes the optimizer of the trainable parameters (plain SGD, Adam, ...).
        sampling: randomness of batches.
        noise: randomness of noise.
        hooks: observers; see ``reticent.training.hooks``.
        progress: called with (steps done, steps planned) after each step.
        checkpoint: where the run is kept now and then, and resumed from; not for runs over epochs.

    Raises:
        UnsupportedError: the model has no per-record gradients (it mixes records, as BatchNorm does).
        ParameterError: the records are empty or the batch larger than the data.
    """
    if len(context.train_features) == 0:
        raise ParameterError("train_features", 0, "at least one record")
    settings = context.settings
    if settings.augmentation is not None:
        settings.augmentation.check(context.train_features)
    check_private_model(context.model, context.train_features)
    batches = batches_of(settings, sampling, len(context.train_features))
    if checkpoint is not None and settings.sampler.in_passes:
        raise UnsupportedError(f"a run over {settings.sampler.name} epochs cannot be resumed: leave out the checkpoint")
    if checkpoint is not None and settings.stages:
        raise UnsupportedError("a run with a schedule cannot be resumed: leave out the checkpoint")
    layouts = _plain_layouts(context.model)
    wrapped = GradSampleModule(context.model, loss_reduction="sum")
    try:
        private = PrivateOptimizer(
            optimiser([p for p in wrapped.parameters() if p.requires_grad]),
            noise_multiplier=settings.noise_multiplier,
            max_grad_norm=settings.max_grad_norm,
            divisor=settings.divisor,
            source=noise,
        )
        loop = _Loop(context, wrapped, private, hooks, (sampling, noise))
        with warnings.catch_warnings():
            # Opacus needs no gradient with respect to its input, which torch remarks on.
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            return loop.run(batches, progress, checkpoint)
    finally:
        wrapped.remove_hooks()
        for handle in layouts:
            handle.remove()
        _forget_gradients(context.model)


class _Loop:
    def __init__(
        self,
        context: RunContext,
        model: GradSampleModule,
        optimizer: PrivateOptimizer,
        hooks: Sequence[StepHook],
        sources: tuple[Source, Source],
    ) -> None:
        self.context, self.model, self.optimizer, self.hooks = context, model, optimizer, hooks
        self.settings = settings = context.settings
        self.done = Moving(context.model, optimizer.original_optimizer, sources, hooks)
        self.ran: list[tuple[float, ...]] = []  # what ``OF_A_STAGE`` names, of each step
        self.stages = dict(settings.stages)
        self.linear: LinearModel | None = None
        if settings.augmentation is None:
            with _undisturbed(model):
                self.linear = LinearModel.of(context.model, context.train_features)
        form = head_of(context.model)
        if settings.normalise and (self.linear is None or isinstance(form, Obstacle) or not (form.known and form.last)):
            raise UnsupportedError("clipping: normalise needs a model whose last layer is linear and trained alone")

    def run(self, batches: Iterator[np.ndarray], progress: Progress | None, checkpoint: Checkpoint | None) -> FitRecord:
        started = time.perf_counter()
        self.model.train()
        self._call(lambda hook: hook.start(self.context))
        done = checkpoint.restore(self.done) if checkpoint is not None else 0
        for _ in range(done):  # with the same settings: a run with stages is not kept
            self._count()
        for index in range(done, self.settings.steps):
            try:
                self._step(index, next(batches))
            except StopTraining:
                break
            if checkpoint is not None and (index + 1) % checkpoint.every == 0:
                checkpoint.save(self.done)
            if progress is not None:
                progress(index + 1, self.settings.steps)
        self._call(lambda hook: hook.finish())
        seconds = time.perf_counter() - started
        counts = tuple(self.done.batch_sizes), tuple(self.done.clipped)
        return FitRecord(*counts, seconds, segments_of(self.ran), factored=self.linear is not None)

    def _enter(self, index: int) -> None:
        """Take over what changes at this step: loop and optimizer read it from here on."""
        stage = self.stages.get(index)
        if stage is None:
            return
        self.settings = stage
        self.optimizer.noise_multiplier = stage.noise_multiplier
        self.optimizer.max_grad_norm = stage.max_grad_norm
        self.optimizer.expected_batch_size = stage.divisor

    def _count(self) -> None:
        """One step; noise, norm and divisor are those that the optimizer really used."""
        used = self.optimizer
        now = used.noise_multiplier, used.max_grad_norm, self.settings.sample_rate, used.expected_batch_size
        self.ran.append(self.ran[-1] if self.ran[-1:] == [now] else now)

    def _step(self, index: int, indices: np.ndarray) -> None:
        self._enter(index)
        where = torch.from_numpy(indices).to(self.context.train_features.device, non_blocking=True)
        if self.hooks:
            step = Step(index, indices, self.context.train_features[where], self.context.train_labels[where])
            self._call(lambda hook: hook.before_step(step))
        self._release(where)
        norms = self.optimizer.take_norms()
        self._count()
        self.done.batch_sizes.append(len(indices))
        self.done.clipped.append(self.optimizer.clipped)
        if self.hooks:
            gradient = flat([p.grad for p in self.optimizer.params])
            self._call(lambda hook: hook.after_step(step, Update(gradient, norms)))

    def _release(self, where: torch.Tensor) -> None:
        """One noisy update. Large batches pass in pieces whose clipped gradients add up before the noise.

        Memory is that of one piece: its records are copied when it is their turn.
        """
        views = self.settings.augmentation
        pieces = where.split(max(1, self.settings.physical_batch_size // (views.times if views else 1)))
        self.optimizer.zero_grad()
        if self.linear is not None:
            with _undisturbed(self.model, keep_random_state=False):
                brought = self.linear.normalised if self.settings.normalise else self.linear.clipped
                for piece in pieces:
                    self.optimizer.accumulate(*brought(*self._records(piece), self.settings.max_grad_norm))
        else:
            drawn = views.draw(self.done.sources[0], len(where)) if views else torch.zeros(len(where))
            for piece, mine in zip(pieces, drawn.split(max(1, len(pieces[0]))), strict=True):
                self._backward(*self._records(piece), mine)
                self.optimizer.clip_and_accumulate()
                for p in self.optimizer.params:
                    p.grad_sample = None
        self.optimizer.release()

    def _records(self, where: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.context.train_features[where], self.context.train_labels[where]

    def _backward(self, features: torch.Tensor, labels: torch.Tensor, draws: torch.Tensor) -> None:
        views = self.settings.augmentation
        if len(labels) == 0:
            # Poisson sampling may draw nobody: the sum is zero and the noise is still released.
            for p in self.optimizer.params:
                p.grad_sample = p.detach().new_zeros((0, *p.shape))
            return
        if views is None:
            cross_entropy(self.model(features), labels, reduction="sum").backward()
            return
        many = labels.repeat_interleave(views.times)
        cross_entropy(self.model(views.views(features, draws)), many, reduction="sum").backward()
        views.average(self.optimizer.params)

    def _call(self, what: Callable[[StepHook], None]) -> None:
        if not self.hooks:
            return
        with _undisturbed(self.model):
            for hook in self.hooks:
                what(hook)


def _plain_layouts(model: nn.Module) -> list[RemovableHandle]:
    """Hand convolutions tensors in their plain order in memory.

    Opacus 1.6.0 reads the input of ``nn.Conv2d`` with strides that hold for that order only. For a permuted tensor its
    gradients of records are wrong; they mix records where those are not the outermost axis in memory.
    """
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return [layer.register_forward_pre_hook(_plain) for layer in model.modules() if isinstance(layer, kinds)]


def _plain(layer: nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(tensor.contiguous() for tensor in given)


_plain.reticent_watches = True  # type: ignore[attr-defined]  # no number changes, so recorders let it pass


@contextmanager
def _undisturbed(model: GradSampleModule, keep_random_state: bool = True) -> Iterator[None]:
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    model.disable_hooks()
    try:
        with torch.random.fork_rng(devices=devices, enabled=keep_random_state):
            yield
    finally:
        model.enable_hooks()
        model.train()


def _forget_gradients(model: nn.Module) -> None:
    """Leave a plain module: no per-record gradient may outlive the run."""
    for p in model.parameters():
        p.grad = None
        for name in ("grad_sample", "summed_grad", "_forward_counter"):
            if hasattr(p, name):
                delattr(p, name)
