"""Learning rates that follow a metric: torch's ``ReduceLROnPlateau``, seen when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim.lr_scheduler import ReduceLROnPlateau


def watch_schedules(optimizers: list[Any], found: Callable[[], None]) -> Callable[[], None]:
    """Call ``found`` when the learning rate of one of ``optimizers`` is set by a metric; what is returned ends that."""
    own = ReduceLROnPlateau.step

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(self.optimizer is one for one in optimizers):
            found()
        return own(self, *args, **kwargs)

    ReduceLROnPlateau.step = step  # type: ignore[method-assign]

    def undo() -> None:
        ReduceLROnPlateau.step = own  # type: ignore[method-assign]

    return undo
