"""Sums over steps, per record and per pair where memory allows; the largest is taken last."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch

from reticent.adversaries.attribute.terms import worst_mask_term
from reticent.sensitivity.diameter import Diameter, diameters
from reticent.sensitivity.meter import Distances


class Sums(Protocol):
    """What a recorder keeps."""

    largest_mask_term: float

    def add(self, block: Distances, rows: torch.Tensor, slack: float) -> float:
        """Count one step for the records at ``rows``; ``slack`` is added to the length of each mask term.

        Returns:
            The largest change in the block.
        """
        ...

    def after(self, block: Distances, slack: float) -> float:
        """Largest sum of mask terms in the block's rows if this step were counted."""
        ...

    def add_step(self, step: RecordSums) -> None:
        """Count the largest record of a step for an unknown record."""
        ...

    def take_for_granted(self, rows: torch.Tensor, change: float, term: float) -> None:
        """Count one step that was not measured: the most that any record can change, for the records at ``rows``."""
        ...

    def after_granted(self, term: float) -> float:
        """Largest sum of mask terms of any record if such a step were counted for all."""
        ...

    def squared_change(self) -> float:
        """Largest sum over the steps of squared changes, in squared clip norms."""
        ...

    def mask_term(self) -> float:
        """Largest sum over the steps of mask terms."""
        ...

    def per_record(self) -> np.ndarray:
        """Sum of squared changes of each record, shape (records,)."""
        ...


class PairSums:
    """One sum per record and pair: the tightest."""

    def __init__(self, records: int, values: int, noise: float) -> None:
        self._noise = noise
        self._changes = torch.zeros(records, values, values, dtype=torch.float64)
        self._masks = torch.zeros(records, values, values, dtype=torch.float64)
        self.largest_mask_term = 0.0

    def add(self, block: Distances, rows: torch.Tensor, slack: float) -> float:
        """Add the squared distance of each pair of candidate values."""
        terms = self._terms(block, slack)
        first, last = block.first, block.first + len(block.norms)
        self._changes[first:last] += block.squared.to(self._changes.device)
        self._masks[first:last] += terms
        self.largest_mask_term = max(self.largest_mask_term, float(terms.max()))
        return math.sqrt(float(block.squared.max()))

    def after(self, block: Distances, slack: float) -> float:
        """As ``Sums.after``, exact for each pair."""
        first, last = block.first, block.first + len(block.norms)
        return float((self._masks[first:last] + self._terms(block, slack)).max())

    def add_step(self, step: RecordSums) -> None:
        """Refused: which record the step meant is not known.

        Raises:
            TypeError: always.
        """
        raise TypeError("pairs need known records")

    def take_for_granted(self, rows: torch.Tensor, change: float, term: float) -> None:
        self._changes[rows] += change**2
        self._masks[rows] += term
        self.largest_mask_term = max(self.largest_mask_term, term)

    def after_granted(self, term: float) -> float:
        return float(self._masks.max()) + term

    def squared_change(self) -> float:
        """Over all records and pairs of candidate values."""
        return float(self._changes.max())

    def mask_term(self) -> float:
        """Over all records and pairs of candidate values."""
        return float(self._masks.max())

    def per_record(self) -> np.ndarray:
        """The largest pair of each record, shape (records,)."""
        return self._changes.amax((1, 2)).numpy()

    def _terms(self, block: Distances, slack: float) -> torch.Tensor:
        terms = pair_mask_terms(block, self._noise)
        return terms if slack == 0.0 else terms.sqrt_().add_(slack).square_()


