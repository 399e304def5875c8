"""Inner products of clipped gradients, centred so that close gradients do not cancel.

For completions i of one record let ``g_i`` be the clipped gradients over the clip norm, and 0 a reference
completion. All products are those of ``u_i = g_i - g_0``. A linear layer with inputs a and output errors
e (scaled by the clip factor) has the gradient e a^T, and

    u_i = e_i (a_i - a_0)^T + (e_i - e_0) a_0^T,

so that every term is small when the gradients are close: the squared distances have an error relative
to the largest of them, not to the clip norm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch


class Workspace:
    """Buffers that live as long as an engine: fresh large temporaries cost more in page faults than in arithmetic.

    What ``take`` returns is overwritten by the next ``take`` of the same name.
    """

    def __init__(self, like: torch.Tensor) -> None:
        self._like = like
        self._buffers: dict[str, torch.Tensor] = {}

    def take(self, name: str, *shape: int) -> torch.Tensor:
        """An uninitialised tensor of this shape, in the dtype and on the device of ``like``."""
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < size:
            buffer = self._buffers[name] = self._like.new_empty(size)
        return buffer[:size].view(shape)


class Centred(NamedTuple):
    """Products of one block of records with n completions each, in units of the clip norm.

    Both may lie in buffers that the next block overwrites.
    """

    gram: torch.Tensor
    """<u_i, u_j>, shape (records, n, n)."""
    norms: torch.Tensor
    """Norms of the clipped gradients, shape (records, n), at most 1."""


def clip_factors(square: torch.Tensor, clip: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(factor that clips and divides by the clip norm, clipped norm over the clip norm), of the shape of ``square``."""
    norms = square.sqrt() / clip
    return 1.0 / (clip * norms.clamp(min=1.0)), norms.clamp(max=1.0)


def linear_gram(a: torch.Tensor, e: torch.Tensor, work: Workspace, *, bias: bool, reference: int = 0) -> torch.Tensor:
    """<u_i, u_j> of a linear layer on one vector per completion.

    Args:
        a: inputs, (records, n, width in).
        e: output errors times clip factor, (records, n, width out); overwritten.
        work: buffers; the result lies in ``gram``.
        bias: whether the layer has one; it is an input that is always 1.
        reference: position of the reference completion.
    """
    if e.shape[2] == 1:
        return _rank_one_gram(a, e, work, bias, reference)
    first = a[:, reference : reference + 1]
    moved = torch.sub(a, first, out=work.take("moved", *a.shape))
    inputs = torch.bmm(moved, moved.transpose(1, 2), out=work.take("inputs", *_square_shape(a)))
    k = torch.bmm(moved, first.transpose(1, 2))
    size = torch.linalg.vector_norm(first, dim=2, keepdim=True).square_() + float(bias)
    return affine_gram(e, inputs, k, size, work, reference)


def affine_gram(
    e: torch.Tensor,
    inputs: torch.Tensor,
    k: torch.Tensor,
    size: torch.Tensor,
    work: Workspace,
    reference: int = 0,
    out: str = "gram",
) -> torch.Tensor:
    """<u_i, u_j> from the products of the moved inputs a_i - a_0.

    Args:
        e: output errors times clip factor, (records, n, width out); overwritten.
        inputs: <a_i - a_0, a_j - a_0>, (records or 1, n, n).
        k: <a_i - a_0, a_0>, (records or 1, n, 1).
        size: |a_0|^2, plus 1 for a bias, (records, 1, 1).
        work: buffers.
        reference: position of the reference completion.
        out: name of the buffer in which the result lies.
    """
    shape = _square_shape(e)
    first = e[:, reference : reference + 1].clone()
    e -= first
    total = torch.bmm(e, e.transpose(1, 2), out=work.take(out, *shape))
    m = torch.bmm(e, first.transpose(1, 2))
    power = torch.linalg.vector_norm(first, dim=2, keepdim=True).square_()
    # <de_i, de_j> (<a_i, a_j> + bias) + m_i (<da_i, da_j> + k_j) + m_j (<da_i, da_j> + k_i) + |e_0|^2 <da_i, da_j>
    left, right = inputs + k, inputs + k.transpose(1, 2)
    total *= torch.add(left + k.transpose(1, 2), size, out=work.take("side", *shape))
    total.addcmul_(m, right)
    total.addcmul_(m.transpose(1, 2), left)
    return total.addcmul_(power, inputs)


def affine_radii(
    e: torch.Tensor, inputs: torch.Tensor, k: torch.Tensor, size: torch.Tensor, reference: int
) -> torch.Tensor:
    """|u_i|^2, (records, n): the diagonal of ``affine_gram`` without its products of pairs.

    Args:
        e: as in ``affine_gram``, left as it is.
        inputs: |a_i - a_0|^2, (records or 1, n).
        k: <a_i - a_0, a_0>, (records or 1, n).
        size: |a_0|^2, plus 1 for a bias, (records, 1).
        reference: position of the reference completion.
    """
    first = e[:, reference : reference + 1]
    power = torch.linalg.vector_norm(first, dim=2).square_()
    m = torch.bmm(e, first.transpose(1, 2)).squeeze(2) - power
    moved = torch.linalg.vector_norm(e, dim=2).square_() - power - 2.0 * m
    # Rounding of the subtraction must not make an upper bound smaller.
    moved += 16.0 * torch.finfo(e.dtype).eps * (power + moved.abs())
    return moved * (inputs + 2.0 * k + size) + (2.0 * m + power) * inputs + 2.0 * m * k


def _rank_one_gram(a: torch.Tensor, e: torch.Tensor, work: Workspace, bias: bool, reference: int) -> torch.Tensor:
    """With one output the gradient is no larger than its factors: centre it as it is."""
    own = slice(reference, reference + 1)
    u = torch.addcmul(-(a[:, own] * e[:, own]), a, e, out=work.take("moved", *a.shape))
    total = torch.bmm(u, u.transpose(1, 2), out=work.take("gram", *_square_shape(a)))
    if bias:
        e -= e[:, reference : reference + 1].clone()
        total.addcmul_(e, e.transpose(1, 2))
    return total


def _square_shape(x: torch.Tensor) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], x.shape[1]


def explicit_gram(g: torch.Tensor) -> torch.Tensor:
    """<u_i, u_j> of gradients that are there: (records, n, parameters), clipped; ``g`` is overwritten."""
    g -= g[:, :1].clone()
    return torch.bmm(g, g.transpose(1, 2))


def squared_distances(gram: torch.Tensor) -> torch.Tensor:
    """|u_i - u_j|^2 >= 0, shape (records, n, n), diagonal 0; ``gram`` is overwritten."""
    diagonal = gram.diagonal(dim1=1, dim2=2).clone()
    gram *= -2.0
    gram += diagonal[:, :, None]
    gram += diagonal[:, None, :]
    return gram.clamp_(min=0.0)
