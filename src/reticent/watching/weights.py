"""Who wrote to the weights: looked at before and after each step of the optimizer.

torch counts writes to a tensor only where autograd must know of them. ``p.data.sub_()``, ``p.data = ...``,
``vector_to_parameters`` and ``load_state_dict(assign=True)`` are not counted. So three more things are compared:
which object stands where, where it lies in memory, and a sample of its values, at other places after each step. All
values go into the fingerprint of the start and of the end, which the next watch of the same model compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from reticent.watching.models import bare

_WHOLE, _FEWEST, _MOST = 1024, 256, 4096
"""Values of a tensor that are compared around each step: all of a small one; else one of each row, within bounds."""

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True)
class _State:
    """What is compared: counts of writes, places in memory, and bytes of some values."""

    versions: tuple[int, ...]
    places: tuple[int, ...]
    values: bytes


class Weights:
    """The parameters of one model, as they were when somebody last said ``keep``."""

    def __init__(self, model: Any) -> None:
        self._model = bare(model)
        self._slots = list(_slots(self._model))
        self.parameters = [p for _, _, p in self._slots]
        self._turn, self._kept = 0, _State((), (), b"")
        self.keep()

    def keep(self) -> None:
        """Take the weights as they are now for those that the optimizer left."""
        places = tuple(p.data_ptr() for p in self.parameters)
        if places != self._kept.places:
            self._windows = [_window(p) for p in self.parameters]
        self._turn += 1
        self._kept = self._now(places)

    def written(self) -> bool:
        """Whether somebody wrote to them since; a write to few values of a large tensor may be missed."""
        places = tuple(p.data_ptr() for p in self.parameters)
        if places != self._kept.places or not all(where.get(name) is p for where, name, p in self._slots):
            return True
        return self._now(places) != self._kept

    def exchanged(self) -> bool:
        """Whether the model has other parameters than at the start."""
        return [id(p) for _, _, p in _slots(self._model)] != [id(p) for p in self.parameters]

    def writes(self) -> tuple[tuple[int, bool], ...]:
        """For each parameter how often torch counted a write since ``keep``, and whether it moved in memory."""
        kept = zip(self.parameters, self._kept.versions, self._kept.places, strict=True)
        return tuple((p._version - version, p.data_ptr() != place) for p, version, place in kept)

    def _now(self, places: tuple[int, ...]) -> _State:
        values = b"".join([window(self._turn) for window in self._windows])
        return _State(tuple([p._version for p in self.parameters]), places, values)


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
            name: hashlib.sha256(_bytes(b)).hexdigest()
            for name, b in self._model.named_buffers()
            if b is not None and not (b.numel() == 1 and not b.is_floating_point())
        }


def _slots(model: nn.Module) -> Iterator[tuple[dict[str, Any], str, nn.Parameter]]:
    """Where each parameter stands: the dictionary of its module, its name, and the object; each object once."""
    seen: set[int] = set()
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None and id(p) not in seen:
                seen.add(id(p))
                yield module._parameters, name, p


def _window(p: torch.Tensor) -> Callable[[int], bytes]:
    """Reads some values of a tensor, others at each turn; it is made again when the tensor moves in memory."""
    stride = _stride(p)
    kind = _SAME_SIZE.get(p.element_size())
    if type(p) is nn.Parameter and p.is_cpu and p.is_contiguous() and p.layout is torch.strided and kind is not None:
        flat = p.detach().view(-1).view(kind).numpy()  # shares the memory
        return lambda turn: flat[turn % stride :: stride].tobytes()
    return lambda turn: _bytes(p.detach().reshape(-1)[turn % stride :: stride])


def _stride(p: torch.Tensor) -> int:
    """An odd distance, so that columns are hit as well as rows."""
    if p.numel() <= _WHOLE:
        return 1
    row = min(p[0].numel() if p.dim() > 1 else p.numel(), p.numel() // _FEWEST)
    return max(row, p.numel() // _MOST) - 1 | 1


def _bytes(tensor: torch.Tensor) -> bytes:
    plain = tensor.detach().cpu().contiguous()
    return np.asarray(plain.view(-1).view(torch.uint8)).tobytes() if plain.numel() else b""
