"""Shadow models: trained like the target, on random parts of the data, as tasks that can be resumed.

Model k depends on the seed and k alone, and models are trained in blocks: on a processor of a fixed size, so that 16
models extend to 64 without training the 16 again, and the bits do not depend on how many were asked for, where, or in
which order. On a GPU a block is as large as its memory allows, and its noise is drawn for all of its models at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from reticent.attacks.base import AttackSettings
from reticent.attacks.shadow_training import ShadowBlock, block_size, members_of
from reticent.attacks.stacked import is_mlp
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.tasks import Store, Task, execute
from reticent.tasks.store import digest_of
from reticent.training.config import Clipping, TrainConfig
from reticent.training.models import build_model

LARGE = 2_000_000
"""From this many parameters on, a fully connected network is one task, as every other model is."""

_SCHEME = 2
"""Changes whenever the same task would give another result."""
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
        if checks.count(models=self.models) < 2:
            raise ParameterError("models", self.models, "a whole number >= 2")
        checks.count(train_size=self.train_size)


@dataclass(frozen=True)
class ShadowModels:
    """What attacks need of shadow models.

    Attributes:
        confidence: scaled confidence of every model in every record of the pool, (models, pool).
        included: True where the record was in the model's training data, (models, pool).
    """

    confidence: np.ndarray
    included: np.ndarray


def train_shadow_models(
    plan: ShadowPlan,
    features: np.ndarray,
    labels: np.ndarray,
    store: Store,
    settings: AttackSettings | None = None,
    described: Mapping[str, object] | None = None,
) -> ShadowModels:
    """Train what the store does not hold yet, and return all.

    Args:
        features: the pool, float32, shape (pool, ...).
        labels: int64 in range(classes), shape (pool,).
        settings: where models are trained, who is told what, and how long an answer is waited for. The expected cost
            is announced before the work begins, if there is any.
        described: what the store's manifest says about this work.

    Raises:
        ArtifactError: the store is corrupt, or another process works in it.
        ParameterError: the pool is too small for ``train_size``.
        WorkerError: the workers died or are stuck.
    """
    if plan.train_size >= len(features):
        raise ParameterError("train_size", plan.train_size, f"less than the {len(features)} records of the pool")
    pool, how = {"features": features, "labels": labels}, settings or AttackSettings()
    tasks = shadow_tasks(plan, digest_of(pool), int(labels.max()) + 1, features.shape[1:])

    def prepare(missing: Sequence[Task], workers: int) -> None:
        store.put(pool)
        if how.announce is not None:
            how.announce(expected_cost(missing, store, workers))

    execute(tasks, train_block, store, how.engine, how.progress, plan=described, prepare=prepare, timeout=how.timeout)
    confidence = np.concatenate([store.load(task)["confidence"] for task in tasks])[: plan.models]
    return ShadowModels(confidence, inclusion(plan, len(features)))


def shadow_tasks(plan: ShadowPlan, pool_digest: str, classes: int, feature_shape: Sequence[int]) -> list[Task]:
    """One task per block; a block holds the models ``number * size`` to ``(number + 1) * size - 1``.

    Args:
        pool_digest: of features and labels of the pool.

    Raises:
        UnsupportedError: the configuration asks for augmentation, or for normalised gradients.
    """
    if plan.config.augmentation is not None:
        raise UnsupportedError("shadow models are not trained with augmentation")
    if plan.config.clipping is not Clipping.FLAT:
        raise UnsupportedError("shadow models are not trained with clipping: normalise")
    model = build_model(plan.config.model, tuple(feature_shape), classes, seed=0)
    stacks = is_mlp(model) and sum(p.numel() for p in model.parameters()) < LARGE
    size = block_size(model, torch.device(plan.config.device), plan.models) if stacks else 1
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


def expected_cost(tasks: Sequence[Task], store: Store, workers: int) -> str:
    """What is still to be done with ``workers`` tasks at once: a few steps of the first are measured, and multiplied.

    The time of evaluation and of other machines' different speed is not in it.
    """
    block = ShadowBlock.of(tasks[0], store)
    probe = min(block.steps, 8)
    block.train(1)
    seconds = []
    for steps in (1, 1 + probe):
        start = time.perf_counter()
        block.train(steps)
        seconds.append(time.perf_counter() - start)
    each = max(seconds[1] - seconds[0], 0.0) / probe
    expected = -(-len(tasks) // workers) * (seconds[0] + each * block.steps)
    models = f"{len(tasks) * len(block.seeds)} shadow models to train in {len(tasks)} tasks"
    return f"{models}, {workers} at a time: about {expected:.0f} s"


def train_block(store: Store, task: Task) -> dict[str, np.ndarray]:
    """The work of one task: confidences of its models in the pool."""
    return ShadowBlock.of(task, store).result()


def inclusion(plan: ShadowPlan, pool: int) -> np.ndarray:
    """Who will be in whose training data, (models, pool): known before any model is trained."""
    included = np.zeros((plan.models, pool), dtype=bool)
    for number, row in enumerate(included):
        row[members_of(plan.seed, number, pool, plan.train_size)] = True
    return included
