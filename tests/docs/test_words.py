"""Plain English: no riddles, no filler, and short sentences where a newcomer reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import follow
from tests.docs.follow import BLOCK, ROOT

PAGES = follow.PAGES
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FIRST = [page for page in PAGES if page.parent.name in {"start", "officers", "howto"} or page.name == "README.md"]
WORDS = re.compile(
    r"manieth|says something else|so and so many|thereof|herein|aforementioned|utili[sz]e|in order to|"
    r"leverag(?:e|es|ing)|seamless|cutting-edge|state-of-the-art|\bdelve|\bsimply\b|\bobviously\b|\bbasically\b|"
    r"\bplease note\b|it should be noted",
    re.IGNORECASE,
)
"""Words that stand in the way, and riddles that were found once."""

LONGEST = 34
"""Words in a sentence of a page that a newcomer reads."""

pytestmark = pytest.mark.docs


def sentences(text: str) -> Iterator[str]:
    lines = [line for line in BLOCK.sub("", text).splitlines() if not line.startswith(("|", "    "))]
    running = re.sub(r"\n(?=[-#\d])", ". ", "\n".join(lines)).replace("\n", " ")
    return (each for each in re.split(r"(?<=[.!?:;])\s+", running))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_filler_and_no_riddle(path: Path) -> None:
    assert not WORDS.findall(path.read_text(encoding="utf-8"))


def test_no_filler_in_docstrings_and_messages() -> None:
    found = {path.name: WORDS.findall(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert not {name: words for name, words in found.items() if words}


@pytest.mark.parametrize("path", FIRST, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_are_short_where_a_newcomer_reads(path: Path) -> None:
    assert not [each for each in sentences(path.read_text(encoding="utf-8")) if len(each.split()) > LONGEST]


def test_a_riddle_and_a_long_sentence_are_seen() -> None:
    assert WORDS.findall("Record each so manieth step.")
    long = " ".join(["word"] * 40)
    assert [len(each.split()) for each in sentences(f"Short. {long}.\n| {long} |\n")] == [1, 40]
