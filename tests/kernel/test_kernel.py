"""The kernel is what its docstring says: each file is named once, and imports files that were read before it alone."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import reticent.kernel

ROOT = Path(reticent.kernel.__file__).parent
MOST = 6000
"""Lines of code that a researcher reads in a day."""


def in_order() -> list[str]:
    """The files, as the docstring has them read."""
    lists = re.findall(r"^    (\S.*?)$", reticent.kernel.__doc__ or "", re.MULTILINE)
    return [name for line in lists for name in re.findall(r"[a-z_.]+", line)]


def files() -> dict[str, Path]:
    found = (path for path in ROOT.rglob("*.py") if path.name != "__init__.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in found}


def homes() -> dict[tuple[str, str], str]:
    """In which file each name of a package of the kernel is."""
    found = {}
    for stub in [*ROOT.glob("*/__init__.pyi"), *ROOT.glob("*/__init__.py")]:
        lines = re.findall(r"^from reticent\.kernel\.(\S+) import (\w+) as", stub.read_text("utf-8"), re.MULTILINE)
        found |= {(stub.parent.name, name): file for file, name in lines}
    return found


def run_at_import(tree: ast.Module) -> Iterator[ast.stmt]:
    """What a file does when it is imported, but for what type checkers read."""
    return (node for node in tree.body if not isinstance(node, ast.If))


def imported(path: Path) -> set[str]:
    """Files of reticent that a file imports while it is imported; of another room its whole name."""
    known, where, found = files(), homes(), set()
    for node in run_at_import(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("reticent"):
            continue
        for name in (alias.name for alias in node.names):
            room = (node.module or "").removeprefix("reticent.kernel").removeprefix(".")
            places = (f"{room}.{name}".removeprefix("."), where.get((room, name), ""), room)
            found.add(next((place for place in places if place in known), f"{node.module}.{name}"))
    return found


def test_the_docstring_names_each_file_once() -> None:
    assert sorted(in_order()) == sorted(files())


@pytest.mark.parametrize("name", in_order())
def test_each_file_imports_those_before_it_alone(name: str) -> None:
    before = in_order()[: in_order().index(name)]
    packages = {"reticent.kernel.pairs", "reticent.kernel.risk"}  # a name of these is read when it is used
    assert imported(files()[name]) - {*before} - packages == set()


def test_the_kernel_needs_numpy_and_scipy_alone() -> None:
    others = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            others |= {name.split(".")[0] for name in names} - sys.stdlib_module_names
    assert others == {"numpy", "scipy", "reticent"}
