"""Where the generators of torch are put while a loop is watched, and what was drawn from there before.

A draw remembers the draw before it. Putting a generator back to a state goes back to the draw before that state
was read. So two draws share random numbers only where neither comes after the other. A state that nobody saw being read
is taken for the first state of its seed: then everything drawn with that seed comes again.

``torch.Generator`` is a type of C: its methods cannot be assigned, but they are in a dictionary like those of any
type. They are exchanged there while at least one loop is watched.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import torch

_MOST_READ = 4096
"""States that are remembered; an older one is taken for the first of its seed."""


class Stream:
    """All numbers of one seed on one kind of device, for one use."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: Draw | None = None
        """The newest draw that counted."""


class Draw:
    """One draw of noise, or of a batch."""

    __slots__ = ("before", "count", "known", "stream")

    def __init__(self, stream: Stream, before: Draw | None = None) -> None:
        self.stream, self.before = stream, before
        self.known = False
        """Whether the state after it was read, so that the program can go back to it."""
        self.count: int = 0 if before is None else before.count + 1

    def again(self) -> bool:
        """Take it for the next draw, where it was the last one and nobody can go back to the state between them."""
        if self.known or self.stream.last is not self:
            return False
        self.count += 1
        return True

    def repeats(self) -> bool:
        """Whether it shares random numbers with one that counted; this one counts from now on."""
        last, here = self.stream.last, self
        self.stream.last = self
        while last is not None and here.count > last.count and here.before is not None:
            here = here.before
        self.before = None  # nobody asks further back than to the last one that counted
        return last is not None and here is not last


class Track:
    """Where one generator is, for one use."""

    def __init__(self, generator: Any, use: str) -> None:
        self._generator, self._use = generator, use
        self._ends: dict[Stream, Draw] = {}
        self.looked: Any = None
        """What ``seeds`` saw there last."""
        self.at = self._end()
        """The draw before the place at which the generator is now."""

    def go_on(self) -> None:
        """Nobody looked for a while: with the seed that it has now it is where it was left."""
        self._ends[self.at.stream] = self.at
        self.at = self._end()

    def put(self, draws: dict[str, Draw]) -> None:
        """The program put the generator to a state, before which these draws were seen."""
        self._ends[self.at.stream] = self.at
        self.at = draws.get(self._use) or Draw(self._stream())

    def _end(self) -> Draw:
        stream = self._stream()
        return self._ends.get(stream) or Draw(stream)

    def _stream(self) -> Stream:
        device, seed = self._generator.device.type, int(self._generator.initial_seed())
        numbers = seed & 0xFFFFFFFF if device == "cpu" else seed  # a Mersenne twister takes 32 bits
        return _STREAMS.setdefault((self._use, device, numbers), Stream())


_STREAMS: dict[tuple[str, str, int], Stream] = {}
_TRACKS: dict[Any, dict[str, Track]] = {}

_READ: dict[int, dict[str, Draw]] = {}
"""States that were handed out, with the draws before them."""

_ASKED: set[int] = set()
"""Seeds that came from the operating system while a loop was watched."""

_METHODS: dict[str, Any] = {}
_WATCHING = 0

_IN_C: dict[str, Any] = next(one for one in gc.get_referents(vars(torch.Generator)) if isinstance(one, dict))
read_state: Callable[[Any], torch.Tensor] = torch.Generator.get_state
"""The state of a generator; nobody notes that it was read."""


def track(generator: Any, use: str) -> Track:
    """The one of this generator for this use."""
    tracks = _TRACKS.setdefault(generator, {})
    if use not in tracks:
        tracks[use] = Track(generator, use)
    return tracks[use]


def from_the_system(seed: int) -> bool:
    """Whether the operating system gave this seed while a loop was watched."""
    return seed in _ASKED


def watch() -> Callable[[], None]:
    """Exchange the methods of all generators; what is returned puts them back, after the last watch."""
    global _WATCHING
    _WATCHING += 1
    if _WATCHING == 1:
        _METHODS.update({name: _IN_C[name] for name in _OURS})
        _write(_OURS)
    return _leave


def _leave() -> None:
    global _WATCHING
    _WATCHING -= 1
    if not _WATCHING:
        _write(_METHODS)


def _write(methods: dict[str, Any]) -> None:
    _IN_C.update(methods)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(torch.Generator))


def _put(generator: Any, draws: dict[str, Draw]) -> None:
    for one in _TRACKS.get(generator, {}).values():
        one.put(draws)


# The methods of a generator.


def _get_state(self: Any) -> Any:
    state = _METHODS["get_state"](self)
    draws = {use: one.at for use, one in _TRACKS.get(self, {}).items()}
    for draw in draws.values():
        draw.known = True
    _READ.setdefault(_number(state), draws)
    if len(_READ) > _MOST_READ:
        del _READ[next(iter(_READ))]
    return state


def _set_state(self: Any, new_state: Any) -> Any:
    found = _METHODS["set_state"](self, new_state)
    _put(self, _READ.get(_number(new_state), {}))
    return found


def _anywhere(name: str) -> Callable[[Any, Any], Any]:
    """A method that puts a generator to a state that nobody saw being read."""

    def method(self: Any, where: Any) -> Any:
        found = _METHODS[name](self, where)
        _put(self, {})
        return found

    return method


def _seed(self: Any) -> int:
    seed = int(_METHODS["seed"](self))
    _ASKED.add(seed)
    _put(self, {})
    return seed


def _number(state: Any) -> int:
    return hash(state.cpu().numpy().tobytes())


_OURS: dict[str, Any] = {
    "get_state": _get_state,
    "set_state": _set_state,
    "seed": _seed,
    **{name: _anywhere(name) for name in ("graphsafe_set_state", "set_offset", "manual_seed")},
}
