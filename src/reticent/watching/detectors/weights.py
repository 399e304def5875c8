"""Who wrote to the weights: looked at before and after each step of the optimizer.

torch counts writes to a tensor only where autograd must know of them. ``p.data.sub_()``, ``p.data = ...``,
``vector_to_parameters`` and ``load_state_dict(assign=True)`` are not counted. So three more things are compared:
which object is where, where it lies in memory, and a sample of its values, at other places after each step. All
values go into the fingerprint of the start and of the end, which the next watch of the same model compares.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, is_, methodcaller
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrizations import _SpectralNorm

from reticent import facts
from reticent.watching.detectors.base import Detector, Loop
from reticent.watching.detectors.mixed_outputs import Given, Read
from reticent.watching.models import bare

_WHOLE, _FEWEST, _MOST = 1024, 256, 4096
"""Values of a tensor that are compared around each step: all of a small one; else one of each row, within bounds."""

_EVERY = 4
"""Steps after which other values are compared: to choose them takes longer than to compare them."""

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


_EXTRA = "_extra_state"
"""How torch names what a layer's ``get_extra_state`` gives."""

_PLACE: Callable[[Any], int] = torch.Tensor.data_ptr
_VERSION, _VALUES, _KIND = attrgetter("_version"), methodcaller("tobytes"), attrgetter("device", "dtype")


class Weights:
    """The parameters of one model, as they were when somebody last said ``keep``."""

    def __init__(self, model: Any, by_hand: bool = False) -> None:
        """Take the weights as they are now.

        Args:
            model: the module, bare or wrapped.
            by_hand: no optimizer moves them, and ``writes`` will be asked.
        """
        self.model, self._by_hand = bare(model), by_hand
        slots = list(_slots(self.model))
        self._owners, self._names = [owner for owner, _, _ in slots], [name for _, name, _ in slots]
        self.parameters = [p for _, _, p in slots]
        """Each once."""
        self._turn, self._places = 0, list[int]()
        self._small: list[Any] = []
        self._large: list[tuple[Any, int]] = []
        self._apart: list[_Apart] = []
        self._was_written = False
        """Whether such values were others before a tensor moved."""
        self._counted: list[Any] = []
        """Large ones, whose counts of writes are compared: not all of their values are."""
        self._versions: list[int] = []
        self._all_versions: list[int] = []
        self.keep()

    def keep(self) -> None:
        """Take the weights as they are now for those that the optimizer left."""
        places = list(map(_PLACE, self.parameters))
        if places != self._places:
            self._places, self._left = places, 0
            here = [(p, _window(p)) for p in self.parameters]
            windows = [(values, _stride(p)) for p, values in here if values is not None]
            self._counted = [p for p in self.parameters if _stride(p) > 1]
            self._small = [values for values, stride in windows if stride == 1]
            self._large = [one for one in windows if one[1] > 1]
            elsewhere = groupby((p for p, values in here if values is None), key=_KIND)
            self._was_written = self.apart_written()
            self._apart = [_Apart(list(group)) for _, group in elsewhere]
        if self._left == 0:
            self._turn, self._left = self._turn + 1, _EVERY
            self._parts = self._small + [values[self._turn % stride :: stride] for values, stride in self._large]
            for apart in self._apart:
                apart.turn(self._turn)
        self._left -= 1
        self._values = list(map(_VALUES, self._parts))
        for apart in self._apart:
            apart.keep()
        self._versions = list(map(_VERSION, self._counted))
        if self._by_hand:
            self._all_versions = list(map(_VERSION, self.parameters))

    def written(self) -> bool:
        """Whether they are others now; a write that torch does not count, to few values, may be missed."""
        return not all(map(is_, map(dict.get, self._owners, self._names), self.parameters)) or self.others()

    def others(self) -> bool:
        """The same of the parameters themselves, or of what replaces them: ``functional_call`` exchanges them.

        Where all values of a tensor can be seen to be back, it is as it was, however often torch counted a write. The
        lists are made without a loop of Python's, which would take most of the time.
        """
        for apart in self._apart:
            apart.compare()
        if list(map(_PLACE, self.parameters)) != self._places or list(map(_VALUES, self._parts)) != self._values:
            return True
        return list(map(_VERSION, self._counted)) != self._versions

    def apart_written(self) -> bool:
        """Whether values that lie on a device were others in any comparison so far; this waits for the device."""
        return self._was_written or any(map(_Apart.written, self._apart))

    def exchanged(self) -> bool:
        """Whether the model has other parameters than at the start."""
        return [id(p) for _, _, p in _slots(self.model)] != [id(p) for p in self.parameters]

    def finite(self) -> bool:
        """Whether all of them are numbers, and none is infinite."""
        return all(bool(torch.isfinite(p.detach()).all()) for p in self.parameters)

    def writes(self) -> tuple[tuple[int, bool], ...]:
        """For each parameter how often torch counted a write since ``keep``, and whether it moved in memory."""
        were = zip(self.parameters, self._all_versions, self._places, strict=True)
        return tuple((p._version - version, p.data_ptr() != place) for p, version, place in were)


