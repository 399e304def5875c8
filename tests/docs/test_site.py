"""The site builds without a warning, and its reference is whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.docs


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
