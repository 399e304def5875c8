"""Attribute inference: one field of one record, bounded by how far it can move a clipped gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from reticent import _check
from reticent.accountants import compose, mu_limits
from reticent.adversaries._envelope import (
    AffinityTradeOff,
    LogDelta,
    gaussian_log_delta,
    no_more_than_worst,
    revealed_mask_log_delta,
    total_square_log_delta,
)
from reticent.adversaries.base import Adversary, Assessment, Method
from reticent.adversaries.worst_case import worst_case_theorems
from reticent.curves import GaussianTradeOff, TradeOff
from reticent.curves.enclosure import Enclosure
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD, Gaussian, Ledger, Mechanism, Neighbouring, Sampler
from reticent.mechanisms.dpsgd import accountable, one_record
from reticent.mechanisms.ledger import parts_of
from reticent.proofs import Basis, Condition, Formula, Proof, Status, condition
from reticent.registry import described
from reticent.styles import Style

LARGEST_CHANGE = 2.0
"""Two clipped gradients are never further apart than this, in units of the clip norm."""

_SMALLEST_ATTAINED = 1e-4
_SAME = 1e-9  # relative difference of two noise multipliers that are one
_LARGEST_MU = 1e3  # of a Gaussian limit: no privacy is left
_PRIVATE = "This number depends on private data: do not publish it, or anything it was computed from."
_RELATION = "Compares two values of one field of one record (a replacement), whatever relation was asked for."
_FIXED = (
    "Holds if no step of this run changes the target's clipped gradient by more than the stated gradient change; "
    "a change measured on the run itself, with no budget fixed in advance, is a diagnostic and no guarantee."
)


class Scope(StrEnum):
    """Whose sensitivities a record of a run covers."""

    SAMPLED_BATCH = "sampled-batch"
    """The records that each step happened to draw: the paper's choice, a diagnostic."""
    AUDIT_SET = "audit-set"
    """Chosen records, at every step, drawn or not: holds for these records only."""
    WHOLE_DATA = "whole-data"
    """Every training record at every step."""


@dataclass(frozen=True, slots=True)
class SensitivityRecord:
    """What a recorder accumulated over a run, in units of the clip norm. Private.

    Sums run over the steps first, per record and per pair of values; then the largest is taken.

    Attributes:
        steps: noisy updates seen.
        scope: whose gradients were compared. Under ``SAMPLED_BATCH`` a record counts in the steps
            that drew it, otherwise in all.
        squared_change: largest sum over steps of the squared distance of two clipped gradients.
        mask_term: largest sum over steps of the mask term F (see ``mask_term``), at ``noise_multiplier``.
        largest_mask_term: largest F of a single step.
        published_squared_change: sum over steps of the squared largest distance in the step: ||R||^2 of
            CHERUBIN2024; None where no batch was seen.
        noise_multiplier: at which F was evaluated.
        budget: largest ``mask_term`` that a filter allowed, fixed before training, or None.

    Raises:
        ParameterError: a sum is negative or NaN, or exceeds the budget.
    """

    steps: int
    scope: Scope
    squared_change: float
    mask_term: float
    largest_mask_term: float
    published_squared_change: float | None
    noise_multiplier: float
    budget: float | None = None

    def __post_init__(self) -> None:
        _check.count(steps=self.steps)
        _check.non_negative(squared_change=self.squared_change)
        for name in ("mask_term", "largest_mask_term"):
            if not getattr(self, name) >= 0.0:
                raise ParameterError(name, getattr(self, name), "a number >= 0")
        if self.budget is not None and self.mask_term > _check.non_negative(budget=self.budget):
            raise ParameterError("mask_term", self.mask_term, f"at most the budget {self.budget!r}")


