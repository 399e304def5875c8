"""Whether a step reads the very batch that the step before read: the same tensors, to which nobody wrote in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import torch

from reticent.facts.reused_batches import REUSED_BATCHES, ReusedBatches
from reticent.watching.hooks import Hook, looks
from reticent.watching.models import entrance


class Reuse:
    """Follows what the model reads for training."""

    def __init__(self, model: Any, found: Callable[[Any], None]) -> None:
        self._model, self._found = entrance(model), found
        self._before: list[tuple[Any, int]] = []
        self._now: list[tuple[Any, int]] = []
        self._uses = self._most = 1
        self._again = 0

    def attach(self) -> Callable[[], None]:
        """Begin to look; what is returned ends it."""
        self._before, self._now = [], []
        remove: Callable[[], None] = self._model.register_forward_pre_hook(Hook(self.given), with_kwargs=True).remove
        return remove

    @looks
    def given(self, model: Any, args: Any, kwargs: Any) -> None:
        """The model is about to read these."""
        if model is self._model and torch.is_grad_enabled():
            tensors = (one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor))
            self._now += [(ref(tensor), tensor._version) for tensor in tensors]

    def step(self) -> bool:
        """A step was taken; whether it read what the one before read."""
        before, self._before, self._now = self._before, self._now, []
        pairs = zip(before, self._before, strict=False)  # of one tensor there is one reference, while it is there
        same = all(one is other and once == now for (one, once), (other, now) in pairs)
        return same and 0 < len(before) == len(self._before)

    def counted(self, again: bool) -> None:
        """A step used the draw of the one before once more, or a new one."""
        self._uses = self._uses + 1 if again else 1
        self._most, self._again = max(self._most, self._uses), self._again + again

    @property
    def stated(self) -> dict[str, ReusedBatches]:
        """What is known, as a fact of a ledger."""
        return {REUSED_BATCHES.key: ReusedBatches(most=self._most, again=self._again)} if self._again else {}
