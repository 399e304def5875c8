"""Means over a batch whose divisor depends on the records: with weights of classes, or over what counts of each.

``cross_entropy`` divides by the weights of all labels in the batch, and leaves out those that are ``ignore_index``. So
a record with many tokens, or with a heavy class, makes the gradients of all others smaller, before they are clipped.
Labels have no gradient, so no derivative shows it; the graph of the loss keeps them. So it does a number that a sum is
divided by, or that a mean is over: it may not be the count of all tokens of the batch, or the length of its longest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import torch
from torch import nn

_MEAN, _SUM = 1, 2
_MOST_NODES = 256


def divides_by_others(loss: torch.Tensor, records: int) -> bool:
    """Whether a mean in ``loss`` is divided by what the labels of all its records weigh, and they weigh differently.

    Args:
        loss: before its backward pass.
        records: in the batch.
    """
    found = [(node, after) for node, after in nodes(loss) if hasattr(node, "_saved_reduction")]
    if len(found) >= records:  # each record has a loss of its own
        return False
    return any(_depends(node, after, records) for node, after in found)


def _depends(node: Any, after: list[Any], records: int) -> bool:
    if not node.name().startswith("NllLoss"):
        terms = getattr(node, "_saved_self", None)
        if node._saved_reduction != _MEAN or not isinstance(terms, torch.Tensor):
            return False
        return terms.numel() % records != 0
    target, weight, total = node._saved_target, node._saved_weight, node._saved_total_weight
    divided = node._saved_reduction == _MEAN or (
        node._saved_reduction == _SUM and any(_is_divided_by(one, total) for one in after)
    )
    if not divided or not target.numel():
        return False
    if target.numel() % records:  # some of the records were chosen, or some of their parts
        return True
    if weight is not None and bool((weight != weight.flatten()[0]).any()):
        return True
    ignored = node._saved_ignore_index
    ignored = ignored - (1 << 64) if ignored >= 1 << 63 else ignored
    counts = (target != ignored).reshape(records, -1).sum(1)
    return bool((counts != counts[0]).any())


def _is_divided_by(node: Any, total: torch.Tensor) -> bool:
    other = getattr(node, "_saved_other", None) if node.name().startswith("DivBackward") else None
    return isinstance(other, torch.Tensor) and other.numel() == 1 and abs(float(other) / float(total) - 1.0) < 1e-6


def counts_of(tensors: Iterable[torch.Tensor], records: int) -> set[int]:
    """Counts over all records that each record has a different share in, as of its tokens; also but for one of each.

    Args:
        tensors: of a batch: masks, tokens, or lengths, with one row for each record.
        records: in the batch.
    """
    rows = [t for t in tensors if len(t) == records]
    each = [(t.flatten(1) != none).sum(1) for t in rows if t.dim() > 1 for none in (0, -100)]
    each += [t for t in rows if t.dim() == 1 and not t.is_floating_point() and int(t.min()) > 0]
    totals = [int(t.sum()) for t in each if bool((t != t[0]).any())]
    return {total - less for total in totals for less in (0, records)} - {0, 1, records}


def divides_by_counts(
    loss: torch.Tensor, outputs: list[torch.Tensor], records: int, counts: set[int], lengths: set[int]
) -> float | None:
    """Such a count over which a mean in ``loss`` is, or by which it divides; inf for a mean over the longest record.

    A number that does not depend on the records may meet a count by chance, in one batch.

    Args:
        loss: before its backward pass.
        outputs: of the model.
        records: in the batch.
        counts: see ``counts_of``.
        lengths: to which records are padded.
    """
    ends = {one.grad_fn for one in outputs}
    longest = {length - less for length in lengths for less in (0, 1)}
    whole = {records * length for length in longest}
    for node, _ in nodes(loss, ends):
        over = _averaged(node) if node not in ends else []
        if _each_by(node, records) in longest or any(
            size in (whole if axis == 0 else longest if axis == 1 else ()) for axis, size in over
        ):
            return math.inf
        by = _divisor(node) if node not in ends else None
        for count in counts | whole:
            if math.prod(size for _, size in over) == count or (by and math.isclose(by, count, rel_tol=1e-6)):
                return float(count)
    return None


def divided_by(loss: torch.Tensor, outputs: list[torch.Tensor]) -> float | None:
    """By what a loss divides the terms of its records; None where other operations may do so, too."""
    ends, found = {one.grad_fn for one in outputs}, 1.0
    for node in next((after for node, after in nodes(loss, ends) if node in ends), [loss.grad_fn]):
        name = "" if node is None else node.name().split("Backward")[0]
        by = getattr(node, "_saved_other", None) if name in ("Mul", "Div") else None
        if node in ends or name not in _PLAIN or (name in ("Mul", "Div") and not isinstance(by, torch.Tensor)):
            return None
        if by is not None and by.numel() > 1 and (name == "Div" or bool(((by != 0) & (by != 1)).any())):
            return None
        found *= math.prod(size for _, size in _averaged(node)) * (_divisor(node) or 1.0)
    return found


_PLAIN = {
    *("Mean", "Sum", "Mul", "Div", "Add", "Sub", "Neg", "Log", "Exp", "Abs", "Pow", "Sqrt", "LogSoftmax", "Softmax"),
    *("NllLoss", "NllLoss2D", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits", "MseLoss", "SmoothL1Loss"),
    *("HuberLoss", "SoftMarginLoss", "Sigmoid", "Relu", "View", "UnsafeView", "Squeeze", "Unsqueeze", "Transpose"),
    *("Permute", "T", "Select", "Slice", "Index", "Clone", "ToCopy", "Clamp", "ClampMin", "ClampMax", "MaskedFill"),
}
"""Operations that divide by nothing else."""


def _averaged(node: Any) -> list[tuple[int, int]]:
    """Axes, and how long they are, over which this is a mean."""
    if node.name().startswith("MeanBackward"):
        sizes = node._saved_self_sym_sizes
        over = getattr(node, "_saved_dim", None) or range(len(sizes))
        axes = {(axis - (1 << 64) if axis >= 1 << 63 else axis) % len(sizes) for axis in over}
        return [(axis, size) for axis, size in enumerate(sizes) if axis in axes]
    if getattr(node, "_saved_reduction", None) != _MEAN:
        return []
    terms = getattr(node, "_saved_target", None)
    terms = getattr(node, "_saved_self", None) if terms is None else terms
    return [] if terms is None else list(enumerate(size for size in terms.shape if size > 1))


def _each_by(node: Any, records: int) -> float | None:
    """The number by which the sum of each record is divided, if it is one for all, as in Opacus's ghost clipping."""
    other = getattr(node, "_saved_other", None) if node.name().startswith("Div") else None
    if not isinstance(other, torch.Tensor) or other.numel() != records or records == 1:
        return None
    return float(other.flatten()[0]) if bool((other == other.flatten()[0]).all()) else None