@dataclass(frozen=True, slots=True)
class Attribute(Adversary):
    """Knows a record but for one field, and wants that field.

    Knows: every other record, the rest of the target, all values the field can have, every noisy sum.
    Does not know: which records were sampled, and the noise.
    Claim: a bound for a constant change, or for a record whose filter fixed a budget in advance; an
    estimate for a record measured afterwards.

    Attributes:
        gradient_change: largest distance between the clipped gradients of two completions of the target
            in one step, in the units of ``max_grad_norm``; or what a recorder accumulated.

    Raises:
        ParameterError: ``gradient_change`` is negative or NaN.
    """

    gradient_change: float | SensitivityRecord | None = field(
        default=None, metadata=described("Largest change R of a clipped gradient.")
    )

    name: ClassVar[str] = "attribute"
    title: ClassVar[str] = "Attacker who wants one field"
    short: ClassVar[str] = "wants one field"
    style: ClassVar[Style] = Style("#9c7a1a", (14, 4), "#7a5600", "#e0b34d")
    methods: ClassVar[tuple[Method, ...]] = (Method.PROVEN, Method.CLT, Method.PUBLISHED)
    unmeasured: ClassVar[str | None] = "nobody measured how far the field can move the model"
    relation: ClassVar[Neighbouring] = Neighbouring.REPLACE
    knows: ClassVar[str] = "all other records, all of this one but one field, and every noisy result"
    lacks: ClassVar[str] = "the field"
    infers: ClassVar[str] = "which of two values the field has"

    def __post_init__(self) -> None:
        if self.gradient_change is not None and not isinstance(self.gradient_change, SensitivityRecord):
            _check.non_negative(gradient_change=self.gradient_change)

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.REPLACE, method: Method = Method.PROVEN
    ) -> Assessment:
        """Assess under the replacement of one field; ``exact`` and ``closed-form`` answer with ``proven``.

        ``proven``: the best of the affinity route (RETICENT:attribute-affinity), the revealed mask
        (RETICENT:attribute-mask) and the worst case under replacement. ``clt``: the Gaussian limit with the
        worst mask term. ``published``: Corollary 10 of CHERUBIN2024, which does not hold.

        Args:
            mechanism: what was released, one record per person.
            neighbouring: any; the answer is that of ``replace``.
            method: ``proven``, ``clt`` or ``published``.

        Raises:
            ParameterError: ``gradient_change`` is missing, or belongs to another run.
            UnsupportedError: a release has other than Gaussian noise, or a record meets a ledger.
        """
        if self.gradient_change is None:
            raise ParameterError("gradient_change", None, "given (a number >= 0) for the attribute adversary")
        for part in parts_of(mechanism):
            one_record(part, "attribute inference")
        case = _case(self.gradient_change, mechanism)
        worst = compose(mechanism, Neighbouring.REPLACE)
        bound = case.proven(worst.pessimistic)
        conditions = (*mechanism.conditions, *case.conditions)
        notes = (*case.said, _PRIVATE, _RELATION, *mechanism.notes)
        proof = Proof(
            Enclosure(pessimistic=bound, optimistic=case.attained()),
            theorems=(
                "RETICENT:attribute-affinity",
                "RETICENT:attribute-mask",
                *worst_case_theorems(mechanism, Neighbouring.REPLACE),
            ),
            conditions=conditions,
            notes=notes,
            mu=(0.0, min(case.unsampled_mu(), mu_limits(mechanism, Neighbouring.REPLACE)[1])),
        )
        formula = None if case.basis is Basis.PROOF else proof.as_estimate()
        if method is Method.CLT:
            key, note = "RETICENT:attribute-clt", _CLT
            formula = Formula(case.clt(), theorems=(key,), conditions=conditions, notes=(note, *notes))
        elif method is Method.PUBLISHED:
            key, note = "CHERUBIN2024:Corollary 10", _PUBLISHED
            formula = Formula(case.published(), theorems=(key,), conditions=conditions, notes=(note, *notes))
        else:
            method = Method.PROVEN
        return Assessment(self, Neighbouring.REPLACE, method, (proof,), formula, data_dependent=True)


_GAUSSIAN_ONLY = "attribute inference is proven for Gaussian noise only"
_CLT = "The Gaussian limit for small sample rates, with the worst mask term for this change; an estimate."
_PUBLISHED = (
    "Corollary 10 mixes a maximum over the batch with the factor p and forgets what a shared component of "
    "the completions says about the sampling: it can state less risk than there is (CHERUBIN2024:B4, CHERUBIN2024:B5)."
)


def mask_term(norm_a: ArrayLike, norm_b: ArrayLike, distance: ArrayLike, noise_multiplier: float) -> np.ndarray:
    """F = e^{s a^2} + e^{s b^2} - 2 e^{s g.g'}, s = 1/noise_multiplier^2: what one step tells, per p^2.

    The chi-square-like divergence of (1-p) N(0) + p N(g) from the same with g', over p^2, to first
    order; it sees the distance and, through the shared component, the sampling mask. Without cancellation:
    4 e^{s (a^2 + b^2)/2} (sinh^2(s (a^2 - b^2)/4) - expm1(-s distance^2/2)/2). docs/theory/attribute.md.

    Args:
        norm_a: norm of one clipped gradient over the clip norm; any shape.
        norm_b: norm of the other.
        distance: their distance over the clip norm.
        noise_multiplier: > 0.

    Raises:
        ParameterError: ``noise_multiplier`` is not > 0.
    """
    s = 1.0 / _check.positive(noise_multiplier=noise_multiplier) ** 2
    a2, b2, r2 = (np.square(np.asarray(x, dtype=float)) for x in (norm_a, norm_b, distance))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.square(np.sinh(0.25 * s * (a2 - b2))) - 0.5 * np.expm1(-0.5 * s * r2)
        value = 4.0 * np.exp(0.5 * s * (a2 + b2)) * spread
    return np.where(np.isnan(value), np.inf, value)


