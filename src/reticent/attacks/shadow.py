"""Shadow models: trained like the target, on random parts of the data, many at once.

Same pipeline by construction: the architecture comes from ``reticent.training.build_model``, batches from
``draw_batches``, randomness from ``SeededSource``, the optimiser is torch's own on stacked tensors, and the step
is that of DP-SGD with the target's configuration; a test holds a shadow model against ``reticent.training`` itself.

Model k depends on the seed and k alone, and models are trained in blocks of a fixed size. So 16 models extend to 64
without training the 16 again, and the bits do not depend on how many were asked for, where, or in which order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from reticent import _check
from reticent.attacks.signals import scaled_confidence
from reticent.attacks.stacked import Buffers, Stacked, stack
from reticent.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.tasks import Engine, Progress, Store, Task, execute
from reticent.tasks.store import digest_of
from reticent.training.batches import draw_batches
from reticent.training.config import Clipping, Optimiser, TrainConfig, parse_config
from reticent.training.hooks import RunContext
from reticent.training.loop import fit
from reticent.training.models import build_model
from reticent.training.randomness import SeededSource, Stream, torch_seed
from reticent.training.setup import make_settings
from reticent.training.smoothing import WeightAverage, follow

BLOCK = 16
"""Models per task."""
LARGE = 2_000_000
"""From so many parameters on, one model is one task."""

_SCHEME = 1
"""Changes whenever the same task would give another result."""
_MODEL_STREAM, _MEMBERSHIP_STREAM = 0, 1
_EVALUATION_BATCH = 4096
_IRRELEVANT = {"data", "seed", "randomness", "trace", "physical_batch_size", "augmentation", "clipping"}


@dataclass(frozen=True)
class ShadowPlan:
    """Which shadow models are wanted.

    Attributes:
        config: the target's configuration; its data, seed and trace play no part here.
        models: how many, at least 2.
        train_size: records that each model is trained on, drawn from the whole pool; fewer than it has.
        seed: of everything that is random here.

    Raises:
        ParameterError: fewer than two models, or ``train_size`` below 1.
    """

    config: TrainConfig
    models: int
    train_size: int
    seed: int = 0

    def __post_init__(self) -> None:
        if _check.count(models=self.models) < 2:
            raise ParameterError("models", self.models, "a whole number >= 2")
        _check.count(train_size=self.train_size)


@dataclass(frozen=True)
class ShadowModels:
    """What attacks need of shadow models.

    Attributes:
        confidence: scaled confidence of every model in every record of the pool, (models, pool).
        included: True where the record was in the model's training data, (models, pool).
    """

    confidence: np.ndarray
    included: np.ndarray


@dataclass(frozen=True)
class Cost:
    """What is still to be done, before it is done.

    Attributes:
        models: shadow models still to train (whole blocks).
        tasks: tasks still to run.
        seconds: expected time with ``workers`` at work, measured on a few steps of this machine.
        workers: tasks at once.
    """

    models: int
    tasks: int
    seconds: float
    workers: int

    def __str__(self) -> str:
        return (
            f"{self.models} shadow models to train in {self.tasks} tasks, {self.workers} at a time: "
            f"about {self.seconds:.0f} s"
        )


def train_shadow_models(
    plan: ShadowPlan,
    features: np.ndarray,
    labels: np.ndarray,
    store: Store,
    engine: Engine | None = None,
    announce: Callable[[Cost], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
    described: Mapping[str, object] | None = None,
    timeout: float | None = None,
) -> ShadowModels:
    """Train what the store does not hold yet, and return all.

    Args:
        plan: which models.
        features: the pool, float32, shape (pool, ...).
        labels: int64 in range(classes), shape (pool,).
        store: where results are and go.
        engine: where to compute.
        announce: called with the expected cost before the work begins, if there is any.
        progress: called after each task.
        described: what the store's manifest says about this work.
        timeout: give up when no task was finished for so many seconds.

    Raises:
        ArtifactError: the store is corrupt, or another process works in it.
        ParameterError: the pool is too small for ``train_size``.
        WorkerError: the workers died or are stuck.
    """
    if plan.train_size >= len(features):
        raise ParameterError("train_size", plan.train_size, f"less than the {len(features)} records of the pool")
    pool = {"features": features, "labels": labels}
    tasks = shadow_tasks(plan, digest_of(pool), int(labels.max()) + 1, features.shape[1:])

    def prepare(missing: Sequence[Task], workers: int) -> None:
        store.put(pool)
        if announce is not None:
            announce(estimate_cost(missing, store, workers))

    execute(tasks, train_block, store, engine, progress, plan=described, prepare=prepare, timeout=timeout)
    blocks = [store.load(task) for task in tasks]
    return ShadowModels(*(_gather(blocks, name, plan.models, len(features)) for name in ("confidence", "included")))


def shadow_tasks(plan: ShadowPlan, pool_digest: str, classes: int, feature_shape: Sequence[int]) -> list[Task]:
    """One task per block; a block holds the models ``number * size`` to ``(number + 1) * size - 1``.

    Args:
        plan: what is trained.
        pool_digest: of features and labels of the pool.
        classes: number of labels.
        feature_shape: of one record.

    Raises:
        UnsupportedError: the configuration asks for augmentation, or for normalised gradients.
    """
    if plan.config.augmentation is not None:
        raise UnsupportedError("shadow models are not trained with augmentation")
    if plan.config.clipping is not Clipping.FLAT:
        raise UnsupportedError("shadow models are not trained with clipping: normalise")
    model = build_model(plan.config.model, tuple(feature_shape), classes, seed=0)
    size = 1 if sum(p.numel() for p in model.parameters()) >= LARGE else BLOCK
    common: dict[str, Any] = {
        "scheme": _SCHEME,
        "torch": str(torch.__version__),
        "config": plan.config.model_dump(mode="json", exclude=_IRRELEVANT),
        "pool": pool_digest,
        "classes": classes,
        "train_size": plan.train_size,
        "seed": plan.seed,
        "size": size,
    }
    return [Task("shadow-block", {**common, "number": i}) for i in range(-(-plan.models // size))]


def estimate_cost(tasks: Sequence[Task], store: Store, workers: int = 1) -> Cost:
    """Measure a few steps of the first task, and multiply.

    The time of evaluation and of other machines' different speed is not in it.
    """
    block = _Block.of(tasks[0], store)
    probe = min(block.steps, 8)
    block.train(1)
    seconds = []
    for steps in (1, 1 + probe):
        start = time.perf_counter()
        block.train(steps)
        seconds.append(time.perf_counter() - start)
    each = max(seconds[1] - seconds[0], 0.0) / probe
    rounds = -(-len(tasks) // workers)
    return Cost(len(tasks) * len(block.seeds), len(tasks), rounds * (seconds[0] + each * block.steps), workers)


def train_block(store: Store, task: Task) -> dict[str, np.ndarray]:
    """The work of one task: confidences of its models in the pool, and what they were trained on.

    Raises:
        ArtifactError: the task is of another kind.
    """
    if task.kind != "shadow-block":
        raise ArtifactError(f"unknown kind of task {task.kind!r}")
    return _Block.of(task, store).result()


def model_seed(seed: int, number: int) -> int:
    """The seed of shadow model ``number``, whatever the number of models."""
    return int(
        np.random.SeedSequence(seed, spawn_key=(_MODEL_STREAM, number)).generate_state(1, np.uint64)[0] >> np.uint64(1)
    )


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


def inclusion(plan: ShadowPlan, pool: int) -> np.ndarray:
    """Who will be in whose training data, (models, pool): known before any model is trained."""
    included = np.zeros((plan.models, pool), dtype=bool)
    for number, row in enumerate(included):
        row[members_of(plan.seed, number, pool, plan.train_size)] = True
    return included


@dataclass(frozen=True)
class _Block:
    config: TrainConfig
    features: torch.Tensor
    labels: torch.Tensor
    classes: int
    seeds: list[int]
    members: list[np.ndarray]

    @classmethod
    def of(cls, task: Task, store: Store) -> _Block:
        given = task.inputs
        pool = store.get(given["pool"])
        # A configuration must name a data set; what is trained on is the pool.
        config = parse_config({**given["config"], "data": {"name": "digits"}}, "shadow task")
        numbers = range(given["number"] * given["size"], (given["number"] + 1) * given["size"])
        seeds = [model_seed(given["seed"], number) for number in numbers]
        members = [members_of(given["seed"], n, len(pool["labels"]), given["train_size"]) for n in numbers]
        features = torch.from_numpy(pool["features"]).to(config.device)
        return cls(
            config, features, torch.from_numpy(pool["labels"]).to(config.device), given["classes"], seeds, members
        )

    @property
    def steps(self) -> int:
        return make_settings(self.config, len(self.members[0])).steps

    def train(self, steps: int) -> Stacked:
        """The block's models after ``steps`` steps; a model alone is trained by ``reticent.training.fit`` itself."""
        modules = [self._module(seed) for seed in self.seeds]
        with _one_thread():
            if len(modules) == 1:
                self._fit(modules[0], steps)
                return stack(modules)
            models = stack(modules)
            train_stacked(models, self.config, self.features, self.labels, self.members, self.seeds, steps)
        return models

    def _module(self, seed: int) -> nn.Module:
        start = torch_seed(seed, Stream.INITIALISATION)
        return build_model(self.config.model, tuple(self.features.shape[1:]), self.classes, start).to(
            self.config.device
        )

    def _fit(self, module: nn.Module, steps: int) -> None:
        chosen = torch.from_numpy(self.members[0]).to(self.features.device)
        settings = replace(make_settings(self.config, len(chosen)), steps=steps)
        context = RunContext(
            model=module,
            dataset=None,
            train_features=self.features[chosen],
            train_labels=self.labels[chosen],
            max_grad_norm=settings.max_grad_norm,
            noise_multiplier=settings.noise_multiplier,
            sample_rate=settings.sample_rate,
            divisor=settings.divisor,
            planned_steps=steps,
            directory=None,
        )
        sampling = SeededSource(self.seeds[0], Stream.SAMPLING)
        averages = _averages(self.config)
        make = partial(_optimiser, self.config, steps)
        fit(context, settings, make, sampling, SeededSource(self.seeds[0], Stream.NOISE), hooks=averages)
        for mean in averages:
            mean.install()

    def result(self) -> dict[str, np.ndarray]:
        models = self.train(self.steps)
        labels = self.labels.cpu().numpy()
        parts = []
        with _one_thread():
            for start in range(0, len(labels), _EVALUATION_BATCH):
                stop = start + _EVALUATION_BATCH
                logits = models.logits(self.features[start:stop]).cpu().numpy()
                parts.append(scaled_confidence(logits, labels[start:stop]).astype(np.float32))
        included = np.zeros((len(self.seeds), len(labels)), dtype=bool)
        for row, chosen in zip(included, self.members, strict=True):
            row[chosen] = True
        return {"confidence": np.concatenate(parts, axis=1), "included": included}


