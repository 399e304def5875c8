"""Cells of a lattice are wider in the tails: fewer of them, and as narrow an enclosure."""

import numpy as np
import pytest

from reticent.kernel.accountants import lattice_cells
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.lattice_cells import cells_of
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.accountants.steps import Step
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import AntipodalGaussianPair, GaussianPair, Neighbouring
from reticent.samplers import TruncatedPoisson

CUT = DPSGD(0.9, 0.01, 1, batch_size=64, dataset_size=6400, sampler=TruncatedPoisson(96))
STEPS = {
    "rare": Step(GaussianPair(0.5, 3e-6, 1.0), 36),
    "antipodal": Step(AntipodalGaussianPair(1.0, 0.05), 50),
    "cut": Step(steps_of(CUT, Neighbouring.ADD_REMOVE)[0][0].pair, 300),
}
WIDTHS = {"rare": 4.2e-5, "antipodal": 1.4e-6, "cut": 1.8e-5}
"""Of an advantage, on a lattice of 32,768 points."""


@pytest.mark.parametrize("name", STEPS)
def test_few_cells_hold_all_losses(name: str) -> None:
    """All cells next to the centre are of one spacing, and no mass is lost."""
    step, spacing = STEPS[name], 2e-5
    cells = cells_of(step, -1e-7, spacing, 4.0, 1e-26, 0.0)
    widths, centre = np.diff(cells.ends), int(np.searchsorted(cells.ends, 0))
    assert cells.ends[centre] == 0
    assert widths[centre] == widths[centre - 1] == 1
    assert np.all(widths > 0)
    assert widths.max() > 4
    assert 2.0 * len(widths) < cells.ends[-1] - cells.ends[0]
    for masses, ends in ((cells.losses.p, 0), (cells.losses.q, 1)):
        total = masses.sum() + cells.losses.below[ends] + cells.losses.above[ends]
        assert total == pytest.approx(1.0, abs=1e-12, rel=0)


@pytest.mark.parametrize("name", STEPS)
def test_wide_cells_do_not_widen_the_enclosure(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As narrow as with cells of one spacing, and on either side of what these say."""
    with np.errstate(all="ignore"):
        wide = Lattice(points=2**15).answer([STEPS[name]])
        monkeypatch.setattr(lattice_cells, "WIDER", 1e-300)
        even = Lattice(points=2**15).answer([STEPS[name]])
    assert wide.width <= min(1.01 * even.width, WIDTHS[name])
    for epsilon in (0.0, 0.5, 2.0):
        above, below = (float(side[0].delta(epsilon)) for side in wide[:2])
        other, least = (float(side[0].delta(epsilon)) for side in even[:2])
        assert above >= least
        assert other >= below
        assert above - below <= 1.02 * (other - least) + 1e-15
