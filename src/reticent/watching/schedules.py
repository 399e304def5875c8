"""Learning rates that follow a metric: torch's ``ReduceLROnPlateau``, seen when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim.lr_scheduler import ReduceLROnPlateau

from reticent.watching.declared import innermost

_WATCHED: list[tuple[list[Any], Callable[[], None]]] = []
_OWN = ReduceLROnPlateau.step


def watch_schedules(optimizers: list[Any], found: Callable[[], None]) -> Callable[[], None]:
    """Call ``found`` when the learning rate of one of ``optimizers`` is set by a metric; what is returned ends that."""
    one = (optimizers, found)
    _WATCHED.append(one)
    ReduceLROnPlateau.step = _step  # type: ignore[method-assign]

    def undo() -> None:
        _WATCHED.remove(one)
        if not _WATCHED:
            ReduceLROnPlateau.step = _OWN  # type: ignore[method-assign]

    return undo


def _step(self: Any, *args: Any, **kwargs: Any) -> Any:
    for optimizers, found in _WATCHED:
        if any(innermost(self.optimizer) is one for one in optimizers):  # accelerate wraps it
            found()
    return _OWN(self, *args, **kwargs)
