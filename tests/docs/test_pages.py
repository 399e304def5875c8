"""Pages made from the code are up to date, and every key that a text cites leads somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from reticent.proofs.references import ERRATA, PAPERS, THEOREMS

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
FOLDERS = ("src", "tests", "docs", "experiments", "benchmarks")
TEXTS = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md"} and path != Path(__file__)
]
KEY = re.compile(rf"\b({'|'.join(PAPERS)}):([BGR]\d+)\b")
ALONE = re.compile(
    r"\b(?:[Ee]rrat(?:a|um)|[Dd]igest),? \(?(?:[A-Z]\d|\d+\.\d|\d+[a-z]?\b)|\bmath/[a-z]+-(?:digest|errata)"
)


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "index.md",
        "evidence/errata.md",
        "theory/theorems.md",
        "reference/catalogue.md",
        "reference/constraints.md",
        "reference/warnings.md",
        "theory/bibliography.md",
        "development/mutants.md",
        "development/architecture.md",
    ],
)
def test_made_pages_are_up_to_date(name: str) -> None:
    assert SPEC is not None
    assert SPEC.loader is not None
    pages = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(pages)
    assert (ROOT / "docs" / name).read_text() == pages.PAGES[name](), "run python docs/pages.py"


def test_every_cited_erratum_is_known() -> None:
    cited = {(match.group(), path) for path in TEXTS for match in KEY.finditer(path.read_text())}
    assert len(cited) > 100
    assert not {key for key, _ in cited if key not in ERRATA}


def test_no_text_points_outside_the_repository() -> None:
    found = {f"{path}: {m.group()}" for path in TEXTS for m in ALONE.finditer(path.read_text())}
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
