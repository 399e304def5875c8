"""Writes random_allocation.json: one epoch by an inverse Laplace transform, about eleven digits absolute.

E (K - R)_+ is the integral of e^(wK) E e^(-wR) / w^2 over a vertical line, over 2 pi i; R is the mean of t independent
log-normals, so its transform is a power. Trapezoids in both variables; nodes are doubled until twelve digits stay.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

CASES = [(1.0, 64), (2.0, 64), (1.0, 128), (0.7, 300), (4.0, 50), (10.0, 10000), (1.0, 10000)]


def put(noise: float, bins: int, strike: float, nodes: int) -> float:
    deviation = 1.0 / noise
    z = np.linspace(-10.0, 10.0, 2001)
    weight = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) * (z[1] - z[0])
    value = np.exp(deviation * z - 0.5 * deviation**2) / bins
    spread = math.sqrt(math.expm1(deviation**2) / bins)
    end, total = 36.0 / spread, 0.0
    for part in np.array_split(np.arange(nodes), nodes // 500):
        line = 1.0 / spread + 1j * (part + 0.5) * end / nodes
        log_transform = bins * np.log(np.exp(-np.multiply.outer(line, value)) @ weight)
        total += float(np.sum((np.exp(line * strike + log_transform) / line**2).real))
    return total * end / nodes / math.pi


def settled(noise: float, bins: int, strike: float) -> float:
    nodes, last = 4000, math.nan
    while True:
        found = put(noise, bins, strike, nodes)
        if abs(found - last) < 1e-13:
            return found
        nodes, last = 2 * nodes, found
        if nodes > 64000:
            raise ArithmeticError((noise, bins, strike))


def main() -> None:
    rows = []
    for noise, bins in CASES:
        spread = math.sqrt(math.expm1(noise**-2.0) / bins)
        for times in (0.0, 1.0, 3.0):
            epsilon = times * spread
            up = math.exp(epsilon)
            ahead = settled(noise, bins, up) + 1.0 - up
            back = up * settled(noise, bins, 1.0 / up)
            rows.append({"noise": noise, "bins": bins, "epsilon": epsilon, "delta": ahead, "reversed": back})
    text = {"origin": "make_random_allocation.py: inverse Laplace transforms, absolute error below 1e-11", "rows": rows}
    Path(__file__).with_name("random_allocation.json").write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
