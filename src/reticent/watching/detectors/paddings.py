"""Records that are padded to the longest of their batch: whether their padding counts in the outputs or in the loss.

A record alone is shorter, so its padding shows how long others are, and nothing of it may count. Some records are read
with their padding and without; and no mean may be over what is as long as the batch. Padding to a length that every
batch has is none of this. Which axes are as long as the longest record is known from what collates it (``collating``),
or from the loop, where that pads or cuts records itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import torch

from reticent.watching.detectors.closer_looks import some_of
from reticent.watching.detectors.mixed_outputs import Given, Read, differ

END, START, BOTH = 0, 2, 1
"""Sides at which records are padded."""

_TENSORS, _AXES, _RECORDS, _MOST_ADDED, _FEW = 16, 6, 8, 256, 2
_RELATIVE, _OF_HALVES, _MASKED = 1e-3, 0.03, 1e4


def places() -> torch.Tensor:
    """A table for each tensor and axis of a batch: whether it is padded to the longest, at which side, with what.

    The first axis, that of the records, is not padded: its first number says how many looks at batches are to come.
    """
    return torch.zeros(_TENSORS, _AXES, 3, dtype=torch.float64)


def begin(length: int, own: int, side: int) -> int:
    """Where what is a record's own begins."""
    return (length - own) * side // 2


def narrowed(rows: torch.Tensor, shape: torch.Size, side: int) -> torch.Tensor:
    """Rows without the padding by which they are longer than this shape."""
    for axis in range(1, rows.dim()):
        length, own = rows.shape[axis], min(rows.shape[axis], shape[axis])
        rows = rows.narrow(axis, begin(length, own, side), own)
    return rows


@dataclass(frozen=True)
class Padding:
    """One axis of a batch.

    Attributes:
        batch: one tensor of it.
        axis: which one, from 1.
        side: at which it is padded.
        added: to each record.
    """

    batch: torch.Tensor = field(repr=False)
    axis: int
    side: int
    added: torch.Tensor

    @property
    def length(self) -> int:
        """Of the longest record, and so of the batch."""
        return self.batch.shape[self.axis]

    @property
    def tokens(self) -> int:
        """Of all records, without their padding."""
        return self.added.numel() * self.length - int(self.added.sum())

    @property
    def padded(self) -> list[int]:
        """Records with padding, the one that has most of it first."""
        order: list[int] = self.added.argsort(descending=True).tolist()
        return [at for at in order if self.added[at]]

    def _own(self, at: int) -> tuple[int, int]:
        own = self.length - int(self.added[at])
        return begin(self.length, own, self.side), own

    def without(self, at: int, rows: torch.Tensor) -> torch.Tensor:
        """A record alone without its padding, on the axis of what has the same shape, or on each that is as long."""
        same = rows.shape[1:] == self.batch.shape[1:]
        for axis in [self.axis] if same else [k for k in range(1, rows.dim()) if rows.shape[k] == self.length]:
            rows = rows.narrow(axis, *self._own(at))
        return rows

    def only(self, at: int, rows: torch.Tensor) -> torch.Tensor:
        """The padding of a record, in a tensor with all of them and this axis after them."""
        first, own = self._own(at)
        return rows[at, :first] if first else rows[at, own:]