def worst_mask_term(change: ArrayLike, noise_multiplier: float) -> np.ndarray:
    """Largest ``mask_term`` of two vectors of norm at most 1 at distance at most ``change`` <= 2.

    F is convex in each e^{s |.|^2/2}, so the extremes are a chord of the unit sphere and, on a line through 0, a
    unit vector and its shortened copy. docs/theory/attribute.md.

    By RETICENT:attribute-clt.

    Args:
        change: in [0, 2], any shape; over the clip norm.
        noise_multiplier: > 0.
    """
    change = np.asarray(change, dtype=float)
    radial = mask_term(1.0, np.abs(1.0 - change), change, noise_multiplier)
    return np.maximum(mask_term(1.0, 1.0, change, noise_multiplier), radial)


def log_affinity(total: float, largest: float, rate: float) -> float:
    """Lower bound on log rho of all steps, given the sum of F and the largest F of a step.

    Each step has rho >= 1 - p^2 F/(8 (1 - p)); log(1 - x) >= x log(1 - x_max)/x_max for 0 <= x <= x_max.

    By RETICENT:attribute-affinity.

    Args:
        total: sum of F over the steps, >= 0.
        largest: the largest F of a step.
        rate: of Poisson sampling, in (0, 1].

    Returns:
        log rho <= 0; -inf where nothing is bounded.
    """
    if total == 0.0:
        return 0.0
    top = math.inf if rate == 1.0 else rate**2 * largest / (8.0 * (1.0 - rate))
    if not top < 1.0:
        return -math.inf
    slope = math.log1p(-top) / top if top > 0.0 else -1.0
    return slope * rate**2 * total / (8.0 * (1.0 - rate))


def success_at_prior(bayes_security: float, guess: float) -> float:
    """Largest success of the attacker when the best guess without the model succeeds with ``guess``.

    Bayes security is the least ratio of the two error probabilities over all priors, hence
    ``1 - bayes_security * (1 - guess)``, for any number of values and any prior. Section 2 of CHERUBIN2024.

    Raises:
        ParameterError: an argument is outside [0, 1].
    """
    return 1.0 - _check.fraction(bayes_security=bayes_security) * (1.0 - _check.fraction(guess=guess))


@dataclass(frozen=True, slots=True)
class _Part:
    """One mechanism of the run in units of its clip norm: noise, rate, steps, and the change per step."""

    noise: float
    rate: float
    steps: int
    change: float
    affinity: bool


@dataclass(frozen=True, slots=True)
class _Constant:
    """No step changes the gradient by more than a constant."""

    parts: tuple[_Part, ...]
    mechanism: Mechanism

    said: ClassVar[tuple[str, ...]] = (_FIXED,)
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
            return GaussianTradeOff(self.unsampled_mu())
        bounds: list[LogDelta] = [AffinityTradeOff(sum(map(_part_affinity, self.parts))).log_delta]
        if len(self.parts) == 1:
            (part,) = self.parts
            unit = part.change / part.noise if part.noise > 0.0 else math.inf
            mask = revealed_mask_log_delta(unit, part.steps, part.rate)
            if float(mask(np.zeros(1))[0]) < float(worst.log_delta(0.0)):
                bounds.append(mask)
        return no_more_than_worst(worst, bounds)

    def attained(self) -> TradeOff:
        """A lower bound on the risk of the model: the pair of opposite vectors half the change away from 0."""
        if any(part.change < _SMALLEST_ATTAINED for part in self.parts):
            return GaussianTradeOff(0.0)
        scaled = [_scaled(m, p) for m, p in zip(parts_of(self.mechanism), self.parts, strict=True)]
        whole: Mechanism = Ledger(tuple(scaled)) if len(scaled) > 1 else scaled[0]
        return compose(whole, Neighbouring.REPLACE).optimistic

    def clt(self) -> TradeOff:
        squares = [
            p.steps * (_square(p.change / p.noise) if p.rate == 1.0 else p.rate**2 * _worst(p)) if p.noise else math.inf
            for p in self.parts
            if p.change > 0.0
        ]
        return _gaussian(math.sqrt(sum(squares)))

    def published(self) -> TradeOff:
        """By CHERUBIN2024:Corollary 10."""
        squares = [p.steps * _square(p.rate * p.change / p.noise) if p.noise else math.inf for p in self.parts]
        return _gaussian(math.sqrt(sum(squares)))

    def unsampled_mu(self) -> float:
        """mu of a target that every step uses: what holds at every error rate."""
        squares = [part.steps * _square(part.change / part.noise) for part in self.parts if part.noise > 0.0]
        return math.sqrt(sum(squares)) if len(squares) == len(self.parts) else math.inf


