"""Plant one bug at a time where a claim stands, and see whether the test that is named for it fails.

``python tests/mutants/run.py [NAME ...]``: each mutant of ``table.py`` is an edit of one function in a temporary copy
of ``src``. It is killed if its test fails, or if its part of the corpus names a difference. Survivors, and mutants
whose edit does not fit once, are printed and make the exit code 1. The end is a line of processor time.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import opacus  # noqa: F401 (loaded once for all children)
import pytest
import scipy.stats  # noqa: F401
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.edits import Places  # noqa: E402
from tests.mutants.table import CORPUS, MUTANTS, Mutant  # noqa: E402

OPTIONS = ["-x", "-q", "-rf", "--tb=no", "-n", "0", "-p", "no:cacheprovider"]


def killer(mutant: Mutant, source: Path, places: Places) -> str | None:
    """The first test that fails on ``source`` with the edit, or what the corpus says first; the copy is as before.

    "" if the edit does not fit.
    """
    fits = [(place.file, edit) for place in places.find(mutant.place) for edit in place.edits(mutant.edit)]
    if len(fits) != 1:
        return ""
    ((path, edit),) = fits
    text = path.read_text()
    path.write_text(edit.applied(text))
    part = mutant.test.removeprefix(CORPUS) if mutant.test.startswith(CORPUS) else None
    try:
        code, told = tested(mutant.test, source) if part is None else asked(part, source)
    finally:
        path.write_text(text)
    if code not in (0, 1) or not told:
        raise SystemExit(f"{mutant.name} ended with {code}\n{told[-4000:]}")
    if part is not None:
        return told.splitlines()[0] if code else None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", told, re.MULTILINE)
    return failed.group(1) if failed else None


def asked(part: str, source: Path) -> tuple[int, str]:
    """Exit code and words of the corpus on ``source``."""
    command = [sys.executable, "-m", "tests.corpus", part]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def tested(test: str, source: Path) -> tuple[int, str]:
    """Exit code and words of a test on ``source``, in a child of this process, which has loaded what takes long."""
    with tempfile.TemporaryFile("w+") as told:
        child = os.fork()
        if child == 0:
            os.dup2(told.fileno(), 1)
            os.dup2(told.fileno(), 2)
            os.environ["PYTHONPATH"], sys.dont_write_bytecode = str(source), True
            sys.path.insert(0, str(source))
            code = 70
            with suppress(BaseException):
                code = int(pytest.main([*OPTIONS, test]))
            sys.stdout.flush()
            os._exit(code)
        _, ended = os.waitpid(child, 0)
        told.seek(0)
        return os.waitstatus_to_exitcode(ended), told.read()


def main(names: list[str]) -> int:
    """Run the mutants whose name contains one of ``names``, or all; how many were not killed."""
    os.chdir(ROOT)
    torch.set_num_threads(1)
    assert "reticent" not in sys.modules
    chosen = [m for m in MUTANTS if not names or any(name in m.name for name in names)]
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(source, quiet=2)  # once: afterwards only the file with the edit is compiled
        places = Places(source / "reticent")
        for mutant in chosen:
            by = killer(mutant, source, places)
            alive += not by
            said = f"killed    {mutant.name}: {by}" if by else f"{'SURVIVED' if by is None else 'GONE'}  {mutant.name}"
            print(said, flush=True)
    spent = os.times()
    print(f"{len(chosen) - alive} of {len(chosen)} killed in {spent.children_user + spent.children_system:.0f} CPU s")
    return alive


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