def train_stacked(
    models: Stacked,
    config: TrainConfig,
    features: torch.Tensor,
    labels: torch.Tensor,
    members: Sequence[np.ndarray],
    seeds: Sequence[int],
    steps: int,
) -> None:
    """DP-SGD of ``config`` on K models at once, in place.

    Args:
        models: K models with their initial weights.
        config: the target's configuration.
        features, labels: the pool, on the models' device.
        members: K arrays of equal length: positions in the pool of each model's training records.
        seeds: K seeds of masks and noise.
        steps: how many.
    """
    settings = make_settings(config, len(members[0]))
    streams = [
        draw_batches(
            settings.sampler,
            SeededSource(seed, Stream.SAMPLING),
            len(chosen),
            settings.sample_rate,
            settings.batch_size,
        )
        for seed, chosen in zip(seeds, members, strict=True)
    ]
    noise = [SeededSource(seed, Stream.NOISE) for seed in seeds]
    optimiser, buffers, averages = _optimiser(config, steps, models.parameters), Buffers(), _averages(config)
    for mean in averages:
        mean.begin(models.parameters, steps)
    for step in range(steps):
        index, weights = _pad([chosen[next(stream)] for chosen, stream in zip(members, streams, strict=True)])
        where = torch.from_numpy(index).to(features.device)
        models.add_gradients(
            buffers.rows("x", features, where),
            buffers.rows("y", labels, where),
            torch.from_numpy(weights).to(features.device),
            config.max_grad_norm,
        )
        _add_noise(models.parameters, noise, settings.noise_multiplier * settings.max_grad_norm)
        for gradient in _gradients(models.parameters):
            gradient.div_(settings.divisor)
        optimiser.step()
        for mean in averages:
            mean.add(step)
    for mean in averages:
        mean.install()


