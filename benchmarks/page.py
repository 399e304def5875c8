"""Run benchmarks and keep their rows: ``python -m benchmarks.page [NAME ...]``.

Rows are kept in ``benchmarks/results/NAME.json`` with the day and how busy the machine was. Without names all
benchmarks run, one after the other. The site shows them: docs/evidence/measured.md is made from them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NAMES = (
    "accounting",
    "opake",
    "calibration",
    "attribute",
    "glir",
    "shadow",
    "verbs",
    "starts",
    "watch",
    "dashboard",
    "scale",
    "planted_bugs",
)


def measure(name: str) -> dict[str, Any]:
    """Run one benchmark in a process of its own; its rows, the day, and the load of the machine before and after."""
    load = [os.getloadavg()[0]]
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    load.append(os.getloadavg()[0])
    return {"measured": datetime.now(UTC).date().isoformat(), "load": load, "rows": json.loads(done.stdout)}


def text() -> str:
    """What is kept of all benchmarks, as one table, with what each was measured on."""
    kept = {name: found for name in NAMES if (found := stored_rows(name))}
    rows = [f"| {name} | {' | '.join(_cells(row))} |" for name, found in kept.items() for row in found["rows"]]
    return "\n".join([_ABOUT, *_days(kept), "", _HEAD, *rows]) + "\n"


_ABOUT = """\
Ratios of the peer's time to ours on the same work, in turn, in one process: the median, and the least and the largest.
A peer that is a time is a goal by itself. *Limit* is the ratio if ours took only the time of the arithmetic that no
code can save. *Moonshot* is what this project dreams of, in bold where it is not reached.
[Measured speed](performance.md) says what these numbers rest on and where they fall short.

| benchmark | measured on | load of the machine before and after | what cannot be saved |
|---|---|---|---|"""
_HEAD = """\
| benchmark | work | peer | min | median | max | goal | met | limit | moonshot |
|---|---|---|---|---|---|---|---|---|---|"""


def _days(kept: dict[str, dict[str, Any]]) -> Iterator[str]:
    for name, found in kept.items():
        before, after = found["load"]
        limits = dict.fromkeys(row["limit"]["what"] for row in found["rows"] if row.get("limit"))
        yield f"| {name} | {found['measured']} | {before:.1f}, {after:.1f} | {'; '.join(limits)} |"


def _cells(row: dict[str, Any]) -> list[str]:
    ratio, floor, moonshot = row["ratio"], row.get("limit"), row.get("moonshot")
    return [
        row["work"],
        row["peer"],
        *(_number(ratio[key]) for key in ("min", "median", "max")),
        row["goal"],
        "no goal" if row["met"] is None else "yes" if row["met"] else "**no**",
        _number(floor["ratio"]) if floor else "",
        "" if moonshot is None else _number(moonshot) if ratio["median"] >= moonshot else f"**{_number(moonshot)}**",
    ]


def stored_rows(name: str) -> dict[str, Any] | None:
    """What is kept of a benchmark, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all, if none is given")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    RESULTS.mkdir(exist_ok=True)
    for name in given.names or NAMES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = measure(name)
        if found["rows"]:  # none where the peer is not installed
            (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
