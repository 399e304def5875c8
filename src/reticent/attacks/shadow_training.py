"""One block of shadow models, trained as stacked tensors.

Same pipeline by construction: the architecture comes from ``reticent.training.models.build_model``, batches from
the sampler, randomness from ``SeededSource``, the optimiser is torch's own on stacked tensors, and the step
is that of DP-SGD with the target's configuration; a test compares a shadow model with ``reticent.training`` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import nn

from reticent.attacks.signals import scaled_confidence
from reticent.attacks.stacked import StackedMLP
from reticent.tasks import Store, Task
from reticent.training.config import TrainConfig, parse_config
from reticent.training.hooks import RunContext
from reticent.training.loop import fit
from reticent.training.models import build_model
from reticent.training.randomness import KeyedSource, SeededSource, Stream, torch_seed
from reticent.training.setup import make_settings, optimiser_of
from reticent.training.smoothing import WeightAverage

BLOCK = 16
"""Models per task, where they are stacked on a processor: what its cache holds."""

_MODEL_STREAM, _MEMBERSHIP_STREAM = 0, 1
_EVALUATION_BATCH = 4096


def block_size(model: nn.Module, device: torch.device, models: int) -> int:
    """Fully connected models like this one that are trained at once.

    On a GPU as many as a quarter of its memory holds, but no more than there are. It is a power of two, so that it
    seldom moves with what else the memory holds: a block of another size is trained again.
    """
    if device.type != "cuda":
        return BLOCK
    parameters = list(model.parameters())
    units = sum(p.numel() for p in parameters if p.ndim == 1)
    floats = 16 * sum(p.numel() for p in parameters) + _EVALUATION_BATCH * (parameters[0].shape[1] + 4 * units)
    free, total = torch.cuda.mem_get_info(device)
    fit = min(free, total // 4) // (4 * floats)
    return max(BLOCK, min(1 << fit.bit_length() - 1 if fit else 0, 1 << (models - 1).bit_length()))


def model_seed(seed: int, number: int) -> int:
    """The seed of shadow model ``number``, whatever the number of models."""
    return torch_seed(seed, _MODEL_STREAM, number)


def members_of(seed: int, number: int, pool: int, size: int) -> np.ndarray:
    """Increasing positions of the training records of shadow model ``number``.

    Sixteen consecutive models share one random circle of the pool; each leaves out an arc, and the arcs start at
    equal distances. So every record is left out by as many of the sixteen as every other, up to one,
    whatever share of the pool a model is trained on.
    """
    group, place = divmod(number, BLOCK)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_MEMBERSHIP_STREAM, group)))
    circle = np.roll(rng.permutation(pool), -(place * pool // BLOCK))
    return np.sort(circle[:size])


@dataclass(frozen=True)
class ShadowBlock:
    """The models of one task, and the pool that they are trained on."""

    config: TrainConfig
    features: torch.Tensor
    labels: torch.Tensor
    classes: int
    seeds: list[int]
    members: list[np.ndarray]

    @classmethod
    def of(cls, task: Task, store: Store) -> ShadowBlock:
        """The block that a task describes."""
        given = task.inputs
        pool = store.get(given["pool"])
        # A configuration must name a data set; what is trained on is the pool.
        config = parse_config({**given["config"], "data": {"name": "digits"}}, "shadow task")
        numbers = range(given["number"] * given["size"], (given["number"] + 1) * given["size"])
        seeds = [model_seed(given["seed"], number) for number in numbers]
        members = [members_of(given["seed"], n, len(pool["labels"]), given["train_size"]) for n in numbers]
        features, labels = (torch.from_numpy(pool[name]).to(config.device) for name in ("features", "labels"))
        return cls(config, features, labels, given["classes"], seeds, members)

    @property
    def steps(self) -> int:
        """Of each model."""
        return make_settings(self.config, len(self.members[0])).steps

    def train(self, steps: int) -> Callable[[torch.Tensor], torch.Tensor]:
        """Train the block's models; a model alone is trained by ``reticent.training.fit`` itself.

        Returns:
            What they answer: records, (records, ...), to logits, (models, records, classes).
        """
        modules = [self._module(seed) for seed in self.seeds]
        with _one_thread():
            if len(modules) == 1:
                self._fit(modules[0], steps)
                return lambda features: modules[0].eval()(features)[None]
            models = StackedMLP(modules)
            self.train_stacked(models, steps)
        return models.logits

    def _module(self, seed: int) -> nn.Module:
        start, shape = torch_seed(seed, Stream.INITIALISATION), tuple(self.features.shape[1:])
        return build_model(self.config.model, shape, self.classes, start).to(self.config.device)

    def _fit(self, module: nn.Module, steps: int) -> None:
        chosen = torch.from_numpy(self.members[0]).to(self.features.device)
        settings = replace(make_settings(self.config, len(chosen)), steps=steps)
        context = RunContext(settings, module, self.features[chosen], self.labels[chosen])
        sampling, noise = (SeededSource(self.seeds[0], stream) for stream in (Stream.SAMPLING, Stream.NOISE))
        averages = _averages(self.config)
        fit(context, partial(optimiser_of, self.config, steps), sampling, noise, hooks=averages)
        for mean in averages:
            mean.install()

    def train_stacked(self, models: StackedMLP, steps: int) -> None:
        """DP-SGD of the configuration on all models at once, in place.

        Args:
            models: with their initial weights, one for each seed.
        """
        settings = make_settings(self.config, len(self.members[0]))
        draw, rate, size = settings.sampler.batches, settings.sample_rate, settings.batch_size
        streams = [
            draw(SeededSource(seed, Stream.SAMPLING), len(chosen), rate, size)
            for seed, chosen in zip(self.seeds, self.members, strict=True)
        ]
        noise = _noise_of(self.seeds, self.features.device)
        optimiser, averages = optimiser_of(self.config, steps, models.parameters), _averages(self.config)
        for mean in averages:
            mean.begin(models.parameters, steps)
        for step in range(steps):
            batches = [chosen[next(stream)] for chosen, stream in zip(self.members, streams, strict=True)]
            index, weights = _pad(batches, 1.0 / settings.divisor)
            where, counted = (torch.from_numpy(part).to(self.features.device) for part in (index, weights))
            models.add_gradients(self.features[where], self.labels[where], counted, self.config.max_grad_norm)
            _add_noise(models.parameters, noise, settings.noise_multiplier * settings.max_grad_norm / settings.divisor)
            optimiser.step()
            for mean in averages:
                mean.add(step)
        for mean in averages:
            mean.install()

    def result(self) -> dict[str, np.ndarray]:
        """Confidences of the trained models in the pool."""
        answer = self.train(self.steps)
        labels = self.labels.cpu().numpy()
        parts = []
        with _one_thread(), torch.no_grad():
            for start in range(0, len(labels), _EVALUATION_BATCH):
                stop = start + _EVALUATION_BATCH
                logits = answer(self.features[start:stop]).cpu().numpy()
                parts.append(scaled_confidence(logits, labels[start:stop]).astype(np.float32))
        return {"confidence": np.concatenate(parts, axis=1)}


def _averages(config: TrainConfig) -> list[WeightAverage]:
    return [] if config.average_last is None else [WeightAverage(config.average_last)]


def _pad(batches: list[np.ndarray], weight: float) -> tuple[np.ndarray, np.ndarray]:
    """Batches of different sizes as a rectangle, and each record's ``weight``, 0 for what was added."""
    longest = max(1, *(len(batch) for batch in batches))
    index = np.zeros((len(batches), longest), dtype=np.int64)
    weights = np.zeros((len(batches), longest), dtype=np.float32)
    for row, batch in enumerate(batches):
        index[row, : len(batch)] = batch
        weights[row, : len(batch)] = weight
    return index, weights


def _noise_of(seeds: list[int], device: torch.device) -> Callable[[int], torch.Tensor]:
    """Draws some normal numbers for each model; on a GPU at once for all of them, as a model would wait for its own."""
    if device.type == "cuda":
        block = KeyedSource(seeds)
        return lambda size: block.normal(len(seeds) * size, device).view(len(seeds), size)
    each = [SeededSource(seed, Stream.NOISE) for seed in seeds]
    return lambda size: torch.stack([source.normal(size) for source in each])


def _add_noise(parameters: list[torch.Tensor], noise: Callable[[int], torch.Tensor], deviation: float) -> None:
    if deviation == 0.0:
        return
    sizes = [p[0].numel() for p in parameters]
    flat = (noise(sum(sizes)) * deviation).to(parameters[0])
    gradients = [p.grad for p in parameters if p.grad is not None]
    for gradient, part in zip(gradients, flat.split(sizes, dim=1), strict=True):
        gradient.add_(part.reshape(gradient.shape))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums over threads depend on their number; one thread gives the same bits everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
