"""Who wrote to the weights: looked at before and after each step of the optimizer.

torch counts writes to a tensor only where autograd must know of them. ``p.data.sub_()``, ``p.data = ...``,
``vector_to_parameters`` and ``load_state_dict(assign=True)`` are not counted. So three more things are compared:
which object is where, where it lies in memory, and a sample of its values, at other places after each step. All
values go into the fingerprint of the start and of the end, which the next watch of the same model compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from reticent.watching.models import bare

_WHOLE, _FEWEST, _MOST = 1024, 256, 4096
"""Values of a tensor that are compared around each step: all of a small one; else one of each row, within bounds."""

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Weights:
    """The parameters of one model, as they were when somebody last said ``keep``."""

    def __init__(self, model: Any) -> None:
        self.model = bare(model)
        self._slots = list(_slots(self.model))
        self.parameters = [p for _, _, p in self._slots]
        self._turn, self._places = 0, list[int]()
        self._kept: list[tuple[nn.Parameter, int, int, bool, Any, bytes]] = []
        self.keep()

    def keep(self) -> None:
        """Take the weights as they are now for those that the optimizer left."""
        places = [p.data_ptr() for p in self.parameters]
        if places != self._places:
            self._places, self._windows = places, [_window(p) for p in self.parameters]
        self._turn = turn = self._turn + 1
        self._kept = kept = []
        for p, place, (values, stride) in zip(self.parameters, places, self._windows, strict=True):
            part = values[turn % stride :: stride]
            kept.append((p, place, p._version, stride > 1, part, part.tobytes()))

    def written(self) -> bool:
        """Whether they are others now; a write that torch does not count, to few values, may be missed."""
        for where, name, p in self._slots:
            if where.get(name) is not p:
                return True
        return self.others()

    def others(self) -> bool:
        """The same of the parameters themselves, or of what replaces them: ``functional_call`` exchanges them.

        Where all values of a tensor can be seen to be back, it is as it was, however often torch counted a write. One
        walk over the parameters: after a batch most of what is touched here has left the caches.
        """
        for p, place, version, large, part, was in self._kept:
            if p.data_ptr() != place or part.tobytes() != was or (large and p._version != version):
                return True
        return False

    def exchanged(self) -> bool:
        """Whether the model has other parameters than at the start."""
        return [id(p) for _, _, p in _slots(self.model)] != [id(p) for p in self.parameters]

    def writes(self) -> tuple[tuple[int, bool], ...]:
        """For each parameter how often torch counted a write since ``keep``, and whether it moved in memory."""
        return tuple((p._version - version, p.data_ptr() != place) for p, place, version, *_ in self._kept)


class Buffers:
    """The buffers of one model as they were at the start."""

    def __init__(self, model: Any) -> None:
        self._model = bare(model)
        self._digests = self._now()

    def learnt(self) -> bool:
        """Whether one of them holds other values than at the start; a single whole number may count steps."""
        return self._now() != self._digests

    def _now(self) -> dict[str, str]:
        return {
            name: hashlib.sha256(_Copied(b)[:].tobytes()).hexdigest()
            for name, b in self._model.named_buffers()
            if b is not None and not (b.numel() == 1 and not b.is_floating_point())
        }


def _slots(model: nn.Module) -> Iterator[tuple[dict[str, Any], str, nn.Parameter]]:
    """Where each parameter is: the dictionary of its module, its name, and the object; each object once."""
    seen: set[int] = set()
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None and id(p) not in seen:
                seen.add(id(p))
                yield module._parameters, name, p


def _window(p: torch.Tensor) -> tuple[Any, int]:
    """What gives the values of a tensor, and the distance of those that are looked at; made again when it moves."""
    kind = _SAME_SIZE.get(p.element_size())
    if type(p) is nn.Parameter and p.is_cpu and p.is_contiguous() and p.layout is torch.strided and kind is not None:
        return p.detach().view(-1).view(kind).numpy(), _stride(p)  # shares the memory
    return _Copied(p), _stride(p)


class _Copied:
    """A tensor, or places in it, that numpy cannot look at where they lie: values are copied each time."""

    def __init__(self, tensor: torch.Tensor, which: slice = slice(None)) -> None:
        self._tensor, self._which = tensor, which

    def __getitem__(self, which: slice) -> _Copied:
        return _Copied(self._tensor, which)

    def tobytes(self) -> bytes:
        """The values as they are now."""
        plain = self._tensor.detach().reshape(-1)[self._which].cpu().contiguous()
        return np.asarray(plain.view(torch.uint8)).tobytes()


def _stride(p: torch.Tensor) -> int:
    """An odd distance, so that columns are hit as well as rows."""
    if p.numel() <= _WHOLE:
        return 1
    row = min(p[0].numel() if p.dim() > 1 else p.numel(), p.numel() // _FEWEST)
    return max(row, p.numel() // _MOST) - 1 | 1