class Paddings:
    """Records that are padded to the longest of their batch, if their padding counts.

    Looks at one batch after the other until there is padding.

    Kind: padding.

    Seen: what the collate function pads, and rows that the loop pads, of which it cuts off what all have as padding, or
    to which it adds some positions or takes some away (a first token, the last label, a multiple of eight). Of the
    first batch with padding, up to eight records are read with theirs and without, by the model as it is and with other
    weights: the outputs must be the same (a ``padding_idx`` does not suffice: Opacus gives its row of zeros gradients
    and noise, so take a mask). The loss must have no slope at padding.

    Not seen: padding where the loop itself makes it of something else than tensors, as a tokenizer of texts does; with
    numbers that differ; where only few weights or records show it, as a maximum over positions that the loop takes of
    outputs; in later batches alone; or of a record that the model cannot read by itself. Padded records of which the
    loop computes rows of a fixed length (resized images), or features by a part that is not trained, if what it reads
    has the length of the longest by chance. What is assumed is that the length of a batch follows from no record, or
    that nothing depends on it.

    Attributes:
        found: in the batch that was looked at last.
        waits: whether a later batch has to tell: all records of this one are as long, or as long as all may be.
    """

    def __init__(self, table: torch.Tensor) -> None:
        self._table, self._length = table, 0
        self._lengths = dict[tuple[int, int], int]()
        """Of each axis of the table the length that the loop gave it in the first batch."""
        self._compared = False
        self.found: list[Padding] = []
        self.waits = False

    def look(self, batches: list[list[torch.Tensor]], read: list[torch.Tensor], size: int) -> None:
        """Look at what a model is about to read.

        Args:
            batches: that the loader gave, the last one first.
            read: by the model.
            size: records.
        """
        read = [t for t in read if len(t) == size and t.dim() > 1]
        of_table = [found for batch in batches if (found := self._in_table(batch, read, size))]
        exact = [found for found in of_table if any(_holds(read, one.batch) for one in found)]
        changed = [one for batch in batches for one in self._changed(batch, read)] if not exact else []
        found = (exact or ([changed] if self._lengths else of_table) or [[]])[0]
        self.waits = bool(self._table[..., 0].any())
        if not self._table[:, 1:, 0].any():
            found = [one for batch in batches for t in read for one in _cut(batch, t) + self._filled(batch, t)]
        self.found = [one for one in found if 0 < int(one.added.max()) < one.length]
        self.waits = self.waits and not self.found
        self._compared = self._compared or bool(of_table or self._lengths)

    @property
    def unseen(self) -> bool:
        """Whether records are padded to the longest, and the model read nothing that could be compared with them."""
        return bool(self._table[:, 1:, 0].any()) and not self._compared

    def _in_table(self, batch: list[torch.Tensor], read: list[torch.Tensor], size: int) -> list[Padding]:
        found = dict[tuple[int, int, int], Padding]()
        for number, axis in self._table[:, 1:, 0].nonzero().tolist():
            axis += 1
            t = batch[number] if number < len(batch) else torch.empty(0)
            if len(t) != size or t.dim() <= axis or not any(t.shape[axis] in one.shape[1:] for one in read):
                continue
            side, filled = int(self._table[number, axis, 1]), self._table[number, axis, 2]
            added = _added(t, axis, side, filled)
            key = axis, t.shape[axis], side
            if not filled.isnan():
                before = found[key].added if key in found else added
                found[key] = Padding(t, axis, side, torch.minimum(before, added))
        return list(found.values())

    def _changed(self, batch: list[torch.Tensor], read: list[torch.Tensor]) -> list[Padding]:
        """Rows of the table that the loop made longer or shorter, and that follow the longest: it has no padding.

        More than two positions may lead to a fixed length; then the next batches tell.
        """
        found = list[Padding]()
        for number, axis in self._table[:, 1:, 0].nonzero().tolist():
            axis += 1
            side, filled = int(self._table[number, axis, 1]), self._table[number, axis, 2]
            for one in read if number < len(batch) and not filled.isnan() else []:
                if _lies_in(batch[number], one, axis):
                    length, added = one.shape[axis], _added(one, axis, side, filled)
                    near = abs(length - batch[number].shape[axis]) <= _FEW and not int(added.min())
                    if self._lengths.setdefault((number, axis), length) != length or near:
                        found.append(Padding(one, axis, side, added))
        return found

    def _filled(self, batch: list[torch.Tensor], t: torch.Tensor) -> list[Padding]:
        """Rows that the loop filled up to the longest of them."""
        size, width = t.shape[:2]
        for first in range(len(batch) - size + 1):
            rows = batch[first : first + size]
            lengths = [len(row) for row in rows]
            if max(lengths) != width or min(lengths) == width or any(r.shape[1:] != t.shape[2:] for r in rows):
                continue
            sides = [end for end in (END, START) if all(map(_same, _ends(t, lengths, end), rows))]
            before, self._length = self._length, self._length or width
            if sides and (lengths.count(width) == 1 or before not in (0, width)):
                return [Padding(t, 1, sides[0], width - torch.tensor(lengths))]
            self.waits = self.waits or bool(sides)
        return []


def _ends(t: torch.Tensor, lengths: list[int], side: int) -> list[torch.Tensor]:
    return [row[:own] if side == END else row[len(row) - own :] for row, own in zip(t, lengths, strict=True)]


