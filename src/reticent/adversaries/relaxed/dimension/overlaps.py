"""Second moments cut where an attack would already have succeeded: rare sampling, little noise.

There X = E (LR - 1)^2 is carried by outcomes that almost never occur. Write L_S for the likelihood ratio of "all steps
of S show the target" against "absent"; given |S| = n it depends on Q = |sum of S|^2 / (n s^2) alone, which is central
chi-square under "absent", noncentral by n / s^2 where the target is in S. With caps c_n, drop from "present" all masks
of more than k steps, and all outcomes in which Q > c_|S| for some S inside the mask. The probability of that is at most

    eta = P(K > k) + sum_n C(T, n) p^n P(Binomial(T - n, p) <= k - n) P_1(Q > c_n),

and what is kept has the second moment sum_n P(N = n) E_1[L_n; Q <= c_n] at most, N ~ Binomial(T, p^2) the overlap of
two masks. The best caps are p^n L_n <= e^level, with one level for all n. docs/theory/relaxed/dimension.md proves each
step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, bdtrc

from reticent.adversaries.relaxed.dimension import second_moment
from reticent.curves import ncx2
from reticent.curves.bessel import log_mean_exponential
from reticent.kernel.curves import binomial
from reticent.kernel.curves._logs import cell_masses, log_expm1, log_of

_MOST = 40  # steps of one overlap
_CELLS, _FEW_CELLS, _SMALL = 400, 120, 3  # of the law of Q; few for overlaps of more than ``_SMALL`` steps
_BELOW, _BEYOND, _MORE = 8.0, 9.0, 40.0  # the cells: standard deviations below and above the mean, and further
LEVELS = np.linspace(-3.0, 20.0, 70)
"""Of the caps, in logs."""
_RARE = (1e-2, 1e-3, 1e-4, 1e-6, 1e-9)  # P(K > k)
_RTOL = 1e-10  # of the tails
_ROUNDING = 1e-8  # relative, of every mass and moment: far more than tails, kernel and sums cost
_LARGEST = 600.0  # exponent


@dataclass(frozen=True, slots=True)
class Kept:
    """Choices of caps, one entry each: what they drop and what they keep.

    Attributes:
        dropped: eta, upper bounds on the probability under "present" of what is left out.
        log_variance: log of upper bounds on the variance, under the reference, of the likelihood ratio of the rest.
    """

    dropped: np.ndarray
    log_variance: np.ndarray

    def log_deltas(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Upper bounds on log delta at ``thresholds`` l >= 0: of "present" over the reference, and the other way.

        With k = e^l and L the part kept: E (LR - k)_+ <= eta + E (L - k)_+. The other way E (1 - k LR)_+ =
        k E (LR - 1/k)_+ + 1 - k, and the same holds. Means are at most 1, then Scarf's bound as for whole moments.
        """
        up, down = np.expm1(thresholds), -np.expm1(-thresholds)
        lost = log_of(self.dropped)[:, None]
        add, remove = (
            np.min(np.logaddexp(lost, second_moment.scarf(self.log_variance[:, None], c)), axis=0) for c in (up, down)
        )
        return np.minimum(add, 0.0), np.minimum(remove + thresholds, 0.0)


def over_absent(noise: float, rate: float, steps: int, dimension: int) -> Kept:
    """The moments that are kept, with "absent" as the reference: by RETICENT:cut-moments."""
    n = np.arange(1, min(steps, _MOST) + 1)
    log_mean = log_mean_exponential(n / noise**2, float(dimension))
    log_mass = binomial.log_mass(n, steps, rate**2)
    return _kept(noise, rate, steps, dimension, log_mass, log_mass + log_expm1(log_mean), subtract=True)


def over_norms(noise: float, rate: float, steps: int, dimension: int) -> Kept:
    """With "a fresh direction in every step" as the reference: what the common direction adds to the norms.

    Given the norms the masks are independent, with odds of p L_1, and the directions are uniform. Overlaps of one step
    show nothing, so n starts at 2; all else is as above, times (1 - p)^-n. Whole moments lose what the norms show.
    """
    n = np.arange(1, min(steps, _MOST) + 1)
    log_mean = log_mean_exponential(n / noise**2, float(dimension))
    log_mass = _log_choose(steps, n) + n * (2.0 * np.log(rate) - np.log1p(-rate))
    whole = log_mass + log_mean + log_of(-np.expm1(np.minimum(n * log_mean[0] - log_mean, 0.0)))
    return _kept(noise, rate, steps, dimension, log_mass, np.where(n == 1, -np.inf, whole), subtract=False)


