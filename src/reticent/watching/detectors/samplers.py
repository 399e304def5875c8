"""How a loader draws its batches, found by looking at it; what is not known exactly is unknown."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from reticent.facts.base import word
from reticent.facts.steps import Drawn, SamplerRecord, Source
from reticent.watching.allocation import RandomAllocation
from reticent.watching.models import living
from reticent.watching.optimisers import of_opacus, processes

_OFTEN = (Drawn.WEIGHTED, Drawn.WITH_REPLACEMENT)
"""Draws that may fill a batch with one record."""

_SEVERAL = "DistributedUniformWithReplacementSampler"

_PLACES = 256
"""Records of a tensor that tell one order from another."""


def look_at(loader: Any, *, joined: bool = False) -> SamplerRecord:
    """What a loader's sampler is.

    Only classes that are known line by line count, and only while nobody has overridden how they draw. An unknown
    class is unknown, whatever it is called.

    Args:
        loader: that the loop reads, or None.
        joined: several processes train, and what each of them draws will be compared.
    """
    seen = _look_at(loader)
    if not (joined and _is_shared(seen)):
        seen = _in_all_processes(seen, processes())
    listed = copies(getattr(loader, "dataset", None))
    return seen.model_copy(update={"copies": listed}) if listed > 1 else seen


def look_again(loader: Any, seen: SamplerRecord) -> SamplerRecord:
    """A sampler on its way: what was seen, or the worse of that and what it is now; else unknown.

    The rate of a Poisson sampler is followed, and nothing else matters there. Copies are not counted again.
    """
    if seen.drawn in (Drawn.UNKNOWN, Drawn.POISSON):
        return seen
    now = _in_all_processes(_look_at(loader), processes()).model_copy(update={"copies": seen.copies})
    if now == seen:
        return seen
    for worse, most in ((_OFTEN, "batch_size"), ((Drawn.DISTRIBUTED,), "times_per_epoch")):
        found = [one for one in (now, seen) if one.drawn in worse]
        if found:
            largest = max(getattr(one, most) or 1 for one in (now, seen))
            return found[0].model_copy(update={most: largest, "batches_per_epoch": None})
    often = max(one.times_per_epoch or 1 for one in (now, seen))
    return unknown(seen).model_copy(update={"times_per_epoch": often if often > 1 else None})


def unknown(seen: SamplerRecord) -> SamplerRecord:
    """A sampler that nobody knows any more."""
    return _unknown(seen.name).model_copy(update={"copies": seen.copies})


def _look_at(loader: Any) -> SamplerRecord:
    if loader is None:
        return _unknown("no loader was given")
    batches = observed_sampler(loader)
    if batches is None:
        return _unknown(type(loader).__name__)
    poisson = _poisson(batches)
    if poisson is not None:
        return poisson
    if type(batches) is RandomAllocation or getattr(type(batches), "reticent_watches", None) is RandomAllocation:
        return _allocated(batches)
    if not _draws_like(batches, BatchSampler):
        return _unknown(type(batches).__name__)
    return _batched(batches, loader.dataset)


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of the records that a process draws from in one pass.

    Attributes:
        draws: the class of the sampler.
        records: of all parts together.
        parts: into which they are shared out.
        part: the number of this one.
        length: what this process draws in a pass.
        order: the seed of the permutation that is cut into parts; None where they lie in order.
    """

    draws: str
    records: int
    parts: int
    part: int
    length: int
    order: int | None


def shard_of(loader: Any) -> Shard | None:
    """The part from which the next pass draws; None where its sampler shares nothing out."""
    one: Any
    batches = logical_batches(loader)
    if any(_draws_like(batches, kind) for kind in of_opacus("utils.uniform_sampler", _SEVERAL)):
        one, records, seed, length = batches, batches.total_size, batches.shuffle_seed, batches.num_batches
    else:
        one = getattr(batches, "sampler", None)
        if not _draws_like(one, DistributedSampler):
            return None
        records, seed, length = len(one.dataset), one.seed, one.num_samples
    order = seed + one.epoch if one.shuffle else None
    return Shard(type(one).__name__, records, one.num_replicas, one.rank, length, order)


