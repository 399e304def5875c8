"""The wheel works in an empty environment without torch."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_answers_in_an_empty_environment(tmp_path: Path) -> None:
    def ran(*words: str | Path) -> str:
        done = subprocess.run([str(word) for word in words], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    ran(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("reticent-*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    binary = tmp_path / "env" / "bin"
    ran(binary / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
    assert "torch" not in ran(binary / "python", "-m", "pip", "list")
    run = ("dpsgd", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "100")
    risk = json.loads(ran(binary / "reticent", "risk", *run, "--json"))
    assert risk["assessments"]
    target = ("dpsgd", "--target", "advantage=0.1", "--sample-rate", "0.01", "--steps", "100")
    assert "noise multiplier" in ran(binary / "reticent", "calibrate", *target)
    ran(binary / "reticent", "certify", *run, "--out", tmp_path / "paper")
    ran(binary / "reticent", "verify", tmp_path / "paper" / "certificate.html")


def test_the_front_matter_is_there() -> None:
    for name in ("CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CHANGELOG.md"):
        assert (ROOT / name).stat().st_size > 200, name
