"""One watch at a time: two of one model, optimizer or loader would take the looks of each other for what the loop does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reticent.errors import ParameterError
from reticent.watching.models import bare
from reticent.watching.samplers import observed_sampler

_WATCHED: list[dict[int, str]] = []
"""Of each watch that is entered, what it looks at."""


def enter(model: Any, optimizer: Any, loader: Any) -> Callable[[], None]:
    """Begin to look at these; what is returned ends it.

    Raises:
        ParameterError: another watch looks at one of them now.
    """
    things = {id(p): "model" for p in bare(model).parameters()}
    things |= {id(one): name for one, name in ((optimizer, "optimizer"), (observed_sampler(loader), "loader"))}
    things.pop(id(None), None)
    for others in _WATCHED:
        same = things.keys() & others.keys()
        if same:
            what = things[next(iter(same))]
            hint = f"left before another of this {what} begins; a training that was broken off by callback.close()"
            raise ParameterError("watch", f"entered while another watches the {what}", hint)
    _WATCHED.append(things)
    return lambda: _WATCHED.remove(things)
