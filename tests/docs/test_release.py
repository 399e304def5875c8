"""Wheel and sdist build; the wheel works in an empty environment; Start and two how-tos can be followed in one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

from tests.docs.follow import ROOT, follow, steps

CONSTRAINTS = ROOT / "constraints.txt"
SLOW = [pytest.mark.slow, pytest.mark.timeout(1800)]


def ran(*words: str | Path, folder: Path, limit: float = 1500.0) -> str:
    """What a command printed; pip takes versions from the constraints, as `make env` does."""
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words, bare["PIP_CONSTRAINT"] = tuple(map(str, words)), str(CONSTRAINTS)
    done = subprocess.run(words, cwd=folder, env=bare, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("built")
    venv.create(folder / "tools", with_pip=True)
    python = folder / "tools" / "bin" / "python"
    ran(python, "-m", "pip", "install", "-q", "build", folder=folder)
    ran(python, "-m", "build", "--outdir", folder / "dist", ROOT, folder=folder)
    return folder / "dist"


@pytest.mark.docs
def test_names_of_files_can_be_written_on_every_system() -> None:
    names = ran("git", "ls-files", folder=ROOT).splitlines()
    assert len({name.lower() for name in names}) == len(names) > 1000
    reserved = r"[<>:\"|?*\\]|[. ](/|$)|(^|/)(con|prn|aux|nul|com\d|lpt\d)(\.|/|$)"
    assert not [name for name in names if re.search(reserved, name, re.IGNORECASE)]


WINDOWS = "import sys; sys.modules['fcntl'] = sys.modules['resource'] = None; "
"""What it lacks."""


@pytest.mark.docs
def test_a_system_without_locks_of_files_gets_numbers_and_one_line() -> None:
    asked = "import reticent as rt; print(rt.assess(rt.dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=10)))"
    assert "worst-case" in ran(sys.executable, "-c", WINDOWS + asked, folder=ROOT / "src")
    typed = WINDOWS + "from reticent.cli import main; main(sys.argv[1:])"
    for verb in (("risk", "gaussian", "--noise-multiplier", "2"), ("train", "x.yaml"), ("verify", "x.json")):
        done = subprocess.run(
            [sys.executable, "-c", typed, *verb], cwd=ROOT / "src", capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"reticent: files are locked as Linux .*WSL.*\n", done.stderr), done.stderr


class TestWheel:
    """Without torch."""

    pytestmark = SLOW

    def test_the_sdist_holds_the_package_and_builds_the_same_wheel(self, built: Path, tmp_path: Path) -> None:
        (archive,) = built.glob("reticent-*.tar.gz")
        with tarfile.open(archive) as packed:
            names = {name.partition("/")[2] for name in packed.getnames()}
        assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "src/reticent/__init__.py"} <= names
        assert not any(name.startswith(("tests/", "docs/", "runs/")) for name in names)
        assert len(list(built.glob("reticent-*.whl"))) == 1  # `build` makes the wheel from the sdist

    def test_the_wheel_answers_in_an_empty_environment(self, built: Path, tmp_path: Path) -> None:
        (wheel,) = built.glob("reticent-*.whl")
        venv.create(tmp_path / "env", with_pip=True)
        binary = tmp_path / "env" / "bin"
        ran(binary / "python", "-m", "pip", "install", "-q", wheel, folder=tmp_path)
        assert "torch" not in ran(binary / "python", "-m", "pip", "list", folder=tmp_path)
        answers_without_torch(binary / "reticent", tmp_path)


def answers_without_torch(reticent: Path, folder: Path) -> None:
    """Risk, calibration, certificate and verification of parameters."""
    run = ("dpsgd", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "100")
    assert json.loads(ran(reticent, "risk", *run, "--json", folder=folder))["assessments"]
    target = ("dpsgd", "--target", "advantage=0.1", "--sample-rate", "0.01", "--steps", "100")
    assert "noise multiplier" in ran(reticent, "calibrate", *target, folder=folder)
    ran(reticent, "certify", *run, "--out", folder / "paper", folder=folder)
    ran(reticent, "verify", folder / "paper" / "certificate.html", folder=folder)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_start_and_two_how_tos_in_an_empty_environment(tmp_path: Path) -> None:
    """Type what *Install*, *A first certificate*, *Your own csv* and *Gate* say, with nothing but a checkout."""
    venv.create(tmp_path / "env", with_pip=True)
    binary = tmp_path / "env" / "bin"
    programs = {name: [str(binary / name)] for name in ("reticent", "python")}
    installs = next(body for _, language, body in steps(ROOT / "docs/start/install.md") if language == "sh")
    for line in installs.splitlines()[:2]:  # the core, and the extra `train`
        target = re.search(r"pip install '?(\.[^'\s]*)'?", line)
        assert target is not None, line
        ran(binary / "pip", "install", "-q", target[1], folder=ROOT)
    assert ran(binary / "reticent", "--version", folder=tmp_path)
    for page, result in {
        "start/first-certificate.md": "runs/signed/certificate.public.json",
        "howto/own-table.md": "runs/people-certificate/certificate.html",
        "howto/gate.md": "gate.xml",
    }.items():
        place = tmp_path / Path(page).stem
        place.mkdir()
        assert follow(ROOT / "docs" / page, place, programs)
        assert (place / result).stat().st_size > 100


def test_the_front_matter_is_there() -> None:
    for name in ("CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CHANGELOG.md"):
        assert (ROOT / name).stat().st_size > 200, name


if __name__ == "__main__":
    answers_without_torch(Path(sys.argv[1]), Path(sys.argv[2]))
