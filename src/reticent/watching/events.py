"""What a loop does, seen at its own objects.

This file, and no other, puts something in the place of a method or an attribute of the program's optimizer, loader,
hooks object or layers, and puts it back. Types, modules and functions of other people stay as they are. Calls of torch
are seen by a mode of torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar
from weakref import ref

import torch
from torch import nn
from torch.overrides import TorchFunctionMode, _is_torch_function_mode_enabled, _pop_mode, _push_mode
from torch.utils.data import DataLoader

Undo = Callable[[], None]
_NOTHING = object()


def around(
    thing: Any, name: str, before: Callable[[], Any] | None = None, after: Callable[[], Any] | None = None
) -> Undo:
    """Call these before and after a method, on this object only; what is returned ends that.

    Args:
        thing: of the program.
        name: of the method.
        before: may give a context in which it is called.
        after: see there.
    """
    looked_at = _LookedAt(thing, name, before, after)
    leave = in_place_of(thing, name, looked_at)

    def undo() -> None:
        looked_at.looking = False
        leave()

    return undo


class _LookedAt:
    """A method of one object, with what is called before and after it. A copy of the object has its own method."""

    def __init__(
        self, thing: Any, name: str, before: Callable[[], Any] | None, after: Callable[[], Any] | None
    ) -> None:
        self._thing, self._name, self._before, self._after = thing, name, before, after
        self.reticent_watches = vars(thing).get(name)
        self.looking = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.reticent_watches or partial(getattr(type(self._thing), self._name), self._thing)
        context = self._before() if self._before is not None and self.looking else None
        if context is None:
            found = own(*args, **kwargs)
        else:
            with context:
                found = own(*args, **kwargs)
        if self._after is not None and self.looking:
            self._after()
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        if self.reticent_watches is not None:
            return _itself, (self.reticent_watches,)
        return partial, (getattr(type(self._thing), self._name), self._thing)


def in_place_of(thing: Any, name: str, other: Any) -> Undo:
    """Put this in the place of an attribute; what is returned puts the attribute back."""
    previous = vars(thing).get(name)
    setattr(thing, name, other)

    def undo() -> None:
        if vars(thing).get(name) is other:  # else the program put another one there or around it since
            setattr(thing, name, previous) if previous else delattr(thing, name)

    return undo


def draws_of(
    sampler: Any,
    holders: list[tuple[Any, str]],
    begins: Callable[[], int],
    drew: Callable[[Any, int], None],
    ends: Undo,
) -> Undo:
    """Follow what a sampler yields: another object of its kind, with the same state, is in its place meanwhile.

    Args:
        sampler: that is followed.
        holders: who has it, loaders of torch and samplers around it, each with the name of the attribute.
        begins: called when it is iterated; gives the number of the pass.
        drew: called with each batch and that number.
        ends: called when nothing is left.

    Returns:
        Puts the sampler back.

    Raises:
        TypeError: no other object can have its state.
    """
    own: Any = type(sampler)

    def follow(drawn: Any) -> Iterator[Any]:
        number = 0  # and no loop over it: the sampler may be its own iterator, and is not asked again
        while (batch := next(drawn, _NOTHING)) is not _NOTHING:
            number = number or begins()
            drew(batch, number)
            yield batch
        ends()

    def watched(this: Any) -> Iterator[Any]:
        drawn = own.__iter__(this)  # what it draws at once is drawn at once
        return follow(drawn) if this is seen else drawn

    def reduced(this: Any, *_: Any) -> Any:
        """A copy, or a file of it, is of its own kind: what it draws is not what the loader draws."""
        plain = object.__new__(own)
        object.__setattr__(plain, "__dict__", dict(vars(this)))
        return _itself, (plain,)

    if any(vars(kind).get("__slots__") for kind in own.__mro__) or not hasattr(sampler, "__dict__"):
        raise TypeError(own.__name__)
    seen: Any = object.__new__(
        type(own.__name__, (own,), {"__iter__": watched, "__reduce_ex__": reduced, "reticent_watches": own})
    )
    object.__setattr__(seen, "__dict__", vars(sampler))

    def put(one: Any, other: Any) -> None:
        for holder, name in holders:
            vars(holder)[name] = other  # a loader of torch refuses to be asked
            iterator = getattr(holder, "_iterator", None)  # of persistent workers
            if getattr(iterator, "_index_sampler", None) is one:
                iterator._index_sampler = other  # type: ignore[union-attr]

    put(sampler, seen)
    return lambda: put(seen, sampler)


def batches_of(loader: DataLoader[Any], gave: Callable[[Any], None]) -> Undo:
    """Call ``gave`` with each batch of a loader, and of loaders made from it; what is returned ends that.

    Of a loader that was made from one with processes of its own nothing is seen.
    """
    looking = [True]

    def tell(batch: Any) -> Any:
        if looking:
            gave(batch)
        return batch

    if loader.num_workers == 0:
        own = loader.collate_fn
        undo = in_place_of(loader, "collate_fn", lambda records: tell(own(records)))
    else:
        make: Any = loader._get_iterator
        undo = in_place_of(loader, "_get_iterator", lambda: _telling(make(), tell))
        if loader._iterator is not None:
            _telling(loader._iterator, tell)

    def leave() -> None:
        looking.clear()
        undo()

    return leave


def _telling(iterator: Any, tell: Callable[[Any], Any]) -> Any:
    """An iterator of torch that tells each batch; nothing keeps it, as its end is that of its processes."""
    kept, own = ref(iterator), type(iterator)._next_data
    iterator._next_data = lambda: tell(own(kept()))
    return iterator


def hooks_of(model: nn.Module, own: Callable[[Any], bool], changed: Callable[[], None]) -> Undo:
    """Call ``changed`` where a hook of the program gives or leaves other gradients; what is returned ends that.

    Args:
        model: the bare module.
        own: whether a hook is not the program's.
        changed: see there.
    """
    kept = [
        (hooks, number, hook)
        for layer in model.modules()
        for hooks in (layer._backward_hooks, layer._backward_pre_hooks)
        for number, hook in hooks.items()
        if not own(hook)
    ]
    for hooks, number, hook in kept:
        hooks[number] = _Followed(hook, changed)

    def undo() -> None:
        for hooks, number, hook in kept:
            if number in hooks:
                hooks[number] = hook

    return undo


class _Followed:
    """In the place of a hook; a copy or a file of the model gets the hook itself."""

    def __init__(self, hook: Any, changed: Callable[[], None]) -> None:
        self._hook, self._changed = hook, changed

    def __call__(self, layer: Any, *args: Any) -> Any:
        before = _left_at(layer)
        found = self._hook(layer, *args)
        if found is not None or _left_at(layer) != before:
            self._changed()
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._hook,)


def _left_at(layer: Any) -> list[tuple[int, int]]:
    """The gradients of records that lie at a layer: which objects, and how often they were written."""
    found = [getattr(p, "grad_sample", None) for p in layer.parameters(recurse=False)]
    parts = [part for one in found for part in (one if isinstance(one, list) else [one]) if part is not None]
    return [(id(part), part._version) for part in parts]


def _itself(thing: Any) -> Any:
    return thing


class Backward(TorchFunctionMode):
    """Sees calls of ``Tensor.backward`` while it is on.

    It lies below all modes of the program but its default device, so they may come and go above it.

    Args:
        before: called with the number whose slopes are wanted, and with the numbers of which it is the mean or the sum,
            where it was made from them last.
        after: called when the pass is over.
    """

    _looking: ClassVar[bool] = False
    """Whether one of all looks is being taken, which calls torch itself."""

    def __init__(self, before: Callable[[torch.Tensor, torch.Tensor | None], None], after: Undo) -> None:
        super().__init__()
        self._before, self._after = before, after
        self._on = self._lies = self._called = False
        """Whether it looks, lies among torch's modes, and is being called, when torch puts it back in the end."""
        self._reduced: tuple[Any, Any] = (None, None)

    def on(self) -> None:
        """Look from now on."""
        self._on = True
        if not self._lies:
            self._lies, others = True, _taken()
            default = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
            at = bool(others) and others[0] is default  # which torch wants to be the lowest
            for mode in (*others[:at], self, *others[at:]):
                _push_mode(mode)

    def off(self) -> None:
        """Look no more; said while it is called, it has to be said again before it lies there no more."""
        self._on, self._reduced = False, (None, None)
        if self._lies and not self._called:
            self._lies = False
            for mode in _taken():
                if mode is not self:
                    _push_mode(mode)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        called, self._called = self._called, True
        try:
            if Backward._looking or not self._on:
                return function(*args, **given)
            return self._seen(function, args, given)
        finally:
            self._called = called

    def _seen(self, function: Any, args: Any, given: Any) -> Any:
        if function is torch.Tensor.backward:
            found, each = self._reduced
            Backward._looking = True
            try:
                loss = _weighted(args[0], args[1] if len(args) > 1 else given.get("gradient"))
                if loss is not None:
                    self._before(loss, each if found is args[0] else None)
            finally:
                Backward._looking = False
            with warnings.catch_warnings():  # Opacus's hooks say it again at the loop's own line
                warnings.filterwarnings("ignore", message="Full backward hook is firing")
                function(*args, **given)  # type: ignore[no-untyped-call]
            return self._after()
        found = function(*args, **given)
        if function in (torch.mean, torch.sum):
            self._reduced = found, args[0] if args else given.get("input")
        return found


def _taken() -> list[Any]:
    """The modes that are on, the lowest first; they are off now."""
    found = list[Any]()
    while _is_torch_function_mode_enabled():
        found.append(_pop_mode())
    return found[::-1]


def _weighted(loss: torch.Tensor, gradient: torch.Tensor | None) -> torch.Tensor | None:
    """The number whose slopes are those of a backward pass with these gradients."""
    whole = loss if gradient is None else (loss * gradient).sum()
    return whole if whole.numel() == 1 else None
