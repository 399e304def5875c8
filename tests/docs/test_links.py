"""Offline: every link, anchor, file, name, reference key, verb and option that a page names is there."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from reticent.cli import app
from reticent.kernel.proofs.references import ERRATA, PAPERS, THEOREMS
from tests.docs import follow
from tests.docs.follow import BLOCK, ROOT, each_page, generate_reference, pages, text_of

PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *follow.PAGES, *follow.MADE]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FOLDERS = ("tests", "docs", "src", "benchmarks", "experiments", "configs")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(rf"\b((?:{'|'.join(FOLDERS)})/[\w./-]+\.(?:py|md|svg|png|ya?ml|json|ipynb))(?:::(\w+))?")
KEY = re.compile(r"\b([A-Z][A-Z-]+(?:20|19)\d{2}|RETICENT)(?::([A-Za-z][\w-]*(?: [\w.]+)?))?")
NAME = re.compile(r"`(reticent(?:\.[A-Za-z]\w*)+)`")

BY_HAND = {"huggingface.md", "lightning.md"}
"""Their callbacks need libraries that the site does not: docs/reference/watch.md describes them."""

INNER = {("reticent", "_check"), ("reticent.kernel.registry", "described"), ("reticent.cli", "main")}
"""What a new mechanism or attacker needs from the inside; docs/development/extending.md."""

pytestmark = pytest.mark.docs


def prose(page: Path) -> str:
    return BLOCK.sub("", text_of(page))


@lru_cache
def anchors(page: Path) -> set[str]:
    """Of the headings down to the third level, as the site makes them."""
    headings = re.findall(r"^#{1,3} (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        if not re.match(r"https?:|mailto:", link):
            path = (page.parent / target).resolve() if target else page
            if not (pages.is_made(path) or path.exists()) or (anchor and anchor not in anchors(path)):
                yield link


def missing_files(text: str) -> Iterator[str]:
    for path, test in FILE.findall(text):
        if not (ROOT / path).exists() and not pages.is_made(Path(path)):
            yield path
        elif test and not re.search(rf"^ *(def|class) {test}\b", (ROOT / path).read_text(encoding="utf-8"), re.M):
            yield f"{path}::{test}"


def unknown_keys(text: str) -> Iterator[str]:
    for paper, place in KEY.findall(text):
        key = f"{paper}:{place}"
        if paper not in PAPERS and paper != "RETICENT":
            yield paper
        elif (paper == "RETICENT" and place and key not in THEOREMS) or (
            re.fullmatch(r"[BGR]\d+", place) and key not in ERRATA
        ):
            yield key


def unknown_names(text: str) -> Iterator[str]:
    for dotted in NAME.findall(text):
        if not dotted.endswith(".huggingface.WatchCallback") and not dotted.endswith(".lightning.WatchCallback"):
            try:
                _resolved(dotted)
            except (ImportError, AttributeError):
                yield dotted


def _resolved(dotted: str) -> object:
    parts = dotted.split(".")
    for last in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:last]))
        except ImportError:
            continue
        for part in parts[last:]:
            found = getattr(found, part)
        return found
    raise ImportError(dotted)


@lru_cache
def options() -> dict[str, set[str]]:
    """The options of every command, by the words that call it."""
    commands = dict(generate_reference.walk("reticent", app))
    return {words: {"--help"}.union(*((*p.opts, *p.secondary_opts) for p in c.params)) for words, c in commands.items()}


def unknown_options(page: Path) -> Iterator[str]:
    for _, language, body in ((m.start(), *m.groups()) for m in BLOCK.finditer(text_of(page))):
        if language in {"sh", "console", "text", "yaml"}:
            for line in body.replace("\\\n", " ").splitlines():
                yield from _of_line(re.sub(r"^\s*(?:\$|- run:|-)\s+", "", line))


OF_PATHS = {"reticent risk": "reticent risk ledger", "reticent compare": "reticent compare files"}
"""What is meant where a path stands in place of a command."""


def _of_line(line: str) -> Iterator[str]:
    words = shlex.split(line, comments=True)
    if words[:1] != ["reticent"]:
        return
    verb = "reticent"
    for word in words[1:]:
        flag = word.split("=")[0]
        if f"{verb} {word}" in options():
            verb = f"{verb} {word}"
        elif verb in OF_PATHS and "/" in word:
            verb = OF_PATHS[verb]
        elif flag.startswith("--") and flag not in options()[verb]:
            yield f"{verb} {flag}"
        elif verb == "reticent" and re.fullmatch(r"[a-z-]+", word) and not flag.startswith("--"):
            yield word


def imported(page: Path) -> Iterator[tuple[str, str]]:
    for language, body in BLOCK.findall(text_of(page)):
        if language == "python":
            for node in ast.walk(ast.parse(body)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent."):
                    yield from ((node.module or "", name.name) for name in node.names)


@each_page(PAGES)
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    assert not list(broken_links(page))


@each_page(PAGES)
def test_files_names_and_keys_are_there(page: Path) -> None:
    text = text_of(page)
    assert not [*missing_files(text), *unknown_keys(text), *unknown_names(text)]


@each_page(PAGES)
def test_verbs_and_options_are_there(page: Path) -> None:
    assert not list(unknown_options(page))


def test_the_readme_leads_to_pages_that_are_kept() -> None:
    """It is read where nobody built the site."""
    linked = [(ROOT / link.partition("#")[0]).resolve() for link in LINK.findall(text_of(ROOT / "README.md"))]
    assert len(linked) > 20
    assert not [path.name for path in linked if pages.is_made(path)]


def test_names_that_pages_import_are_in_the_reference() -> None:
    listed = {
        id(getattr(importlib.import_module(package), name))
        for package in generate_reference.PACKAGES
        for name in generate_reference.public_names(package)
    }
    used = {pair for page in PAGES if page.name not in BY_HAND for pair in imported(page)}
    missing = {pair for pair in used if id(getattr(importlib.import_module(pair[0]), pair[1])) not in listed}
    assert missing <= INNER


def test_files_that_code_and_messages_name_are_there() -> None:
    found = {f"{path.name}: {name}" for path in SOURCES for name in missing_files(path.read_text(encoding="utf-8"))}
    assert not found


def test_a_break_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](none.md) [b](#two) [c](#one)\n```sh\nreticent risk --nonsense\nreticent fly\n```\n")
    assert list(broken_links(page)) == ["none.md", "#two"]
    assert list(unknown_options(page)) == ["reticent risk --nonsense", "fly"]
    assert list(missing_files("see tests/docs/test_links.py::test_nothing, docs/none.md")) == [
        "tests/docs/test_links.py::test_nothing",
        "docs/none.md",
    ]
    assert list(unknown_keys("NOBODY2020:Theorem 1 and RETICENT:none")) == ["NOBODY2020", "RETICENT:none"]
    assert list(unknown_names("`reticent.adversaries.Nobody`")) == ["reticent.adversaries.Nobody"]
