"""Noncentral chi-square: mpmath goldens, and every call on which scipy 1.17 returns 0, -inf or a wrong quantile."""

from __future__ import annotations

import json
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
