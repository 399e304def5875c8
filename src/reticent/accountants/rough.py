"""The worst case on one coarse lattice: an estimate that steers a search, in well under a tenth of a second."""

from __future__ import annotations

import numpy as np

from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.accountants.steps import Release, Step
from reticent.kernel.curves import TradeOff
from reticent.kernel.curves.polygon import safest
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs import Neighbouring

_ROUGH = Lattice(width=1e-5, points=2**16)


def rough_curve(release: Release, neighbouring: Neighbouring) -> TradeOff:
    """A curve near that of ``compose``; it moves smoothly with the parameters of ``release``, and no error is stated.

    Raises:
        NumericalError: a step has no noise, or the lattice cannot hold the losses.
    """
    noisy, unseen = steps_of(release, neighbouring)
    if not noisy or unseen != 0.0:
        raise NumericalError("rough curve: a step has no noise")
    steps = [Step(step.pair.rough, step.count) for step in noisy]
    with np.errstate(all="ignore"):
        one = steps[0].curve if len(steps) == 1 and steps[0].count == 1 else _ROUGH.above(steps)
        return safest([one, one.reversed])
