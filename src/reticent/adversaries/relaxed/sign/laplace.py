"""The relaxed adversary against scalar Laplace releases, composed and sampled: one unknown sign, the same in all.

The target moves each release in which it takes part by +m or by -m noise scales. "Absent" is tested against "present
with a fair random sign", the maximin test over both signs; docs/theory/relaxed/laplace.md.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from reticent.accountants.bounds import CheapBounds, loudest_step
from reticent.accountants.compose import compose
from reticent.accountants.steps import Step
from reticent.adversaries.relaxed.sign.join import UNRESOLVED, both_directions, bounds, no_more_than, two_sided
from reticent.adversaries.relaxed.sign.noise import LaplaceSign
from reticent.curves import RelaxedLaplaceTradeOff, subsampled, symmetrised
from reticent.curves.enclosure import Enclosure
from reticent.curves.polygon import hull
from reticent.errors import NumericalError, UnsupportedError
from reticent.mechanisms import Laplace, Neighbouring
from reticent.pairs import LaplacePair


@lru_cache(maxsize=64)
def laplace_sign(mechanism: Laplace, neighbouring: Neighbouring) -> Enclosure:
    """Enclosure of the common-sign curve, symmetrised; exact for one release.

    Where the lattice cannot follow the losses: the worst case above, a two-sided test of it below; ``notes`` say why.

    By RETICENT:laplace-sign.

    Args:
        mechanism: with noise.

    Raises:
        UnsupportedError: no noise; or sampled releases under replacement.
    """
    if mechanism.noise_multiplier == 0.0:
        raise UnsupportedError("without noise the sign is seen: use the worst case")
    rate, shift = mechanism.sample_rate, neighbouring.sensitivity / mechanism.noise_multiplier
    if rate < 1.0 and neighbouring is Neighbouring.REPLACE:
        raise UnsupportedError("one unknown sign under replacement is not proven for sampled Laplace releases")
    if mechanism.releases == 1:
        one = RelaxedLaplaceTradeOff(shift)
        return Enclosure.exact(symmetrised(subsampled(one, rate)))
    worst = compose(mechanism, neighbouring).pessimistic
    step = [Step(LaplacePair(1.0, rate, shift), mechanism.releases)]
    with np.errstate(all="ignore"):  # what overflows becomes a trivial bound
        below = hull([two_sided(loudest_step(step)), two_sided(CheapBounds(step).below())])
    try:
        fine = bounds(((LaplaceSign(rate, shift), mechanism.releases),)).sides()
    except NumericalError as error:
        return Enclosure.checked(worst, both_directions(below, hull), (UNRESOLVED.format(error),))
    return Enclosure.checked(no_more_than(worst, fine.above), both_directions(hull([fine.below, below]), hull))
