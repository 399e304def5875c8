"""Sums over steps, per record and per pair where memory allows; the largest is taken last."""

from __future__ import annotations

import math

import numpy as np
import torch

from reticent.mechanisms.mask_terms import LARGEST_CHANGE, worst_mask_term
from reticent.sensitivity.diameter import Diameter, diameters
from reticent.sensitivity.meter import Distances

Step = tuple[np.ndarray, np.ndarray]
"""Squared changes, in squared clip norms, and mask terms: of each record, of each of its pairs, or one of all."""
EVERYBODY = slice(None)


class Sums:
    """What a recorder keeps: sums over the steps of squared changes, in squared clip norms, and of mask terms.

    Attributes:
        largest_mask_term: of one step.
    """

    def __init__(self, records: int, noise: float, method: Diameter, values: int | None = None) -> None:
        """Nothing is counted yet.

        Args:
            records: how many are kept from the start.
            values: of the attribute, where each pair of them has a sum of its own, the tightest; else the largest pair
                of each step is summed.
        """
        shape = (records,) if values is None else (records, values, values)
        self._noise, self._method = noise, method
        self._changes, self._masks = np.zeros(shape), np.zeros(shape)
        self.largest_mask_term = 0.0

    def step(self, block: Distances) -> Step:
        """What one step shows of the records of a block, from above: its slack is added to each square."""
        if self._changes.ndim > 1:
            return _squares(block).numpy(), pair_mask_terms(block, self._noise).numpy()
        changes = largest_changes(block, self._method)
        if self._method is Diameter.EXACT:
            return np.square(changes), pair_mask_terms(block, self._noise).amax((1, 2)).numpy()
        # A bound on the distance is no distance of a pair: take the worst pair at that distance.
        return np.square(changes), worst_mask_term(changes, self._noise)

    def count(self, step: Step, at: np.ndarray | slice = EVERYBODY) -> None:
        """Count a step for all records, at least one, or those ``at`` these places, which make room for themselves."""
        squares, terms = step
        missing = (1 if isinstance(at, slice) else int(at.max(initial=-1)) + 1) - len(self._changes)
        if missing > 0:
            room = 0, max(missing, len(self._changes))
            self._changes, self._masks = np.pad(self._changes, room), np.pad(self._masks, room)
        self._changes[at] += squares
        self._masks[at] += terms
        self.largest_mask_term = max(self.largest_mask_term, float(terms.max(initial=0.0)))

    def after(self, block: Distances) -> float:
        """Largest sum of mask terms in the block's rows if this step were counted."""
        return float(np.max(self._masks[rows(block)] + self.step(block)[1]))

    def squared_change(self) -> float:
        """The largest sum of squared changes; 0 before the first step."""
        return float(self._changes.max(initial=0.0))

    def mask_term(self) -> float:
        """The largest sum of mask terms; 0 before the first step."""
        return float(self._masks.max(initial=0.0))

    def per_record(self) -> np.ndarray:
        """The largest sum of squared changes of each record, shape (records,)."""
        return np.array(self._changes.max(axis=tuple(range(1, self._changes.ndim))))


def largest_changes(block: Distances, method: Diameter) -> np.ndarray:
    """Largest distance of each record, or an upper bound on it, rounding included.

    The square of twice a distance to the mean moves by 4 slacks.
    """
    squares = diameters(block.squared, method).double().square().cpu().numpy()
    slack = (1.0 if method is Diameter.EXACT else 4.0) * block.slack
    return np.sqrt(np.minimum(squares + slack, LARGEST_CHANGE**2))


def _squares(block: Distances) -> torch.Tensor:
    """Squared distances from above, (records, n, n) in double on the CPU."""
    return block.squared.double().cpu().add(block.slack).clamp_(max=LARGEST_CHANGE**2)


def rows(block: Distances) -> slice:
    """Where the records of a block stand."""
    return slice(block.first, block.first + len(block.norms))


def pair_mask_terms(block: Distances, noise: float) -> torch.Tensor:
    """F of every pair, (records, n, n) in double on the CPU; see ``reticent.mechanisms.mask_terms.mask_term``.

    (x_a - x_b)^2 + 2 x_a x_b (1 - e^{-s D^2/2}) with x = e^{s |g|^2/2}: the same expression, with an
    exponential per completion instead of two per pair. The slack of the block is added to all squares; each x may be
    below its value by as much, and |x_a - x_b| by as much again.
    """
    s = 1.0 / noise**2
    norms = block.norms.double().cpu()
    x = torch.exp(0.5 * s * (norms.square() + block.slack))
    terms = torch.expm1(_squares(block) * (-0.5 * s))
    terms *= x[:, :, None]
    terms *= -2.0 * x[:, None, :]
    apart = (x[:, :, None] - x[:, None, :]).abs_()
    terms += apart.add_(2.0 * float(x.amax()) * -math.expm1(-0.5 * s * block.slack)).square_()
    return torch.nan_to_num_(terms, nan=math.inf, posinf=math.inf)
