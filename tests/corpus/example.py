"""What a program says into which the example package is installed: ``python -m tests.corpus.example`` prints it.

It is a process of its own, since the lists of kinds look for other packages once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from contextlib import chdir
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.corpus.project import called, of_json

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "examples/reticent-geometric"
COUNTS = ("geometric", "--epsilon-per-unit", "0.5", "--releases", "12")
CALLS = (
    ("risk", "--help"),
    ("risk", *COUNTS, "--adversary", "all"),
    ("risk", *COUNTS, "--adversary", "every-kth", "--stride", "4", "--json"),
    ("calibrate", "geometric", "--releases", "12", "--unknown", "epsilon-per-unit", "--target", "advantage=0.3"),
    ("certify", "counts.json", "--out", "made"),
    ("verify", "made/certificate.public.json"),
    ("audit", "scores.csv"),
    ("audit", ".", "--attack", "none"),
)


def answer() -> Any:
    """Each call, with the package on the path and its entry points as an installer writes them."""
    groups = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [line for group in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in groups[group].items()))]
    with tempfile.TemporaryDirectory() as folder:
        installed = Path(folder) / "reticent_geometric-1.0.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: reticent-geometric\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text("\n".join(lines))
        path = os.pathsep.join([str(SOURCE / "src"), folder, str(ROOT), *filter(None, sys.path)])
        done = subprocess.run([sys.executable, "-m", "tests.corpus.example"], env={**os.environ, "PYTHONPATH": path},
                              capture_output=True, text=True, check=True)  # fmt: skip
    return of_json(done.stdout)


def main() -> None:
    """Print which groups of entry points are looked at, and what each call answers."""
    asked, found = set(), metadata.entry_points()

    class Listening:
        def select(self, group: str) -> Any:
            asked.add(group)
            return found.select(group=group)

    metadata.entry_points = lambda **named: found.select(**named) if named else Listening()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("counts.json").write_text(json.dumps({"kind": "geometric", "epsilon_per_unit": 0.5, "releases": 12}))
        Path("scores.csv").write_text("member,score\n" + "".join(f"{i % 2},{i % 7 + i % 2}\n" for i in range(200)))
        told = {" ".join(words): called(*words) for words in CALLS}
    print(json.dumps({"groups": sorted(asked), **told}))


if __name__ == "__main__":
    main()
