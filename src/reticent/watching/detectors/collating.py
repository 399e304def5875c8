"""Whether the function that makes a batch of single records mixes them, as mixup does: looked at in its first calls.

The first record is collated with the others, and with copies of one of them, from the same random numbers. The rows of
both must be among those of the batch, in any order: batches are sorted by length. Among shorter records a batch may be
shorter: then the first row must be the same but for padding, and which axes are padded to the longest is noted.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader, default_collate

from reticent import facts
from reticent.facts.clipping import Mixing
from reticent.watching.detectors.base import Detector, Undos
from reticent.watching.detectors.closer_looks import as_before
from reticent.watching.detectors.mixed_outputs import tensors_in
from reticent.watching.detectors.paddings import BOTH, END, START, begin, narrowed, places
from reticent.watching.events import in_place_of

_LOOKS = 4
"""Calls in each process: by chance a batch is mixed little, or its first record with itself."""

_CALLED, _MIXED, _FAILED = 0, 1, 2
"""What was seen of the function."""

_OTHERS = 4
"""Records of which copies are tried."""

_RELATIVE, _ABSOLUTE = 1e-3, 1e-5


class Collating(Detector):
    """A collate function of the program that mixes records, or pads them to the longest.

    Kind: records that mix.

    Seen: its first four calls in each process: the first record among others, and among copies of one of them.
    Where a batch of shorter records is shorter, the function pads to the longest. Fewer rows than records, of which one
    is longer than any record: they lie end to end. And a trainer that says that it packed its records.

    Not seen: mixing in later batches, of whole numbers, or in a data set, as where the program packed records itself.

    Attributes:
        padded: what it pads, a table of ``paddings.places``; another one each time the watch is entered.
    """

    def enters(self, again: bool) -> None:
        """Items that a trainer packed are made of several records."""
        if self._loop.said.packs:
            self._found(facts.MIXES_RECORDS.because(Mixing.BATCH))

    def attach(self) -> Undos:
        """Look at its first calls, in this process or in those that load data; in the end say what was seen."""
        loader = getattr(self._loop.loader, "base_dataloader", self._loop.loader)  # of accelerate
        self.padded, self._seen = places(), torch.zeros(3, dtype=torch.uint8)
        own: Any = getattr(loader, "collate_fn", None)
        inside = getattr(own, "wrapped_collator_fn", own)  # Opacus's own is around that of the program
        if not isinstance(loader, DataLoader) or inside is None or inside is default_collate:
            return
        self.padded[0, 0, 0] = _LOOKS
        if loader.num_workers:
            self._seen.share_memory_()
            self.padded.share_memory_()
        self._before = self._loop.count
        yield self._say
        yield in_place_of(loader, "collate_fn", _Collate(own, self._seen, self.padded))

    def _say(self) -> None:
        if self._seen[_MIXED]:
            self._found(facts.MIXES_RECORDS.because(Mixing.BATCH))
        if self._seen[_FAILED] or (not self._seen[_CALLED] and self._loop.count > self._before):
            self._found(facts.NOT_LOOKED_AT)


class _Collate:
    """In the place of a collate function; a class, so that workers can load it."""

    def __init__(self, own: Callable[[list[Any]], Any], seen: torch.Tensor, padded: torch.Tensor) -> None:
        self._own, self._seen, self._padded, self._left = own, seen, padded, _LOOKS

    def __call__(self, records: list[Any]) -> Any:
        self._seen[_CALLED] = 1
        if self._left and isinstance(records, list) and len(records) > 1:
            self._left -= 1
            self._padded[0, 0, 0] = self._left
            try:
                if _mixes(self._own, records, self._padded):
                    self._seen[_MIXED] = 1
            except Exception:  # it may raise anything; the loop must go on
                self._left, self._seen[_FAILED] = 0, 1
                self._padded[0, 0, 0] = 0
        return self._own(records)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)


def _mixes(own: Callable[[list[Any]], Any], records: list[Any], padded: torch.Tensor) -> bool:
    (together, drawn), size = _collated(own, records), len(records)
    if _end_to_end(own, records, together):
        return True
    count = _count(together, size)
    for other in range(1, 1 + min(_OTHERS, size - 1)):
        placed = drawn or other % 2 == 1  # each place may have numbers of its own
        first = records[0 if placed else other - 1]
        apart, _ = _collated(own, [first, *[records[-other]] * (size - 1)])
        if [t.shape for t in together] == [t.shape for t in apart]:
            known, rows = _rows(together, count), _rows(apart, count)[[0] * placed + [-other] * (count == size)]
            if not bool(_near(rows, known).any(-1).all()):  # they may lie in another order
                return True
        elif _shorter(together, apart):
            same = _same_but_for_padding(together, apart, count, _count(apart, size), padded)
            if placed and not drawn and not same:
                return True
    return False


def _end_to_end(own: Callable[[list[Any]], Any], records: list[Any], together: list[torch.Tensor]) -> bool:
    """Whether there are fewer rows than records, and one is longer than any record: they lie end to end in it."""
    rows = [t for t in together if t.dim() > 1]
    if not rows or max(map(len, rows)) >= len(records):
        return False
    alone = (t for record in records for t in _collated(own, [record])[0] if t.dim() > 1)
    return max(t.shape[1] for t in rows) > max((t.shape[1] for t in alone), default=0)


def _count(batch: list[torch.Tensor], size: int) -> int:
    """Rows of a batch: one for each record, or another number where all its tensors have as many."""
    lengths = {len(t) for t in batch}
    return lengths.pop() if len(lengths) == 1 and len(batch) < size else size


def _shorter(together: list[torch.Tensor], apart: list[torch.Tensor]) -> bool:
    """Whether each tensor among shorter records is as long, or shorter along some axes."""
    return len(together) == len(apart) and all(
        t.dim() == a.dim() and all(length >= own for length, own in zip(t.shape[1:], a.shape[1:], strict=True))
        for t, a in zip(together, apart, strict=True)
    )


def _same_but_for_padding(
    together: list[torch.Tensor], apart: list[torch.Tensor], count: int, count_apart: int, padded: torch.Tensor
) -> bool:
    """Whether the first row is the same but for padding; notes which axes are padded to the longest record."""
    if not count_apart or not count:
        return True
    first = _rows(apart, count_apart)[:1]
    for side in (END, START, BOTH):
        known = _rows([narrowed(t, a.shape, side) for t, a in zip(together, apart, strict=True)], count)
        if first.shape[1] != known.shape[1]:  # records of a list, each as it is
            return True
        same = _near(first, known)[0]
        if bool(same.any()):
            row = int(same.nonzero()[0])
            for number, (t, a) in enumerate(zip(together, apart, strict=True)):
                if len(t) == count and number < len(padded):
                    _note(padded[number], t[row], a.shape, side)
            return True
    return False


def _note(padded: torch.Tensor, row: torch.Tensor, shape: torch.Size, side: int) -> None:
    for axis in range(1, min(1 + row.dim(), len(padded))):
        length, own = row.shape[axis - 1], shape[axis]
        if own < length:
            first, lines = begin(length, own, side), row.movedim(axis - 1, 0)
            added = (lines[:first] if first else lines[own:]).flatten()
            filled = float(added[0]) if bool((added == added[0]).all()) else math.nan
            padded[axis] = torch.tensor([1.0, side, filled])


def _near(rows: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Of each row which of the known ones it is, beyond rounding."""
    gap = (rows[:, None] - known).abs() - _RELATIVE * known.abs()
    return (gap <= _ABSOLUTE).all(-1)


def _rows(batch: list[torch.Tensor], count: int) -> torch.Tensor:
    """All numbers of each row side by side; numbers that are none are 0."""
    return torch.cat([t.reshape(count, -1) for t in batch if len(t) == count], dim=1).nan_to_num()


def _collated(own: Callable[[list[Any]], Any], records: list[Any]) -> tuple[list[torch.Tensor], bool]:
    """What a copy of the function gives, and whether it draws; no random number is drawn that somebody else would."""
    with as_before() as drawn, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [t.double() for t in tensors_in(copy.deepcopy(own)(copy.deepcopy(records)))], drawn()
