"""Buffers of a model that a forward pass changes: those that count its calls, and those that learn from what it reads.

A copy of the model reads some records and then others, and another copy the same in the other order. What is the same
in both after each call, and changes in each, follows from the number of calls and tells nothing about records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from reticent.watching.mixed_outputs import Given
from reticent.watching.models import bare


def changed_buffers(model: nn.Module, args: Any, kwargs: dict[str, Any], size: int) -> dict[str, bool]:
    """The buffers that a forward pass changes, by name, each with whether it counts calls.

    Args:
        model: that is about to read these; nothing of it changes.
        args: with one row for each record, or anything else.
        kwargs: the same by name.
        size: records, two or more.
    """
    start = _copies(bare(model))
    if not start:
        return {}

    def after(*reads: Sequence[int]) -> list[dict[str, torch.Tensor]]:
        given = Given(bare(model), args, kwargs, size)
        with torch.no_grad():
            return [_copies(given.twin) for read in reads if given.of(read) is not None]

    one = after(range(size), [0])
    changed = [name for name, was in start.items() if not all(_equal(found.get(name), was) for found in one)]
    if not changed:
        return {}
    other = after([size - 1], range(size))
    return {name: _counts(start[name], *_of(name, one), *_of(name, other)) for name in changed}


def _counts(was: torch.Tensor, first: Any, second: Any, others_first: Any, others_second: Any) -> bool:
    same = _equal(first, others_first) and _equal(second, others_second)
    return same and not _equal(first, was) and not _equal(first, second)


def _of(name: str, chain: list[dict[str, torch.Tensor]]) -> list[torch.Tensor | None]:
    return [found.get(name) for found in chain]


def _copies(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}


def _equal(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    return one is not None and other is not None and torch.equal(one, other)
