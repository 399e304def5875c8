"""AUC and true positive rate at a false positive rate, with intervals."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

import numpy as np
from scipy.special import betainc, betaincc, ndtri, rel_entr

from reticent.auditing.intervals import ConfidenceInterval, Validity, lower_proportion, upper_proportion
from reticent.auditing.scores import Scores
from reticent.kernel import checks
from reticent.kernel.errors import UnsupportedError


def auc_interval(scores: Scores, confidence: float = 0.95) -> ConfidenceInterval:
    """Probability that a member scores above a non-member (ties count half), for every sample size.

    By Hoeffding's argument the estimate is an average of means of m independent terms in [0, 1], m the
    smaller sample; so the Chernoff bound exp(-m kl(estimate, truth)) holds. About twice as wide as
    ``delong``, which has no such proof.

    By RETICENT:audit-auc.
    """
    half = 0.5 * (1.0 - checks.open_fraction(confidence=confidence))
    value = _auc(scores.member, scores.non_member)
    limit = -math.log(half) / min(len(scores.member), len(scores.non_member))
    lower, upper = _lower_end(value, limit), 1.0 - _lower_end(1.0 - value, limit)
    return ConfidenceInterval(lower, value, upper, confidence, Validity.FINITE_SAMPLE, "Chernoff for U-statistics")


def delong(scores: Scores, confidence: float = 0.95) -> ConfidenceInterval:
    """The interval of DeLong, DeLong and Clarke-Pearson (1988) on the logit scale; asymptotic.

    Raises:
        UnsupportedError: the variance estimate is 0 (perfect separation, equal scores, or a sample of one): the
            normal approximation says nothing there; use ``auc_interval``.
    """
    z = float(-ndtri(0.5 * (1.0 - checks.open_fraction(confidence=confidence))))
    m, n = len(scores.member), len(scores.non_member)
    value = _auc(scores.member, scores.non_member)
    if min(m, n) < 2 or value in (0.0, 1.0):
        raise UnsupportedError("DeLong's interval needs two scores on each side that overlap; use auc_interval instead")
    member, non_member = np.sort(scores.member), np.sort(scores.non_member)
    by_member, by_non_member = _below(non_member, member) / n, 1.0 - _below(member, non_member) / m
    deviation = math.sqrt(by_member.var(ddof=1) / m + by_non_member.var(ddof=1) / n)
    if deviation == 0.0:
        raise UnsupportedError("DeLong's interval needs scores that differ; use auc_interval instead")
    centre, reach = math.log(value / (1.0 - value)), z * deviation / (value * (1.0 - value))
    lower, upper = (1.0 / (1.0 + math.exp(-x)) for x in (centre - reach, centre + reach))
    return ConfidenceInterval(lower, value, upper, confidence, Validity.ASYMPTOTIC, "DeLong, logit scale")


def tpr_interval(scores: Scores, fpr: float, confidence: float = 0.95) -> ConfidenceInterval:
    """Largest true positive rate of the attack at false positive rate ``fpr``, with an interval.

    The thresholds of both ends are ranks of the non-members that are fixed by ``fpr``, the sample size
    and the confidence alone: at the upper one the true FPR is at most ``fpr``, at the lower one at
    least ``fpr``. Each end errs with half of the significance: a quarter for the rank, or as much as one rank
    needs; the members are then binomial, and Clopper-Pearson takes the rest of the half. A lower end of 0 with hits
    means that there are too few non-members to certify any threshold at ``fpr``: below log(2 / significance) / fpr.

    Args:
        scores: scores; independent on each side.
        fpr: in (0, 1), a probability and not a percentage.
        confidence: in (0, 1).
    """
    fpr = checks.open_fraction(fpr=fpr)
    half = 0.5 * (1.0 - checks.open_fraction(confidence=confidence))
    ordered = np.sort(scores.non_member)[::-1]
    n, m = len(ordered), len(scores.member)

    def above(rank: int) -> float:
        """Chance that the true rate at the rank is above ``fpr``, at most; grows with the rank."""
        return float(betaincc(rank, n - rank + 1, fpr))

    def below(rank: int) -> float:
        """Chance that it is below, at most; falls with the rank."""
        return float(betainc(rank, n - rank + 1, fpr))

    strict = max(1, bisect_right(range(1, n + 1), 0.5 * half, key=above))
    loose = min(n, 1 + bisect_left(range(1, n + 1), -0.5 * half, key=lambda rank: -below(rank)))
    lower, upper = 0.0, 1.0
    if (rest := half - above(strict)) > 0.0:
        hits = np.count_nonzero(scores.member > ordered[strict - 1])
        lower = float(lower_proportion(hits, m, rest))
    if (rest := half - below(loose)) > 0.0:
        hits = np.count_nonzero(scores.member >= ordered[loose - 1])
        upper = float(upper_proportion(hits, m, rest))
    value = int(np.count_nonzero(scores.member > ordered[math.floor(fpr * n)])) / m
    return ConfidenceInterval(
        lower, value, upper, confidence, Validity.FINITE_SAMPLE, "order statistics and Clopper-Pearson"
    )


def _below(values: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """How many of the sorted values lie below each of the sorted queries; equal ones count half."""
    return 0.5 * (np.searchsorted(values, queries, "left") + np.searchsorted(values, queries, "right"))


def _auc(member: np.ndarray, non_member: np.ndarray) -> float:
    wins = _below(np.sort(non_member), np.sort(member))
    return float(wins.sum() / (len(member) * len(non_member)))


def _kl(p: float, q: float) -> float:
    """Divergence of Bernoulli(p) from Bernoulli(q)."""
    return float(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))


def _lower_end(value: float, limit: float) -> float:
    """The q below ``value`` with kl(value, q) = ``limit``."""
    if value == 0.0:
        return 0.0
    # kl >= value log(value/q) + (1 - value) log(1 - value) >= value log(value/q) - log 2.
    floor = max(value * math.exp(-(limit + math.log(2.0)) / value), 1e-300)
    if _kl(value, floor) <= limit:
        return 0.0
    from scipy.optimize import brentq  # a second to import, and few questions need it

    return float(brentq(lambda q: _kl(value, q) - limit, floor, value))