@dataclass(frozen=True, slots=True)
class _Recorded:
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
    def said(self) -> tuple[str, ...]:
        if self.basis is Basis.PROOF:
            people = "every training record" if self.record.scope is Scope.WHOLE_DATA else "the audited records only"
            return (f"A filter kept the mask term below {self.record.budget!r}, fixed in advance; holds for {people}.",)
        if self.record.scope is Scope.SAMPLED_BATCH:
            return ("Measured on the drawn batches, given which records were drawn: a diagnostic, no guarantee.",)
        return ("Measured after the fact, with no budget fixed in advance: a diagnostic, no guarantee.",)

    def proven(self, worst: TradeOff) -> TradeOff:
        record, noise, rate = self.record, self.mechanism.noise_multiplier, self.mechanism.sample_rate
        if record.squared_change == 0.0 and self.basis is Basis.APPROXIMATION:
            return GaussianTradeOff(0.0)
        bounds: list[LogDelta] = []
        if record.scope is Scope.SAMPLED_BATCH:
            bounds.append(gaussian_log_delta(math.sqrt(record.squared_change) / noise))
            return no_more_than_worst(worst, bounds)
        if self.mechanism.sampler is Sampler.POISSON:
            total = record.mask_term if record.budget is None else record.budget
            largest = min(total, float(worst_mask_term(LARGEST_CHANGE, noise)))
            largest = largest if record.budget is not None else record.largest_mask_term
            bounds.append(AffinityTradeOff(log_affinity(total, largest, rate)).log_delta)
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


def _case(change: float | SensitivityRecord, mechanism: Mechanism) -> _Constant | _Recorded:
    if not isinstance(change, SensitivityRecord):
        return _Constant(tuple(_part(m, change) for m in parts_of(mechanism)), mechanism)
    if not isinstance(mechanism, DPSGD) or mechanism.noise_multiplier == 0.0:
        raise UnsupportedError("a sensitivity record is for one DP-SGD run with noise")
    stopped = change.budget is not None and change.steps < mechanism.steps  # by its filter: all planned steps count
    if mechanism.sampler is Sampler.TRUNCATED_POISSON:
        raise UnsupportedError("attribute inference: nothing is proven for truncated batches")
    if mechanism.steps != change.steps and not stopped:
        raise ParameterError("steps", mechanism.steps, f"the {change.steps} steps that were recorded")
    if not math.isclose(mechanism.noise_multiplier, change.noise_multiplier, rel_tol=_SAME):
        raise ParameterError("noise_multiplier", mechanism.noise_multiplier, f"{change.noise_multiplier}, as recorded")
    return _Recorded(change, mechanism)


def _part(mechanism: Mechanism, change: float) -> _Part:
    if isinstance(mechanism, DPSGD):
        relative = min(change / mechanism.max_grad_norm, LARGEST_CHANGE)
        if mechanism.sampler is Sampler.TRUNCATED_POISSON:
            raise UnsupportedError("attribute inference: nothing is proven for truncated batches")
        if mechanism.sampler.in_passes:
            return _Part(mechanism.noise_multiplier, 1.0, accountable(mechanism).steps, relative, affinity=False)
        poisson = mechanism.sampler is Sampler.POISSON
        return _Part(mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps, relative, affinity=poisson)
    if not isinstance(mechanism, Gaussian):
        raise UnsupportedError(_GAUSSIAN_ONLY)
    return _Part(mechanism.noise_multiplier, 1.0, mechanism.releases, min(change, LARGEST_CHANGE), affinity=True)


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
    return replace(mechanism, noise_multiplier=part.noise * LARGEST_CHANGE / part.change)  # type: ignore[type-var]


def _square(x: float) -> float:
    return x * x


def _gaussian(mu: float) -> TradeOff:
    return GaussianTradeOff(min(mu, _LARGEST_MU))
