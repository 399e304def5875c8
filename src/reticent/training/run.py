"""One configuration in, one run directory out."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import reticent
from reticent.data import Dataset
from reticent.data.own import SCHEMA_FILE, OwnTable
from reticent.facts.base import word
from reticent.facts.plan import told
from reticent.facts.planned_steps import PLANNED_STEPS, PlannedSteps
from reticent.facts.steps import Randomness
from reticent.io.commitments import new_salt
from reticent.io.outputs import refuse_overwriting
from reticent.kernel import checks
from reticent.kernel.errors import NumericalError, ParameterError, UnsupportedError
from reticent.kernel.lazy import installed
from reticent.mechanisms.gradients import GradientsRecord
from reticent.records.ledger import RunLedger
from reticent.records.parts import DataRecord, Diagnostics, Environment, ParameterRecord, Seeds, Utility
from reticent.sensitivity import SensitiveAttribute
from reticent.training import rundir
from reticent.training.checkpoint import Checkpoint
from reticent.training.config import TrainConfig
from reticent.training.features import feature_note, has_length
from reticent.training.hooks import RunContext, StepHook
from reticent.training.loop import FitRecord, Progress, fit
from reticent.training.model_form import recognised
from reticent.training.models import build_model, trained_parameters
from reticent.training.own import named
from reticent.training.randomness import SeededSource, Source, Stream, SystemSource, torch_seed
from reticent.training.sensitive import AttributeHook, SensitivityFileHook
from reticent.training.settings import Settings
from reticent.training.setup import divided, factor_of, load_dataset, make_settings, optimiser_of
from reticent.training.smoothing import WeightAverage
from reticent.training.spread import SpreadHook
from reticent.training.trace import TraceRecorder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_EVALUATION_BATCH = 4096
_REHEARSED = 4


def train(
    config: TrainConfig,
    out: Path | str,
    progress: Progress | None = None,
    hooks: Sequence[StepHook] = (),
    dataset: Dataset | None = None,
    checkpoint: Path | str | None = None,
    checkpoint_every: int = 100,
    sign: Ed25519PrivateKey | None = None,
    table: OwnTable | None = None,
) -> rundir.Run:
    """Train with DP-SGD and write a run directory.

    The guarantee of the result is that of ``run.ledger.mechanism()``, for the weights of every step.
    It does not cover the ledger's diagnostics, nor a trace with masks, nor the choice of the settings
    if that was made by looking at results on the same records. Noise is added in floating point: the
    guarantee is that of the mechanism in real numbers.

    Args:
        config: what to train.
        out: the run directory; must not exist.
        progress: called with (steps done, steps planned).
        hooks: observers; see ``reticent.training.hooks``.
        dataset: the records, if they are loaded already; must be what ``config.data`` names.
        checkpoint: a file in which the run is kept now and then; if it exists, the run goes on from there. It is
            private, and deleted when the run is complete. Not with a trace, a sensitive attribute or shuffled epochs.
        checkpoint_every: steps between two writes.
        sign: a private key that signs the run when it ends: later edits of its folder are found.
        table: the table of your own that ``config.data.table`` names, instead of ``dataset``; its schema is kept with
            the run, which can then encode the table again.

    Raises:
        ArtifactError: ``out`` exists or cannot be written.
        ParameterError, DataError, UnsupportedError: the configuration cannot be carried out.
        NumericalError: a gradient or a weight became infinite; nothing is written.
    """
    out = Path(out)
    refuse_overwriting(out)
    if any(isinstance(hook, AttributeHook) and hook.ends_runs for hook in hooks):
        wanted = "without a budget: state sensitive.budget in the configuration, so that the ledger shows it"
        raise ParameterError("hooks", "AttributeHook", wanted)
    _device(config.device)  # one that is missing is said before data are read
    ours = all(type(hook).__module__.startswith("reticent.") for hook in hooks)  # another's may change what is trained
    encoded_here = ours and dataset is None
    if table is not None:
        if dataset is not None or config.data.table != named(table):
            raise ParameterError("table", table.file, "the one that data.table names, without a data set beside it")
        dataset = divided(table.dataset, config.data)
    dataset = load_dataset(config.data) if dataset is None else _as_named(dataset, config)
    settings = make_settings(config, len(dataset.train))
    if config.final_model:
        _refuse_seen_steps(config, dataset, settings, ours and checkpoint is None)
    kept = _checkpoint(checkpoint, checkpoint_every, config, dataset)
    with nullcontext() if kept is None else kept.held():
        with rundir.new_run(out, sign) as directory:
            if table is not None:
                (directory / SCHEMA_FILE).write_text(table.schema.to_json(), encoding="utf-8")
            ended = fitted(config, dataset, settings, directory, hooks, progress, kept, encoded_here=encoded_here)
            rundir.write_run(directory, ended.ledger, ended.model)
        if kept is not None:
            kept.path.unlink(missing_ok=True)
    return rundir.load_run(out)


@dataclass(frozen=True)
class Fitted:
    """A run that ended, and of which nothing is written.

    Attributes:
        model: with its last weights.
        ledger: what ran.
        right: training records classified correctly, without noise: private.
    """

    model: nn.Module
    ledger: RunLedger
    right: int


def fitted(
    config: TrainConfig,
    dataset: Dataset,
    settings: Settings,
    directory: Path | None = None,
    hooks: Sequence[StepHook] = (),
    progress: Progress | None = None,
    kept: Checkpoint | None = None,
    *,
    encoded_here: bool = True,
) -> Fitted:
    """Train as ``train`` does; nothing is written but by hooks.

    Args:
        settings: of ``make_settings``.
        directory: of the run; without it neither a trace nor a sensitive attribute can be recorded.
        kept: where the run goes on from.
        encoded_here: the records were read and encoded by code of this library.

    Raises:
        NumericalError: a gradient or a weight became infinite.
    """
    context = _context(config, dataset, settings, directory)
    model = context.model
    average = [] if config.average_last is None else [WeightAverage(config.average_last)]
    every = (*hooks, *_configured_hooks(config, dataset), *average)
    make = partial(optimiser_of, config, settings.steps)
    record = fit(context, make, *_sources(config), every, progress, kept)
    if record.steps == 0:
        raise ParameterError("hooks", [type(h).__name__ for h in hooks], "hooks that allow at least one step")
    for mean in average:
        mean.install()
    _check_finite(model)
    form = recognised(model, dataset, config, record, encoded_here=encoded_here)
    accuracy, _ = accuracy_and_loss(model, context.train_features, context.train_labels)
    ledger = _ledger(config, dataset, context, record, form, accuracy)
    return Fitted(model, ledger, round(accuracy * len(dataset.train)))


@dataclass(frozen=True)
class Cost:
    """What a run would take.

    Attributes:
        steps: noisy updates.
        records: training records.
        batch_size: records in one step, on average.
        gradients: of single records, over the whole run.
        num_parameters: trained coordinates.
        seconds: of all steps, from a few that were tried on this machine.
    """

    steps: int
    records: int
    batch_size: float
    gradients: float
    num_parameters: int
    seconds: float


def cost_of(config: TrainConfig, records: Dataset, planned: Settings) -> Cost:
    """What a run takes, from a few steps that are thrown away.

    Args:
        config: what would be trained.
        records: its data set.
        planned: settings of the run.

    Raises:
        ParameterError, UnsupportedError: as ``train``.
    """
    few = replace(planned, steps=min(_REHEARSED, planned.steps), stages=())
    context = _context(config, records, few, None)
    ends = [time.perf_counter()]
    make = partial(optimiser_of, config, few.steps)
    fit(context, make, SystemSource(), SystemSource(), progress=lambda *_: ends.append(time.perf_counter()))
    later = ends[1:] if len(ends) > 2 else ends  # the first step warms up
    seconds = (later[-1] - later[0]) / (len(later) - 1)
    size, views = len(records.train), 1 if planned.augmentation is None else planned.augmentation.times
    batch = planned.sample_rate * size * planned.sampler.uses
    gradients = planned.steps * batch * views
    return Cost(planned.steps, size, batch, gradients, trained_parameters(context.model), planned.steps * seconds)


def _refuse_seen_steps(config: TrainConfig, dataset: Dataset, settings: Settings, unseen: bool) -> None:
    """What ``final_model`` cannot promise ends here, before anything is trained."""
    if dataset.classes != 2:
        raise UnsupportedError(
            f"final_model: two labels, not {dataset.classes}: clipped gradients of softmax over three or more classes "
            "are those of no convex loss (docs/theory/final-model.md)"
        )
    if not unseen:
        raise UnsupportedError("final_model: no checkpoint, and no hooks but those of reticent: they see the steps")
    factor_of(config, settings)


def _checkpoint(path: Path | str | None, every: int, config: TrainConfig, dataset: Dataset) -> Checkpoint | None:
    if path is None:
        return None
    belongs = {"config": config.model_dump(mode="json"), "data": dataset.content_hash, "versions": _versions()}
    return Checkpoint(Path(path), checks.count(checkpoint_every=every), belongs)


def _as_named(dataset: Dataset, config: TrainConfig) -> Dataset:
    wanted = config.data.features
    if wanted is not None and feature_note(wanted) not in dataset.notes:
        raise ParameterError("dataset", dataset.name, "one whose features were computed as data.features says")
    length = config.data.normalise_features
    if length is not None and not has_length(dataset, length):
        raise ParameterError("dataset", dataset.name, "one whose features data.normalise_features scaled to one length")
    return dataset


def _configured_hooks(config: TrainConfig, dataset: Dataset) -> list[StepHook]:
    hooks: list[StepHook] = []
    if config.trace is not None:
        hooks.append(TraceRecorder(config.trace))
    if config.sensitive is not None:
        attribute = SensitiveAttribute.from_group(dataset.group(config.sensitive.group))
        hooks.append(SensitivityFileHook(config.sensitive, attribute))
    if config.spread is not None:
        hooks.append(SpreadHook(config.spread, dataset))
    return hooks


def accuracy_and_loss(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
    """Share of records classified correctly, and mean cross-entropy; the model is left in its mode."""
    training = model.training
    model.eval()
    correct, loss = 0, 0.0
    with torch.no_grad():
        for x, y in zip(features.split(_EVALUATION_BATCH), labels.split(_EVALUATION_BATCH), strict=True):
            logits = model(x)
            correct += int((logits.argmax(dim=1) == y).sum())
            loss += float(cross_entropy(logits, y, reduction="sum"))
    model.train(training)
    return correct / len(labels), loss / len(labels)


def _context(config: TrainConfig, dataset: Dataset, settings: Settings, directory: Path | None) -> RunContext:
    device, seed = _device(config.device), torch_seed(config.seed, Stream.INITIALISATION)
    model = build_model(config.model, dataset.feature_shape, dataset.classes, seed).to(device)
    features, labels = _on(device, dataset, dataset.train)
    return RunContext(settings, model, features, labels, dataset, directory)


def _check_finite(model: nn.Module) -> None:
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise NumericalError("training diverged: a weight is not finite; lower learning_rate or noise_multiplier")


def _device(name: str) -> torch.device:
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ParameterError("device", name, "cpu: torch finds no CUDA device here")
    return torch.device(name)


def _on(device: torch.device, dataset: Dataset, which: np.ndarray) -> list[torch.Tensor]:
    """Features and labels of some records."""
    return [torch.from_numpy(part[which]).to(device) for part in (dataset.features, dataset.labels)]


def _sources(config: TrainConfig) -> tuple[Source, Source]:
    if config.randomness is Randomness.FRESH:
        return SystemSource(), SystemSource()
    return SeededSource(config.seed, Stream.SAMPLING), SeededSource(config.seed, Stream.NOISE)


def _ledger(
    config: TrainConfig,
    dataset: Dataset,
    context: RunContext,
    record: FitRecord,
    form: GradientsRecord,
    train_accuracy: float,
) -> RunLedger:
    settings, model = context.settings, context.model
    ledger = RunLedger(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        config=config.model_dump(mode="json"),
        data=_data_record(dataset, settings),
        **told(record.segments, settings.sampler, config.clipping.value),
        facts={PLANNED_STEPS.key: PlannedSteps(steps=settings.steps)},
        records_per_user=config.records_per_user,
        num_parameters=trained_parameters(model),
        parameters=tuple(ParameterRecord(name=n, shape=tuple(p.shape)) for n, p in model.named_parameters()),
        gradients=form,
        environment=Environment(
            optimiser=(config.optimiser.value,),
            device=word(_device_name(config.device)),
            randomness=config.randomness,
            seeds=_seeds(config, dataset),
            versions=_versions(),
        ),
        utility=_utility(model, dataset, context.train_features.device),
        diagnostics=Diagnostics(
            batch_sizes=record.batch_sizes,
            clipped=() if config.final_model else record.clipped,
            train_accuracy=train_accuracy,
            seconds=record.seconds,
        ),
    )
    return ledger.sealed()


def _data_record(dataset: Dataset, settings: Settings) -> DataRecord:
    return DataRecord(
        name=dataset.name,
        source=dataset.source,
        content_hash=dataset.content_hash,
        salt=new_salt(),
        dataset_size=len(dataset.train),
        test_size=len(dataset.test),
        feature_shape=dataset.feature_shape,
        classes=dataset.classes,
        notes=(*dataset.notes, *(() if settings.augmentation is None else (settings.augmentation.note,))),
    )


def _seeds(config: TrainConfig, dataset: Dataset) -> Seeds:
    known = config.seed if config.randomness is Randomness.REPRODUCIBLE else None
    return Seeds(initialisation=config.seed, split=dataset.split_seed, sampling=known, noise=known)


def _utility(model: nn.Module, dataset: Dataset, device: torch.device) -> Utility:
    if len(dataset.test) == 0:
        return Utility(test_accuracy=None, test_loss=None)
    features, labels = _on(device, dataset, dataset.test)
    accuracy, loss = accuracy_and_loss(model, features, labels)
    largest = int(torch.bincount(labels).max()) / len(labels)
    return Utility(test_accuracy=accuracy, test_loss=loss if math.isfinite(loss) else None, largest_class=largest)


def _device_name(name: str) -> str:
    return f"{name} ({torch.cuda.get_device_name(name)})" if name.startswith("cuda") else name


def _versions() -> dict[str, str]:
    packages = {name: installed(name) or "unknown" for name in ("torch", "opacus", "numpy", "scipy")}
    return {"reticent": reticent.__version__, "python": platform.python_version(), **packages}
