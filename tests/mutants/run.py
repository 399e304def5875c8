"""Plant one bug at a time where a claim stands, and see whether the test that is named for it fails.

``python tests/mutants/run.py [NAME ...]``: each mutant of ``table.py`` is an edit of one line in a temporary copy of
``src``. It is killed if its test fails. Survivors, and mutants whose text has gone, are printed and make the exit
code 1. The end is a line of processor time.
"""

from __future__ import annotations

import compileall
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ["-x", "-q", "-rf", "--tb=no", "-n", "0", "-p", "no:cacheprovider"]


def killer(mutant: Any, source: Path) -> str | None:
    """The first test that fails on ``source`` with the edit, "" if the edit is not possible; the copy is as before."""
    path = source / mutant.file
    text = path.read_text()
    if mutant.before not in text:
        return ""
    path.write_text(text.replace(mutant.before, mutant.after))
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *OPTIONS, mutant.test],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        path.write_text(text)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{mutant.name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed.group(1) if failed else None


def main(names: list[str]) -> int:
    """Run the mutants whose name contains one of ``names``, or all; how many were not killed."""
    mutants = runpy.run_path(str(Path(__file__).with_name("table.py")), run_name="mutants_table")["MUTANTS"]
    chosen = [m for m in mutants if not names or any(name in m.name for name in names)]
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(source, quiet=2)  # once: afterwards only the file with the edit is compiled
        for mutant in chosen:
            by = killer(mutant, source)
            alive += not by
            said = f"killed    {mutant.name}: {by}" if by else f"{'SURVIVED' if by is None else 'GONE'}  {mutant.name}"
            print(said, flush=True)
    spent = os.times()
    print(f"{len(chosen) - alive} of {len(chosen)} killed in {spent.children_user + spent.children_system:.0f} CPU s")
    return alive


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