def _kept(
    noise: float, rate: float, steps: int, dimension: int, log_mass: np.ndarray, whole: np.ndarray, *, subtract: bool
) -> Kept:
    """``log_mass``: of overlaps of n steps; ``whole``: log of what they add without caps; ``subtract`` 1 or not."""
    sizes = np.arange(1, len(log_mass) + 1)
    log_sets = _log_choose(steps, sizes) + sizes * np.log(rate)
    dropped = np.zeros((len(sizes), len(LEVELS)))  # per mask of any size
    added = np.zeros((len(sizes), len(LEVELS)))
    for i, n in enumerate(sizes):
        beyond, moment = below_cap(float(n) / noise**2, dimension, LEVELS - n * np.log(rate), bool(n <= _SMALL))
        moment = np.maximum(moment - 1.0, 0.0) if subtract else moment
        capped = np.exp(np.minimum(log_mass[i], _LARGEST)) * moment
        uncapped = float(np.exp(np.minimum(whole[i], _LARGEST)))
        free = uncapped <= capped
        added[i] = np.where(free, uncapped, capped)
        dropped[i] = np.where(free, 0.0, np.exp(log_sets[i]) * beyond)
    candidates = []
    for most in largest_masks(rate, steps):
        inside = bdtr(np.maximum(most - sizes, 0), steps - sizes, rate) * (sizes <= most)
        eta = (inside @ dropped + bdtrc(most, steps, rate)) * (1.0 + _ROUNDING)
        variance = added[:most].sum(axis=0) * (1.0 + _ROUNDING) + 2.0 * eta
        candidates.append((eta, variance))
    eta, variance = (np.concatenate(part) for part in zip(*candidates, strict=True))
    useful = np.isfinite(variance) & (eta < 1.0)
    return Kept(np.append(eta[useful], 1.0), np.log(np.append(variance[useful], 1.0)))


def largest_masks(rate: float, steps: int) -> list[int]:
    """Sizes k of the largest mask that is kept: all of them, or few where more are rare."""
    counts = np.arange(min(steps, _MOST) + 1)
    beyond = bdtrc(counts, steps, rate)
    beyond[counts >= steps] = 0.0
    first = {int(counts[np.argmax(beyond <= rare)]) for rare in _RARE if np.any(beyond <= rare)}
    return sorted(first | {len(counts) - 1})


def below_cap(noncentrality: float, dimension: int, log_caps: np.ndarray, fine: bool) -> tuple[np.ndarray, np.ndarray]:
    """(P_1(Q > c), bound on E_1[L; Q <= c]) for c at the last cell whose log L stays below each of ``log_caps``."""
    centre, spread = dimension + noncentrality, np.sqrt(2.0 * dimension + 4.0 * noncentrality)
    low, high = max(centre - _BELOW * spread, 0.0), centre + _BEYOND * spread + _MORE
    edges = np.linspace(low, high, (_CELLS if fine else _FEW_CELLS) + 1)
    log_ratio = log_mean_exponential(np.sqrt(noncentrality * edges), float(dimension)) - 0.5 * noncentrality
    cdf, sf = (np.exp(tail) for tail in ncx2.log_tails(edges, dimension, noncentrality, _RTOL))
    cells = cell_masses(cdf, sf) + 4.0 * _RTOL * np.minimum(cdf[1:], sf[:-1])
    with np.errstate(over="ignore"):
        moments = np.exp(np.append(log_ratio[0], log_ratio[1:])) * np.append(cdf[0], cells)
    last = np.searchsorted(log_ratio, log_caps, side="right") - 1
    everything = last < 0  # below the first cell: nothing is kept
    last = np.maximum(last, 0)
    beyond, moment = sf[last] * (1.0 + 4.0 * _RTOL), np.cumsum(moments)[last]
    return np.where(everything, 1.0, beyond), np.where(everything, 0.0, moment)


def _log_choose(count: int, n: np.ndarray) -> np.ndarray:
    """log C(count, n): counts as a sum of logarithms, so that nothing cancels."""
    return np.cumsum(np.log((count - n + 1.0) / n))
