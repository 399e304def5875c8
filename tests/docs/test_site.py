"""The site builds without a warning, and its reference is whole."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reticent.kernel.proofs.references import THEOREMS
from tests.docs.follow import ROOT, generate_reference

pytestmark = pytest.mark.docs


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-t", "without_source", "-b", "html", "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists()
    page = tmp_path / "theory" / "theorems.html"
    linked = [page.parent / link for link in re.findall(r'href="([^"]+\.py)"', page.read_text(encoding="utf-8"))]
    assert len(linked) >= 2 * len(THEOREMS)
    assert all(path.is_file() for path in linked)


def test_every_public_name_is_in_the_reference() -> None:
    for package in generate_reference.PACKAGES:
        page = generate_reference._package(package)
        names = generate_reference.public_names(package)
        assert names, package
        assert all(f"\n## {name}\n" in page for name in names), package
