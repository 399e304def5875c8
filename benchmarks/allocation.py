"""Random allocation beside ``PLD_accounting`` and ``opake-accounting``: CPU seconds and epsilon at 1e-8.

``python -m benchmarks.allocation ours rough shenfeld opake``: each library is asked where it can be imported (opake's
extension runs on Python 3.13). One small run before the clock starts loads the modules.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module

from reticent.samplers import RandomAllocation

DELTA = 1e-8
RUNS = (
    (1.0, 8, 1),
    (1.0, 64, 1),
    (2.0, 64, 1),
    (1.0, 128, 1),
    (1.0, 64, 10),
    (2.0, 100, 30),
    (1.0, 1000, 100),
    (10.0, 10_000, 1),
)
Ends = tuple[float, float]


def ours(noise: float, bins: int, epochs: int) -> Ends:
    """Both ends of our enclosure."""
    from reticent.kernel.accountants import compose
    from reticent.kernel.mechanisms import DPSGD
    from reticent.kernel.pairs import Neighbouring
    from reticent.kernel.risk import epsilon_at_delta

    run = DPSGD(noise, 1.0 / bins, bins * epochs, sampler=RandomAllocation())
    found = compose(run, Neighbouring.ADD_REMOVE)
    return epsilon_at_delta(found.optimistic, DELTA), epsilon_at_delta(found.pessimistic, DELTA)


def rough(noise: float, bins: int, epochs: int) -> Ends:
    """Ours on grids as coarse as their accuracy asks for: both ends within 1%."""
    from reticent.kernel.accountants.compose import both_directions
    from reticent.kernel.accountants.steps import Step
    from reticent.kernel.pairs import CurvePair
    from reticent.kernel.risk import epsilon_at_delta
    from reticent.pairs.allocated_sum import COARSE
    from reticent.pairs.random_allocation import enclosed

    above, below = enclosed(noise, bins, COARSE)
    if epochs > 1:
        above, below = (both_directions((Step(CurvePair(side), epochs),), 0.0, False) for side in (above, below))
        return epsilon_at_delta(below.optimistic, DELTA), epsilon_at_delta(above.pessimistic, DELTA)
    ends = [max(epsilon_at_delta(way, DELTA) for way in (side, side.reversed)) for side in (below, above)]
    return ends[0], ends[1]


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


LIBRARIES: dict[str, Callable[[float, int, int], Ends]] = {one.__name__: one for one in (ours, rough, shenfeld, opake)}


def main() -> None:
    """One line for each run and library."""
    for name in sys.argv[1:] or LIBRARIES:
        library = LIBRARIES[name]
        try:
            library(3.0, 4, 1)
        except ImportError as error:
            print(f"{name}: {error.name} is not installed", file=sys.stderr)
            continue
        for run in RUNS:
            start = time.process_time()
            low, high = library(*run)
            spent = time.process_time() - start
            what = f"noise {run[0]:g}, {run[1]} steps, {run[2]} epochs"
            print(f"{what}: {name} [{low:.6g}, {high:.6g}] {spent:.2f} s", flush=True)


if __name__ == "__main__":
    main()
