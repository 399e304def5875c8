"""An attacker who knows in which steps the target was drawn, but not its direction.

Given K = sum b_t the sum of the sampled steps is sufficient for an invariant test: chi-square against noncentral
chi-square with noncentrality K / s^2, as without sampling. The mask is drawn in the same way under both hypotheses, so
delta is the mean over K ~ Binomial(T, p) at every threshold. Loses the amplification by sampling, keeps exact tails.
"""

from __future__ import annotations

import numpy as np

from reticent.curves import ncx2
from reticent.curves.bessel import inverse_log_mean_exponential
from reticent.kernel.curves import binomial
from reticent.kernel.curves._logs import log_of

_GROUPS, _FEW_GROUPS = 100, 40  # of counts; fewer where tails are slow
_QUICK_FROM = 10  # dimensions
_RARE = 1e-18  # counts with less probability count as no privacy
_RTOL = 1e-10  # of the tails
_ROUNDING = 4.0 * _RTOL  # of delta, relative to the two rates of which it is the difference


def log_deltas(
    noise: float,
    rate: float,
    steps: int,
    dimension: int,
    thresholds: np.ndarray,
    groups: int | None = None,
    window: float = 1.0,
    rtol: float = _RTOL,
) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds on log delta at ``thresholds`` l >= 0, of addition and of removal.

    Counts of one group take the largest of them, counts beyond the last group count as no privacy.

    By RETICENT:told-mask.

    Args:
        thresholds: l >= 0.
        groups: most groups of counts; by default 100, or 40 where tails are slow.
        window: shrinks the range of counts that is evaluated, for tests.
        rtol: of the tails; with more than is counted as rounding the values are estimates.
    """
    groups = groups or (_GROUPS if dimension >= _QUICK_FROM else _FEW_GROUPS)
    law = binomial.grouped(steps, rate, groups, _RARE, window)
    some = law.high > 0  # who is never drawn shows nothing
    noncentrality = law.high[some, None] / noise**2
    weight = np.exp(law.log_most[some])
    lost = np.exp(law.log_above) + np.exp(law.log_below)
    count, level = len(thresholds), np.append(thresholds, -thresholds) + 0.5 * noncentrality
    square = inverse_log_mean_exponential(level, float(dimension)) ** 2 / noncentrality
    absent, present = (ncx2.log_tails(square, dimension, one, rtol) for one in (0.0, noncentrality))
    rates = (
        (present.sf[:, :count], absent.sf[:, :count]),
        (absent.cdf[:, count:], present.cdf[:, count:]),  # H0 is "present": reject where the norm is small
    )
    deltas = (_rounded_up(power, thresholds + false) for power, false in rates)
    add, remove = (np.minimum(log_of(weight @ delta + lost), 0.0) for delta in deltas)
    return add, remove


def _rounded_up(power: np.ndarray, false: np.ndarray) -> np.ndarray:
    """delta of tests, from the logarithms of their power and of e^l times their false positive rate."""
    power, false = np.exp(power), np.exp(np.minimum(false, 0.0))
    return np.clip(power - false + _ROUNDING * (power + false), 0.0, 1.0)
