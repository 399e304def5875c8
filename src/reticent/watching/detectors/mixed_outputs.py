"""Whether the forward pass of a model mixes records: a copy of it reads a batch, and then one of its records.

The output of that record must be the same alone. Where the model draws random numbers, as for dropout, or gives a
number for each pair of records, it must be the same among copies of itself: for as many records it draws the same. The
first record and the last one are read, as what goes through a sequence reaches the records behind. Of a model that
gives a loss, a record must add the same among all and among copies of itself.

Each layer at which Opacus takes the gradients of records must get fewer rows of one record than of all: it takes rows
of a table, such as positions or prototypes, for records where they are as many.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from reticent.watching.detectors.closer_looks import as_before
from reticent.watching.hooks import owner_of
from reticent.watching.models import bare

_RELATIVE, _ABSOLUTE = 1e-3, 1e-5

_OFTEN = 8
"""Roundings of the precision that outputs may differ by in batches of another size, where sums are not exact: fewer
than one in 20 layers of a processor, where rounding is independent in each."""

_WITHIN = 3
"""Levels at which tensors are looked for in an object."""

Change = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Read:
    """What a model is about to read.

    Attributes:
        model: bare; nothing of it changes.
        args: with one row for each record, or anything else.
        kwargs: the same by name.
        size: records.
    """

    model: nn.Module
    args: Any
    kwargs: dict[str, Any]
    size: int


def mixes_in_forward(read: Read, hooked: bool = False) -> tuple[bool, set[int]]:
    """Whether what a model gives for a record depends on other records of its batch.

    Args:
        read: the batch.
        hooked: hooks of the program are called too.

    Returns:
        Whether that is so; and the places, among all outputs, of single numbers that are no sum or mean over records.
        A loss must not be one of these.
    """
    found = _mixes(Given(read, hooked=hooked), read.size)
    if found == (False, set()):
        return found
    try:  # a model that counts its calls gives other numbers in each
        return _mixes(Given(read, anew=True, hooked=hooked), read.size)
    except Exception:
        return found


def _mixes(given: Given, size: int) -> tuple[bool, set[int]]:
    with torch.no_grad():
        together, of_all = given.of(range(size)), given.rows.taken()
        for at in (0, size - 1):
            given.rows.taken()
            try:
                alone = given.of([at])
            except Exception:  # the model wants more than one record
                alone = None
            of_one = given.rows.taken() if alone is not None else []
            if any(all_ == one and one[1] == size for all_, one in zip(of_all, of_one, strict=False)):
                return True, set()
            if _differs(together, alone, given, at, size):
                return True, set()
        return False, _mixed_numbers(together, given, size)


def _differs(together: list[torch.Tensor], alone: list[torch.Tensor] | None, given: Given, at: int, size: int) -> bool:
    """Whether the record at this place has other outputs than among all, alone or among copies of itself."""
    rows = {
        k: t[at]
        for k, t in enumerate(together)
        if t.dim() and 1 < len(t) <= size and (at == 0 or len(t) == size) and t.is_floating_point()
    }
    if alone is not None:
        rows = {k: row for k, row in rows.items() if k < len(alone) and alone[k].dim() and len(alone[k]) == 1}
        if given.alike and all(row.shape == alone[k][0].shape for k, row in rows.items()):
            shaken = given.of([at], given.shake) if given.coarse else alone
            if any(_differ_by_more(row, alone[k][0], shaken[k][0], given.relative) for k, row in rows.items()):
                return True
            if not given.coarse:
                return False
    copies = given.of([at] * size) if rows else []
    return any(differ(row, copies[k][at]) for k, row in rows.items())


def _differ_by_more(row: torch.Tensor, alone: torch.Tensor, shaken: torch.Tensor, relative: float) -> bool:
    """Whether a record has other outputs alone, beyond rounding and what the model makes of rounded inputs."""
    return differ(row, alone, relative, _ABSOLUTE + _OFTEN * float((shaken - alone).abs().max()))


def _mixed_numbers(together: list[torch.Tensor], given: Given, size: int) -> set[int]:
    """Single numbers to which an exchange of one record adds something else among other records."""
    places = [k for k, t in enumerate(together) if not t.dim() and t.is_floating_point()]
    if not places:
        return set()

    def numbers(batch: Sequence[int]) -> torch.Tensor:
        found = given.of(batch)
        return torch.stack([found[k].double().cpu() for k in places])

    def added(batch: list[int], at: int, other: int) -> torch.Tensor:
        return numbers(batch) - numbers([*batch[:at], other, *batch[at + 1 :]])

    whole, mixed = list(range(size)), torch.zeros(len(places), dtype=torch.bool)
    least = numbers(whole).abs() * torch.tensor(
        [max(_ABSOLUTE, 8 * torch.finfo(together[k].dtype).eps) for k in places]
    )
    for at, other in ((0, size - 1), (size - 1, 0)):
        among_all, among_copies = added(whole, at, other), added([at] * size, at, other)
        most = torch.maximum(among_all.abs(), among_copies.abs())
        mixed |= (among_all - among_copies).abs() > _RELATIVE * most + least
    return {place for place, found in zip(places, mixed, strict=True) if found}


class Given:
    """What a model is about to read, of which parts can be read again; each time it draws the same random numbers.

    Attributes:
        alike: whether outputs are the same in batches of another size, but for rounding: nothing was drawn.
        coarse: whether they are not exact: of a GPU, which may round products to ten bits, or in half precision.
        relative: what outputs may differ by, of their largest value.
        rows: of layers, in the calls so far.
        twin: the copy that read it last.
        still: whether it reads as in evaluation, without dropout.
    """

    def __init__(self, read: Read, *, anew: bool = False, hooked: bool = False, varied: float = 0.0) -> None:
        """Prepare a copy of the model.

        Args:
            read: the batch.
            anew: each call is made by a copy of its own, as a model may remember its calls.
            hooked: hooks of the program are called too.
            varied: other weights are tried, as large and of other signs, and larger biases; 0 leaves them as they are.
        """
        self._read, self._anew, self._hooked, self._varied = read, anew, hooked, varied
        self.rows, self.still = _Rows(read.model), False
        self.twin = self._copy()
        parameters = list(self.twin.parameters())
        self._devices = sorted({p.device.index or 0 for p in parameters if p.is_cuda})
        self._rounding = max((_rounding(p) for p in parameters if p.is_floating_point()), default=0.0)
        self.coarse, self.alike = self._rounding > torch.finfo(torch.float32).eps, True
        self.relative = max(_RELATIVE, _OFTEN * self._rounding)

    def _copy(self) -> nn.Module:
        model = self._read.model
        known: dict[int, Any] = {id(p): nn.Parameter(p.orig_weight.detach().clone()) for p in _expanded(model)}
        known |= {id(one): one for layer in model.modules() for one in _wrappers(layer)}  # not all can be copied
        twin = copy.deepcopy(model, known)
        for layer in twin.modules():
            for hooks in (layer._forward_hooks, layer._forward_pre_hooks):
                for number in [n for n, hook in hooks.items() if not (self._hooked and _of_the_program(hook))]:
                    del hooks[number]
            layer._backward_hooks.clear()
            if self._varied:
                _vary(layer, self._varied)
        self.rows.follow(twin)
        return twin

    def shake(self, rows: torch.Tensor) -> torch.Tensor:
        """The same rows, each number moved by one rounding, up and down in turn."""
        if not rows.is_floating_point():
            return rows
        places = torch.arange(rows.numel(), device=rows.device).view_as(rows)
        return rows * (1.0 + self._rounding * (1 - 2 * (places % 2))).to(rows.dtype)

    def of(self, records: Sequence[int], change: Change = lambda rows: rows) -> list[torch.Tensor]:
        """The outputs of these records, single numbers among them.

        Args:
            records: places of them.
            change: made before to whatever has a row for each.
        """
        read = self._read
        if self._anew:
            self.twin = self._copy()
        if self.still:
            self.twin.eval()
        args, kwargs = (_cut(part, read.size, list(records), change) for part in (read.args, read.kwargs))
        with as_before(self._devices) as drawn:
            found = list(tensors_in(self.twin(*args, **kwargs), numbers=True))
            self.alike = self.alike and not drawn()
        return found


def _rounding(p: torch.Tensor) -> float:
    """The distance of numbers at 1 in the precision in which products with this parameter are summed."""
    kind = p.device.type
    cast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else p.dtype
    return max(torch.finfo(p.dtype).eps, torch.finfo(cast).eps, 2.0**-10 if p.is_cuda else 0.0)


def _vary(layer: nn.Module, by: float) -> None:
    """Exchange signs of the weights that are trained, move those that are 0, and raise the biases beside them.

    Opacus moves each of them, also the row of zeros that a table has for padding.
    """
    trained = [(name, p) for name, p in layer.named_parameters(recurse=False) if p.requires_grad]
    matrices = [p for _, p in trained if p.dim() > 1]
    for p in matrices:
        places = torch.arange(1, p.numel() + 1, dtype=torch.float64, device=p.device)
        signs = (by * places).sin().sign().view_as(p)
        p.data.mul_(signs).add_(0.1 * signs * (p == 0.0))
    for name, p in trained:
        if matrices and p.dim() == 1 and "bias" in name:
            p.data.add_(2.0)


def _expanded(model: nn.Module, recurse: bool = True) -> Iterator[Any]:
    """Weights that torch expands for each record, in the place of the parameters of a model in its forward pass."""
    yield from (p for p in model.parameters(recurse) if hasattr(p, "orig_weight"))


def has_hooks(model: nn.Module) -> bool:
    """Whether the program hung hooks of its own into the forward pass of a model."""
    layers = bare(model).modules()
    hooks = (hook for one in layers for hook in [*one._forward_hooks.values(), *one._forward_pre_hooks.values()])
    return any(map(_of_the_program, hooks))


def _of_the_program(hook: Any) -> bool:
    return not hasattr(hook, "reticent_watches") and not hasattr(owner_of(hook), "hooks_enabled")


def _wrappers(layer: nn.Module) -> list[Any]:
    """Opacus's, whose hooks this layer has."""
    return [owner for owner in map(owner_of, layer._forward_hooks.values()) if hasattr(owner, "hooks_enabled")]


