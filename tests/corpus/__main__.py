"""``python -m tests.corpus [--all] [--write] [SECTION ...]``: answer every case again, and name what differs.

Without ``--all`` only the cheap cases are answered: those that fit into ``QUICK`` processor seconds in all, cheapest of
each section first. ``--write`` keeps the answers. ``accepted.py`` lists the differences that are meant, by name.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.corpus.accepted import ACCEPTED
from tests.corpus.answers import all_names, answered, heard
from tests.corpus.compare import Difference, differences

HERE = Path(__file__).parent
SECTIONS = ("assessments", "calibrations", "surface", "doors", "certificates", "loops")
QUICK = {"assessments": 15, "calibrations": 10, "surface": 15, "doors": 15, "certificates": 45, "loops": 30}
"""Processor seconds of each section without ``--all``; loops are asked for by name there: their batches are random."""
QUICK_LOOPS = ("test_false_means.py", "test_loops_of_users.py")


def stored(section: str) -> Path:
    return HERE / "stored" / f"{section}.json"


def cheap(cases: dict[str, Any], section: str) -> list[str]:
    """The cases that fit into the section's seconds, cheapest first."""
    left, names = float(QUICK[section]), []
    for name in sorted(cases, key=lambda n: (cases[n]["seconds"], n)):
        left -= cases[name]["seconds"] + 0.05
        if left < 0:
            break
        names.append(name)
    return names


def now(sections: list[str], before: dict[str, Any], every: bool) -> dict[str, Any]:
    """The answers of today: sections side by side in two processes, each in four parts."""
    told: dict[str, Any] = {section: {} for section in sections}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = []
        for section in [s for s in sections if s != "loops"]:
            names = all_names(section) if every else cheap(before[section], section)
            for turn in range(4):
                waiting.append((section, pool.submit(answered, (section, names[turn::4]))))
        if "loops" in sections:
            files = ("",) if every else QUICK_LOOPS
            waiting.append(("loops", pool.submit(heard, files)))
        for section, answer in waiting:
            told[section].update(answer.result())
    return told


def named(before: dict[str, Any], after: dict[str, Any], every: bool) -> list[Difference]:
    """What differs; a case that was not answered differs only where every case was asked."""
    found = []
    for section, cases in after.items():
        for name, case in cases.items():
            where = f"{section}/{name}"
            old = before.get(section, {}).get(name)
            if old is None:
                found.append(Difference(where, None, "a new case"))
            else:
                found += differences(old["answer"], case["answer"], where)
        if every:
            found += [Difference(f"{section}/{name}", "a case", None) for name in before[section] if name not in cases]
    return found


def main() -> int:
    """Compare, or keep; how many differences nobody accepted, at most 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []])
    asked = parser.parse_args()
    every = asked.all or asked.write
    sections = asked.sections or [s for s in SECTIONS if every or s != "loops"]
    before = {s: json.loads(stored(s).read_text()) if stored(s).exists() else {} for s in sections}
    begun = os.times()
    after = now(sections, before, every)
    if asked.write:
        for section, cases in after.items():
            stored(section).parent.mkdir(exist_ok=True)
            lines = (f"{json.dumps(name)}: {json.dumps(cases[name], ensure_ascii=False)}" for name in sorted(cases))
            stored(section).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    found = named(before, after, every)
    new = [d for d in found if not any(fnmatch.fnmatchcase(d.where, pattern) for pattern in ACCEPTED)]
    for difference in new:
        print(difference)
    spent = os.times()
    seconds = spent.children_user + spent.children_system - begun.children_user - begun.children_system
    count = sum(len(cases) for cases in after.values())
    print(f"{count} cases in {seconds:.0f} CPU s: {len(new)} differ, {len(found) - len(new)} accepted")
    return 1 if new and not asked.write else 0


if __name__ == "__main__":
    sys.exit(main())
