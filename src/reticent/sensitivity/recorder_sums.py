"""Sums over steps, per record and per pair where memory allows; the largest is taken last."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
import torch

from reticent.adversaries.attribute.terms import LARGEST_CHANGE, worst_mask_term
from reticent.sensitivity.diameter import Diameter, diameters
from reticent.sensitivity.meter import Distances


class Sums(ABC):
    """What a recorder keeps: sums over the steps of squared changes, in squared clip norms, and of mask terms."""

    def __init__(self, shape: tuple[int, ...], noise: float) -> None:
        self._noise = noise
        self._changes, self._masks = np.zeros(shape), np.zeros(shape)
        self.largest_mask_term = 0.0

    @abstractmethod
    def _step(self, block: Distances) -> tuple[np.ndarray, np.ndarray]:
        """Squared changes and mask terms of a block, from above: its slack is added to each square."""

    @abstractmethod
    def per_record(self) -> np.ndarray:
        """Sum of squared changes of each record, shape (records,)."""

    def add(self, block: Distances, at: np.ndarray | None = None) -> float:
        """Count one step for the records of the block, or for those ``at`` places, which make room for themselves.

        Returns:
            The largest change in the block.
        """
        squares, terms = self._step(block)
        self._count(_rows(block) if at is None else at, squares, terms)
        return math.sqrt(float(squares.max(initial=0.0)))

    def take_for_granted(self, change: float, term: float, at: np.ndarray | None = None) -> None:
        """Count one step that was not measured: the most that any record can change, for all or those ``at`` places."""
        if at is None or len(at):
            self._count(slice(None) if at is None else at, np.array(change**2), np.array(term))

    def add_step(self, step: RecordSums) -> None:
        """Add what the largest record of ``step`` changed, to every record kept here: which one it was is not known."""
        if len(self._changes) == 0:
            self._changes, self._masks = np.zeros(1), np.zeros(1)
        self._changes += step._changes
        self._masks += step._masks
        self.largest_mask_term = max(self.largest_mask_term, step.largest_mask_term)

    def after(self, block: Distances) -> float:
        """Largest sum of mask terms in the block's rows if this step were counted."""
        return float(np.max(self._masks[_rows(block)] + self._step(block)[1]))

    def after_granted(self, term: float) -> float:
        """Largest sum of mask terms of any record if a step that was not measured were counted for all."""
        return self.mask_term() + term

    def squared_change(self) -> float:
        """The largest sum of squared changes; 0 before the first step."""
        return float(self._changes.max(initial=0.0))

    def mask_term(self) -> float:
        """The largest sum of mask terms; 0 before the first step."""
        return float(self._masks.max(initial=0.0))

    def _count(self, at: np.ndarray | slice, squares: np.ndarray, terms: np.ndarray) -> None:
        missing = 0 if isinstance(at, slice) else int(at.max(initial=-1)) + 1 - len(self._changes)
        if missing > 0:
            room = 0, max(missing, len(self._changes))
            self._changes, self._masks = np.pad(self._changes, room), np.pad(self._masks, room)
        self._changes[at] += squares
        self._masks[at] += terms
        self.largest_mask_term = max(self.largest_mask_term, float(terms.max(initial=0.0)))


class PairSums(Sums):
    """One sum per record and pair: the tightest."""

    def __init__(self, records: int, values: int, noise: float) -> None:
        super().__init__((records, values, values), noise)

    def per_record(self) -> np.ndarray:
        """The largest pair of each record, shape (records,)."""
        return np.asarray(self._changes.max((1, 2)))

    def _step(self, block: Distances) -> tuple[np.ndarray, np.ndarray]:
        return _squares(block).numpy(), pair_mask_terms(block, self._noise).numpy()


class RecordSums(Sums):
    """One sum per record of each step's largest pair: an upper bound on ``PairSums``, with less memory."""

    def __init__(self, records: int, noise: float, method: Diameter) -> None:
        super().__init__((records,), noise)
        self._method = method

    @staticmethod
    def changes(block: Distances, method: Diameter) -> np.ndarray:
        """Largest distance of each record, or an upper bound on it, rounding included.

        The square of twice a distance to the mean moves by 4 slacks.
        """
        squares = diameters(block.squared, method).double().square().cpu().numpy()
        slack = (1.0 if method is Diameter.EXACT else 4.0) * block.slack
        return np.sqrt(np.minimum(squares + slack, LARGEST_CHANGE**2))

    def keep_largest(self, block: Distances) -> float:
        """Keep the largest record of a step, blocks one after the other; returns the largest change in the block."""
        squares, terms = self._step(block)
        self._changes = np.maximum(self._changes, squares.max())
        self._masks = np.maximum(self._masks, terms.max())
        self.largest_mask_term = float(self._masks[0])
        return math.sqrt(float(squares.max()))

    def per_record(self) -> np.ndarray:
        """A copy, shape (records,)."""
        return self._changes.copy()

    def _step(self, block: Distances) -> tuple[np.ndarray, np.ndarray]:
        changes = self.changes(block, self._method)
        if self._method is Diameter.EXACT:
            terms = pair_mask_terms(block, self._noise).amax((1, 2)).numpy()
        else:
            # A bound on the distance is no distance of a pair: take the worst pair at that distance.
            terms = worst_mask_term(changes, self._noise)
        return np.square(changes), terms


def _squares(block: Distances) -> torch.Tensor:
    """Squared distances from above, (records, n, n) in double on the CPU."""
    return block.squared.double().cpu().add(block.slack).clamp_(max=LARGEST_CHANGE**2)


def _rows(block: Distances) -> slice:
    return slice(block.first, block.first + len(block.norms))


def pair_mask_terms(block: Distances, noise: float) -> torch.Tensor:
    """F of every pair, (records, n, n) in double on the CPU; see ``reticent.adversaries.attribute.terms.mask_term``.

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
