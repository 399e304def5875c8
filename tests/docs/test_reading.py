"""Every page is in the contents and linked by another; one explanation of each term; no tics; severities agree."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from reticent.proofs import CONDITIONS
from reticent.proofs.remedies import REMEDIES
from reticent.records.run_warnings import RunWarning
from reticent.records.watch_faults import Fault, Severity
from tests.docs.follow import BLOCK, PAGES, ROOT

DOCS = ROOT / "docs"
LISTED = {page[0] for part in tomllib.loads((DOCS / "contents.toml").read_text())["part"] for page in part["pages"]}
MADE_LISTS = {DOCS / "README.md", DOCS / "index.md"}
WRITTEN = [page for page in PAGES if page not in MADE_LISTS and page.parent.name != "adr"]
TERMS = re.findall(r"^## (.+)$", (DOCS / "concepts/glossary.md").read_text(), re.MULTILINE)
TICS = re.compile(
    r"fewer of the one cost|a run that somebody saw|(?:takes? nothing|nothing is taken) off for sampling|"
    r"joins each batch by a coin|put its name behind|holds? it against|put back its name|not least|as it were|so to speak",
    re.IGNORECASE,
)
"""Riddles that a reader named once."""
HIDDEN = re.compile(r"^ *\$\$$.*?^ *\$\$$|<!--.*?-->", re.MULTILINE | re.DOTALL)
"""Formulas and comments."""

pytestmark = pytest.mark.docs


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


def links(page: Path) -> Iterator[Path]:
    for target in re.findall(r"\]\(([^)\s#]+\.md)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            yield (page.parent / target).resolve()


def long_sentences(page: Path) -> set[str]:
    text = HIDDEN.sub("", BLOCK.sub("", page.read_text(encoding="utf-8")))
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "    ", "!"))]
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(lines))
    found = (re.sub(r"[^a-z0-9 ]", "", each.lower()).strip() for each in re.split(r"(?<=[.!?])\s+", plain))
    return {each for each in found if len(each.split()) >= 12}


def test_every_page_is_in_the_contents() -> None:
    found = {name_of(page) for page in PAGES if page.is_relative_to(DOCS)} - {"README", "index"}
    assert {name for name in found if not name.startswith("development/adr/")} <= LISTED


def test_every_page_is_linked_by_another() -> None:
    linked = {target for page in [*PAGES, ROOT / "CONTRIBUTING.md"] if page not in MADE_LISTS for target in links(page)}
    linked |= set(links(DOCS / "index.md"))
    lonely = {name_of(page) for page in PAGES if page.is_relative_to(DOCS) and page not in linked} - {"index"}
    assert not lonely


def test_no_sentence_is_on_two_pages() -> None:
    """What is explained twice is explained differently some day. README and the landing page share their first words."""
    where: defaultdict[str, set[str]] = defaultdict(set)
    for page in WRITTEN:
        for sentence in long_sentences(page):
            where[sentence].add(str(page.relative_to(ROOT)))
    assert not {sentence: pages for sentence, pages in where.items() if len(pages) > 1}


def test_a_term_is_defined_in_the_glossary_alone() -> None:
    """Elsewhere nothing begins with "**term**:" or "term: a sentence" as a list of definitions does."""
    assert len(TERMS) == len(set(TERMS)) > 25
    listed = re.compile(rf"^(?:{'|'.join(map(re.escape, TERMS))})\n: ", re.MULTILINE | re.IGNORECASE)
    assert not [page.name for page in WRITTEN if listed.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_tic(page: Path) -> None:
    assert not TICS.findall(page.read_text(encoding="utf-8"))


def test_severities_of_pitfalls_are_those_of_lint() -> None:
    text = (DOCS / "concepts/pitfalls.md").read_text(encoding="utf-8")
    headings = {Severity.ERROR: "Critical", Severity.WARNING: "Theoretical", Severity.NOTE: "Negligible"}
    runs = {warning.value: Severity.WARNING for warning in RunWarning}
    known = runs | {fault.value: fault.explanation.severity for fault in Fault}
    for severity, heading in headings.items():
        section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        codes = re.findall(r"^\|[^|]+\| `([a-z-]+)` \|", section, re.MULTILINE)
        assert codes, heading
        assert {code: known[code] for code in codes} == dict.fromkeys(codes, severity)


def test_every_condition_and_warning_has_a_remedy() -> None:
    assert set(CONDITIONS) <= set(REMEDIES)
    assert all(each.endswith((".", ")")) for each in REMEDIES.values())
    assert all(warning.remedy for warning in RunWarning)


def test_what_is_found_is_seen(tmp_path: Path) -> None:
    one = tmp_path / "one.md"
    one.write_text(
        "A run that somebody saw takes nothing off for sampling, and this sentence is long enough to count.\n"
    )
    assert len(TICS.findall(one.read_text())) == 2
    assert len(long_sentences(one)) == 1
