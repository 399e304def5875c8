"""Losses of two values, composed by counting them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import binom

from reticent.kernel.accountants.route import Answer, Route
from reticent.kernel.accountants.steps import Steps
from reticent.kernel.curves import LogErrors
from reticent.kernel.curves.polygon import polygon_through, symmetric_above
from reticent.kernel.pairs import CurvePair

_MOST = 10**5  # releases that are counted


@dataclass(frozen=True, slots=True)
class Coins(Route):
    """Equal releases whose loss is e or -e, such as counts that one record moves by 1: binomial.

    Attributes:
        rounding: of a logarithm.
    """

    rounding: float = 1e-11

    name: ClassVar[str] = "coins"
    priority: ClassVar[int] = 25  # before lattices: it costs less and is exact

    def serves(self, steps: Steps) -> bool:
        pair, count = steps[0].pair, steps[0].count
        alone = len(steps) == 1 and count <= _MOST and isinstance(pair, CurvePair)
        return alone and len(getattr(pair.curve, "log_slopes", ())) == 2

    def answer(self, steps: Steps) -> Answer:
        """The number of losses e is binomial under either law: who sees many accuses."""
        ((pair, count),) = [(step.pair, step.count) for step in steps]
        loss, heads = pair.largest_losses[0], np.arange(count + 1)
        wrong = 1.0 / (1.0 + np.exp(loss))
        fpr, tpr = (binom.logsf(heads - 1, count, chance) for chance in (wrong, 1.0 - wrong))
        tnr, fnr = (binom.logcdf(heads - 1, count, chance) for chance in (wrong, 1.0 - wrong))
        exact = polygon_through(LogErrors(fpr, tnr, fnr, tpr))
        thresholds = np.unique(np.append(0.0, loss * (2.0 * heads - count)[2 * heads > count]))
        log_delta = np.minimum(exact.log_delta(thresholds) + self.rounding, 0.0)
        below = LogErrors.of(np.minimum(fpr + self.rounding, 0.0), np.minimum(fnr + self.rounding, 0.0))
        return Answer((symmetric_above(thresholds, log_delta),), (polygon_through(below),))