def _divisor(node: Any) -> float | None:
    """The number by which something is divided."""
    other = getattr(node, "_saved_other", None)
    if not isinstance(other, torch.Tensor) or other.numel() != 1 or not float(other):
        return None
    name = node.name()
    return float(other) if name.startswith("Div") else 1.0 / float(other) if name.startswith("Mul") else None


def of_another(loss: torch.Tensor, outputs: list[torch.Tensor], model: nn.Module) -> bool:
    """Whether a loss is that of another model: of parameters, none of them of this one, and of none of its outputs."""
    ends, seen, own = {one.grad_fn for one in outputs}, set[Any](), {id(p) for p in model.parameters()}
    waiting: list[Any] = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        leaf = getattr(node, "variable", None)
        if node in ends or (leaf is not None and (id(leaf) in own or not isinstance(leaf, nn.Parameter))):
            return False
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [one for one, _ in node.next_functions]
    return True


def nodes(loss: torch.Tensor, ends: Collection[Any] = ()) -> list[tuple[Any, list[Any]]]:
    """The nodes of the graph next to the loss, each with those on one way from it to the loss; none beyond ``ends``."""
    waiting: list[tuple[Any, list[Any]]] = [(loss.grad_fn, [])]
    seen: dict[Any, list[Any]] = {}
    while waiting and len(seen) < _MOST_NODES:
        node, after = waiting.pop(0)
        if node is None or node in seen:
            continue
        seen[node] = after
        waiting += [(one, [*after, node]) for one, _ in node.next_functions if node not in ends]
    return list(seen.items())
