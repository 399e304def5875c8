"""The two ways to know how far a field moves gradients: a constant for every step, or the record of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent.adversaries.attribute.bounds import (
    LogDelta,
    affinity_log_delta,
    gaussian_log_delta,
    no_more_than_worst,
    revealed_mask_log_delta,
    total_square_log_delta,
)
from reticent.kernel.accountants.compose import compose
from reticent.kernel.curves import GaussianTradeOff, TradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Basis, Condition, Status, condition
from reticent.mechanisms.mask_terms import LARGEST_CHANGE, log_affinity, worst_mask_term
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord

_SMALLEST_ATTAINED = 1e-4
_SAME = 1e-9  # relative difference of two noise multipliers that are one
_LARGEST_MU = 1e3  # of a Gaussian limit: no privacy is left


@dataclass(frozen=True, slots=True)
class _Part:
    """One mechanism of the run in units of its clip norm: noise, rate, steps, and the change per step."""

    noise: float
    rate: float
    steps: int
    change: float
    affinity: bool


@dataclass(frozen=True, slots=True)
class Constant:
    """No step changes the gradient by more than a constant."""

    parts: tuple[_Part, ...]
    mechanism: Mechanism

    said: ClassVar[tuple[Message, ...]] = (Message("note.fixed-change"),)
    basis: ClassVar[Basis] = Basis.PROOF

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Nothing is to be vouched for where clipping alone keeps gradients as near as stated."""
        free = all(part.change >= LARGEST_CHANGE for part in self.parts)
        return () if free else (condition("bounded-change", Status.DECLARED),)

    def proven(self, worst: TradeOff) -> TradeOff:
        if all(part.change == 0.0 for part in self.parts):
            return GaussianTradeOff(0.0)
        if all(part.rate == 1.0 and part.noise > 0.0 for part in self.parts):
            told = self.unsampled_mu()
            hidden = any(part.sampler.allocated for part in self.mechanism.parts)
            return no_more_than_worst(worst, [gaussian_log_delta(told)]) if hidden else GaussianTradeOff(told)
        bounds: list[LogDelta] = [affinity_log_delta(sum(map(_part_affinity, self.parts)))]
        if len(self.parts) == 1 and self.parts[0].noise > 0.0:
            (part,) = self.parts
            mask = revealed_mask_log_delta(part.change / part.noise, part.steps, part.rate)
            if float(mask(np.zeros(1))[0]) < float(worst.log_delta(0.0)):
                bounds.append(mask)
        return no_more_than_worst(worst, bounds)

    def attained(self) -> TradeOff:
        """A lower bound on the risk of the model: the pair of opposite vectors half the change away from 0."""
        if any(part.change < _SMALLEST_ATTAINED for part in self.parts):
            return GaussianTradeOff(0.0)
        scaled = [_scaled(m, p) for m, p in zip(self.mechanism.parts, self.parts, strict=True)]
        return compose(together(scaled), Neighbouring.REPLACE).optimistic

    def clt(self) -> TradeOff:
        squares = [
            p.steps * (_square(p.change / p.noise) if p.rate == 1.0 else p.rate**2 * _worst(p)) if p.noise else math.inf
            for p in self.parts
            if p.change > 0.0
        ]
        return _gaussian(math.sqrt(sum(squares)))

    def published(self) -> TradeOff:
        """G_mu, mu^2 the sum over steps of (rate change / noise)^2: CHERUBIN2024:Corollary 10, which does not hold."""
        squares = [p.steps * _square(p.rate * p.change / p.noise) if p.noise else math.inf for p in self.parts]
        return _gaussian(math.sqrt(sum(squares)))

    def unsampled_mu(self) -> float:
        """mu of a target that every step uses: what holds at every error rate."""
        squares = [part.steps * _square(part.change / part.noise) for part in self.parts if part.noise > 0.0]
        return math.sqrt(sum(squares)) if len(squares) == len(self.parts) else math.inf


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recorder accumulated on a DP-SGD run."""

    record: SensitivityRecord
    mechanism: DPSGD

    @property
    def basis(self) -> Basis:
        guaranteed = self.record.budget is not None and self.record.scope is not Scope.SAMPLED_BATCH
        return Basis.PROOF if guaranteed else Basis.APPROXIMATION

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """A filter enforces its budget for the records that it measured."""
        if self.basis is not Basis.PROOF or self.record.scope is Scope.WHOLE_DATA:
            return ()
        return (condition("audited-record", Status.ASSUMED),)

    @property
    def said(self) -> tuple[Message, ...]:
        if self.basis is Basis.PROOF:
            people = "filtered.every-record" if self.record.scope is Scope.WHOLE_DATA else "filtered.audited"
            budget = Figure(repr(self.record.budget))
            return (Message("note.filtered", budget=budget, people=Message(people)),)
        return (Message("note.on-batches" if self.record.scope is Scope.SAMPLED_BATCH else "note.after-the-fact"),)

    def proven(self, worst: TradeOff) -> TradeOff:
        record, noise, rate = self.record, self.mechanism.noise_multiplier, self.mechanism.sample_rate
        if record.squared_change == 0.0 and self.basis is Basis.APPROXIMATION:
            return GaussianTradeOff(0.0)
        bounds: list[LogDelta] = []
        if record.scope is Scope.SAMPLED_BATCH:
            bounds.append(gaussian_log_delta(math.sqrt(record.squared_change) / noise))
            return no_more_than_worst(worst, bounds)
        if self.mechanism.sampler.independent:
            total = record.mask_term if record.budget is None else record.budget
            largest = min(total, float(worst_mask_term(LARGEST_CHANGE, noise)))
            largest = largest if record.budget is not None else record.largest_mask_term
            bounds.append(affinity_log_delta(log_affinity(total, largest, rate)))
        if record.budget is None and not self.mechanism.sampler.in_passes:
            bounds.append(total_square_log_delta(1.0 / noise, record.squared_change, rate))
        return no_more_than_worst(worst, bounds)

    def unsampled_mu(self) -> float:
        """Sums of squares over the drawn or all steps say nothing about mu: the worst case does."""
        return math.inf

    def attained(self) -> TradeOff:
        """No attack on what was recorded is proven: perfect privacy."""
        return GaussianTradeOff(0.0)

    def clt(self) -> TradeOff:
        if self.record.scope is Scope.SAMPLED_BATCH:
            return _gaussian(math.sqrt(self.record.squared_change) / self.mechanism.noise_multiplier)
        return _gaussian(self.mechanism.sample_rate * math.sqrt(self.record.mask_term))

    def published(self) -> TradeOff:
        square = self.record.published_squared_change
        if square is None:
            raise UnsupportedError("Corollary 10 needs the largest change of each drawn batch, which was not recorded")
        return _gaussian(self.mechanism.sample_rate * math.sqrt(square) / self.mechanism.noise_multiplier)


def case_of(change: float | SensitivityRecord, mechanism: Mechanism) -> Constant | Recorded:
    """The case that an attacker states.

    Args:
        change: a constant, or what was recorded.

    Raises:
        ParameterError: the record is of another run.
        UnsupportedError: nothing is proven for such a release.
    """
    if not isinstance(change, SensitivityRecord):
        return Constant(tuple(_part(m, change) for m in mechanism.parts), mechanism)
    run = mechanism.training
    if run is None or run.noise_multiplier == 0.0:
        raise UnsupportedError("a sensitivity record is for one DP-SGD run with noise")
    stopped = change.budget is not None and change.steps < run.steps  # by its filter: all planned steps count
    if not (run.sampler.at_rate or run.sampler.in_passes):
        raise UnsupportedError(Message("refused.attribute-draws"))
    if run.steps != change.steps and not stopped:
        raise ParameterError("steps", run.steps, f"the {change.steps} steps that were recorded")
    if not math.isclose(run.noise_multiplier, change.noise_multiplier, rel_tol=_SAME):
        raise ParameterError("noise_multiplier", run.noise_multiplier, f"{change.noise_multiplier}, as recorded")
    return Recorded(change, run)


def _part(mechanism: Mechanism, change: float) -> _Part:
    run = mechanism.sums
    if run is None:
        raise UnsupportedError(Message("refused.attribute-noise"))
    if not (run.sampler.at_rate or run.sampler.in_passes):
        raise UnsupportedError(Message("refused.attribute-draws"))
    counted = run.accountable if run.sampler.in_passes else run
    relative, coins = min(change / run.max_grad_norm, LARGEST_CHANGE), run.sampler.independent
    return _Part(run.noise_multiplier, counted.sample_rate, counted.steps, relative, affinity=coins)


def _part_affinity(part: _Part) -> float:
    """Lower bound on log rho of one part with a constant change."""
    if part.change == 0.0:
        return 0.0
    if part.noise == 0.0 or not (part.affinity or part.rate == 1.0):
        return -math.inf
    if part.rate == 1.0:
        return -part.steps * _square(part.change / part.noise) / 8.0
    return part.steps * log_affinity(_worst(part), _worst(part), part.rate)


def _worst(part: _Part) -> float:
    return float(worst_mask_term(part.change, part.noise))


def _scaled(mechanism: Mechanism, part: _Part) -> Mechanism:
    return mechanism.changed("noise_multiplier", part.noise * LARGEST_CHANGE / part.change)


def _square(x: float) -> float:
    return x * x


def _gaussian(mu: float) -> TradeOff:
    return GaussianTradeOff(min(mu, _LARGEST_MU))
