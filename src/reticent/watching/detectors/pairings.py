"""Losses that pair the output of each record with something of all others that has no gradient, or compare records.

- By mistake, a column against a list: of outputs with one column and labels without, torch makes a square, and the mean
  over it moves every record by all labels.
- On purpose, as where images are told apart by their texts: the products with all texts of the batch, whose encoder is
  frozen. As many classes as the batch has records look the same, and are the same for the next batch.
- The hardest records of a batch, chosen by the order of their losses.

No derivative shows it; the shapes in the graph of the loss do.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from reticent.watching.detectors.divisors import nodes

_SPREADING = ("Expand", "Sub", "Rsub", "Add", "Mul", "Div")
"""How the names of operations begin that spread a column or a list over a square."""

_PRODUCTS = ("Mm", "Bmm", "Addmm", "Baddbmm", "Cdist", "EuclideanDist")

_ORDERS = re.compile("(Topk|Sort|Max|Min|Amax|Amin|Kthvalue|Median)Backward")
"""The names of operations that compare the numbers that they get with each other."""


Square = tuple[int, torch.Tensor | None]
"""Of a square of all records against as many others without a gradient: how many; and the others, if they are kept."""


def pairs_records(loss: torch.Tensor, outputs: list[torch.Tensor]) -> bool:
    """Whether records are spread over a square of them, against what has no gradient, or are chosen by their order.

    Args:
        loss: before its backward pass.
        outputs: of the model, with one row for each record.
    """
    return any(_spreads(*one, len(outputs[0])) or _chooses(one[0], len(outputs[0])) for one in _between(loss, outputs))


def squares(loss: torch.Tensor, outputs: list[torch.Tensor]) -> list[Square]:
    """Products and differences of all records with as many others, which may be of the batch, or the same for all.

    Args:
        loss: before its backward pass.
        outputs: of the model, with one row for each record.
    """
    records = len(outputs[0])
    return [(records, _others(node)) for node, _ in _between(loss, outputs) if _is_square(node, records)]


def of_their_batches(before: list[Square], now: list[Square]) -> bool:
    """Whether one of these squares, seen in two batches, has other others in each."""
    return any(
        size != size_now or others is None or others_now is None or not torch.equal(others, others_now)
        for (size, others), (size_now, others_now) in zip(before, now, strict=False)
    )


def _between(loss: torch.Tensor, outputs: list[torch.Tensor]) -> list[tuple[Any, list[Any]]]:
    ends = {one.grad_fn for one in outputs}
    return [(node, after) for node, after in nodes(loss, ends) if node not in ends]


def _is_square(node: Any, records: int) -> bool:
    operands, gave = _operands(node), _shape(node, 0)
    if len(operands) != 1:
        return False
    if node.name().startswith(_PRODUCTS):
        return gave[-2:] == (records, records)
    got = _shape(*operands[0])
    return node.name().startswith(_SPREADING) and gave[:2] == (records, records) and len(got) > 2 and 1 in got[:2]


def _others(node: Any) -> torch.Tensor | None:
    """What has no gradient in a product, where the graph keeps it for the backward pass."""
    kept = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
    found = [one for one in kept if isinstance(one, torch.Tensor) and one.dim() > 1 and not one.requires_grad]
    return found[0].detach().clone() if found else None


def _chooses(node: Any, records: int) -> bool:
    """The order of numbers of the records, one for each."""
    shapes = [_shape(before, at) for before, at in _operands(node)] if _ORDERS.match(node.name()) else []
    return any(shape in ((records,), (records, 1), (1, records)) for shape in shapes)


def _spreads(node: Any, after: list[Any], records: int) -> bool:
    operands = _operands(node)
    if not node.name().startswith(_SPREADING) or len(operands) != 1:
        return False
    if node.name().startswith("Expand") and after and len(_operands(after[-1])) > 1:
        return False  # against outputs: with their own length, as where they are normalised
    (before, at), gave = operands[0], _shape(node, 0)
    return gave[:2] == (records, records) and _shape(before, at) in ((records,), (records, 1))


def _operands(node: Any) -> list[Any]:
    """What a node got that has a gradient."""
    return [one for one in node.next_functions if one[0] is not None]


def _shape(node: Any, at: int) -> tuple[int, ...]:
    """Of the tensor that a node gave."""
    known = getattr(node, "_input_metadata", ())
    return tuple(known[at].shape) if at < len(known) else ()
