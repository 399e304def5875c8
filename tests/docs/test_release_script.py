"""What must be there before a release, what is attested, and that nothing is uploaded; no package is built here."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from reticent.signing.envelope import parse
from reticent.signing.keys import key_text, load_public_key, write_key_pair
from tests.docs.follow import ROOT

SCRIPT = ROOT / "docs/development/release.py"
RELEASE = runpy.run_path(str(SCRIPT), run_name="release")
NAMES = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "README.md", "src/reticent/__init__.py")

pytestmark = pytest.mark.docs


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A copy in which nothing is missing."""
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    urls = "".join(f'{name} = "https://example.org/{name}"\n' for name in sorted(RELEASE["_USUAL"]))
    edit(tmp_path / "pyproject.toml", "[project.scripts]", f"[project.urls]\n{urls}\n[project.scripts]")
    edit(tmp_path / "CHANGELOG.md", "## 0.1.0, unreleased", "## 0.1.0, 2026-12-01")
    edit(tmp_path / "CITATION.cff", "version: 0.1.0", "version: 0.1.0\ndate-released: 2026-12-01")
    edit(tmp_path / "README.md", "reticent is not on PyPI yet.", "")
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_nothing_is_missing_where_all_is_there(ready: Path) -> None:
    assert list(RELEASE["problems"](ready)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("CITATION.cff", "version: 0.1.0", "version: 0.0.9", "CITATION.cff: the version"),
        ("src/reticent/__init__.py", '"0.1.0"', '"0.2.0"', "__init__.py: the version"),
        ("CHANGELOG.md", "2026-12-01", "unreleased", "needs a heading"),
        ("CHANGELOG.md", "2026-12-01", "2026-12-02", "CITATION.cff: needs 'date-released: 2026-12-02'"),
        ("pyproject.toml", "Repository =", "Home =", "lacks Repository"),
        ("README.md", "# reticent", "# reticent is not on PyPI yet", "not on PyPI"),
    ],
)
def test_each_thing_that_is_missing_is_named(ready: Path, name: str, old: str, new: str, told: str) -> None:
    edit(ready / name, old, new)
    (problem,) = RELEASE["problems"](ready)
    assert told in problem


def test_no_address_is_invented() -> None:
    """Either nobody knows an address yet, and the page says so, or all are there and the page does not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    said = "### No address yet" in (ROOT / "docs/development/releasing.md").read_text()
    assert said == ("urls" not in project)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert said == ("url" not in cited)
    assert {"cff-version", "message", "title", "authors", "type", "license", "version", "abstract"} <= set(cited)
    dated = re.search(rf"^## {project['version']}, (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert str(cited.get("date-released", "unreleased")) == dated
    assert (cited["license"], cited["version"]) == (project["license"], project["version"])


def test_links_of_the_package_page_are_absolute() -> None:
    there = RELEASE["absolute"]((ROOT / "README.md").read_text(), "https://example.org/r", "0.1.0")
    assert "](docs/" not in there
    assert "(https://example.org/r/raw/v0.1.0/docs/figures/certificate.png)" in there
    assert "(https://example.org/r/blob/v0.1.0/docs/start/install.md)" in there


def test_the_statement_names_each_file_and_is_signed(tmp_path: Path) -> None:
    write_key_pair(tmp_path / "key", tmp_path / "key.pub")
    file = tmp_path / "reticent-0.1.0.whl"
    file.write_bytes(b"wheel")
    path = RELEASE["attested"]([file], "0.1.0", tmp_path / "key")
    envelope = parse(json.loads(path.read_text()), RELEASE["KIND"], "statement")
    public = key_text(load_public_key(tmp_path / "key.pub"))
    assert envelope.signers([public]) == [public]
    (subject,) = json.loads(envelope.payload)["subject"]
    assert subject == {"name": file.name, "digest": {"sha256": hashlib.sha256(b"wheel").hexdigest()}}


def test_the_script_uploads_nothing() -> None:
    source = SCRIPT.read_text()
    assert [line.strip() for line in source.splitlines() if "twine" in line and "upload" in line] == [
        line.strip() for line in source.splitlines() if "twine upload" in line and line.strip().startswith("print(")
    ]
