"""SECURITY.md: each sentence about what a party can and cannot do names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTIES = ("issuer", "holder", "verifier", "reader", "another local user")


def sentences() -> list[tuple[str, str]]:
    """(sentence, test) of every row, in order."""
    rows = re.findall(r"^\| (.+) \| ([^|]+) \|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    return [(says, test) for says, test in rows if says != "can, and cannot"]


def test_each_sentence_has_a_test_that_exists() -> None:
    assert len(sentences()) > 20
    for says, test in sentences():
        assert says.endswith(".")
        assert len(says) < 200
        file, *names = test.strip().split("::")
        text = (ROOT / file).read_text()
        assert names, says
        for name in names:
            assert re.search(rf"^\s*(?:def|class) {name}\b", text, re.MULTILINE), f"{says}: no {name} in {file}"


def test_each_party_has_its_sentences() -> None:
    text = (ROOT / "SECURITY.md").read_text().casefold()
    sections = text.split("\n### ")[1:]
    assert [section.partition("\n")[0].removeprefix("the ") for section in sections] == list(PARTIES)
    for section in sections:
        assert section.count("tests/") > 1
