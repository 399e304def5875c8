"""How the records of each step are drawn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reticent.errors import ParameterError
from reticent.mechanisms import Sampler
from reticent.text import one_of
from reticent.training.randomness import Source

DRAWN = (Sampler.POISSON, Sampler.FIXED_SIZE, Sampler.SHUFFLED, Sampler.CYCLIC, Sampler.RANDOM_ALLOCATION)
"""The samplers that the loop has."""


def draw_batches(
    sampler: Sampler, source: Source, dataset_size: int, sample_rate: float, batch_size: int | None
) -> Iterator[np.ndarray]:
    """An endless stream of batches: increasing positions in ``range(dataset_size)``.

    Args:
        sampler: ``POISSON`` includes each record independently with probability ``sample_rate`` (batches
            may be empty); ``FIXED_SIZE`` draws ``batch_size`` without replacement, anew in each step;
            ``SHUFFLED`` cuts a permutation per epoch into batches (the last one of an epoch may be smaller);
            ``CYCLIC`` cuts the records, as they lie, into the same batches in every epoch;
            ``RANDOM_ALLOCATION`` draws for each record, in each epoch anew, one of as many batches (some may be empty).
        sample_rate: used by ``POISSON`` only.
        batch_size: used by the other samplers, at most ``dataset_size``.

    Raises:
        ParameterError: ``batch_size`` is needed and missing, or outside 1 to ``dataset_size``.
    """
    if sampler is Sampler.POISSON:
        return _poisson(source, dataset_size, sample_rate)
    if batch_size is None or not 1 <= batch_size <= dataset_size:
        raise ParameterError("batch_size", batch_size, f"a whole number from 1 to {dataset_size}")
    match sampler:
        case Sampler.FIXED_SIZE:
            return _fixed_size(source, dataset_size, batch_size)
        case Sampler.SHUFFLED:
            return _shuffled(source, dataset_size, batch_size)
        case Sampler.CYCLIC:
            return _cyclic(dataset_size, batch_size)
        case Sampler.RANDOM_ALLOCATION:
            return _allocated(source, dataset_size, -(-dataset_size // batch_size))
    raise ParameterError("sampler", sampler, one_of(sampler, DRAWN))


def allocation(source: Source, dataset_size: int, steps: int) -> list[np.ndarray]:
    """One epoch: for each of ``steps`` the records in it, increasing. Each record draws its own step, uniformly.

    A step is the whole part of a uniform number times ``steps``, so its probability is 1 / ``steps`` up to 2^-52.
    """
    step = (source.uniform(dataset_size) * steps).astype(np.int64)
    order = np.argsort(step, kind="stable")
    return np.split(order, np.searchsorted(step[order], np.arange(1, steps)))


def _allocated(source: Source, dataset_size: int, steps: int) -> Iterator[np.ndarray]:
    while True:
        yield from allocation(source, dataset_size, steps)


def _poisson(source: Source, dataset_size: int, sample_rate: float) -> Iterator[np.ndarray]:
    while True:
        yield np.flatnonzero(source.uniform(dataset_size) < sample_rate)


def _fixed_size(source: Source, dataset_size: int, batch_size: int) -> Iterator[np.ndarray]:
    while True:
        yield np.sort(_permutation(source, dataset_size)[:batch_size])


def _shuffled(source: Source, dataset_size: int, batch_size: int) -> Iterator[np.ndarray]:
    while True:
        order = _permutation(source, dataset_size)
        for start in range(0, dataset_size, batch_size):
            yield np.sort(order[start : start + batch_size])


def _cyclic(dataset_size: int, batch_size: int) -> Iterator[np.ndarray]:
    while True:
        for start in range(0, dataset_size, batch_size):
            yield np.arange(start, min(start + batch_size, dataset_size))


def _permutation(source: Source, size: int) -> np.ndarray:
    """Sorting independent uniform keys: ties have probability below size^2 2^-53."""
    return np.argsort(source.uniform(size), kind="stable")
