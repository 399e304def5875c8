"""The largest distance within a set of points, exactly or from above, from squared distances."""

from __future__ import annotations

from enum import StrEnum

import torch


class Diameter(StrEnum):
    """How the largest distance between completions is taken."""

    EXACT = "exact"
    """The maximum over all pairs."""
    CENTROID = "centroid"
    """Twice the largest distance to the mean: what CHERUBIN2024 uses; at most 2 (n - 1)/n times too large."""


def diameters(squared: torch.Tensor, method: Diameter) -> torch.Tensor:
    """Largest distance of each record to the nearest double, or an upper bound on it, rounding included.

    CHERUBIN2024 calls the centroid value a lower bound on the diameter; by the triangle inequality it is an
    upper bound (CHERUBIN2024:B8), which makes the security that follows a lower bound.

    Args:
        squared: squared distances, (records, n, n); for the centroid those to the mean, (records, n).
        method: which.

    Returns:
        (records,), in the units of the square root of ``squared``.
    """
    if method is Diameter.EXACT:
        return squared.amax((1, 2)).sqrt()
    return squared.amax(1).sqrt() * (2.0 + 8.0 * torch.finfo(squared.dtype).eps)
