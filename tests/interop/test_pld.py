"""Privacy loss distributions in: on the safe side, and not by much."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import ndtr, ndtri

from reticent.interop.pld import from_pld
from reticent.kernel.accountants import compose
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta


def test_gaussian_against_the_normal_distribution():
    curve = from_pld(pld.from_gaussian_mechanism(0.8, value_discretization_interval=1e-3)).pessimistic
    alpha = np.array([1e-6, 1e-4, 1e-2, 0.1, 0.5, 0.9])
    exact = ndtr(-ndtri(alpha) - 1 / 0.8)
    assert np.all(curve.beta(alpha) <= exact * (1.0 + 1e-9))
    assert curve.beta(alpha) == pytest.approx(exact, rel=1e-3, abs=0)


def test_subsampled_composition_covers_the_certified_curve():
    steps = pld.from_gaussian_mechanism(1.0, sampling_prob=0.05, value_discretization_interval=2e-3).self_compose(100)
    curve = from_pld(steps).pessimistic
    exact = compose(DPSGD(1.0, 0.05, 100), Neighbouring.ADD_REMOVE)
    alpha = np.array([1e-5, 1e-3, 0.03, 0.3, 0.7, 0.97])
    assert np.all(curve.beta(alpha) <= exact.optimistic.beta(alpha) * (1.0 + 1e-9))
    assert curve.beta(alpha) == pytest.approx(exact.pessimistic.beta(alpha), rel=0.02, abs=0)
    for delta in (1e-2, 1e-5, 1e-8):
        assert epsilon_at_delta(curve, delta) == pytest.approx(steps.get_epsilon_for_delta(delta), rel=1e-3, abs=0)
    # Never power below the false positive rate, the defect of pairing the two mass functions.
    grid = np.geomspace(1e-9, 1, 50)
    assert np.all(curve.power(grid) >= grid * (1.0 - 1e-9))


def test_optimistic_end_claims_nothing():
    bracket = from_pld(pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3))
    assert advantage(bracket.optimistic) == pytest.approx(0.0, abs=1e-13)
    assert advantage(bracket.pessimistic) > 0.19


def test_infinite_losses_and_deltas_above_one():
    curve = from_pld(pld.from_privacy_parameters(_parameters(0.5, 0.25))).pessimistic
    assert epsilon_at_delta(curve, 0.3) <= 0.5
    assert epsilon_at_delta(curve, 0.2) == np.inf
    huge = from_pld(pld.from_gaussian_mechanism(0.05, value_discretization_interval=0.1)).pessimistic
    assert advantage(huge) <= 1.0


def _parameters(epsilon: float, delta: float):
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    return DifferentialPrivacyParameters(epsilon, delta)


def test_what_proves_nothing_is_refused():
    with pytest.raises(ParameterError, match="pessimistic"):
        from_pld(pld.from_gaussian_mechanism(1.0, pessimistic_estimate=False, value_discretization_interval=1e-2))
    with pytest.raises(ParameterError, match="PrivacyLossDistribution"):
        from_pld("pld")
    with pytest.raises(ParameterError, match="rows"):
        from_pld(pld.from_gaussian_mechanism(1.0, value_discretization_interval=1e-2), rows=1)


@pytest.mark.parametrize("optimistic", ["_pmf_remove", "_pmf_add"])
def test_half_a_bound_is_none(optimistic: str) -> None:
    safe, other = (
        pld.from_gaussian_mechanism(
            2.0, sampling_prob=0.2, pessimistic_estimate=side, value_discretization_interval=1e-2
        )
        for side in (True, False)
    )
    assert from_pld(safe).pessimistic.delta(0.0) > 0.0
    setattr(safe, optimistic, getattr(other, optimistic))
    with pytest.raises(ParameterError, match="optimistic"):
        from_pld(safe)