class _Rows:
    """Notes how many rows the layers get at which Opacus takes gradients of records, in a copy of the model."""

    def __init__(self, model: nn.Module) -> None:
        self._noted: list[tuple[str, int]] = []
        self._axes: dict[str, int] = {}
        for name, layer in model.named_modules():
            owners, expanded = _wrappers(layer), list(_expanded(layer, recurse=False))
            if expanded or (owners and any(p.requires_grad for p in layer.parameters())):
                first = not owners or owners[0].batch_first or type(layer).__name__ == "RNNLinear"
                self._axes[name] = 0 if first else 1

    def follow(self, twin: nn.Module) -> None:
        """Note the rows of a copy of the model."""
        for name, axis in self._axes.items():
            twin.get_submodule(name).register_forward_pre_hook(partial(self._note, name, axis))

    def _note(self, name: str, axis: int, _layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        if inputs and isinstance(inputs[0], torch.Tensor) and inputs[0].ndim > axis:
            self._noted.append((name, inputs[0].shape[axis]))

    def taken(self) -> list[tuple[str, int]]:
        """Layers in the order of their calls, and rows, since this was asked last."""
        noted, self._noted = self._noted, []
        return noted


def tensors_in(output: Any, numbers: bool = False, depth: int = 8) -> Iterator[torch.Tensor]:
    """The tensors of an output or input: of a tuple, a dictionary, or what a model gives; single numbers if asked."""
    if isinstance(output, torch.Tensor):
        if output.dim() > 0 or numbers:
            yield output
    elif isinstance(output, PackedSequence) and not output.data.requires_grad:
        yield from pad_packed_sequence(output, batch_first=True)
    elif depth and isinstance(output, (list, tuple, Mapping)):
        for part in output.values() if isinstance(output, Mapping) else output:
            yield from tensors_in(part, numbers, depth - 1)
    elif depth:
        for part in _named(output).values():
            yield from tensors_in(part, numbers, min(depth - 1, _WITHIN))


def _named(given: Any) -> Mapping[str, Any]:
    """What a dictionary or an object of data holds."""
    if isinstance(given, Mapping):
        return given
    if isinstance(given, (nn.Module, type)) or callable(given):
        return {}
    slots = (name for kind in type(given).__mro__ for name in getattr(kind, "__slots__", ()))
    return {name: getattr(given, name) for name in slots if hasattr(given, name)} | getattr(given, "__dict__", {})


def _cut(given: Any, size: int, records: list[int], change: Change, depth: int = 8) -> Any:
    """These records of whatever has one row for each, and a list of numbers of them."""
    if isinstance(given, torch.Tensor):
        of_layers = given.dim() == 3 and given.shape[1] == size  # the state of a recurrent layer
        if given.dim() > 0 and len(given) == size and not (of_layers and (given == given[:1, :1]).all()):
            return change(given.detach()[records])
        return given.detach()[:, records] if of_layers else given
    if isinstance(given, list) and len(given) == size and all(isinstance(value, (int, float)) for value in given):
        return [given[record] for record in records]
    if isinstance(given, PackedSequence):
        rows, lengths = (_cut(t, size, records, change) for t in pad_packed_sequence(given, batch_first=True))
        return pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)
    if isinstance(given, (list, tuple)):
        parts = [_cut(value, size, records, change, depth) for value in given]
        return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
    if not depth or next(tensors_in(given, depth=_WITHIN + 1), None) is None:
        return given
    chosen = copy.copy(given)
    for name, value in [*_named(given).items()]:
        part = _cut(value, size, records, change, min(depth - 1, _WITHIN))
        if isinstance(given, Mapping):
            chosen[name] = part
        else:
            object.__setattr__(chosen, name, part)  # it may be frozen
    return chosen


def differ(one: torch.Tensor, other: torch.Tensor, relative: float = _RELATIVE, absolute: float = _ABSOLUTE) -> bool:
    """Whether two tensors of one shape have other values, beyond rounding."""
    if one.shape != other.shape:
        return False
    gap = float((one - other).abs().max())
    return gap > relative * float(other.abs().max()) + absolute
