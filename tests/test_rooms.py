"""What import rules do not see: imports by string, in the syntax trees of the whole package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "reticent"
BY_STRING = {"import_module", "__import__", "spec_from_file_location"}

ALLOWED = {
    "lazy.py": "names of a package, by its stub",
    "cli/_app.py": "files of verbs",
    "watching/loggers.py": "libraries of others",
    "papers/run.py": "scripts of the gallery",
}
"""Files that may, and what they import. What users name is found by ``pkgutil`` or by entry points."""


def imported_by_string(tree: ast.AST) -> list[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = (call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls)
    return [name for name in names if name in BY_STRING]


@pytest.mark.parametrize("code", ["import_module('a')", "importlib.import_module(f'{x}')", "__import__('os')"])
def test_an_import_by_string_is_seen(code: str) -> None:
    assert imported_by_string(ast.parse(code))


def test_nothing_imports_by_string_but_what_is_listed() -> None:
    found = {
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*.py")
        if imported_by_string(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == set(ALLOWED)


def test_every_package_says_what_belongs_there() -> None:
    for room in (folder for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()):
        said = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
        assert len(said.split()) > 15, room.name
