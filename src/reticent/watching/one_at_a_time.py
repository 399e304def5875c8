"""One watch at a time: two of one model, optimizer or loader would take each other's looks for what the loop does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reticent.kernel.errors import ParameterError
from reticent.watching.detectors.samplers import observed_sampler
from reticent.watching.models import bare

_WATCHED: list[dict[int, tuple[str, Any]]] = []
"""Of each watch that is entered, what it looks at; the objects too, so that no other gets their number."""


def enter(model: Any, optimizer: Any, loader: Any) -> Callable[[], None]:
    """Begin to look at these; what is returned ends it.

    Raises:
        ParameterError: another watch looks at one of them now.
    """
    named = [("model", p) for p in bare(model).parameters()]
    sampler = observed_sampler(loader)
    state = getattr(sampler, "__dict__", sampler)  # what watches it meanwhile has the same
    named += [("optimizer", optimizer), ("loader", state)]
    things = {id(thing): (name, thing) for name, thing in named if thing is not None}
    for others in _WATCHED:
        same = [name for number, (name, _) in things.items() if number in others]
        if same:
            what = same[0]
            hint = f"left before another of this {what} begins; a training that was broken off by callback.close()"
            raise ParameterError("watch", f"entered while another watches the {what}", hint)
    _WATCHED.append(things)

    def leave() -> None:
        _WATCHED[:] = [others for others in _WATCHED if others is not things]

    return leave
