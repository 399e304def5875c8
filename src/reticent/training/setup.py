"""From a configuration to records and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch.optim import SGD, Adam, Optimizer

from reticent import data
from reticent.calibration.scale import all_noise
from reticent.calibration.solve import calibrate
from reticent.calibration.targets import target_in
from reticent.data import Dataset
from reticent.data.purchase import load_purchase100, purchase100_files
from reticent.facts.hidden_steps import TOO_LONG, contraction
from reticent.facts.plan import OF_A_STAGE, planned_segments, sampler_of
from reticent.kernel.adversaries import ADVERSARIES
from reticent.kernel.errors import DataError, ParameterError
from reticent.kernel.mechanisms import Mechanism
from reticent.training.augmentation import Augmentation
from reticent.training.config import Clipping, Optimiser, TrainConfig
from reticent.training.config_data import OWN, DataConfig
from reticent.training.features import extracted, normalised
from reticent.training.settings import Settings, release_of, staged
from reticent.training.smoothing import follow


def load_dataset(config: DataConfig) -> Dataset:
    """The data set with the split that the configuration asks for.

    Raises:
        ParameterError: an unknown name, or a split that leaves one side empty.
        DataError: a file is missing or corrupt, or the records are the user's own.
    """
    if config.name == OWN:
        raise DataError("records of your own: say reticent train --data FILE --label COLUMN, or train(dataset=mine)")
    return divided(data.load(config.name), config)


def find_dataset(config: DataConfig, content_hash: str) -> Dataset | None:
    """The data set of a run by its fingerprint, or None; of Purchase-100 every copy in its folder is looked at.

    Raises:
        ParameterError, DataError: as ``load_dataset``.
    """
    copies = purchase100_files() if config.name == "purchase-100" else []
    loaders: list[Callable[[], Dataset]] = [partial(data.load, config.name)]
    loaders += [partial(load_purchase100, file) for file in copies]
    for load in loaders:
        dataset = divided(load(), config)
        if dataset.content_hash == content_hash:
            return dataset
    return None


def divided(dataset: Dataset, config: DataConfig) -> Dataset:
    """``dataset`` with the split, the size and the features that the configuration asks for."""
    if config.train_fraction is not None:
        dataset = dataset.split(config.train_fraction, config.split_seed)
    if config.train_size is not None:
        dataset = dataset.subset(config.train_size)
    return normalised(extracted(dataset, config.features), config.normalise_features)


def make_settings(config: TrainConfig, dataset_size: int) -> Settings:
    """Noise, rates, divisor and steps for ``dataset_size`` training records.

    A target is turned into noise here, by certified calibration of the run as it is planned.

    Raises:
        UnreachableError: no noise meets the target.
        ParameterError: the batch is larger than the data.
    """
    planned, target = _planned(config, dataset_size, 1.0), config.target
    if target is None:
        return planned
    release = release_of(planned, config.records_per_user)
    who = ADVERSARIES[target.adversary].knowing(contraction=factor_of(config, planned) if config.final_model else None)
    least = calibrate(release, all_noise(release), target_in(target.model_dump()), who, target.neighbouring)
    return _planned(config, dataset_size, least.value)


def _planned(config: TrainConfig, dataset_size: int, noise: float) -> Settings:
    """Of a run whose first step has this noise, where the configuration has a target instead."""
    asked = config.model_dump(mode="json")
    segments = planned_segments(asked, dataset_size, noise)
    first, views = segments[0], config.augmentation
    usual = Settings(
        **{name: getattr(first, name) for name in OF_A_STAGE},
        steps=sum(part.steps for part in segments),
        sampler=sampler_of(asked, first.sample_rate or 1.0),
        batch_size=config.batch_size,
        physical_batch_size=config.physical_batch_size,
        normalise=config.clipping is Clipping.NORMALISE,
        augmentation=None if views is None else Augmentation(**dict(views)),
    )
    return staged(usual, segments, dataset_size)


def optimiser_of(config: TrainConfig, steps: int, parameters: Sequence[torch.Tensor]) -> Optimizer:
    """What moves the weights. It works on each number alone, so it also moves models that are stacked."""
    rate, decay = config.learning_rate, config.weight_decay
    optimizer: Optimizer
    if config.optimiser is Optimiser.ADAM:
        optimizer = Adam(parameters, lr=rate, weight_decay=decay)
    else:
        optimizer = SGD(parameters, lr=rate, momentum=config.momentum, weight_decay=decay)
    if config.learning_rate_schedule is not None:
        follow(optimizer, config.learning_rate_schedule, steps)
    return optimizer


def planned_release(config: TrainConfig, dataset_size: int) -> Mechanism:
    """What a run of ``config`` releases if all its steps run.

    Raises:
        UnreachableError, ParameterError: as ``make_settings``.
    """
    settings = make_settings(config, dataset_size)
    return release_of(settings, config.records_per_user)


def factor_of(config: TrainConfig, planned: Settings) -> float:
    """By which factor the updates of a run whose steps are hidden contract.

    Raises:
        ParameterError: they do not.
    """
    found = contraction(config.model_dump(mode="json"), config.learning_rate, config.weight_decay, planned.divisor)
    if found is None:
        raise ParameterError("learning_rate", config.learning_rate, TOO_LONG)
    return found
