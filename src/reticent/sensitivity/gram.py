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

from reticent.sensitivity.checks import norms_are_finite


class Workspace:
    """Buffers that live as long as an engine: fresh large temporaries cost more in page faults than in arithmetic.

    What ``take`` returns is overwritten by the next ``take`` of the same name.
    """

    def __init__(self, like: torch.Tensor) -> None:
        self._like = like
        self._buffers: dict[tuple[str, bool], torch.Tensor] = {}
        self._views: dict[tuple[str, bool], torch.Tensor] = {}

    def take(self, name: str, *shape: int) -> torch.Tensor:
        """An uninitialised tensor of this shape, in the dtype and on the device of ``like``."""
        key = (name, torch.is_inference_mode_enabled())
        view = self._views.get(key)
        if view is None or view.shape != shape:
            size, buffer = math.prod(shape), self._buffers.get(key)
            if buffer is None or len(buffer) < size:
                buffer = self._buffers[key] = self._like.new_empty(size)
            view = self._views[key] = buffer[:size].view(shape)
        return view


class Measured(NamedTuple):
    """One block of records with n completions each, in units of the clip norm.

    Both may lie in buffers that the next block overwrites.
    """

    squared: torch.Tensor
    """|u_i - u_j|^2 >= 0, shape (records, n, n), diagonal 0; or |u_i - mean u|^2, shape (records, n)."""
    norms: torch.Tensor
    """Norms of the clipped gradients, shape (records, n), at most 1."""


class Products(NamedTuple):
    """Products of moves x_i - x_0 from a reference x_0, for each record."""

    moves: torch.Tensor
    """<x_i - x_0, x_j - x_0>, (records, n, n)."""
    cross: torch.Tensor
    """<x_i - x_0, x_0>, (records, n, 1)."""
    power: torch.Tensor
    """|x_0|^2, (records, 1, 1)."""


