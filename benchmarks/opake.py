"""All default numbers through the public path beside ``opake-accounting`` (Rust): ``python -m benchmarks.opake``.

Both sides give the advantage, epsilon at 1e-5 and powers at 1e-4 to 1e-1 of the runs c1 to c5, in turn and in one
process, in CPU seconds on one thread. Ours is ``rt.assess`` with every number of its report. Errors are equal at no
spacing of opake. So each run is asked at the spacing where its advantage is closest, and there is the goal; rows of
coarser ones say what less costs, and have none. Its extension does not load on Python 3.11: where the Python that runs
this lacks it, ``OPAKE_PYTHON`` names one that has both (on 3.13, ``pip install -e ".[dev]" opake-accounting``).
Without that there is no row.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import reticent as rt
from benchmarks._rows import Row, forget, main, spread

ROOT = Path(__file__).parents[1]
DELTA, ALPHAS = 1e-5, (1e-4, 1e-3, 1e-2, 1e-1)
COARSE = (1e-4, 1e-5)
CLOSEST = {"c1": 3e-6, "c2": 3e-6, "c3": 3e-6, "c4": 3e-6, "c5": 1e-6}
"""Of 1e-4, 1e-5, 3e-6, 1e-6 and 3e-7: finer ones move away from the truth, or are refused (c3)."""
REPEATS = 2
GOAL = 20.0


def rows() -> Iterator[Row]:
    """One for each run and spacing, and the geometric mean of those with the goal."""
    try:
        core = importlib.import_module("opake.api.accounting.core.opake_accounting")
    except ImportError:
        yield from _elsewhere()
        return
    cases = json.loads((ROOT / "tests" / "golden" / "composition.json").read_text())["reference"]
    for spacing in COARSE:
        yield from (_row(core, spacing, case) for case in cases)
    found = [_row(core, CLOSEST[case["name"]], case, goal=GOAL) for case in cases]
    yield from found
    medians = [row.ratio["median"] for row in found]
    mean = statistics.geometric_mean(medians)
    yield Row(
        work="all default numbers, geometric mean",
        peer="opake-accounting, where its advantage is closest",
        ratio={"min": min(medians), "median": mean, "max": max(medians)},
        error=None,
        goal=f"{GOAL:g}x geometric mean (in the column of medians)",
        met=mean >= GOAL,
    )


def _elsewhere() -> Iterator[Row]:
    """The same rows from another Python; none where nobody names one."""
    other = os.environ.get("OPAKE_PYTHON")
    if not other:
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    environment |= {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    del environment["OPAKE_PYTHON"]
    command = [other, "-m", "benchmarks.opake", "--json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    for row in json.loads(done.stdout):
        yield Row(**row)


def _row(core: Any, spacing: float, case: dict[str, Any], goal: float | None = None) -> Row:
    run = case["noise_multiplier"], case["sample_rate"], case["steps"]
    ratios, ours, theirs = [], 0.0, 0.0
    _ours(run)
    _theirs(core, 1e-3, run)  # what is loaded, or built once, does not count
    for _ in range(REPEATS):
        spent, ours = _timed(lambda: _ours(run))
        peer, theirs = _timed(lambda: _theirs(core, spacing, run))
        ratios.append(peer / spent)
    exact, wanted = case["advantage"], f"{goal:g}x; " if goal else ""
    return Row(
        work=f"all default numbers, {case['name']}",
        peer=f"opake-accounting, spacing {spacing:g}",
        ratio=spread(ratios),
        error=ours - exact,
        goal=wanted + f"error of the advantage {abs(ours - exact):.0e}, theirs {theirs - exact:.0e}",
        met=statistics.median(ratios) >= goal if goal else None,
    )


def _ours(run: tuple[float, float, int]) -> float:
    forget()
    return float(rt.assess(rt.DPSGD(*run), "worst-case").document.assessments[0].advantage.value or 0.0)


def _theirs(core: Any, spacing: float, run: tuple[float, float, int]) -> float:
    noise, rate, steps = run
    one = core.gaussian_pld(float(noise), core.DiscretizationConfig(discretization=spacing))
    found = core.poisson_pld(one, rate).self_compose(steps)
    found.epsilon_at(DELTA)
    for alpha in ALPHAS:
        found.beta_at(alpha)
    return float(found.advantage())


def _timed(work: Callable[[], float]) -> tuple[float, float]:
    start = time.process_time()
    value = work()
    return time.process_time() - start, value


if __name__ == "__main__":
    main(rows, __doc__ or "")
