"""CPU time of a start, user and system, in processes of their own: ``python -m benchmarks.starts``.

Each command runs eleven times, in turn with a program that loads the same libraries and reads one option with them; the
first of each writes the bytecode and does not count. A ratio is the budget over the time: above 1 it is kept. The
limit is that of the libraries alone.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks._rows import Limit, Row, main, spread

RUNS = 11
RISK = "risk dpsgd --noise-multiplier 1 --sample-rate 0.01 --steps 1000"
OPTION = "click.Command('read', params=[click.Argument(['x'], type=float)]).main(['1'], standalone_mode=False)"
STARTS = (
    ("import reticent", "import reticent", "pass", 0.15),
    ("reticent --help", ["-m", "reticent", "--help"], "import click", 0.4),
    (f"reticent {RISK}", ["-m", "reticent", *RISK.split()], f"import numpy, scipy.special, click\n{OPTION}", 0.8),
)
"""Name, what is started, its libraries alone, and the budget in seconds."""


def rows() -> Iterator[Row]:
    """Every start."""
    for name, ours, libraries, budget in STARTS:
        taken = [(seconds(ours), seconds(libraries)) for _ in range(RUNS)][1:]
        middle, floor = (statistics.median(each) for each in zip(*taken, strict=True))
        yield Row(
            work=name,
            peer=f"the budget, {budget:g} s of CPU",
            ratio=spread([budget / spent for spent, _ in taken]),
            error=None,
            goal=f"{budget:g} s of CPU from start to end",
            met=middle <= budget,
            notes={"seconds": middle, "libraries": floor},
            limit=Limit("Python and the libraries", budget / floor),
        )


def seconds(program: str | list[str]) -> float:
    """CPU seconds of a process: Python code, or arguments of the interpreter."""
    command = [sys.executable, *(["-c", program] if isinstance(program, str) else program)]
    cached = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=cached)
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        raise RuntimeError(f"{command} ended with status {status}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(rows, __doc__ or "")
