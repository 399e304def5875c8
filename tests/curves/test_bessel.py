"""The likelihood ratio of an unknown direction, against mpmath's hypergeometric and Bessel functions."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from reticent.curves.bessel import inverse_log_mean_exponential, log_mean_exponential

_Z = (1e-9, 1e-4, 0.5, 3.0, 11.9, 12.1, 100.0, 1999.0, 2001.0, 1e6, 1e9)


def _exact(z: float, d: int) -> float:
    mp.mp.dps = 60
    half = mp.mpf(d) / 2
    if z < 3000:
        return float(mp.log(mp.hyp0f1(half, mp.mpf(z) ** 2 / 4, maxterms=10**6)))
    nu = half - 1
    return float(mp.log(mp.besseli(nu, mp.mpf(z))) + mp.loggamma(half) - nu * mp.log(mp.mpf(z) / 2))


@pytest.mark.parametrize("d", [1, 2, 3, 5, 30, 59, 60, 61, 200, 1000, 10_000_000])
def test_against_mpmath(d: int) -> None:
    """Relative accuracy from 1e-18 to 1e9, across every change of formula."""
    for z in _Z:
        if d > 1000 and z > 1e5:
            continue
        value = float(log_mean_exponential(np.array(z), float(d)))
        assert value == pytest.approx(_exact(z, d), rel=5e-15, abs=0)
        assert float(inverse_log_mean_exponential(np.array(value), float(d))) == pytest.approx(z, rel=5e-15, abs=0)


def test_ends() -> None:
    values = inverse_log_mean_exponential(np.array([-np.inf, -1.0, 0.0, np.inf]), 5.0)
    assert list(values) == [0.0, 0.0, 0.0, np.inf]
    assert float(log_mean_exponential(np.array(0.0), 7.0)) == 0.0
