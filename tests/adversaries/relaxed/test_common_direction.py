"""Plain Gaussian releases with optimal weights, against decimal goldens; KAISSIS2023:R1.

Theorem: KAISSIS2022:Theorem 2.
"""

from __future__ import annotations

import numpy as np
import pytest

from reticent.adversaries import Relaxed
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.curves.worst import Symmetrised
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from tests.adversaries.golden import COMPOSED

GROUP = COMPOSED["I_composition"]
ADD = Neighbouring.ADD_REMOVE


def common_direction(releases: Gaussian | Ledger, neighbouring: Neighbouring) -> RelaxedGaussianTradeOff:
    whole = Relaxed().assess(releases, neighbouring).curve
    assert isinstance(whole, Symmetrised)
    curve = whole.curves[0]
    assert isinstance(curve, RelaxedGaussianTradeOff)
    return curve


def two_releases(params: dict) -> Ledger:
    """Noise relative to the size of the shift: only the ratio matters."""
    noises = float(params["sa"]) / float(params["Da"]), float(params["sb"]) / float(params["Db"])
    return Ledger(tuple(Gaussian(noise, 1, params["d"]) for noise in noises))


@pytest.mark.parametrize("entry", [e for e in GROUP if "optimal" in e["quantity"]], ids=lambda e: e["id"])
def test_optimal_weights_match_the_goldens(entry: dict) -> None:
    curve = common_direction(two_releases(entry["params"]), ADD)
    assert curve.power(float(entry["params"]["alpha"])) == pytest.approx(float(entry["value"]), rel=1e-9, abs=0)


@pytest.mark.parametrize("entry", [e for e in GROUP if "Lemma 8" in e["quantity"]], ids=lambda e: e["id"])
def test_lemma_8_as_printed_is_optimistic(entry: dict) -> None:
    """KAISSIS2023:R1: the unweighted mean has less power; with noise 1 and 10, less than the first release alone."""
    params = entry["params"]
    alpha, printed = float(params["alpha"]), float(entry["value"])
    assert common_direction(two_releases(params), ADD).power(alpha) > printed
    if params["sb"] == "10":
        assert common_direction(Gaussian(1.0, 1, params["d"]), ADD).power(alpha) > printed


def test_another_release_never_lowers_the_power() -> None:
    alpha = np.array([1e-6, 1e-3, 0.1])
    one = common_direction(Gaussian(1.0, 1, 3), ADD)
    two = common_direction(Ledger((Gaussian(1.0, 1, 3), Gaussian(10.0, 1, 3))), ADD)
    assert np.all(two.power(alpha) > one.power(alpha))
    assert common_direction(Gaussian(1.0, 5, 3), ADD).noncentrality == pytest.approx(5.0, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    "parts",
    [(Gaussian(1.0), DPSGD(1.0, 0.1, 10)), (Gaussian(0.0),), (Gaussian(1.0, 1, 2), Gaussian(1.0, 1, 3))],
    ids=["sampled", "no noise", "dimensions that differ"],
)
def test_what_is_not_established_gets_the_worst_case(parts: tuple) -> None:
    assert "No relaxed curve is proven" in Relaxed().assess(Ledger(parts)).notes[0]
