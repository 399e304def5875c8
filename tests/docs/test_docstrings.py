"""Docstrings tell a colleague something: every public name has one, and it names its fields and its errors."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from types import ModuleType

import pytest

import reticent
from reticent.kernel.errors import ReticentError

OPTIONAL = ("reticent.training.cipher_triton", "reticent.watching.huggingface", "reticent.watching.lightning")
"""Modules whose libraries `make check` does not install."""


@cache
def modules() -> list[ModuleType]:
    found = [module.name for module in pkgutil.walk_packages(reticent.__path__, "reticent.")]
    public = (name for name in found if not any(part.startswith("_") for part in name.split(".")))
    return [importlib.import_module(name) for name in public if name not in OPTIONAL]


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Public functions, classes, and public methods and properties of classes that ``module`` defines."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isroutine(value) or inspect.isclass(value):
            yield name, value
        if inspect.isclass(value):
            for part, member in vars(value).items():
                if not part.startswith("_") and isinstance(member, (property, classmethod, staticmethod)):
                    yield f"{name}.{part}", getattr(value, part) if not isinstance(member, property) else member
                elif not part.startswith("_") and inspect.isfunction(member):
                    yield f"{name}.{part}", member


def documentation(module: ModuleType, name: str, value: object) -> str:
    """The docstring, or for a method the one that it inherits."""
    owner, _, part = name.rpartition(".")
    if owner:
        base = next((getattr(kind, part) for kind in getattr(module, owner).__mro__ if _own(kind, part)), None)
        return inspect.getdoc(base) or ""
    return inspect.getdoc(value) or ""


def _own(kind: type, part: str) -> bool:
    return bool(getattr(vars(kind).get(part), "__doc__", None))


Checked = Iterator[tuple[str, bool]]
"""What was looked at, and whether its docstring is whole."""


def documented() -> Checked:
    for module in modules():
        for name, value in public(module):
            yield f"{module.__name__}.{name}", len(documentation(module, name, value)) >= 12


def fields_named() -> Checked:
    for module in modules():
        for name, kind in public(module):
            if inspect.isclass(kind) and is_dataclass(kind):
                text = " ".join(inspect.getdoc(each) or "" for each in kind.__mro__ if each is not object)
                for each in fields(kind):
                    if not each.name.startswith("_"):
                        told = each.name in text or bool(each.metadata.get("help"))  # as the options say it
                        yield f"{module.__name__}.{name}.{each.name}", told


def errors_named() -> Checked:
    """Errors of ours that a public function raises in its own body. (The text of a verb is its help.)"""
    ours = {each.__name__ for each in _below(ReticentError)}
    for module in modules():
        if not module.__name__.startswith("reticent.cli"):
            for scope, function in _functions(ast.parse(inspect.getsource(module))):
                said = _words(ast.get_docstring(function) or "")
                for error in sorted(_raised(function) & ours):
                    yield f"{module.__name__}.{scope}: {error}", error in said


def _raised(function: ast.FunctionDef) -> set[str]:
    calls = [node.exc for node in ast.walk(function) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _below(kind: type) -> Iterator[type]:
    yield kind
    for each in kind.__subclasses__():
        yield from _below(each)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
                    yield f"{node.name}.{each.name}", each


@pytest.mark.docs
@pytest.mark.parametrize("check", [documented, fields_named, errors_named])
def test_nineteen_of_twenty_docstrings_are_whole(check: Callable[[], Checked]) -> None:
    """The list in the failure is what to write."""
    found = list(check())
    gaps = [name for name, whole in found if not whole]
    assert len(found) > 100
    assert len(gaps) <= 0.05 * len(found), gaps


FRONT_DOOR = sorted(name for name in reticent.__all__ if not name.startswith("_"))


@pytest.mark.docs
@pytest.mark.parametrize("name", FRONT_DOOR)
def test_names_of_the_front_door_say_what_they_take(name: str) -> None:
    value = getattr(reticent, name)
    text = inspect.getdoc(value) or ""
    assert len(text.split()) > 8, name


@pytest.mark.docs
def test_examples_in_docstrings_run() -> None:
    tried = 0
    for module in modules():
        result = doctest.testmod(module)
        assert result.failed == 0, module.__name__
        tried += result.attempted
    assert tried >= 25


@pytest.mark.docs
def test_a_gap_is_seen() -> None:
    tree = ast.parse('def f(x):\n    """Text."""\n    raise ParameterError("x", x, "1")')
    ((_, function),) = _functions(tree)
    assert _raised(function) - _words(ast.get_docstring(function) or "") == {"ParameterError"}
