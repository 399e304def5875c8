"""Every curve that the laws hold for. A new curve joins here and inherits all of them."""

from __future__ import annotations

import numpy as np

from experiments.gaussian_mip.exact_step import GaussianGradientTradeOff
from reticent.curves import LaplaceTradeOff, MembershipStepTradeOff, RelaxedGaussianTradeOff, RelaxedLaplaceTradeOff
from reticent.kernel.curves import (
    GaussianTradeOff,
    Mixture,
    PiecewiseLinearTradeOff,
    Subsampled,
    TradeOff,
    from_advantage,
    no_privacy,
    symmetrised,
)
from reticent.kernel.curves.polygon import mirrored, polygon_above, polygon_through
from reticent.kernel.pairs import WholeUserGaussianPair

_GRID = np.concatenate([[0.0], np.logspace(-3.0, 1.3, 60)])


def tangents(curve: TradeOff, grid: np.ndarray) -> TradeOff:
    """The least safe curve that has the deltas of ``curve`` at ``grid``, from 0 on, in either direction."""
    return polygon_above(mirrored(-grid, grid), mirrored(curve.reversed.log_delta(grid), curve.log_delta(grid)))


def chords(curve: TradeOff, grid: np.ndarray) -> TradeOff:
    """What the tests of ``curve`` at these thresholds attain, in either direction."""
    return polygon_through(curve.errors(mirrored(-grid, grid)))


SIMPLE: dict[str, TradeOff] = {
    "gaussian-0": GaussianTradeOff(0.0),
    "gaussian-0.01": GaussianTradeOff(0.01),
    "gaussian-1": GaussianTradeOff(1.0),
    "gaussian-7": GaussianTradeOff(7.0),
    "laplace-0": LaplaceTradeOff(0.0),
    "laplace-1": LaplaceTradeOff(1.0),
    "laplace-6": LaplaceTradeOff(6.0),
    "relaxed-laplace-0.1": RelaxedLaplaceTradeOff(0.1),
    "relaxed-laplace-1": RelaxedLaplaceTradeOff(1.0),
    "relaxed-laplace-5": RelaxedLaplaceTradeOff(5.0),
    "relaxed-gaussian-d1": RelaxedGaussianTradeOff(1.0, 1),
    "relaxed-gaussian-d1-strong": RelaxedGaussianTradeOff(25.0, 1),
    "relaxed-gaussian-d1-weak": RelaxedGaussianTradeOff(1e-4, 1),
    "relaxed-gaussian-d2": RelaxedGaussianTradeOff(1.0, 2),
    "relaxed-gaussian-d3-zero": RelaxedGaussianTradeOff(0.0, 3),
    "relaxed-gaussian-d30": RelaxedGaussianTradeOff(10.0, 30),
    "relaxed-gaussian-d1000": RelaxedGaussianTradeOff(40.0, 1000),
    "relaxed-gaussian-d1e6": RelaxedGaussianTradeOff(2000.0, 1_000_000),
    "membership-step-d2": MembershipStepTradeOff(5.0, 2, 2.0),
    "membership-step-d650": MembershipStepTradeOff(500.0, 650, 650.0),
    "gaussian-gradients-d2": GaussianGradientTradeOff(2, 5.0),
    "gaussian-mixture": Mixture([GaussianTradeOff(mu) for mu in (0.0, 0.4, 2.0)], [0.2, 0.5, 0.3]),
    "advantage-0.3": from_advantage(0.3),
    "no-privacy": no_privacy(),
    "polygon": PiecewiseLinearTradeOff([0.0, 0.1, 0.4, 1.0], [0.9, 0.5, 0.1, 0.0]),
    "tangents-gaussian": tangents(GaussianTradeOff(1.0), _GRID),
    "tangents-relaxed-laplace": tangents(RelaxedLaplaceTradeOff(1.0), _GRID),
    "chords-subsampled": chords(Subsampled(GaussianTradeOff(1.5), 0.2), _GRID),
}

COMPOUND: dict[str, TradeOff] = {
    "subsampled-gaussian": Subsampled(GaussianTradeOff(1.5), 0.1),
    "subsampled-relaxed-gaussian": Subsampled(RelaxedGaussianTradeOff(2.0, 12), 0.05),
    "subsampled-relaxed-laplace": Subsampled(RelaxedLaplaceTradeOff(1.0), 0.1),
    "subsampled-polygon": Subsampled(SIMPLE["polygon"], 0.5),
    "mixture": Mixture([RelaxedGaussianTradeOff(1.0, 1), GaussianTradeOff(1.0)], [0.8, 0.2]),
    "mixture-of-atoms": Mixture([LaplaceTradeOff(1.0), from_advantage(0.1)], [0.7, 0.3]),
    "mixture-of-polygons": Mixture([SIMPLE["polygon"], SIMPLE["advantage-0.3"]], [0.7, 0.3]),
    "symmetrised-relaxed-gaussian": symmetrised(RelaxedGaussianTradeOff(4.0, 3)),
    "symmetrised-relaxed-laplace": symmetrised(RelaxedLaplaceTradeOff(1.0)),
    "symmetrised-subsampled-gaussian": symmetrised(Subsampled(GaussianTradeOff(1.0), 0.02)),
    "symmetrised-subsampled-relaxed-laplace": symmetrised(Subsampled(RelaxedLaplaceTradeOff(1.0), 0.1)),
    "whole-user": WholeUserGaussianPair(1.5, 0.2, 3),
    "whole-user-antipodal": WholeUserGaussianPair(2.0, 0.1, 2, antipodal=True),
}

REVERSED = {"subsampled-gaussian", "mixture-of-atoms", "polygon", "laplace-1", "relaxed-laplace-1"}
LATER = {f"{name}-reversed" for name in SIMPLE | COMPOUND if name not in REVERSED}
LATER |= {f"gaussian-{mu}" for mu in ("0", "0.01")} | {"laplace-0", "relaxed-laplace-0.1", "relaxed-laplace-5"}
LATER |= {f"relaxed-gaussian-{which}" for which in ("d1-weak", "d3-zero", "d30", "d1000")} | {"membership-step-d650"}
LATER |= {"whole-user-antipodal", "tangents-relaxed-laplace", "symmetrised-relaxed-gaussian"}
LATER |= {"subsampled-relaxed-laplace", "symmetrised-relaxed-laplace", "symmetrised-subsampled-relaxed-laplace"}
"""Curves whose laws are slow tests: by default each kind of curve and of reversal is met once, and no more."""

CURVES: dict[str, TradeOff] = SIMPLE | COMPOUND | {f"{k}-reversed": c.reversed for k, c in (SIMPLE | COMPOUND).items()}
