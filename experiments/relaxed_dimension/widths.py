"""How far both ends in d dimensions are apart on random runs: the figures of docs/theory/relaxed/dimension.md.

``python experiments/relaxed_dimension/widths.py [SEED [RUNS]]`` prints a line per run and a summary.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from reticent.adversaries.relaxed.dimension import relaxed_in
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.risk import advantage, tpr_at_fpr

MOST = 0.2  # advantage
FPR = 1e-3


def random_run(rng: np.random.Generator) -> tuple[DPSGD, int]:
    """Log-uniform: noise .8 to 8, rate 3e-4 to .5, 3 to 30,000 steps, 2 to 3e6 dimensions."""

    def draw(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    return DPSGD(draw(0.8, 8.0), draw(3e-4, 0.5), int(draw(3, 3e4))), int(draw(2, 3e6))


def main(seed: int = 13, runs: int = 110) -> None:
    """Ratios of upper to lower ends of the advantage and of the power at a small false positive rate."""
    rng, ratios, seconds = np.random.default_rng(seed), [], []
    while len(ratios) < runs:
        run, dimension = random_run(rng)
        start = time.process_time()
        curves = relaxed_in(run, dimension)
        if advantage(curves.pessimistic) > MOST:
            continue
        seconds.append(time.process_time() - start)
        both = curves.optimistic, curves.pessimistic
        ends = [[advantage(curve) for curve in both], [tpr_at_fpr(curve, FPR) for curve in both]]
        ratios.append([high / low for low, high in ends])
        case = f"{run.noise_multiplier:.3g} {run.sample_rate:.3g} {run.steps} {dimension}"
        shown = (f"{low:.4g} {high:.4g} {high / low:.3f}" for low, high in ends)
        print(case, *shown, f"{seconds[-1]:.2f} s", *curves.notes, flush=True)
    for name, part in zip(("advantage", f"power at {FPR:g}"), np.transpose(ratios), strict=True):
        print(f"{name}: median {np.median(part):.3f}, largest {np.sort(part)[::-1][:5].round(3)}")
    print(f"CPU seconds: median {np.median(seconds):.2f}, largest {max(seconds):.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
