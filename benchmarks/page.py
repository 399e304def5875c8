"""Run benchmarks and put their rows into docs/evidence/performance.md: ``python -m benchmarks.page [NAME ...]``.

Rows are kept in ``benchmarks/results/NAME.json`` with the day and how busy the machine was. Without names all
benchmarks run, one after the other. ``--stored`` runs nothing and writes the page from what is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "evidence" / "performance.md"
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
_BLOCK = "<!-- rows of {name} -->\n{text}<!-- end of rows -->\n"


def measure(name: str) -> dict[str, Any]:
    """Run one benchmark in a process of its own; its rows, the day, and the load of the machine before and after."""
    load = [os.getloadavg()[0]]
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    load.append(os.getloadavg()[0])
    return {"measured": datetime.now(UTC).date().isoformat(), "load": load, "rows": json.loads(done.stdout)}


def table(found: dict[str, Any]) -> str:
    """The rows of one benchmark in Markdown."""
    before, after = found["load"]
    lines = [
        f"Measured on {found['measured']}; load of the machine {before:.1f} before and {after:.1f} after.",
        "",
        "| work | peer | min | median | max | goal | met | limit | moonshot |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in found["rows"]]
    limits = dict.fromkeys(row["limit"]["what"] for row in found["rows"] if row.get("limit"))
    if limits:
        lines += ["", f"Limit: the ratio if ours took only the time of what cannot be saved ({'; '.join(limits)})."]
    return "\n".join(lines) + "\n"


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


def filled(page: str, stored: Callable[[str], dict[str, Any] | None]) -> str:
    """``page`` with the rows that are kept; a block whose benchmark has none stays as it is."""

    def block(match: re.Match[str]) -> str:
        found = stored(match[1])
        return match[0] if found is None else _BLOCK.format(name=match[1], text=table(found))

    return re.sub(r"<!-- rows of (\w+) -->\n.*?<!-- end of rows -->\n", block, page, flags=re.DOTALL)


def stored_rows(name: str) -> dict[str, Any] | None:
    """What is kept of a benchmark, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, keep it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all, if none is given")
    parser.add_argument("--stored", action="store_true", help="run nothing")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    RESULTS.mkdir(exist_ok=True)
    for name in () if given.stored else given.names or NAMES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = measure(name)
        if found["rows"]:  # none where the peer is not installed
            (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(filled(PAGE.read_text(), stored_rows))


if __name__ == "__main__":
    main()