def order_of(dataset: Any) -> str:
    """A digest of which record is where, as far as it can be told without asking for records.

    Positions of ``Subset``, parts of ``ConcatDataset``, values of a ``TensorDataset`` at some places, and what
    Hugging Face's ``datasets`` call their fingerprint.
    """
    digest = hashlib.sha256(f"{type(dataset).__name__} {getattr(dataset, '__len__', int)()}".encode())
    if isinstance(dataset, Subset):
        digest.update(np.asarray(dataset.indices, dtype=np.int64).tobytes() + order_of(dataset.dataset).encode())
    for part in getattr(dataset, "datasets", ()) if isinstance(dataset, (ConcatDataset, StackDataset)) else ():
        digest.update(order_of(part).encode())
    for whole in dataset.tensors if isinstance(dataset, TensorDataset) else ():
        some = whole.detach()[:: max(1, len(whole) // _PLACES)].cpu().contiguous()
        digest.update(some.reshape(-1).view(torch.uint8).numpy().tobytes())
    digest.update(str(getattr(dataset, "_fingerprint", "")).encode())
    return digest.hexdigest()


def _is_shared(seen: SamplerRecord) -> bool:
    return seen.drawn is Drawn.POISSON and seen.name == _SEVERAL


def _in_all_processes(seen: SamplerRecord, processes: int) -> SamplerRecord:
    """What one process draws, in a run of several whose gradients may be added up.

    A sampler that does not share the records out may draw a record in each process in the same step.
    """
    if _is_shared(seen):
        return seen.model_copy(update={"drawn": Drawn.DISTRIBUTED, "times_per_epoch": 1, "sample_rate": None})
    if processes == 1 or seen.drawn is Drawn.DISTRIBUTED:
        return seen
    if seen.drawn in _OFTEN:
        most = None if seen.batch_size is None else processes * seen.batch_size
        return seen.model_copy(update={"batch_size": most})
    drawn = seen.drawn if seen.drawn is Drawn.UNKNOWN else Drawn.DISTRIBUTED
    often = processes * (seen.times_per_epoch or 1)
    return seen.model_copy(update={"drawn": drawn, "times_per_epoch": often, "sample_rate": None})


def observed_sampler(loader: Any) -> Any:
    """The object whose iteration gives one list of positions for each batch, or None."""
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return None
    return logical_batches(loader)


def holder_of(loader: Any) -> tuple[Any, str]:
    """Who has what draws the batches of a loader, and by which name; of a ``BatchMemoryManager``'s, those it splits."""
    loader = getattr(loader, "base_dataloader", loader)  # accelerate wraps it
    batches: Any = getattr(loader, "batch_sampler", None)
    return (
        (batches, "sampler") if any(_draws_like(batches, kind) for kind in _splitting()) else (loader, "batch_sampler")
    )


def holders_of(loader: Any) -> list[tuple[Any, str]]:
    """The same, and each ``BatchMemoryManager`` of this loader that is there now."""
    batches = logical_batches(loader)
    return [holder_of(loader), *((one, "sampler") for one in living(*_splitting()) if one.sampler is batches)]


def _splitting() -> tuple[type, ...]:
    return of_opacus("utils.batch_memory_manager", "BatchSplittingSampler")


def logical_batches(loader: Any) -> Any:
    """What draws the batches of a loader."""
    holder, name = holder_of(loader)
    return getattr(holder, name, None)


def _poisson(batches: Any) -> SamplerRecord | None:
    for name, records in ((_SEVERAL, "total_size"), ("UniformWithReplacementSampler", "num_samples")):
        if any(_draws_like(batches, kind) for kind in of_opacus("utils.uniform_sampler", name)):
            return SamplerRecord(
                drawn=Drawn.POISSON,
                source=Source.SEEN,
                name=name,
                sample_rate=float(batches.sample_rate),
                dataset_size=int(getattr(batches, records)),
            )
    return None


def _allocated(batches: RandomAllocation) -> SamplerRecord:
    """Drawn anew whenever it is iterated: a pass is an epoch."""
    return SamplerRecord(
        drawn=Drawn.RANDOM_ALLOCATION,
        source=Source.SEEN,
        name=RandomAllocation.__name__,
        dataset_size=batches.dataset_size,
        batches_per_epoch=len(batches),
        times_per_epoch=batches.uses_per_epoch,
    )


def _batched(batches: BatchSampler, dataset: Any) -> SamplerRecord:
    """Records drawn one by one and cut into batches."""
    sampler, size = batches.sampler, len(dataset)
    drawn, times = _one_by_one(sampler)
    return SamplerRecord(
        drawn=drawn,
        source=Source.UNKNOWN if drawn is Drawn.UNKNOWN else Source.SEEN,
        name=word(type(sampler).__name__),
        batch_size=batches.batch_size,
        dataset_size=size,
        batches_per_epoch=max(1, len(batches)) if times is not None else None,
        times_per_epoch=times,
        drop_last=bool(batches.drop_last),
    )


def _one_by_one(sampler: Any) -> tuple[Drawn, int | None]:
    """The kind of draw, and how often one pass can draw one record.

    A sampler may draw from fewer records than the loader holds, and then from the same ones again.
    """
    if _draws_like(sampler, SequentialSampler):
        return Drawn.IN_ORDER, 1
    if _draws_like(sampler, WeightedRandomSampler):
        return Drawn.WEIGHTED, None
    if _draws_like(sampler, DistributedSampler):
        # A pass may repeat records, so that all processes draw equally many.
        return Drawn.DISTRIBUTED, max(2, -(-sampler.total_size // max(1, len(sampler.dataset))))
    if _draws_like(sampler, SubsetRandomSampler):
        once = len(set(map(int, sampler.indices))) == len(sampler.indices)
        return (Drawn.SHUFFLED, 1) if once else (Drawn.WITH_REPLACEMENT, None)
    if _draws_like(sampler, RandomSampler) or _is_seedable(sampler):
        if sampler.replacement:
            return Drawn.WITH_REPLACEMENT, None
        return Drawn.SHUFFLED, -(-sampler.num_samples // max(1, len(sampler.data_source)))
    return Drawn.UNKNOWN, None


def _draws_like(sampler: Any, known: type) -> bool:
    """An instance of ``known`` whose class draws exactly as ``known`` does."""
    own = getattr(type(sampler), "reticent_watches", type(sampler))
    return isinstance(sampler, known) and own.__iter__ is known.__iter__  # type: ignore[attr-defined]


def _is_seedable(sampler: Any) -> bool:
    """Accelerate's shuffle with a seed: a permutation for each pass."""
    try:
        from accelerate.data_loader import SeedableRandomSampler
    except ImportError:
        return False
    return _draws_like(sampler, SeedableRandomSampler)


def _unknown(name: str) -> SamplerRecord:
    return SamplerRecord(drawn=Drawn.UNKNOWN, source=Source.UNKNOWN, name=word(name))


def copies(dataset: Any) -> int:
    """The most positions of ``dataset`` at which the same record of the same data lies.

    ``Subset``, ``ConcatDataset``, ``StackDataset``, lists, and the selections of Hugging Face's ``datasets`` are taken
    apart. Equal records that were stored twice are not found.
    """
    try:
        places = _places(dataset, {})
    except (TypeError, ValueError, IndexError, AttributeError):
        return 1
    if places is None or not len(places):
        return 1
    if places.ndim > 1:  # what lies twice at one position is there once
        places = np.sort(places, axis=1)
        places = places[np.diff(places, axis=1, prepend=places[:, :1] - 1) != 0]
    return int(np.unique(places, return_counts=True)[1].max())


def _places(dataset: Any, bases: dict[int, int]) -> np.ndarray | None:
    """A number for the record at each position, or a row for several; None where every position is plainly its own."""
    chosen = _chosen(dataset)
    if chosen is not None:
        inside, indices = chosen
        places = _all_places(inside, bases)
        return places[np.asarray(indices, dtype=np.int64)]
    if isinstance(dataset, ConcatDataset):
        return _below([_all_places(part, bases) for part in dataset.datasets])
    if isinstance(dataset, StackDataset):
        parts = dataset.datasets
        each = parts.values() if isinstance(parts, dict) else parts
        return np.hstack([_columns(_all_places(part, bases)) for part in each])
    if isinstance(dataset, (list, tuple)):
        return np.array([id(one) for one in dataset], dtype=np.int64)
    return None


def _columns(places: np.ndarray) -> np.ndarray:
    return places.reshape(len(places), -1)


def _below(parts: list[np.ndarray]) -> np.ndarray:
    """Positions of one part after those of the other; a row that is shorter says its last number again."""
    widest = max(_columns(part).shape[1] for part in parts)
    if widest == 1:
        return np.concatenate(parts)
    rows = [_columns(part) for part in parts]
    return np.vstack([np.pad(row, ((0, 0), (0, widest - row.shape[1])), mode="edge") for row in rows])


def _all_places(dataset: Any, bases: dict[int, int]) -> np.ndarray:
    found = _places(dataset, bases)
    if found is not None:
        return found
    first = bases.setdefault(id(dataset), -(1 + sum(1 << 40 for _ in bases)))
    return first - np.arange(len(dataset), dtype=np.int64)


def _chosen(dataset: Any) -> tuple[Any, Any] | None:
    """The data below a selection, and the positions that it selects."""
    if isinstance(dataset, Subset):
        return dataset.dataset, dataset.indices
    table = getattr(dataset, "_indices", None)  # datasets.Dataset.select
    if table is not None and hasattr(table, "column") and hasattr(dataset, "_data"):
        return range(1 + max(table.column(0).to_pylist(), default=0)), table.column(0).to_pylist()
    return None
