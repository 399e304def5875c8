"""Whole networks: what an attacker gains who knows from where a record is drawn, and not which one it is.

No layer, no direction and no dimension is assumed. Of the clipped gradients of all records that the attacker holds for
possible two numbers are limited: the mean, and the second moment along any direction. Along the known mean the record
can be seen at once; anything else about it has to be learnt from the releases. docs/theory/relaxed/networks.md has the
proof.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from reticent.adversaries.relaxed.dimension.enclose import both_directions, grid
from reticent.adversaries.relaxed.reacting.information import Gains, log_deltas, majorant, summed
from reticent.adversaries.relaxed.reacting.learnt import least_mean
from reticent.adversaries.relaxed.reacting.step_information import Steps, above_tangent, known_direction, steepest
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.samplers import Run

_TILTS = np.geomspace(1e-6, 200.0, 1500)  # values of L
_NATS = np.append(0.0, np.geomspace(1e-13, 1e3, 2500))  # values of I
_ROUND_UP = 1.0 + 1e-9
_LEAST = 1e-300  # of a divergence whose logarithm is taken


def of_a_pool(run: Run, mean: float, second: float) -> Enclosure:
    """The curve of who knows a pool and not the record, from above.

    Args:
        run: equal steps with noise, one record of a person; whole batches, or those of independent coins.
        mean, second: limits; see ``divergence``.
    """
    nats = divergence(Steps(run.noise_multiplier, run.sample_rate, run.steps), mean, second)
    with np.errstate(all="ignore"):
        thresholds = grid({2.0: math.log(min(max(2.0 * nats, _LEAST), 1.0))})
        return Enclosure.from_above(both_directions(thresholds, *log_deltas(nats, thresholds)))


def divergence(part: Steps, mean: float, second: float) -> float:
    """Upper bound on KL(present || absent), in nats: RETICENT:spread-gradients.

    Args:
        part: steps with noise; one record of the person.
        mean: most of the length of the mean of clipped gradients over all that the record may be, in clip norms: root
            mean square over the steps, whatever was released; in (0, 1].
        second: most of the mean of <g, e>^2, for any unit direction e, at every step; in (0, 1].
    """
    kappa, (around, square) = known_direction(part), _learnt(second)
    steps, mean = float(part.count), min(mean, math.sqrt(second))
    learnt_around, learnt_square = (summed(gains, part.count, kappa) for gains in (around, square))
    steepness = steepest(part.drawn) * part.rate**2
    with np.errstate(over="ignore"):
        beyond = float(above_tangent(np.array(part.signal)))
        ahead = part.signal * (mean * math.sqrt(steps) + math.sqrt(learnt_around)) ** 2 + beyond * learnt_square
        ways = [steps * kappa, steepness * ahead, steepness * (part.signal + beyond) * learnt_square]
    if part.rate == 1.0:  # the signal grows inside of each step
        taught = steps * kappa
        ways.append((mean * math.sqrt(taught) + math.sqrt(around.up_to(taught))) ** 2)
        ways.append(square.up_to(taught))
    return min(ways) * _ROUND_UP


@lru_cache(maxsize=32)
def _learnt(second: float) -> tuple[Gains, Gains]:
    """Once I nats are known: how far E g may leave the mean, squared, and the largest E <g, e>^2; concave in I."""
    around = least_mean(_NATS, _TILTS, np.log1p(second * above_tangent(_TILTS))) ** 2
    around[0] = 0.0
    square = least_mean(_NATS, _TILTS, np.log1p(second * np.expm1(_TILTS)))
    square[0] = min(second * _ROUND_UP, square[0])
    return tuple(majorant(_NATS, np.append(bound, bound[-1])) for bound in (around, square))  # type: ignore[return-value]
