"""What an optimizer remembers from step to step, such as momentum: whether somebody else wrote it.

Gradients that were put in there move the weights in the next step, without noise.
"""

from __future__ import annotations

from operator import attrgetter, is_
from typing import Any

import torch

_VERSION = attrgetter("_version")


class Memory:
    """The state of one optimizer, as it was when somebody last said ``keep``."""

    def __init__(self) -> None:
        self._tensors: list[torch.Tensor] | None = None
        self._versions: list[int] = []
        self.full = False
        """Whether there was anything to remember."""

    def keep(self, optimizer: Any) -> None:
        """Take the state as it is now for what the optimizer wrote."""
        self._tensors = tensors = _tensors(optimizer) if optimizer.state else []
        self._versions, self.full = list(map(_VERSION, tensors)), bool(tensors)

    def written(self, optimizer: Any) -> bool:
        """Whether it holds other values now. Where all are gone or zero, nothing was put in."""
        were = self._tensors
        if were is None or not optimizer.state:
            return False
        now = _tensors(optimizer)
        same = len(now) == len(were) and all(map(is_, now, were))
        if same and list(map(_VERSION, now)) == self._versions:
            return False
        return any(bool(t.any()) for t in now) and not self._equal(now)

    def _equal(self, now: list[torch.Tensor]) -> bool:
        """Whether other tensors hold the same values, as those of a checkpoint that was just saved."""
        were = self._tensors or []
        if len(now) != len(were) or list(map(_VERSION, were)) != self._versions:
            return False
        return all(map(torch.equal, now, were))


def _tensors(optimizer: Any) -> list[torch.Tensor]:
    states = [state for state in optimizer.state.values() if isinstance(state, dict)]
    return [value for state in states for value in state.values() if isinstance(value, torch.Tensor)]