def clip_factors(square: torch.Tensor, clip: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(factor that clips and divides by the clip norm, clipped norm over the clip norm), of the shape of ``square``.

    Raises:
        NumericalError: a norm is not finite.
    """
    norms = square.sqrt()
    norms_are_finite(norms)
    most = norms.clamp(min=clip)
    return most.reciprocal(), norms.div_(most)


def moves(x: torch.Tensor, factors: torch.Tensor | None, out: torch.Tensor, reference: int) -> torch.Tensor:
    """f_i x_i - f_0 x_0, of the shape (records, n, width) of ``x``; ``factors`` are (records, n, 1), None for ones.

    ``out`` may be ``x`` itself.
    """
    own = slice(reference, reference + 1)
    if factors is None:
        return torch.sub(x, x[:, own].clone(), out=out)
    return torch.addcmul(x[:, own] * -factors[:, own], x, factors, out=out)


def centred_products(
    x: torch.Tensor, factors: torch.Tensor | None, rows: torch.Tensor, gram: torch.Tensor, reference: int
) -> Products:
    """Products of f_i x_i - f_0 x_0; see ``moves``.

    The large one lies in ``gram``, the moves in ``rows``, which may be ``x`` itself.
    """
    first = x[:, reference].clone() if factors is None else x[:, reference] * factors[:, reference]
    moves(x, factors, rows, reference)
    # The row of the reference is 0, so the reference itself can be used: one product gives all three.
    rows[:, reference] = first
    torch.bmm(rows, rows.transpose(1, 2), out=gram)
    cross = gram[:, :, reference : reference + 1].clone()
    power = cross[:, reference : reference + 1].clone()
    cross[:, reference] = 0.0
    gram[:, reference] = 0.0
    gram[:, :, reference] = 0.0
    return Products(gram, cross, power)


def linear_gram(
    a: torch.Tensor,
    e: torch.Tensor,
    factors: torch.Tensor,
    work: Workspace,
    *,
    bias: bool,
    reference: int = 0,
) -> torch.Tensor:
    """<u_i, u_j> of a linear layer on one vector per completion.

    Args:
        a: inputs, (records, n, width in).
        e: output errors, (records, n, width out).
        factors: clip factors, (records, n, 1).
        work: buffers; the result lies in ``gram``.
        bias: whether the layer has one; it is an input that is always 1.
        reference: position of the reference completion.
    """
    if e.shape[2] == 1:
        u = moves(a, e * factors, work.take("moves", *a.shape), reference)
        total = torch.bmm(u, u.transpose(1, 2), out=work.take("gram", *_square_shape(a)))
        if bias:
            s = moves(e, factors, torch.empty_like(e), reference)
            total.addcmul_(s, s.transpose(1, 2))
        return total
    square = _square_shape(a)
    rows, gram = work.take("moves", *a.shape), work.take("inputs", *square)
    inputs, k, size = centred_products(a, None, rows, gram, reference)
    rows, gram = work.take("moves", *e.shape), work.take("gram", *square)
    total, m, power = centred_products(e, factors, rows, gram, reference)
    # <de_i, de_j> (<a_i, a_j> + bias) + (m_i + m_j + |e_0|^2) <da_i, da_j> + m_i k_j + k_i m_j
    side = torch.add(inputs, k, out=work.take("side", *inputs.shape))
    total *= side.add_(k.transpose(1, 2) + (size + float(bias)))
    total += torch.add(m.transpose(1, 2) + power, m, out=side).mul_(inputs)
    total.addcmul_(m, k.transpose(1, 2))
    return total.addcmul_(k, m.transpose(1, 2))


def dots_with(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """<x_i, v>, (records, n): a row times a matrix takes an eighth of the time of a matrix times a column."""
    return torch.bmm(v[:, None], x.transpose(1, 2)).squeeze(1)


def squares_to_mean(
    moved: torch.Tensor, origin: torch.Tensor, size: torch.Tensor, e: torch.Tensor, reference: int = 0
) -> torch.Tensor:
    """|u_i - mean u|^2 of a linear layer, (records, n), in the memory of one gradient a record and no pairs.

    Args:
        moved: a_i - a_0 of the inputs that differ, (records, n, k).
        origin: a_0 there, (records, k).
        size: |a_0|^2, all inputs and a bias, (records, 1).
        e: clipped output errors, (records, n, width out).
        reference: position of the reference completion.
    """
    d = e - e[:, reference : reference + 1]
    shift = d.mean(1)
    # mean u = mean of e_i da_i^T + shift a_0^T; the first is kept with the narrower side first.
    wide = e.shape[2] > moved.shape[2]
    few, many = (moved, e) if wide else (e, moved)
    turn = torch.bmm(few.transpose(1, 2), many) / e.shape[1]
    back = torch.bmm(origin[:, None], turn if wide else turn.transpose(1, 2)).squeeze(1)
    along = dots_with(moved, origin)
    cross = (torch.bmm(turn, many.transpose(1, 2)) * few.transpose(1, 2)).sum(1)
    cross += dots_with(e, shift) * along + dots_with(d, back + shift * size)
    own = row_squares(e) * row_squares(moved) + row_squares(d) * size + 2.0 * (e * d).sum(2) * along
    mean = turn.square().sum((1, 2)) + row_squares(shift) * size[:, 0] + 2.0 * (shift * back).sum(1)
    return own - 2.0 * cross + mean[:, None]


def squared_distances(gram: torch.Tensor) -> torch.Tensor:
    """|u_i - u_j|^2 >= 0, shape (records, n, n), diagonal 0, from <u_i, u_j>, which is overwritten."""
    squares = gram.diagonal(dim1=1, dim2=2).clone()
    squared = gram.mul_(-2.0).add_(squares[:, :, None]).add_(squares[:, None]).clamp_(min=0.0)
    squared.diagonal(dim1=1, dim2=2).zero_()
    return squared


def row_squares(x: torch.Tensor) -> torch.Tensor:
    """|x|^2 along the last dimension."""
    return torch.linalg.vector_norm(x, dim=-1).square_()


def _square_shape(x: torch.Tensor) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], x.shape[1]