def _optimiser(config: TrainConfig, steps: int, parameters: Sequence[torch.Tensor]) -> torch.optim.Optimizer:
    """torch's own: its updates work on each number alone, so stacking changes nothing."""
    optimiser: torch.optim.Optimizer
    if config.optimiser is Optimiser.ADAM:
        optimiser = torch.optim.Adam(parameters, lr=config.learning_rate)
    else:
        optimiser = torch.optim.SGD(parameters, lr=config.learning_rate, momentum=config.momentum)
    if config.learning_rate_schedule is not None:
        follow(optimiser, config.learning_rate_schedule, steps)
    return optimiser


def _averages(config: TrainConfig) -> list[WeightAverage]:
    return [] if config.average_last is None else [WeightAverage(config.average_last)]


def _pad(batches: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Batches of different sizes as a rectangle, and weights that blank what was added."""
    longest = max(1, *(len(batch) for batch in batches))
    index = np.zeros((len(batches), longest), dtype=np.int64)
    weights = np.zeros((len(batches), longest), dtype=np.float32)
    for row, batch in enumerate(batches):
        index[row, : len(batch)] = batch
        weights[row, : len(batch)] = 1.0
    return index, weights


def _add_noise(parameters: list[torch.Tensor], noise: Sequence[SeededSource], deviation: float) -> None:
    if deviation == 0.0:
        return
    sizes = [p[0].numel() for p in parameters]
    drawn = np.stack([source.normal(sum(sizes)) for source in noise]) * deviation
    flat = torch.from_numpy(drawn).to(parameters[0])
    for gradient, part in zip(_gradients(parameters), flat.split(sizes, dim=1), strict=True):
        gradient.add_(part.reshape(gradient.shape))


def _gradients(parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def _gather(blocks: list[dict[str, np.ndarray]], name: str, models: int, pool: int) -> np.ndarray:
    try:
        array = np.concatenate([block[name] for block in blocks])[:models]
    except (KeyError, ValueError):
        raise ArtifactError(f"a shadow task holds no proper {name!r}") from None
    if array.shape != (models, pool):
        raise ArtifactError(f"shadow tasks hold {name!r} of shape {array.shape}, not {(models, pool)}")
    return array


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums over threads depend on their number; one thread gives the same bits everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


__all__ = [
    "BLOCK",
    "Cost",
    "ShadowModels",
    "ShadowPlan",
    "estimate_cost",
    "inclusion",
    "shadow_tasks",
    "train_block",
    "train_shadow_models",
    "train_stacked",
]
