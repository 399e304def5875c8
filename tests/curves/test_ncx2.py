"""Noncentral chi-square: mpmath goldens, and every call on which scipy 1.17 returns 0, -inf or a wrong quantile."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from reticent.curves import ncx2
from reticent.kernel.errors import ParameterError

_VECTORS = json.loads((Path(__file__).parent.parent / "golden" / "curves_ncx2.json").read_text())["vectors"]


def _arrays(vectors: list[dict]) -> tuple[np.ndarray, ...]:
    return tuple(np.array([float(v[key]) for v in vectors]) for key in ("x", "d", "lam", "log_cdf", "log_sf"))


def _relative(measured: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Relative error of the probability, with the rounding of its logarithm taken off."""
    return np.abs(measured - exact) / (1.0 + np.abs(exact))


def test_tails_against_mpmath() -> None:
    x, d, lam, low, high = _arrays(_VECTORS)
    tails = ncx2.log_tails(x, d, lam)
    assert np.max(_relative(tails.cdf, low)) < 1e-12
    assert np.max(_relative(tails.sf, high)) < 1e-12


def test_contour_alone_reaches_full_accuracy() -> None:
    """With no tolerance the fast formula never answers: 13 digits over 30 standard deviations."""
    x, d, lam, low, high = _arrays(_VECTORS)
    tails = ncx2.log_tails(x, d, lam, rtol=0.0)
    smaller = np.minimum(low, high)
    assert np.max(_relative(np.minimum(tails.cdf, tails.sf), smaller)) < 2e-13


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-10])
def test_fast_formula_keeps_its_promise(rtol: float) -> None:
    """Where Lugannani-Rice answers, its error estimate holds; and for d >= 650 it answers at 1e-8."""
    rng = np.random.default_rng(0)
    d = 10.0 ** rng.uniform(0.4, 6.0, 4000)
    lam = 10.0 ** rng.uniform(-2.0, 6.0, 4000)
    z = rng.uniform(-9.0, 9.0, 4000)
    x = np.maximum(d + lam + z * np.sqrt(2.0 * (d + 2.0 * lam)), 1e-3 * d)
    fast, exact = ncx2.log_tails(x, d, lam, rtol=rtol), ncx2.log_tails(x, d, lam, rtol=0.0)
    error = np.abs(np.minimum(fast.cdf, fast.sf) - np.minimum(exact.cdf, exact.sf))
    assert np.max(error / (1.0 + 1e-13 / rtol * np.abs(np.minimum(exact.cdf, exact.sf)))) < rtol
    if rtol == 1e-8:
        by_formula = (fast.cdf != exact.cdf) | (fast.sf != exact.sf)  # in many dimensions both agree to the last bit
        assert np.mean(by_formula[(d > 1000) & (d < 1e5) & (np.abs(z) > 0.1)]) > 0.95


@pytest.mark.parametrize("nc", [0.0, 0.3, 4.0, 100.0, 1e5])
def test_one_degree_of_freedom_is_a_folded_normal(nc: float) -> None:
    mp.mp.dps = 60
    m = mp.sqrt(mp.mpf(nc))
    for s in (1e-12, 1e-3, 0.2, 1.0, 3.0, 40.0, 400.0):
        x = s * s
        root = mp.sqrt(mp.mpf(x))
        sf = mp.erfc((root - m) / mp.sqrt(2)) / 2 + mp.erfc((root + m) / mp.sqrt(2)) / 2
        cdf = mp.erfc((m - root) / mp.sqrt(2)) / 2 - mp.erfc((m + root) / mp.sqrt(2)) / 2
        tails = ncx2.log_tails(x, 1, nc)
        if sf < 0.999:
            assert float(tails.sf) == pytest.approx(float(mp.log(sf)), rel=2e-12, abs=1e-13)
        if 0 < cdf < 0.999:
            assert float(tails.cdf) == pytest.approx(float(mp.log(cdf)), rel=2e-12, abs=1e-13)


# (d, lam, x, mpmath): section 14 of the digest; scipy 1.17.1 gives 0 (or -inf) unless another value is noted.
_BROKEN_SF = [
    (1, 4.0, 1524.676, 9.998716e-301),
    (1, 100.0, 1500.0, 8.090893e-182),
    (1, 100.0, 2213.42927, 1.0e-300),
    (10, 1000.0, 2500.0, 7.855978e-75),
    (1, 1e4, 16000.0, 6.135936e-155),
    (1, 1e5, 118000.0, 3.327786e-164),
    (1000, 1e4, 18500.0, 1.548755e-221),
    (1_000_000, 1e5, 1158000.0, 7.606107e-297),
    (1_000_000, 1e6, 2090000.0, 2.905022e-288),
]
_BROKEN_CDF = [
    (10, 1000.0, 200.0, 2.596965e-70),
    (50, 1000.0, 104.8, 3.34293e-114),
    (1, 1e5, 84000.0, 6.809117e-154),
]


@pytest.mark.parametrize(("d", "lam", "x", "exact"), _BROKEN_SF)
def test_survival_where_scipy_breaks(d: int, lam: float, x: float, exact: float) -> None:
    assert float(ncx2.log_sf(x, d, lam)) == pytest.approx(math.log(exact), rel=3e-9, abs=0)