class Buffers(Detector):
    """Buffers that learn from records, and what layers write into the file of weights beside them.

    Kind: weights and updates.

    Seen: all buffers, and what ``get_extra_state`` gives, before and after; one that counts calls, as copies of the
    model show in the first step, learns nothing from records.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._model = bare(loop.model)
        self._known: dict[str, bool] = {}

    def enters(self, again: bool) -> None:
        """Take them as they are now."""
        if not again:
            self._digests = self._now()

    def ends(self) -> None:
        """They must hold what they held."""
        if self.learnt():
            self._found(facts.BUFFERS_LEARNT)

    def looked_at(self, module: Any, counters: dict[str, bool]) -> None:
        """A forward pass changes these buffers of ``module``; of each whether it counts calls is known."""
        prefix = next((f"{name}." for name, one in self._model.named_modules() if one is module and name), "")
        self._known |= {prefix + name: counts for name, counts in counters.items()}

    def learnt(self) -> bool:
        """Whether one of them holds other values than at the start, and does not count calls.

        A single whole number that no forward pass was seen to change is taken for a count of steps.
        """
        now = self._now()
        changed = [name for name in {*now, *self._digests} if now.get(name) != self._digests.get(name)]
        return not all(self._known.get(name, self._counts(name)) for name in changed)

    def _counts(self, name: str) -> bool:
        value = dict(self._learning()).get(name)
        return isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_floating_point()

    def _now(self) -> dict[str, str]:
        return {name: hashlib.sha256(_bytes(value)).hexdigest() for name, value in self._learning()}

    def _learning(self) -> Iterator[tuple[str, Any]]:
        for name, layer in self._model.named_modules():
            if type(layer) is not _SpectralNorm:  # it learns from the weights alone
                yield from layer.named_buffers(name, recurse=False)
        yield from ((name, value) for name, value in self._model.state_dict().items() if name.endswith(_EXTRA))


def _bytes(value: Any) -> bytes:
    """What a layer keeps, as bytes that are compared and never read: a tensor, or what ``get_extra_state`` gives."""
    if not isinstance(value, torch.Tensor):
        return pickle.dumps(value)
    return np.asarray(value.detach().reshape(-1).cpu().contiguous().view(torch.uint8)).tobytes()


def _slots(model: nn.Module) -> Iterator[tuple[dict[str, Any], str, nn.Parameter]]:
    """Where each parameter is: the dictionary of its module, its name, and the object; each object once."""
    seen: set[int] = set()
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None and id(p) not in seen:
                seen.add(id(p))
                yield module._parameters, name, p


def _window(p: torch.Tensor) -> Any:
    """What gives the values of a tensor where they lie; None where numpy cannot look at them there."""
    kind = _SAME_SIZE.get(p.element_size())
    if type(p) is nn.Parameter and p.is_cpu and p.is_contiguous() and p.layout is torch.strided and kind is not None:
        return p.detach().view(-1).view(kind).numpy()  # shares the memory
    return None


class _Apart:
    """Values of tensors on one device, compared there: a look waits for nothing."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        lines = [(p, p.detach().reshape(-1)) for p in parameters]  # which shares the memory, where p is dense
        self._lines = [(p, line if _PLACE(line) == _PLACE(p) else None, _stride(p)) for p, line in lines]
        self._turn, self._some = 0, list[torch.Tensor | None]()
        self._changed: torch.Tensor | None = None

    def turn(self, number: int) -> None:
        """Look at other places from now on."""
        self._turn = number
        self._some = [None if line is None else line[number % stride :: stride] for _, line, stride in self._lines]

    def _now(self) -> torch.Tensor:
        looked = zip(self._lines, self._some, strict=True)
        values = torch.cat([self._of(p, stride) if some is None else some for (p, _, stride), some in looked])
        return values.view(_SAME_SIZE.get(values.element_size(), values.dtype))

    def _of(self, p: torch.Tensor, stride: int) -> torch.Tensor:
        return p.detach().reshape(-1)[self._turn % stride :: stride]

    def keep(self) -> None:
        """Take the values as they are now."""
        self._values = self._now()

    def compare(self) -> None:
        """Note whether they are others now."""
        changed = (self._now() != self._values).any()
        self._changed = changed if self._changed is None else self._changed | changed

    def written(self) -> bool:
        """Whether that was ever so."""
        return self._changed is not None and bool(self._changed)


def _stride(p: torch.Tensor) -> int:
    """An odd distance, so that columns are hit as well as rows."""
    if p.numel() <= _WHOLE:
        return 1
    row = min(p[0].numel() if p.dim() > 1 else p.numel(), p.numel() // _FEWEST)
    return max(row, p.numel() // _MOST) - 1 | 1


def changed_buffers(read: Read) -> dict[str, bool]:
    """The buffers that a forward pass changes, by name, each with whether it counts calls.

    A copy of the model reads some records and then others, and another copy the same in the other order. What is the
    same in both after each call, and changes in each, follows from the number of calls and tells nothing about records.
    """
    start, size = _copies(read.model), read.size
    if not start:
        return {}

    def after(*reads: Sequence[int]) -> list[dict[str, torch.Tensor]]:
        given = Given(read)
        with torch.no_grad():
            return [_copies(given.twin) for read in reads if given.of(read) is not None]

    one = after(range(size), [0])
    changed = [name for name, was in start.items() if not all(_equal(found.get(name), was) for found in one)]
    if not changed:
        return {}
    other = after([size - 1], range(size))
    return {name: _counts(start[name], *_of(name, one), *_of(name, other)) for name in changed}


def _counts(was: torch.Tensor, first: Any, second: Any, others_first: Any, others_second: Any) -> bool:
    same = _equal(first, others_first) and _equal(second, others_second)
    return same and not _equal(first, was) and not _equal(first, second)


def _of(name: str, chain: list[dict[str, torch.Tensor]]) -> list[torch.Tensor | None]:
    return [found.get(name) for found in chain]


def _copies(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}


def _equal(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    return one is not None and other is not None and torch.equal(one, other)
