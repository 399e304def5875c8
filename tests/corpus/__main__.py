"""``python -m tests.corpus [--all] [--write] [PART ...]``: answer every case again, and name what differs.

A part is a section, or ``SECTION/PATTERN`` for the cases of a name, such as ``"assessments/poisson; *"``. Without
``--all`` only the cheap cases of a section are answered: those that fit into its processor seconds, cheapest first.
``--write`` keeps the answers. ``accepted.py`` lists the differences that are meant, by name.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.corpus.accepted import ACCEPTED
from tests.corpus.answers import all_names, answered, fits, heard
from tests.corpus.compare import Difference, differences

HERE = Path(__file__).parent
SECTIONS = ("assessments", "calibrations", "surface", "doors", "certificates", "loops")
QUICK = {"assessments": 28, "calibrations": 12, "surface": 15, "doors": 34, "certificates": 62}
"""Processor seconds of each section without ``--all``."""
MANY = 20
"""So many differences are counted by their kind, too."""
QUICK_LOOPS = ("detectors/test_alone.py", "detectors/test_samplers.py")


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


def wanted(section: str, patterns: list[str], before: dict[str, Any], every: bool) -> list[str]:
    """The stored cases that are asked for, and the new ones. Which loops are in a few files is not known beforehand."""
    some = not (every or patterns)
    if section == "loops":
        names = [] if some else list(before)
    else:
        names = cheap(before, section) if some else list(before)
        names += [name for name in all_names(section) if name not in before]
    return [name for name in names if fits(name, patterns)]


def now(parts: dict[str, list[str]], before: dict[str, Any], every: bool) -> dict[str, Any]:
    """The answers of today, None where there is none any more: in two processes, each section in four pieces."""
    told: dict[str, Any] = {}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = []
        for section, patterns in parts.items():
            names = wanted(section, patterns, before[section], every)
            told[section] = dict.fromkeys(names)
            if section == "loops":
                files = ("",) if every or patterns else QUICK_LOOPS
                waiting.append((section, pool.submit(heard, files, patterns)))
                continue
            pieces = [names[turn::4] for turn in range(4)]
            waiting += [(section, pool.submit(answered, (section, piece))) for piece in pieces if piece]
        for section, answer in waiting:
            told[section].update(answer.result())
    return told


def named(before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    """What differs."""
    found = []
    for section, cases in after.items():
        for name, case in cases.items():
            old, where = before[section].get(name), f"{section}/{name}"
            if old is None or case is None:
                found.append(Difference(where, old and "a case", case and "a new case"))
            else:
                found += differences(old["answer"], case["answer"], where)
    return found


def keep(section: str, cases: dict[str, Any]) -> None:
    """Write the answers of a section."""
    stored(section).parent.mkdir(exist_ok=True)
    lines = (f"{json.dumps(n)}: {json.dumps(cases[n], ensure_ascii=False)}" for n in sorted(cases) if cases[n])
    stored(section).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    """Compare, or keep; how many differences nobody accepted, at most 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("parts", nargs="*", default=SECTIONS)
    asked = parser.parse_args()
    parts: dict[str, list[str]] = {}
    for section, _, pattern in (part.partition("/") for part in asked.parts):
        parts.setdefault(section, []).extend([pattern] if pattern else [])
    if unknown := parts.keys() - {*SECTIONS}:
        parser.error(f"no section is called {min(unknown)}; there are {', '.join(SECTIONS)}")
    every = asked.all or asked.write
    before = {s: json.loads(stored(s).read_text()) if stored(s).exists() else {} for s in parts}
    begun = os.times()
    after = now(parts, before, every)
    for section, cases in after.items() if asked.write else ():
        keep(section, (before[section] if parts[section] else {}) | cases)
    found = named(before, after)
    new = [d for d in found if not any(fnmatch.fnmatchcase(d.where, pattern) for pattern in ACCEPTED)]
    print(*new, sep="\n", end="\n" if new else "")
    if len(new) > MANY:
        kinds = Counter(difference.kind for difference in new).most_common()
        print("\nof these:", *(f"{count} x {kind}" for kind, count in kinds), sep="\n")
    spent = os.times()
    seconds = spent.children_user + spent.children_system - begun.children_user - begun.children_system
    count = sum(len(cases) for cases in after.values())
    print(f"{count} cases in {seconds:.0f} CPU s: {len(new)} differ, {len(found) - len(new)} accepted")
    return 1 if new and not asked.write else 0


if __name__ == "__main__":
    sys.exit(main())