@pytest.mark.parametrize(("d", "lam", "x", "exact"), _BROKEN_CDF)
def test_distribution_where_scipy_breaks(d: int, lam: float, x: float, exact: float) -> None:
    assert float(ncx2.log_cdf(x, d, lam)) == pytest.approx(math.log(exact), rel=3e-9, abs=0)


def test_logarithms_where_scipy_is_minus_infinity() -> None:
    # the table's -720.672533 belongs to an x that it rounds to 19001.2; mpmath at 19001.2:
    assert float(ncx2.log_sf(19001.2, 1, 1e4)) == pytest.approx(-720.66909921316, rel=1e-12, abs=0)
    assert float(ncx2.log_cdf(70000.0, 1, 1e5)) == pytest.approx(-1338.8612, rel=1e-8, abs=0)
    assert float(ncx2.log_cdf(70000.0, 1, 1e5)) == pytest.approx(
        math.log(3.467117) - 582 * math.log(10), rel=1e-9, abs=0
    )


# (d, lam, log p, upper tail, mpmath).
_BROKEN_QUANTILES = [
    (1, 4.0, -300.0, True, 1524.6757294),
    (1, 100.0, -300.0, True, 2213.4292702),
    (10, 1000.0, -300.0, False, 1.40060101e-16),
    (50, 1000.0, -200.0, False, 11.480215127),
    (1, 1e5, -200.0, True, 120016.07306),
    (1, 1e5, -12.0, True, 104498.48217),
    (1_000_000, 1e5, -12.0, True, 1110932.8153),
    (1_000_000, 1e5, -12.0, False, 1089137.217),
]


@pytest.mark.parametrize(("d", "lam", "log10_p", "upper", "exact"), _BROKEN_QUANTILES)
def test_quantile_where_scipy_breaks(d: int, lam: float, log10_p: float, upper: bool, exact: float) -> None:
    small, large = log10_p * math.log(10.0), math.log1p(-(10.0**log10_p))
    low, high = (large, small) if upper else (small, large)
    assert float(ncx2.quantile(low, high, d, lam)) == pytest.approx(exact, rel=2e-9, abs=0)


def test_quantile_inverts_the_tails() -> None:
    rng = np.random.default_rng(1)
    d, lam = 2.0 * 10.0 ** rng.uniform(0.0, 6.7, 500), 10.0 ** rng.uniform(-3.0, 9.0, 500)
    d[:50] = 1.0
    lam[50:100] = 0.0
    log_p = -(10.0 ** rng.uniform(-6.0, 3.5, 500))
    rest = np.log(-np.expm1(log_p))
    for low, high in ((log_p, rest), (rest, log_p)):
        tails = ncx2.log_tails(ncx2.quantile(low, high, d, lam), d, lam, rtol=0.0)
        smaller = np.minimum(low, high)
        reached = np.where(low < high, tails.cdf, tails.sf)
        # x carries 16 digits, a standard deviation of the law fewer: the quantile cannot do better.
        width = np.sqrt((d + lam) ** 2 / (2.0 * (d + 2.0 * lam)))
        underflow = (low < high) & (low / d < -170.0)
        slack = 1e-12 * (1.0 + np.abs(smaller)) + 1e-15 * width * np.sqrt(1.0 + 2.0 * np.abs(smaller))
        assert np.all((np.abs(reached - smaller) <= slack) | underflow)


def test_ends_and_shapes() -> None:
    tails = ncx2.log_tails([[-1.0, 0.0], [np.inf, 5.0]], 3, 2.0)
    assert tails.cdf.shape == (2, 2)
    assert list(tails.cdf.ravel()[:3]) == [-np.inf, -np.inf, 0.0]
    assert list(tails.sf.ravel()[:3]) == [0.0, 0.0, -np.inf]
    assert ncx2.log_cdf(np.ones((4, 1)), np.arange(2, 5), 1.0).shape == (4, 3)
    assert float(ncx2.quantile(-np.inf, 0.0, 5, 1.0)) == 0.0
    assert float(ncx2.quantile(0.0, -np.inf, 5, 1.0)) == np.inf


@pytest.mark.parametrize(("df", "nc"), [(0.5, 1.0), (1.5, 1.0), (np.nan, 1.0), (3, -1.0), (3, np.nan), (3, np.inf)])
def test_arguments_are_checked(df: float, nc: float) -> None:
    with pytest.raises(ParameterError, match=r"df|nc"):
        ncx2.log_tails(1.0, df, nc)


def test_finite_at_thirty_standard_deviations() -> None:
    d = np.array([650.0, 1026.0, 2580.0, 1e5, 1e7])[:, None]
    z = np.linspace(-30.0, 30.0, 121)
    lam = 500.0 * d
    tails = ncx2.log_tails(d + lam + z * np.sqrt(2.0 * (d + 2.0 * lam)), d, lam, rtol=1e-8)
    assert np.all(np.isfinite(tails.cdf) & np.isfinite(tails.sf))
    assert np.all(np.diff(tails.cdf, axis=1) >= -1e-12)
    assert np.all(np.diff(tails.sf, axis=1) <= 1e-12)
