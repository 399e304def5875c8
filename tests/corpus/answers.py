"""What answers: each case of a section, and the watches of the tests."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.corpus.project import projected


def all_names(section: str) -> list[str]:
    """The cases of a section, in order; no two of one name."""
    names = [case.name for case in importlib.import_module(f"tests.corpus.{section}").cases()]
    assert len(names) == len(set(names)), section
    return names


def answered(task: tuple[str, list[str]]) -> dict[str, Any]:
    """The named cases of a section: what each answers, and its seconds."""
    section, names = task
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    told = {}
    for case in importlib.import_module(f"tests.corpus.{section}").cases():
        if case.name not in names:
            continue
        begun = time.process_time()
        try:
            answer = json.loads(json.dumps(projected(case.answer())))
        except Exception as error:  # an answer like others, which differs from what is stored
            answer = {"raised": f"{type(error).__name__}: {error}"}
        told[case.name] = {"seconds": round(time.process_time() - begun, 1), "answer": answer}
    return told


def fits(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns is the name's, or there is none; ``[`` stands for itself."""
    return not patterns or any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)


def heard(files: tuple[str, ...], patterns: Sequence[str] = ()) -> dict[str, Any]:
    """What the watches of ``tests/watching`` found, by class and test; of those alone whose name fits a pattern."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "heard.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.corpus.listening"]
        environment = {**os.environ, "RETICENT_HEARD": str(path), "OMP_NUM_THREADS": "1"}
        where = [f"tests/watching/{name}" for name in files]
        words = [re.findall(r"\w+", pattern.split("[")[0]) for pattern in patterns]
        chosen = ["-k", " or ".join(" and ".join(each) for each in words)] if words and all(words) else []
        subprocess.run([*command, *where, *chosen], env=environment, check=False, stdout=subprocess.DEVNULL)
        told = json.loads(path.read_text())
    return {name: {"seconds": 0.0, "answer": answer} for name, answer in told.items() if fits(name, patterns)}
