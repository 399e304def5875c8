"""What a contour says at thresholds: bounds on delta, and the rates of tests that are no stronger."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reticent.accountants.contour import Contour, Enclosed
from reticent.kernel.curves import LogErrors
from reticent.kernel.curves._logs import TINY, log1mexp

_SLACK = 1e-12
_BELOW_ONE = 1.0 - 1e-16  # keeps a complement above 0


class Block(NamedTuple):
    """What one contour says at its thresholds, all of one sign.

    Attributes:
        thresholds: l, increasing.
        log_delta: log of an upper bound on delta(l), l >= 0; on the reversed delta at -l for others.
        log_rest: log of 1 less that bound.
        points: rates of tests at most as strong as those at the thresholds.
    """

    thresholds: np.ndarray
    log_delta: np.ndarray
    log_rest: np.ndarray
    points: LogErrors


def read(contour: Contour, thresholds: np.ndarray, apart: bool) -> Block:
    """Ask ``contour``.

    Args:
        contour: of the composition.
        thresholds: all of one sign; 16 and more must be evenly spaced.
        apart: whether delta may be next to 1: what is left of it is then computed by itself, where 0 < c < 1.
    """
    above, outward = thresholds[-1] >= 0.0, np.abs(thresholds)
    bounds = contour.delta(thresholds) if above else contour.reversed_delta(thresholds)
    (fpr, tnr), (fnr, tpr) = (contour.rates(thresholds, under_absent=way) for way in (True, False))
    rates = LogErrors(fpr.upper, _log(tnr.lower), fnr.upper, _log(tpr.lower))
    known = attained(outward, bounds.lower, fpr if above else fnr)
    points = LogErrors.joined(rates, known if above else known.exchanged)
    upper = np.clip(bounds.upper * (1.0 + _SLACK), TINY, 1.0)
    if apart and 0.0 < contour.c < 1.0:
        log_rest = np.minimum(contour.log_overlap(thresholds) - _SLACK, 0.0)
    else:
        log_rest = np.log1p(-upper * _BELOW_ONE)
    return Block(thresholds, np.log(upper), log_rest, points)


def attained(thresholds: np.ndarray, delta: np.ndarray, fpr: Enclosed) -> LogErrors:
    """Log rates of tests that are no stronger than the tests at ``thresholds`` l >= 0; ``fpr`` holds logarithms.

    Delta is known better than either rate: where a rate a within [a-, a+] goes with delta, the test that is
    asked with probability a-/a only has the rates a- and a- (e^l + delta / a). Not a number where nothing is known.

    Args:
        thresholds: l.
        delta: lower bounds.
        fpr: logarithms of bounds on the false positive rates.
    """
    known = (fpr.lower > -np.inf) & (delta > 0.0)
    few = np.where(known, fpr.lower, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        many = np.minimum(few + np.logaddexp(thresholds, np.log(delta * (1.0 - _SLACK)) - fpr.upper), 0.0)
        return LogErrors(few, log1mexp(few), log1mexp(many), many)


def _log(rates: np.ndarray) -> np.ndarray:
    return np.log(np.clip(rates, TINY, 1.0))
