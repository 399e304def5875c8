"""Losses that pair the output of each record with something of all others that has no gradient, or compare records.

- By mistake, a column against a list: of outputs with one column and labels without, torch makes a square, and the mean
  over it moves every record by all labels.
- On purpose, as where images are told apart by their texts: the products with all texts of the batch, whose encoder is
  frozen, of which the one on the diagonal is right.
- The hardest records of a batch, chosen by the order of their losses.

No derivative shows it; the shapes in the graph of the loss do.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from reticent.watching.divisors import nodes

_SPREADING = ("Expand", "Sub", "Rsub", "Add", "Mul", "Div")
"""How the names of operations begin that spread a column or a list over a square."""


_ORDERS = re.compile("(Topk|Sort|Max|Min|Amax|Amin|Kthvalue|Median)Backward")
"""The names of operations that compare the numbers that they get with each other."""


def pairs_records(loss: torch.Tensor, outputs: list[torch.Tensor]) -> bool:
    """Whether records are spread over a square of them, against what has no gradient, or are chosen by their order.

    Args:
        loss: before its backward pass.
        outputs: of the model, with one row for each record.
    """
    records, ends = len(outputs[0]), {one.grad_fn for one in outputs}
    found = [(node, after) for node, after in nodes(loss, ends) if node not in ends]
    return any(_spreads(*one, records) or _diagonal(*one, records) or _chooses(one[0], records) for one in found)


def _chooses(node: Any, records: int) -> bool:
    """The order of numbers of the records, one for each."""
    shapes = [_shape(before, at) for before, at in _operands(node)] if _ORDERS.match(node.name()) else []
    return any(shape in ((records,), (records, 1), (1, records)) for shape in shapes)


def _diagonal(node: Any, after: list[Any], records: int) -> bool:
    """Products with as many vectors as there are records, of which the one of the record itself is the right class."""
    if not node.name().startswith(("Mm", "Bmm", "Addmm")) or _shape(node, 0)[-2:] != (records, records):
        return False
    targets = [one._saved_target for one in after if one.name().startswith("NllLoss")]
    return len(_operands(node)) == 1 and any(torch.equal(t, torch.arange(records).to(t)) for t in targets)


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
