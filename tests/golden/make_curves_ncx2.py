"""Writes curves_ncx2.json: noncentral chi-square tails with mpmath, by sums of positive terms.

cdf(x) = sum over m of g_m P(K <= m),  sf(x) = Q(d/2, x/2) + sum over m of g_m P(K > m), with
g_m = y^(d/2 + m) e^-y / Gamma(d/2 + m + 1), y = x/2 and K Poisson(lam/2). Nothing is subtracted.
Run: python tests/golden/make_curves_ncx2.py (about three minutes).
"""

from __future__ import annotations

import json
from pathlib import Path

import mpmath as mp

mp.mp.dps = 40
_SMALL = [(d, lam) for d in (2, 3, 10, 50) for lam in (0, 1, 30, 1000)]
_LARGE = [
    (300, 0),
    (300, 10),
    (650, 650),
    (1000, 100),
    (10_000, 100),
    (10_000, 10_000),
    (50, 100_000),
    (300_000, 20_000),
]
_Z = (-30, -8, -3, -0.5, 0, 0.02, 1, 6, 30)


def tails(d: int, lam: int, x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    a, y, rate = mp.mpf(d) / 2, x / 2, mp.mpf(lam) / 2
    term = mp.exp(a * mp.log(y) - y - mp.loggamma(a + 1))
    poisson = mp.exp(-rate)
    below, left = poisson, -mp.expm1(-rate) if rate < 1 else 1 - poisson
    cdf, sf, m = term * below, term * left, 0
    survival = _poisson_survival(rate)
    while True:
        m += 1
        term *= y / (a + m)
        poisson *= rate / m
        below += poisson
        left = next(survival)
        cdf += term * below
        sf += term * left
        if m > y and m > rate and term < cdf * mp.mpf(10) ** -34 and term * left <= sf * mp.mpf(10) ** -34:
            return cdf, sf + _central_survival(a, y)


def _poisson_survival(rate: mp.mpf):
    """P(K > m) for m = 1, 2, ..., by backward sums in blocks: no subtraction."""
    start, block = 1, 4096
    while True:
        log_first = (start + block) * mp.log(rate) - rate - mp.loggamma(start + block + 1) if rate else mp.mpf("-inf")
        tail, term, k = mp.mpf(0), mp.exp(log_first) if rate else mp.mpf(0), start + block
        first = term
        while term and (term > tail * mp.mpf(10) ** -38 or k < rate):
            k += 1
            term *= rate / k
            tail += term
        values, current, term = [], tail, first
        for k in range(start + block, start, -1):
            current += term
            values.append(current)
            term *= k / rate if rate else 0
        yield from reversed(values)
        start += block


def _central_survival(a: mp.mpf, y: mp.mpf) -> mp.mpf:
    """Q(a, y): continued fraction above the mean, complement of the series below."""
    front = a * mp.log(y) - y - mp.loggamma(a)
    if y < a + 1:
        term, total, n = 1 / a, 1 / a, 0
        while term > total * mp.mpf(10) ** -39:
            n += 1
            term *= y / (a + n)
            total += term
        return 1 - mp.exp(front) * total
    b = y + 1 - a
    c, d = mp.mpf(10) ** 60, 1 / b
    h = d
    for i in range(1, 10**6):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < mp.mpf(10) ** -38:
            return mp.exp(front) * h
    raise RuntimeError("continued fraction did not converge")


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
