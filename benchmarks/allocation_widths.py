"""Random allocation: how far both ends are apart, over noise, steps per epoch and epochs.

``python -m benchmarks.allocation_widths`` prints one line for each setting, the widest and the median time.
"""

from __future__ import annotations

import statistics
import time
from itertools import product

from reticent.kernel.accountants.compose import both_directions
from reticent.kernel.accountants.steps import Step
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.pairs import AllocatedGaussianPair
from reticent.pairs.random_allocation import random_allocation

NOISES, BINS, EPOCHS = (0.5, 0.7, 1.0, 2.0, 5.0, 10.0), (2, 3, 8, 64, 1000, 10_000), (1, 10, 1000)
DELTA = 1e-8


def main() -> None:
    """One line for each setting."""
    widths, seconds = [], []
    for noise, bins, epochs in product(NOISES, BINS, EPOCHS):
        random_allocation.cache_clear()
        start = time.process_time()
        found = both_directions((Step(AllocatedGaussianPair(noise, bins), epochs),), 0.0, False)
        seconds.append(time.process_time() - start)
        gains = [advantage(curve) for curve in (found.optimistic, found.pessimistic)]
        epsilons = [epsilon_at_delta(curve, DELTA) for curve in (found.optimistic, found.pessimistic)]
        widths.append([high / low - 1.0 if low > 0.0 else float(high > 0.0) for low, high in (gains, epsilons)])
        print(
            f"noise {noise:g}, {bins} steps, {epochs} epochs: advantage {gains[1]:.5g} width {widths[-1][0]:.1e}, "
            f"epsilon {epsilons[1]:.5g} width {widths[-1][1]:.1e}, {seconds[-1]:.2f} s",
            flush=True,
        )
    worst = [max(width[k] for width in widths) for k in range(2)]
    print(f"widest: advantage {worst[0]:.1e}, epsilon {worst[1]:.1e}")
    print(f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s, {len(seconds)} settings")


if __name__ == "__main__":
    main()
