"""What import rules do not see: imports by string, and files that import each other in a circle.

Both are read from the syntax trees of the whole package. The floors are in ``pyproject.toml``.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "reticent"
BY_STRING = {"import_module", "__import__", "spec_from_file_location"}

ALLOWED = {
    "kernel/lazy.py": "names of a package, by its stub",
    "kernel/messages.py": "the catalogues, which are read when somebody reads a message",
    "kernel/proofs/conditions.py": "the list of samplers, which bring conditions",
    "cli/_app.py": "files of verbs",
    "watching/loggers.py": "libraries of others",
    "watching/optimisers.py": "classes of Opacus, which may not be installed",
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
        path.relative_to(SOURCE).as_posix()
        for path in MODULES.values()
        if any(name in path.read_text(encoding="utf-8") for name in BY_STRING)
        and imported_by_string(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(ALLOWED)


def test_every_package_says_what_belongs_there() -> None:
    for room in (folder for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()):
        said = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
        assert len(said.split()) > 15, room.name


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


CHECKS = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
IMPORTS = re.compile(r"^[ \t]*((?:from [\w.]+ )?import (?:\([^)]*\)|.*))$", re.MULTILINE)


def imported(path: Path) -> Iterator[str]:
    """Modules of the library that a file imports, in functions too; imports for type checkers do not run."""
    text = CHECKS.sub("", path.read_text(encoding="utf-8"))
    for node in ast.parse("\n".join(IMPORTS.findall(text))).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module


def circle(arrows: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circle({name: set(imported(path)) - {name} for name, path in MODULES.items()}) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def test_every_package_has_its_floor() -> None:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    floors, *_ = project["tool"]["importlinter"]["contracts"]
    named = {name.strip() for layer in floors["layers"] for name in layer.split("|")}
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms - {"__init__", "__main__"} == named
    assert floors["exhaustive"]


def test_no_name_that_is_loaded_late_is_hidden_by_a_file() -> None:
    """Whoever imports a file of a package sets its name there."""
    for stub in SOURCE.rglob("__init__.pyi"):
        names = {
            alias.name
            for node in ast.parse(stub.read_text("utf-8")).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        tree = ast.parse(stub.with_suffix(".py").read_text("utf-8"))
        at_once = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert not {path.stem for path in stub.parent.iterdir()} & (names - at_once), stub.parent.name