def _holds(read: list[torch.Tensor], t: torch.Tensor) -> bool:
    return any(_same(one, t) for one in read)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool((one.cpu().double() == other.cpu().double()).all())


def _lies_in(one: torch.Tensor, other: torch.Tensor, axis: int) -> bool:
    """Whether the longer of two tensors along an axis holds the shorter, as after a slice or with something added."""
    if one.dim() != other.dim() or axis >= one.dim():
        return False
    long, short = (one, other) if one.shape[axis] > other.shape[axis] else (other, one)
    length, gap = short.shape[axis], long.shape[axis] - short.shape[axis]
    return any(_same(long.narrow(axis, first, length), short) for first in range(min(gap, _MOST_ADDED) + 1))


def _added(t: torch.Tensor, axis: int, side: int, filled: torch.Tensor) -> torch.Tensor:
    """How much at one side of each record is nothing but this number."""
    plain = (t.cpu().double() == filled).movedim(axis, 1).flatten(2).all(2) if t.dim() > 2 else t.cpu() == filled
    before, after = (one.long().cumprod(1).sum(1) for one in (plain, plain.flip(1)))
    return after if side == END else before if side == START else 2 * torch.minimum(before, after)


def _cut(batch: list[torch.Tensor], t: torch.Tensor) -> list[Padding]:
    """Rows of a fixed length of which the loop cut off what all of them have as padding."""
    width = t.shape[1]
    for whole in batch:
        if len(whole) != len(t) or whole.shape[2:] != t.shape[2:] or whole.dim() < 2 or whole.shape[1] <= width:
            continue
        for side, kept, left in (
            (END, whole[:, :width], whole[:, width:]),
            (START, whole[:, -width:], whole[:, :-width]),
        ):
            if _same(kept, t) and bool((left == left.flatten()[0]).all()):
                added = _added(t, 1, side, left.flatten()[0].cpu())
                return [Padding(t, 1, side, added)] if not int(added.min()) else []
    return []


def counts_in_outputs(read: Read, padding: Padding) -> bool:
    """Whether records with padding, eight at most, have other outputs without it; see ``mixes_in_forward``.

    Also with other weights: a maximum over positions is that of the padding for few.
    """
    padded = padding.padded
    chosen = [padded[0], *(padded[1 + at] for at in some_of(len(padded) - 1, _RECORDS - 1))]
    for varied in (0.0, 1.7, 2.9, 4.1):
        given = Given(read, varied=varied)
        for at in chosen:
            if _counts(given, padding, at) and _counts(
                Given(read, anew=True, varied=varied), padding, at
            ):  # a model that counts its calls gives other numbers in each
                return True
    return False


def _counts(given: Given, padding: Padding, at: int) -> bool:
    with torch.no_grad():
        whole = given.of([at])
        if not given.alike:  # it would draw other random numbers for another shape
            given.still = True
            whole = given.of([at])
        try:
            own = given.of([at], partial(padding.without, at))
        except Exception:  # the record alone is too short for some layer
            return False
    return any(
        differ(narrowed(one, other.shape, padding.side), other, _OF_HALVES if given.coarse else _RELATIVE)
        for one, other in zip(whole, own, strict=True)
        if one.is_floating_point()
    )


def counts_in_loss(loss: torch.Tensor, outputs: list[torch.Tensor], padding: Padding) -> bool:
    """Whether a loss has a slope at the padding of a record, in outputs with a row for each position.

    Outputs there that are 0, or masked by a large number, follow from no weight.
    """
    slopes = torch.autograd.grad(loss, outputs, retain_graph=True, allow_unused=True)
    return any(
        slope is not None and _slopes(slope, output.detach(), padding)
        for slope, output in zip(slopes, outputs, strict=True)
    )


def _slopes(slope: torch.Tensor, output: torch.Tensor, padding: Padding) -> bool:
    records, length = padding.batch.shape[0], padding.length
    if len(slope) == records * length:
        slope, output = (t.unflatten(0, (records, length)) for t in (slope, output))
    axis = next((k for k in range(1, slope.dim()) if slope.shape[k] == length), None)
    if len(slope) != records or axis is None:
        return False
    counted = (slope * ((output != 0.0) & (output.abs() < _MASKED))).movedim(axis, 1)
    most = max(float(padding.only(at, counted).abs().max()) for at in padding.padded)
    return most > _RELATIVE * float(slope.abs().max())
