"""Whether the loop mixed records between its loader and its model: the first batch that the model reads is compared.

As mixup: a row lies on the line between its record and another one, also after a scale and a shift that are the same
for all columns. As cutmix: each of its values is that of its record or of another one. And rows from which the mean of
the batch was taken away. Other changes, as a record's own augmentation, say nothing. Fewer rows than records, as where
several records share a gradient, must be some of them, as they are or scaled.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from reticent.watching.detectors.base import Undos
from reticent.watching.detectors.mixed_outputs import tensors_in
from reticent.watching.events import batches_of

_ROWS, _COLUMNS, _MOST = 4, 4096, 256
"""Rows, columns and other records that are compared at most."""

_NEAR = 1e-4
_FEWEST = 3, 8
"""Columns that are needed for a line between two records, and for one with a scale and a shift."""


class Yielded:
    """The batches that a loader gave last, while somebody looks."""

    def __init__(self, loader: Any) -> None:
        self._loader = getattr(loader, "base_dataloader", loader)
        self._last: deque[Any] = deque(maxlen=16)
        self.given, self._kept = 0, 0
        """How many there were, and how many before a model read the first: so many a loop may keep for later."""

    def attach(self) -> Undos:
        """Begin to look; in the end, forget."""
        yield self._last.clear
        if isinstance(self._loader, DataLoader):
            yield batches_of(self._loader, self.gave)

    def gave(self, batch: Any) -> None:
        """The loader gave a batch."""
        self._last.append(batch)
        self.given += 1

    def gave_rows_of(self, read: Any) -> bool:
        """Whether one of the first rows of what a model reads is a row of a batch that the loader gave."""
        known = [one.flatten(1) for batch in self._last for one in tensors_in(batch) if one.dim() > 1]
        rows = [one.flatten(1)[:_ROWS, None, :_COLUMNS] for one in tensors_in(read) if one.dim() > 1]
        pairs = ((row, own[None, :_MOST, :_COLUMNS]) for row in rows for own in known)
        return any(
            row.shape[2] == own.shape[2] and bool((row == own.to(row.device)).all(2).any()) for row, own in pairs
        )

    @property
    def batches(self) -> list[list[torch.Tensor]]:
        """The tensors of the last two, those of the last one first."""
        return [list(tensors_in(batch)) for batch in [*self._last][:-3:-1]]

    @property
    def most(self) -> int:
        """Rows of the last batch; 0 where there is none."""
        return max((len(t) for batch in self.batches[:1] for t in batch), default=0)

    def grouped(self, read: list[torch.Tensor], rows: int) -> bool:
        """Whether a model is given fewer rows than such a batch has records, and they are not some of its records."""
        batches, given = [list(tensors_in(batch)) for batch in self._last], [t for t in read if len(t) == rows]
        self._kept = self._kept or self.given
        may_be = [batch for batch in batches[-self._kept : -1] if _count(batch) >= rows]
        told = any(_count(batch) > len(batch) for batch in batches[-1:])  # else a tensor may be a record
        return told and all(_grouped(batch, given, rows) for batch in [*batches[-1:], *may_be])

    def mixed(self, given: Any) -> bool:
        """Whether what a model is given is such a batch, with its records mixed."""
        read = next(_features(given), None)
        batches = [one for batch in [*self._last][-2:] for one in _features(batch) if read is not None]
        alike = [one for one in batches if one.shape == read.shape]  # type: ignore[union-attr]
        return read is not None and any(_mixed(_flat(one), _flat(read)) for one in alike)


def _count(batch: list[torch.Tensor]) -> int:
    """How many records it has: as many as most of its tensors have rows."""
    counts = Counter(map(len, batch))
    return max(counts, key=counts.__getitem__, default=0)


def _grouped(records: list[torch.Tensor], read: list[torch.Tensor], rows: int) -> bool:
    count = _count(records)
    records_first, records = read[0].shape[1:2] != (count,), [t for t in records if len(t) == count]
    features_first = any(t.dim() > 1 and t.shape[1:] == read[0].shape[1:] for t in records)
    if count <= rows or (rows > 1 and not (records_first or features_first)):
        return False
    kept = torch.ones(rows, count, dtype=torch.bool)
    known = [own for t in read if bool((own := _places(records, t)).any(1).all())]
    for own in known:
        kept &= own
    return not known or not bool(kept.any(1).all())


def _places(records: list[torch.Tensor], read: torch.Tensor) -> torch.Tensor:
    """Of each row which of the records it may be, as it is or scaled and shifted."""
    own, found = _flat(read), torch.zeros(len(read), len(records[0]), dtype=torch.bool)
    for one in map(_flat, records):
        if one.shape[1] == own.shape[1]:
            found |= torch.cdist(own, one) <= _NEAR * own.norm(dim=1, keepdim=True)
            if own.shape[1] > _FEWEST[0]:
                unit, known = (nn.functional.normalize(t - t.mean(1, keepdim=True)) for t in (own, one))
                found |= (unit @ known.T).abs() > 1.0 - _NEAR**2
    return found


def _features(given: Any) -> Any:
    parts = given if isinstance(given, (list, tuple)) else [given]
    return (t.detach() for t in tensors_in(list(parts)) if t.is_floating_point() and t.dim() > 1 and len(t) > 1)


def _flat(rows: torch.Tensor) -> torch.Tensor:
    flat = rows.reshape(len(rows), -1)
    return flat[:, :: max(1, flat.shape[1] // _COLUMNS)].cpu().double()


def _mixed(records: torch.Tensor, rows: torch.Tensor) -> bool:
    changed = (~_near(rows, records)).nonzero()[: 4 * _ROWS, 0].tolist()  # mixup leaves some as they are
    if len(changed) < 2 or records.shape[1] < _FEWEST[0]:
        return False
    spread, centred = records.std(0), records - records.mean(0)
    if _near(rows, centred).all() or (bool((spread > 0).all()) and _scaled(rows, centred)):
        return True
    found = (_of_two(records, rows[at], at) for at in changed)
    told = [*islice((one for one in found if one is not None), _ROWS)]
    return len(told) > 1 and all(told)


def _scaled(rows: torch.Tensor, centred: torch.Tensor) -> bool:
    """Whether each column is that of centred records, times a number, so that its mean is 0."""
    factors = (rows * centred).sum(0) / centred.square().sum(0)
    return bool(_near(rows, factors * centred).all())


def _of_two(records: torch.Tensor, row: torch.Tensor, at: int) -> bool | None:
    """Whether a row is made of its record and one other, and is neither; None where it is its own, scaled."""
    if _near(row, records).any():  # in another order
        return False
    own, others = records[at], torch.cat([records[:at], records[at + 1 :]])
    if _between(own, others, row) or _cut(own, others, row):
        return True
    if len(row) < _FEWEST[1]:
        return False
    return None if _near(_projected(row, own[None]), row) else _between_scaled(own, others[:_MOST], row)


def _between(own: torch.Tensor, others: torch.Tensor, row: torch.Tensor) -> bool:
    lines, step = others - own, row - own
    share = (lines @ step) / lines.square().sum(1).clamp_min(1e-300)
    return bool(_near(share[:, None] * lines, step).any())


def _cut(own: torch.Tensor, others: torch.Tensor, row: torch.Tensor) -> bool:
    changed = row != own
    values = row[changed]
    return len(values.unique()) > _FEWEST[0] and bool((others[:, changed] == values).all(1).any())


def _between_scaled(own: torch.Tensor, others: torch.Tensor, row: torch.Tensor) -> bool:
    return any(bool(_near(_projected(row, torch.stack([own, other])), row)) for other in others)


def _projected(row: torch.Tensor, basis: torch.Tensor) -> torch.Tensor:
    whole = torch.cat([basis, torch.ones_like(row)[None]]).T
    return (whole @ torch.linalg.lstsq(whole, row[:, None]).solution)[:, 0]


def _near(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Of each row whether it is the same, but for rounding."""
    gap, size = (one - other).norm(dim=-1), torch.maximum(one.norm(dim=-1), other.norm(dim=-1))
    return gap <= _NEAR * size
