"""Random allocation for loops that shuffle: each record draws its batches anew in each epoch, by itself.

A shuffling loader fills batches of one size, so where the others are says where the target is, and nothing is proven
for it. Here a record's batch does not depend on the others (docs/theory/sampling.md). The draws come from the operating
system: there is no generator and no seed that a program could give away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, Sampler

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.samplers.random_allocation import allocation
from reticent.training.randomness import SystemSource

_KEPT = (
    *("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator"),
    *("prefetch_factor", "persistent_workers"),
)
_WANTED = "a DataLoader that shuffles: DataLoader(dataset, batch_size=..., shuffle=True), before make_private"


class RandomAllocation(Sampler[list[int]]):
    """A batch sampler: each pass puts each record into one of its batches, or several, uniformly; some may be empty.

    Example:
        >>> loader = DataLoader(data, batch_sampler=RandomAllocation(len(data), 64))  # doctest: +SKIP
    """

    def __init__(self, dataset_size: int, batches: int, uses_per_epoch: int = 1) -> None:
        """A sampler for this many records and batches; each record is in ``uses_per_epoch`` of these.

        Raises:
            ParameterError: one of them is not a whole number from 1 on, or there are fewer batches than uses.
        """
        self.dataset_size = checks.count(dataset_size=dataset_size)
        self._batches = checks.count(batches=batches)
        self.uses_per_epoch = checks.count(uses_per_epoch=uses_per_epoch)
        if uses_per_epoch > batches:
            raise ParameterError("uses_per_epoch", uses_per_epoch, f"at most the {batches} batches of an epoch")

    def __iter__(self) -> Iterator[list[int]]:
        for batch in allocation(SystemSource(), self.dataset_size, self._batches, self.uses_per_epoch):
            yield batch.tolist()

    def __len__(self) -> int:
        return self._batches


def random_allocation(loader: DataLoader[Any], *, uses_per_epoch: int = 1) -> DataLoader[Any]:
    """A loader with the records and the number of batches of ``loader``, drawn by random allocation.

    With ``drop_last`` there is no batch for the rest, but no record is left out. Hand it to
    ``make_private(..., poisson_sampling=False)``, or iterate over it in a loop of your own. Batches vary in size:
    divide sums by the expected size, never by that of the batch, as Opacus does. An empty batch has tensors with no
    rows.

    Args:
        loader: of torch, that shuffles all records of its data set once in each pass. Its generator is not used for
            batches.
        uses_per_epoch: in how many batches of an epoch each record is; these then hold so many times as many records.

    Raises:
        ParameterError: it is no such loader, or has fewer batches than uses.

    Example:
        >>> import reticent as rt
        >>> loader = rt.random_allocation(loader)  # doctest: +SKIP
    """
    if type(loader) is not DataLoader:
        raise ParameterError("loader", type(loader).__name__, _WANTED)
    dataset: Any = loader.dataset
    if isinstance(dataset, IterableDataset):
        raise ParameterError(
            "loader.dataset", type(dataset).__name__, "one with a length, whose records have positions"
        )
    if type(loader.batch_sampler) is RandomAllocation and loader.batch_sampler.uses_per_epoch == uses_per_epoch:
        return loader
    order = loader.sampler
    shuffles = type(order) is RandomSampler and not order.replacement and order.num_samples == len(dataset)
    if type(loader.batch_sampler) is not BatchSampler or not shuffles:
        drawn = order if type(loader.batch_sampler) in (BatchSampler, type(None)) else loader.batch_sampler
        raise ParameterError("loader", f"one with {type(drawn).__name__}", _WANTED)
    return DataLoader(
        dataset,
        batch_sampler=RandomAllocation(len(dataset), max(1, len(loader)), uses_per_epoch),
        collate_fn=partial(_or_emptied, loader.collate_fn, dataset),  # workers can load it
        **{name: getattr(loader, name) for name in _KEPT},
    )


def _or_emptied(own: Callable[[list[Any]], Any], dataset: Any, records: list[Any]) -> Any:
    """A batch of records; of none, one of a record, with its row taken out."""
    return own(records) if len(records) else _emptied(own([dataset[0]]))


def _emptied(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {name: _emptied(value) for name, value in batch.items()}
    return tree_map(lambda value: value[:0] if isinstance(value, torch.Tensor) and value.ndim else value, batch)
