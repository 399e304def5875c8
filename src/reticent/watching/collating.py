"""Whether the function that makes a batch of single records mixes them, as mixup does: looked at in its first calls.

The first record is collated with the others, and with copies of one of them, from the same random numbers. The rows of
both must be among those of the batch, in any order: batches are sorted by length. Where no copies give a batch of the
same shape, nothing is said.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, default_collate

from reticent.watching.generators import read_state
from reticent.watching.mixed_outputs import tensors_in

_LOOKS = 4
"""Calls in each process: by chance a batch is mixed little, or its first record with itself."""

_OTHERS = 4
"""Records of which copies are tried."""

_RELATIVE, _ABSOLUTE = 1e-3, 1e-5


def look_at_collating(loader: Any, mixes: Callable[[], None]) -> Callable[[], None]:
    """Look at the collate function of a loader from now on; what is returned ends it, and calls ``mixes`` if it does.

    Args:
        loader: of torch, or anything else.
        mixes: called at the end where records were mixed, in this process or in one that loads data.
    """
    own: Any = getattr(loader, "collate_fn", None)
    inside = getattr(own, "wrapped_collator_fn", own)  # Opacus's own is around that of the program
    if not isinstance(loader, DataLoader) or inside is None or inside is default_collate:
        return lambda: None
    seen = torch.zeros(1, dtype=torch.uint8)
    if loader.num_workers:
        seen.share_memory_()
    look = _Collate(own, seen)
    loader.collate_fn = look

    def undo() -> None:
        if loader.collate_fn is look:
            loader.collate_fn = own
        if bool(seen):
            mixes()

    return undo


class _Collate:
    """In the place of a collate function; a class, so that workers can load it."""

    def __init__(self, own: Callable[[list[Any]], Any], seen: torch.Tensor) -> None:
        self._own, self._seen, self._left = own, seen, _LOOKS

    def __call__(self, records: list[Any]) -> Any:
        if self._left and isinstance(records, list) and len(records) > 1:
            self._left -= 1
            try:
                if _mixes(self._own, records):
                    self._seen.fill_(1)
            except Exception:  # it may raise anything; the loop must go on
                self._left = 0
        return self._own(records)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_own":
            raise AttributeError(name)
        return getattr(self._own, name)


def _mixes(own: Callable[[list[Any]], Any], records: list[Any]) -> bool:
    together, size = _collated(own, records), len(records)
    for other in range(1, 1 + min(_OTHERS, size - 1)):
        apart = _collated(own, [records[0], *[records[-other]] * (size - 1)])
        if [t.shape for t in together] == [t.shape for t in apart]:
            known, rows = _rows(together, size), _rows(apart, size)[[0, -other]]
            gap = (rows[:, None] - known).abs() - _RELATIVE * known.abs()  # they may lie in another order
            return not bool((gap <= _ABSOLUTE).all(-1).any(-1).all())
    return False


def _rows(batch: list[torch.Tensor], size: int) -> torch.Tensor:
    """All numbers of each record side by side; numbers that are none are 0."""
    return torch.cat([t.reshape(size, -1) for t in batch if len(t) == size], dim=1).nan_to_num()


def _collated(own: Callable[[list[Any]], Any], records: list[Any]) -> list[torch.Tensor]:
    """What a copy of the function gives; no random number is drawn that somebody else would have drawn."""
    of_python, of_numpy, of_torch = random.getstate(), np.random.get_state(), torch.default_generator.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [t.double() for t in tensors_in(copy.deepcopy(own)(copy.deepcopy(records)))]
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        if not torch.equal(read_state(torch.default_generator), of_torch):
            torch.default_generator.set_state(of_torch)