class RecordSums:
    """One sum per record of each step's largest pair: an upper bound on ``PairSums``, with less memory."""

    def __init__(self, records: int, noise: float, method: Diameter) -> None:
        self._noise, self._method = noise, method
        self._changes = np.zeros(records)
        self._masks = np.zeros(records)
        self.largest_mask_term = 0.0

    @staticmethod
    def changes(block: Distances, method: Diameter) -> np.ndarray:
        """Largest distance of each record, or an upper bound on it."""
        return np.minimum(diameters(block.squared, method).double().cpu().numpy(), 2.0)

    def add(self, block: Distances, rows: torch.Tensor, slack: float) -> float:
        """Add the largest distance of each record; rows beyond the end make room for themselves."""
        at = self._grown(rows)
        changes, terms = self._step(block, slack)
        self._changes[at] += np.square(changes)
        self._masks[at] += terms
        self.largest_mask_term = max(self.largest_mask_term, float(terms.max(initial=0.0)))
        return float(changes.max(initial=0.0))

    def take_for_granted(self, rows: torch.Tensor, change: float, term: float) -> None:
        at = self._grown(rows)
        self._changes[at] += change**2
        self._masks[at] += term
        if len(at):
            self.largest_mask_term = max(self.largest_mask_term, term)

    def after_granted(self, term: float) -> float:
        return float(self._masks.max(initial=0.0)) + term

    def _grown(self, rows: torch.Tensor) -> np.ndarray:
        """The positions, with room for them."""
        at = rows.cpu().numpy()
        if len(at) and int(at.max()) >= len(self._changes):
            grown = max(int(at.max()) + 1, 2 * len(self._changes))
            self._changes = np.pad(self._changes, (0, grown - len(self._changes)))
            self._masks = np.pad(self._masks, (0, grown - len(self._masks)))
        return at

    def after(self, block: Distances, slack: float) -> float:
        """As ``Sums.after``, with the largest pair of each step: an upper bound."""
        first, last = block.first, block.first + len(block.norms)
        return float(np.max(self._masks[first:last] + self._step(block, slack)[1]))

    def keep_largest(self, block: Distances) -> float:
        """Keep the largest record of a step, blocks one after the other; returns the largest change in the block."""
        changes, terms = self._step(block, 0.0)
        self._changes = np.maximum(self._changes, np.square(changes).max())
        self._masks = np.maximum(self._masks, terms.max())
        self.largest_mask_term = float(self._masks[0])
        return float(changes.max())

    def add_step(self, step: RecordSums) -> None:
        """Add what the largest record of ``step`` changed, to every record kept here."""
        if len(self._changes) == 0:
            self._changes, self._masks = np.zeros(1), np.zeros(1)
        self._changes += step._changes
        self._masks += step._masks
        self.largest_mask_term = max(self.largest_mask_term, step.largest_mask_term)

    def squared_change(self) -> float:
        """Over all records; 0 before the first step."""
        return float(self._changes.max(initial=0.0))

    def mask_term(self) -> float:
        """Over all records; 0 before the first step."""
        return float(self._masks.max(initial=0.0))

    def per_record(self) -> np.ndarray:
        """A copy, shape (records,)."""
        return self._changes.copy()

    def _step(self, block: Distances, slack: float) -> tuple[np.ndarray, np.ndarray]:
        changes = self.changes(block, self._method)
        if self._method is Diameter.EXACT:
            terms = pair_mask_terms(block, self._noise).amax((1, 2)).numpy()
        else:
            # A bound on the distance is no distance of a pair: take the worst pair at that distance.
            terms = worst_mask_term(changes, self._noise)
        return changes, np.square(np.sqrt(terms) + slack)


def pair_mask_terms(block: Distances, noise: float) -> torch.Tensor:
    """F of every pair, (records, n, n) in double on the CPU; see ``reticent.adversaries.attribute.terms.mask_term``.

    (x_a - x_b)^2 + 2 x_a x_b (1 - e^{-s D^2/2}) with x = e^{s |g|^2/2}: the same expression, with an
    exponential per completion instead of two per pair.
    """
    s = 1.0 / noise**2
    norms, squared = block.norms.double().cpu(), block.squared.double().cpu()
    x = torch.exp(0.5 * s * norms.square())
    terms = torch.expm1(squared * (-0.5 * s))
    terms *= x[:, :, None]
    terms *= -2.0 * x[:, None, :]
    terms += (x[:, :, None] - x[:, None, :]).square_()
    return torch.nan_to_num_(terms, nan=math.inf, posinf=math.inf)
