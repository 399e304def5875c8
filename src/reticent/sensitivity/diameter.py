"""The largest distance within a set of points, exactly or from above, from pairwise squared distances."""

from __future__ import annotations

from enum import StrEnum

import torch

_BALL_ROUNDS = 64
_BALL_TOLERANCE = 1e-6


class Diameter(StrEnum):
    """How the largest distance between completions is taken."""

    EXACT = "exact"
    """The maximum over all pairs."""
    CENTROID = "centroid"
    """Twice the largest distance to the mean: what CHERUBIN2024 uses; at most 2 (n - 1)/n times too large."""
    BALL = "ball"
    """Twice the radius of a small enclosing ball; at most sqrt(2 (n - 1)/n) times too large at its optimum."""


def diameters(squared: torch.Tensor, method: Diameter) -> torch.Tensor:
    """Largest distance of each record to the nearest double, or an upper bound on it, rounding included.

    CHERUBIN2024 calls the centroid value a lower bound on the diameter; by the triangle inequality it is an
    upper bound (CHERUBIN2024:B8), which makes the security that follows a lower bound.

    Args:
        squared: squared distances, (records, n, n); of the centroid, those to the mean, (records, n), will do.
        method: which.

    Returns:
        (records,), in the units of the square root of ``squared``.
    """
    if method is Diameter.EXACT:
        return squared.amax((1, 2)).sqrt()
    if squared.dim() == 2:
        return 2.0 * _root_above(squared.amax(1))
    n = squared.shape[1]
    uniform = squared.new_full(squared.shape[:2], 1.0 / n)
    centroid = _radius(squared, uniform)
    if method is Diameter.CENTROID:
        return 2.0 * centroid
    return 2.0 * torch.minimum(_ball_radius(squared), centroid)


def _radius(squared: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Largest distance to sum_i w_i x_i, from above."""
    return _root_above(_squared_to_centre(squared, weights).amax(1))


def _squared_to_centre(squared: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """|x_i - c|^2 = (D w)_i - w^T D w / 2, from above: sums of n terms >= 0 in any order, and weights that sum to 1.

    Weights carry a rounding each for every round of ``_shrink``, and their sum is 1 but for n of these.
    """
    product = torch.bmm(squared, weights[:, :, None]).squeeze(2)
    half = 0.5 * (product * weights).sum(1, keepdim=True)
    roundings = 4.0 * (squared.shape[1] + _BALL_ROUNDS) * torch.finfo(squared.dtype).eps
    return product - half + roundings * (product + half)


def _root_above(squared: torch.Tensor) -> torch.Tensor:
    return squared.clamp(min=0.0).sqrt() * (1.0 + 4.0 * torch.finfo(squared.dtype).eps)


def _ball_radius(squared: torch.Tensor) -> torch.Tensor:
    """Badoiu and Clarkson: step towards the farthest point. Every centre on the way gives an upper bound.

    Start halfway between the two points farthest apart; where that ball holds all points it is optimal.
    """
    records, n = squared.shape[:2]
    rows = torch.arange(records, device=squared.device)
    widest, far = squared.flatten(1).max(1)
    weights = squared.new_zeros(records, n)
    weights[rows, far // n] += 0.5
    weights[rows, far % n] += 0.5
    best = _radius(squared, weights)
    open_ = torch.nonzero(best > 0.5 * widest.sqrt() * (1.0 + _BALL_TOLERANCE)).squeeze(1)
    if len(open_):
        best[open_] = torch.minimum(best[open_], _shrink(squared[open_], weights[open_]))
    return best


def _shrink(squared: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    rows = torch.arange(len(squared), device=squared.device)
    best = _radius(squared, weights)
    for k in range(1, _BALL_ROUNDS):
        distance = _squared_to_centre(squared, weights)
        best = torch.minimum(best, _root_above(distance.amax(1)))
        weights = weights * (k / (k + 1.0))
        weights[rows, distance.argmax(1)] += 1.0 / (k + 1.0)
    return torch.minimum(best, _radius(squared, weights))
