"""Means over a batch whose divisor depends on the records: with weights of classes, or over what counts of each.

``cross_entropy`` divides by the weights of all labels in the batch, and leaves out those that are ``ignore_index``. So
a record with many tokens, or with a heavy class, makes the gradients of all others smaller, before they are clipped.
Labels have no gradient, so no derivative shows it; the graph of the loss keeps them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

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
