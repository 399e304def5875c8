"""Writes curves_ncx2.json: noncentral chi-square tails with mpmath, by sums of positive terms.

Run: python -m tests.golden.make_curves_ncx2 (some minutes).
"""

from __future__ import annotations

import json
from pathlib import Path

import mpmath as mp

mp.mp.dps = 40
_SMALL = [(d, lam) for d in (2, 3, 10, 50) for lam in (0, 1, 30, 1000)]
_LARGE = [(300, 0), (300, 10), (650, 650), (1000, 100), (10_000, 100), (10_000, 10_000), (50, 100_000)]
_LARGE += [(300_000, 20_000)]
_Z = (-30, -8, -3, -0.5, 0, 0.02, 1, 6, 30)


def tails(d: float, lam: float, x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """(cdf, sf): central tails with d + 2k degrees of freedom, k with the Poisson law of mean lam / 2.

    With a = d/2, y = x/2 and g_k = y^(a+k) e^-y / Gamma(a+k+1), the next tail is Q(a+k+1) = Q(a+k) + g_k. Central tails
    below are sums of the g that follow, from the last one back; nothing is subtracted.
    """
    a, y, rate = mp.mpf(d) / 2, mp.mpf(x) / 2, mp.mpf(lam) / 2
    count = int(max(y, rate) + 60 * mp.sqrt(max(y, rate)) + 400)
    g = [mp.exp(a * mp.log(y) - y - mp.loggamma(a + 1))]
    weight = [mp.exp(-rate)]
    for k in range(1, count):
        g.append(g[-1] * y / (a + k))
        weight.append(weight[-1] * rate / k)
    above = mp.gammainc(a, y, mp.inf, regularized=True)
    sf = mp.mpf(0)
    for k in range(count):
        sf += weight[k] * above
        above += g[k]
    below, cdf = mp.mpf(0), mp.mpf(0)
    for k in range(count - 1, -1, -1):
        below += g[k]
        cdf += weight[k] * below
    return cdf, sf


def main() -> None:
    vectors = []
    for d, lam in _SMALL + _LARGE:
        for z in _Z:
            x = mp.mpf(float(d + lam + z * mp.sqrt(2 * (d + 2 * lam))))
            if x <= 0:
                x = mp.mpf(float((d + lam) * mp.mpf(10) ** (z / 2)))
            cdf, sf = tails(d, lam, x)
            digits = {"log_cdf": mp.nstr(mp.log(cdf), 22), "log_sf": mp.nstr(mp.log(sf), 22)}
            vectors.append({"d": d, "lam": lam, "x": float(x), **digits})
    origin = "make_curves_ncx2.py, mpmath, 40 digits, sums of positive terms; at least 18 digits of the smaller tail"
    text = json.dumps({"origin": origin, "vectors": vectors}, indent=1)
    Path(__file__).with_name("curves_ncx2.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
