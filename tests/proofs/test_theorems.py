"""A theorem's key leads to its proof, its code and its tests, and all three are there."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from reticent.kernel.errors import ParameterError
from reticent.kernel.proofs.references import PAPERS, THEOREMS, cite
from tests.docs.follow import text_of

ROOT = Path(__file__).parents[2]
each = pytest.mark.parametrize("theorem", THEOREMS.values(), ids=lambda theorem: theorem.key)


def sections(page: Path) -> dict[str, str]:
    """The text below each heading, by anchor, up to the next heading that is not below it."""
    found, open_ones = {}, []
    for line in page.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"(#{1,3}) (.+)$", line):
            level = len(heading[1])
            anchor = re.sub(r"[^\w\- ]", "", heading[2].strip().lower()).replace(" ", "-")
            open_ones = [(name, depth) for name, depth in open_ones if depth < level] + [(anchor, level)]
        for name, _ in open_ones:
            found[name] = found.get(name, "") + line + "\n"
    return found


def coded(where: str) -> Any:
    """What ``module:name`` names."""
    module, _, name = where.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    return inspect.unwrap(found)


@each
def test_a_theorem_has_a_section_that_names_it(theorem) -> None:
    page, _, anchor = theorem.proof.partition("#")
    section = sections(ROOT / "docs" / page).get(anchor, "")
    assert re.search(rf"{re.escape(theorem.key)}(?![\w-])", section), theorem.proof
    assert theorem.key.partition(":")[0] in PAPERS


@each
def test_the_code_exists_and_mentions_the_theorem(theorem) -> None:
    source = inspect.getsource(coded(theorem.code))
    assert re.search(rf"{re.escape(theorem.key)}(?![\w-])", source), theorem.code


@each
def test_the_page_links_the_file_of_the_code_and_of_the_tests(theorem) -> None:
    row = re.search(rf"^\| `{re.escape(theorem.key)}` .*$", text_of(ROOT / "docs/theory/theorems.md"), re.MULTILINE)
    assert row, theorem.key
    linked = {(ROOT / "docs/theory" / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", row[0])}
    module = importlib.import_module(theorem.code.partition(":")[0])
    assert {Path(str(module.__file__)), ROOT / theorem.tests} <= linked


@each
def test_the_tests_exist_and_name_the_theorem_at_their_head(theorem) -> None:
    text = (ROOT / theorem.tests).read_text(encoding="utf-8")
    head = ast.get_docstring(ast.parse(text)) or ""
    assert re.search(rf"{re.escape(theorem.key)}(?![\w-])", " ".join(head.split())), theorem.tests


def test_keys_are_listed_once_and_say_a_sentence() -> None:
    for theorem in THEOREMS.values():
        assert theorem.says.endswith(".")
        assert theorem.conditions.endswith(".")
    assert len(THEOREMS) > 50


def test_an_unknown_theorem_is_not_cited() -> None:
    assert cite("RETICENT:fixed-size-dominance") == ("RETICENT:fixed-size-dominance",)
    with pytest.raises(ParameterError, match="theorem"):
        cite("DONG2022:Theorem 99")
