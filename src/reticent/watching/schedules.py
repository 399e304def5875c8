"""Learning rates that follow a metric: torch's ``ReduceLROnPlateau``, seen when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim.lr_scheduler import ReduceLROnPlateau

from reticent.watching.declared import innermost
from reticent.watching.hooks import Exchanged

_Watched = tuple[list[Any], Callable[[], None]]


def watch_schedules(optimizers: list[Any], found: Callable[[], None]) -> Callable[[], None]:
    """Call ``found`` when the learning rate of one of ``optimizers`` is set by a metric; what is returned ends that."""
    one: _Watched = (optimizers, found)
    _STEP.enter(one)
    return lambda: _STEP.leave(one)


def _step(one: _Watched, _: None, schedule: Any, *args: Any, **kwargs: Any) -> None:
    optimizers, found = one
    if any(innermost(schedule.optimizer) is mine for mine in optimizers):  # accelerate wraps it
        found()


_STEP = Exchanged("step", lambda: [ReduceLROnPlateau], _step, before=True)
