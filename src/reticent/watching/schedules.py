"""Learning rates that follow a metric: torch's ``ReduceLROnPlateau``, if one that was asked is there in the end."""

from __future__ import annotations

import gc
from typing import Any

from torch.optim.lr_scheduler import ReduceLROnPlateau

from reticent.watching.declared import innermost


def follows_a_metric(optimizers: list[Any]) -> bool:
    """Whether the learning rate of one of these is set by a metric."""
    found = [one for one in gc.get_objects() if issubclass(type(one), ReduceLROnPlateau) and one.last_epoch > 0]
    return any(innermost(one.optimizer) is mine for one in found for mine in optimizers)  # accelerate wraps it
