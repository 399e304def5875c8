"""Pages that are made are not kept, and every key that a text cites leads somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import reticent as rt
from reticent.kernel.proofs.references import ERRATA, PAPERS, THEOREMS
from tests.docs.follow import ROOT, pages, text_of

FOLDERS = ("src", "tests", "docs", "experiments", "benchmarks")
KEY = re.compile(rf"\b({'|'.join(PAPERS)}):([BGR]\d+)\b")
ALONE = re.compile(
    r"\b(?:[Ee]rrat(?:a|um)|[Dd]igest),? \(?(?:[A-Z]\d|\d+\.\d|\d+[a-z]?\b)|\bmath/[a-z]+-(?:digest|errata)"
)


def test_every_page_that_is_made_is_written_and_git_ignores_it(tmp_path: Path) -> None:
    pages.write(tmp_path)
    names = [f"docs/{name}" for name in pages.PAGES]
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == set(pages.PAGES)
    assert all((tmp_path / name).read_text(encoding="utf-8") == text_of(ROOT / "docs" / name) for name in pages.PAGES)
    ignored = subprocess.run(["git", "check-ignore", *names], cwd=ROOT, capture_output=True, text=True)
    if ignored.returncode != 128:  # no repository, as where an archive was unpacked
        assert ignored.stdout.split() == names


def test_a_page_that_did_not_change_is_left_alone(tmp_path: Path) -> None:
    pages.write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    (tmp_path / "index.md").write_text("old", encoding="utf-8")
    gone = tmp_path / "reference/api/reticent.gone.md"
    gone.write_text("of a package that was", encoding="utf-8")
    pages.write(tmp_path)
    assert not gone.exists()
    changed = {path.name for path, when in before.items() if path.stat().st_mtime_ns != when}
    assert changed == {"index.md"}


def test_the_first_page_has_numbers_of_the_library() -> None:
    rows = pages.landing.table()
    assert [float(noise) for noise, *_ in rows] == sorted(pages.landing.NOISE)
    for _, worst, relaxed, _ in rows:
        assert 50.0 < float(relaxed.rstrip("%")) < float(worst.rstrip("%")), "the worst case stands beside"
    run = rt.dpsgd(noise_multiplier=1.1, sample_rate=0.01, steps=1000)
    risk = rt.assess(run, "worst-case").document.assessments[0]
    noise, worst, _, epsilon = rows[pages.landing.NOISE.index(1.1)]
    assert noise == "1.1"
    assert float(worst.rstrip("%")) == pytest.approx(100 * (0.5 + risk.advantage.value / 2), abs=0.1)
    assert float(epsilon) == pytest.approx(risk.epsilon_at_delta["1e-05"].value, rel=1e-3, abs=0)


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md"})
    return {path: path.read_text() for path in found if path != Path(__file__) and not pages.is_made(path)}


def test_every_cited_erratum_is_known(texts) -> None:
    cited = {(match.group(), path) for path, text in texts.items() for match in KEY.finditer(text)}
    assert len(cited) > 90
    assert not {key for key, _ in cited if key not in ERRATA}


def test_no_text_points_outside_the_repository(texts) -> None:
    found = {f"{path}: {m.group()}" for path, text in texts.items() for m in ALONE.finditer(text)}
    assert not found


@pytest.mark.parametrize("erratum", ERRATA.values(), ids=lambda erratum: erratum.key)
def test_an_erratum_names_a_paper_and_the_test_that_shows_it(erratum) -> None:
    assert erratum.key.partition(":")[0] in PAPERS
    assert erratum.key not in THEOREMS
    assert erratum.printed.endswith(".")
    assert erratum.holds.endswith(".")
    if erratum.shown_by:
        path, _, name = erratum.shown_by.partition("::")
        assert re.search(rf"def {name}\(", (ROOT / "tests" / path).read_text())
