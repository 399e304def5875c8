"""The site builds without a warning, and its first pages can be followed literally."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"Save this as `([^`]+)`")

pytestmark = pytest.mark.docs


def follow(page: Path, folder: Path) -> list[str]:
    """Do what ``page`` says in ``folder``: save its files, run its Python and shell commands; what was printed."""
    text, told = page.read_text(encoding="utf-8"), []
    names: dict[str, object] = {}
    for match in BLOCK.finditer(text):
        language, body = match.groups()
        saved = FILE.findall(text[: match.start()].rsplit("```", 1)[-1])
        if saved:
            (folder / saved[-1]).write_text(body, encoding="utf-8")
        elif language == "python":
            exec(compile(body, str(page), "exec"), names)  # noqa: S102 (our own documentation)
        elif language == "sh":
            for line in body.replace("\\\n", " ").splitlines():
                told.append(run(line, folder))
    return told


def run(line: str, folder: Path) -> str:
    words = line.split("#")[0].strip()
    assert words.startswith("reticent "), f"not a command of ours: {line}"
    command = [sys.executable, "-m", *shlex.split(words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists()


def test_every_public_name_is_in_the_reference() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import generate_reference
    finally:
        sys.path.pop(0)
    for package in generate_reference.PACKAGES:
        page = generate_reference._package(package)
        names = generate_reference.public_names(package)
        assert names, package
        assert all(f"\n## {name}\n" in page for name in names), package


def test_a_first_certificate_as_the_page_says(tmp_path: Path) -> None:
    told = follow(ROOT / "docs/start/first-certificate.md", tmp_path)
    assert len(told) == 5
    assert "worst-case" in told[0]
    for name in ("mine.yaml", "issuer.pub", "runs/mine/certificate.html", "runs/signed/certificate.json"):
        assert (tmp_path / name).exists(), name


def test_an_audit_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = follow(ROOT / "docs/howto/audit-a-model.md", tmp_path)
    assert len(told) == 2
    assert (tmp_path / "report.html").exists()
