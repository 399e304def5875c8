"""Random allocation beside ``PLD_accounting`` and ``opake-accounting``: CPU seconds and epsilon at 1e-8.

Each peer is asked where it can be imported (opake's extension runs on Python 3.13).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module

DELTA = 1e-8
RUNS = ((1.0, 8, 1), (1.0, 64, 1), (2.0, 64, 1), (1.0, 128, 1), (1.0, 64, 10), (2.0, 100, 30), (1.0, 1000, 100))
Ends = tuple[float, float]


def ours(noise: float, bins: int, epochs: int) -> Ends:
    """Both ends of our enclosure."""
    from reticent.accountants import compose
    from reticent.mechanisms import DPSGD, Neighbouring, Sampler
    from reticent.risk import epsilon_at_delta

    run = DPSGD(noise, 1.0 / bins, bins * epochs, sampler=Sampler.RANDOM_ALLOCATION)
    found = compose(run, Neighbouring.ADD_REMOVE)
    return epsilon_at_delta(found.optimistic, DELTA), epsilon_at_delta(found.pessimistic, DELTA)


def shenfeld(noise: float, bins: int, epochs: int) -> Ends:
    """``PLD_accounting`` at its own relative accuracy, about 1%."""
    ask = import_module("PLD_accounting.random_allocation_api").gaussian_allocation_epsilon_range
    high, low = ask(delta=DELTA, sigma=noise, num_steps=bins, num_epochs=epochs, epsilon_accuracy=-1.0)
    return float(low), float(high)


def opake(noise: float, bins: int, epochs: int) -> Ends:
    """``opake-accounting`` at its default spacing; an upper bound."""
    core = import_module("opake.api.accounting.core.opake_accounting")
    found = core.random_allocation_gaussian_pld(noise, bins, 1, core.DiscretizationConfig())
    return 0.0, float((found.self_compose(epochs) if epochs > 1 else found).epsilon_at(DELTA))


def main() -> None:
    """One line for each run and library."""
    libraries: tuple[Callable[[float, int, int], Ends], ...] = (ours, shenfeld, opake)
    for run in RUNS:
        for library in libraries:
            start = time.process_time()
            try:
                low, high = library(*run)
            except ImportError as error:
                print(f"{library.__name__}: {error.name} is not installed", file=sys.stderr)
                continue
            spent = time.process_time() - start
            what = f"noise {run[0]:g}, {run[1]} steps, {run[2]} epochs"
            print(f"{what}: {library.__name__} [{low:.6g}, {high:.6g}] {spent:.2f} s")


if __name__ == "__main__":
    main()
