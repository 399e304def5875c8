"""Inner products of clipped gradients, centred so that close gradients do not cancel.

For completions i of one record let ``g_i`` be the clipped gradients over the clip norm, and 0 a reference
completion. All products are those of ``u_i = g_i - g_0``. A linear layer with inputs a and output errors
e (scaled by the clip factor) has the gradient e a^T, and

    u_i = e_i (a_i - a_0)^T + (e_i - e_0) a_0^T,

so that every term is small when the gradients are close: the squared distances have an error relative
to the largest of them, not to the clip norm.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from reticent.sensitivity.checks import norms_are_finite


class Measured(NamedTuple):
    """One block of records with n completions each, in units of the clip norm."""

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


def centred_products(x: torch.Tensor, reference: int, bias: float = 0.0) -> Products:
    """Products of the rows of each record, (records, n, width).

    Args:
        x: the rows.
        reference: position of x_0.
        bias: squared length of what all rows have besides: an input that is always 1.
    """
    first = x[:, reference]
    moves = x - first[:, None]
    power = row_squares(first)[:, None, None] + bias
    return Products(torch.bmm(moves, moves.mT), dots_with(moves, first)[:, :, None], power)


def layer_gram(inputs: Products, errors: Products) -> torch.Tensor:
    """<u_i, u_j> of a linear layer on one vector per completion, (records, n, n); errors are clipped."""
    (a, k, size), (e, m, power) = inputs, errors
    # e (a + k_i + k_j + size) + a (m_i + m_j + power) + m_i k_j + k_i m_j
    total = ((a + k) + (k.mT + size)).mul_(e)
    total += (m + (m.mT + power)).mul(a)
    return total.addcmul_(m, k.mT).addcmul_(k, m.mT)


def linear_gram(a: torch.Tensor, e: torch.Tensor, *, bias: bool, reference: int = 0) -> torch.Tensor:
    """The same from inputs (records, n, width in) and clipped errors (records, n, width out)."""
    if e.shape[2] > 1:
        return layer_gram(centred_products(a, reference, float(bias)), centred_products(e, reference))
    total = centred_products(a * e, reference).moves  # one output: the gradient is a vector
    return total + centred_products(e, reference).moves if bias else total


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
