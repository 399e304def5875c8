"""How often a data set lists one and the same record, as far as its layers show it."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch.utils.data import ConcatDataset, StackDataset, Subset


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
