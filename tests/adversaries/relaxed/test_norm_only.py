"""The norm-only pipeline against decimal goldens, and the proof that it is no bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from reticent.adversaries import NormOnly
from reticent.adversaries.relaxed.norm_only import norm_only
from reticent.kernel.accountants import compose
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.samplers import Shuffled
from tests.adversaries.golden import COMPOSED

PER_RELEASE = [e for e in COMPOSED["M_composed"] if "per-release" in e["quantity"]]


def _mechanism(params: dict) -> DPSGD | Gaussian:
    noise = float(1 / Fraction(params["mu"]))
    rate = float(Fraction(params["p"]))
    count = int(params["N"])
    return Gaussian(noise, count) if rate == 1.0 else DPSGD(noise, rate, count)


@pytest.mark.parametrize("entry", PER_RELEASE, ids=lambda e: e["id"])
def test_composed_profiles_enclose_the_goldens(entry: dict) -> None:
    epsilon, truth = float(entry["params"]["eps"]), float(entry["value"])
    upper, lower = norm_only(_mechanism(entry["params"]))
    if "rem" in entry["quantity"].split("(")[0]:
        upper, lower = upper.reversed, lower.reversed
    assert lower.delta(epsilon) <= truth <= upper.delta(epsilon)
    assert upper.delta(epsilon) - lower.delta(epsilon) <= 2e-6


def test_published_pipeline_is_below_a_provable_floor() -> None:
    """KAISSIS2022:G16: at the Figure 7 point the composed curve is below delta_worst(e + log 2), so it is no bound."""
    mechanism = DPSGD(6.0, 0.2, 100)
    floor = compose(mechanism, Neighbouring.ADD_REMOVE).optimistic.delta(0.2 + np.log(2.0))
    assert floor == pytest.approx(7.12e-4, rel=1e-3, abs=0)
    assert NormOnly().assess(mechanism).curve.delta(0.2) < 1e-2 * floor


def test_without_sampling_it_contradicts_the_common_direction() -> None:
    """KAISSIS2022:G16 at gamma = 1: epsilon 0.2135 where Theorem 2 of KAISSIS2022 gives 2.9437."""
    both = NormOnly().assess(Gaussian(6.0, 70)).curve
    assert both.delta(0.2140) < 1e-2 < both.delta(0.2130)


def test_what_is_not_supported_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="amplified under Poisson sampling only"):
        norm_only(DPSGD(1.0, 0.1, 10, sampler=Shuffled()))
    with pytest.raises(UnsupportedError, match="needs noise_multiplier > 0"):
        norm_only(DPSGD(0.0, 0.1, 10))
