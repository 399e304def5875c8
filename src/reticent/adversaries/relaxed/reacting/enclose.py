"""The relaxed adversary where the gradients of the record react to the weights: linear models and linear heads.

What the record adds in a step may depend on everything that was released before, and on the hidden direction. Two
routes hold all the same, at every threshold: the second moment with the largest inner products that there can be, and
the information that the releases give about the direction. Below, attacks that some training attains.
docs/theory/relaxed/reacting.md has the model and the proofs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from reticent.adversaries.relaxed.dimension import attacks_from_below, chi_square, second_moment
from reticent.adversaries.relaxed.dimension.enclose import both_directions, grid, log_errors
from reticent.adversaries.relaxed.dimension.overlap_law import overlap_law
from reticent.adversaries.relaxed.question import noisy_sums
from reticent.adversaries.relaxed.reacting import frozen
from reticent.adversaries.relaxed.reacting import information as reacting_information
from reticent.adversaries.relaxed.reacting.information import Setting
from reticent.adversaries.relaxed.reacting.step_information import Steps
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.accountants.compose import compose
from reticent.kernel.curves import LogErrors, TradeOff
from reticent.kernel.curves._logs import LOG_2, log_expm1
from reticent.kernel.curves.capped import above_none
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.curves.polygon import Polygon, hull, polygon_through, symmetric_above
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms.gradients import Gradients

_LEAST_LOG = -600.0  # of chi-square
_LEVELS, _GROUPS = 25, 15  # of the attacker who sees a constant length
_SLACK = 1e-9  # relative, of chi-square
_TANGENTS, _GONE = 2000, 40.0  # of a smooth worst case, from 0 to where -log of delta is so large
_SMOOTH = np.append(0.0, np.geomspace(1e-6, 60.0, 300))  # thresholds of a curve that an attack attains exactly
_LEAST_NOISE, _MOST_NOISE = 1e-3, 1e6  # between which attacks are tried
_ALMOST = 1.0 - 1e-12
_LONGEST = 10**9  # steps up to which attacks are tried


@lru_cache(maxsize=64)
def reacting_in(release: Mechanism, dimension: int, kind: Gradients, known_share: float = 0.0) -> Enclosure | None:
    """Enclosure of the curve over a direction that is unknown in ``dimension`` dimensions: add/remove and zero-out.

    Above, the smallest of the second moment, the information bound and the worst case at every threshold. Below, what
    a perceptron with frozen weights and a gradient of constant length show; nothing for shuffled batches and for runs
    that differ. Both directions, symmetrised. Shuffled runs count each started epoch as one release.

    Several records of one person: each direction is uniform for the attacker, and all of them together are independent
    of noise and coins; how they depend on each other is arbitrary.

    Args:
        release: Gaussian noise, sampled or not; several parts are of one model.
        dimension: of the space in which the attacker does not know the direction, >= 1: a statement of the user.
        kind: how the gradient may react: one direction, or a linear head with hard labels or with any.
        known_share: at most this share of the squared length lies in directions that the attacker knows, such as that
            of a bias.

    Returns:
        None where nothing is proven beyond the worst case: no noise, another mechanism, or batches that show a record
        that the target displaces.
    """
    case = case_of(release, Setting(dimension, kind, known_share))
    if case is None:
        return None
    worst = compose(release, Neighbouring.ADD_REMOVE)
    if known_share == 1.0:
        return Enclosure.from_above(worst.pessimistic, worst.notes)
    with np.errstate(all="ignore"):  # what overflows becomes a trivial bound
        log_x, nats = case.log_chi_square(), case.nats()
        thresholds = grid({2.0: min(log_x, math.log(min(2.0 * nats, 1.0)))})
        add, remove = second_moment.log_deltas({2.0: log_x}, thresholds)
        taught = reacting_information.log_deltas(nats, thresholds)
        above = both_directions(thresholds, np.fmin(add, taught[0]), np.fmin(remove, taught[1]))
        improved = np.any(above.log_delta(thresholds) < worst.pessimistic.log_delta(thresholds))
        curve = above_none([above, *_followed(worst.pessimistic)]) if improved else worst.pessimistic
        below = case.reached()
    if below is None:
        return Enclosure.from_above(curve, worst.notes)
    return Enclosure.checked(curve, below, worst.notes)


def _followed(worst: TradeOff) -> list[TradeOff]:
    """The worst case; a smooth one also by close tangents down to where it vanishes."""
    if isinstance(worst, Polygon):
        return [worst]
    seen = np.geomspace(1e-9, 1e3, 200)
    last = seen[min(int(np.searchsorted(-worst.log_delta(seen), _GONE)), len(seen) - 1)]
    thresholds = np.linspace(0.0, last, _TANGENTS)
    return [worst, symmetric_above(thresholds, worst.log_delta(thresholds))]


@dataclass(frozen=True, slots=True)
class _Case:
    """A release that is answered: its steps, merged; what is known of the effect; whether attacks reach it."""

    parts: tuple[Steps, ...]
    setting: Setting
    attained: bool

    def nats(self) -> float:
        """KL(present || absent), from above."""
        return reacting_information.divergence(self.parts, self.setting)

    def log_chi_square(self) -> float:
        """log of an upper bound on E (LR - 1)^2 under "absent": by RETICENT:reacting-second-moment."""
        law, known = overlap_law(self.setting.dimension), self.setting.known_share
        log_x = float(law.log_excess(self._exponents(known + (1.0 - known) * law.nodes)))
        one_sided = self.setting.kind is Gradients.ONE_DIRECTION or all(part.records == 1 for part in self.parts)
        if self.setting.agrees and one_sided:  # half of all pairs are opposite; labels of a person's records may differ
            opposite = float(log_expm1(self._exponents(np.array([known])))[0])
            log_x = float(np.logaddexp(log_x, opposite)) - LOG_2
        if len(self.parts) == 1 and self.parts[0].count == 1 and not self.setting.split:
            log_x = min(log_x, math.log(reacting_information.first_step_chi_square(self.parts[0], self.setting)))
        return max(log_x + _SLACK, _LEAST_LOG)

    def _exponents(self, overlap: np.ndarray) -> np.ndarray:
        """log of the mean, over coins, of exp(sum of <g, g'> / s^2), where <g, g'> is at most ``overlap``."""
        total = np.zeros(len(overlap))
        for part in self.parts:
            total += part.count * chi_square.log_mean_over_coins(part.signal * overlap, part.rate, part.records)
        return total

    def reached(self) -> Polygon | None:
        """The curve of attacks, in both directions; None where none is known."""
        part, *others = self.parts
        usual = _LEAST_NOISE <= part.noise <= _MOST_NOISE and part.count <= _LONGEST
        if others or not self.attained or not usual:
            return None
        curves = [polygon_through(rates) for rates in self._attacks()]
        return hull([turned for curve in curves for turned in (curve, curve.reversed)])

    def _attacks(self) -> list[LogErrors]:
        """Of a reaction to frozen weights, and of an attacker who sees a constant length."""
        (part,), d = self.parts, self.setting.dimension
        run, signed = (part.noise, part.rate, part.count, d), not self.setting.agrees
        reacting = _log_errors(*frozen.error_rates(*run, part.records, signed=signed))
        if part.rate < 1.0:
            constant = _log_errors(*attacks_from_below.error_rates(*run, _LEVELS, _GROUPS, part.records))
        else:
            strength = part.count * (part.records / part.noise) ** 2
            constant = RelaxedGaussianTradeOff(strength, d).errors(_SMOOTH)
        return [reacting, constant]


def _log_errors(fpr: np.ndarray, power: np.ndarray) -> LogErrors:
    return log_errors(fpr, np.minimum(power, _ALMOST))  # its complement is known to few digits


def case_of(release: Mechanism, setting: Setting) -> _Case | None:
    """What is computed; None where no theorem applies."""
    runs = noisy_sums(release)
    if runs is None:
        return None
    counts: Counter[tuple[float, float]] = Counter()
    for run in runs:
        counts[run.noise_multiplier, run.accountable.sample_rate] += run.accountable.steps
    records = max(run.records for run in runs)
    parts = tuple(Steps(*kinds, count, records) for kinds, count in sorted(counts.items()))
    attained = all(run.sampler.independent or run.sample_rate == 1.0 for run in runs)
    return _Case(parts, replace(setting, split=records > 1 and not attained), attained)
