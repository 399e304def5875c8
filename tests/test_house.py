"""The ratchet of docs/development/house.md: what later steps have to take away may only become less.

``ratchet.toml`` has one number for each old way, and the lines of code of each folder. A number that has fallen is
written down in the commit that lowers it, so that it cannot rise again.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "reticent"
RATCHET = tomllib.loads((TESTS / "ratchet.toml").read_text(encoding="utf-8"))
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
LEDGERS = {"RunLedger", "PublicLedger", "WatchedRun", "PublicWatchedRun"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of_code(path: Path) -> int:
    """Lines that hold a token of code; a string that stands alone is a docstring."""
    told = {
        line
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    held = {line for t in tokens if t.type not in SILENT for line in range(t.start[0], t.end[0] + 1)}
    return len(held - told)


def folder_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else "top"


def modules_named(path: Path) -> set[str]:
    """The local names of modules of reticent in a file."""
    names = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent"):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or "reticent" for alias in node.names if alias.name.startswith("reticent")}
    return names


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_uses(path: Path) -> Iterator[str]:
    """Private names of reticent that a file of tests imports, reads off something of reticent, or replaces."""
    ours = modules_named(path)
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent"):
            yield from filter(is_private, [*(node.module or "").split("."), *(alias.name for alias in node.names)])
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            root: ast.expr = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in ours:
                yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr":
            words = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            yield from (word for word in words if is_private(word.rpartition(".")[2]))


def isinstance_of(path: Path, names: set[str]) -> int:
    calls = (n for n in ast.walk(tree(path)) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "isinstance")
    return sum(1 for call in calls if {n.id for n in ast.walk(call) if isinstance(n, ast.Name)} & names)


def mechanisms() -> set[str]:
    found = {"Mechanism", "Ledger", "Selection", "OneOf"}
    for path in (SOURCE / "mechanisms").glob("*.py"):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and any(getattr(b, "id", "") == "Mechanism" for b in node.bases):
                found.add(node.name)
    return found


@cache
def samplers() -> dict[str, str]:
    """Names of the classes of ``samplers``, and how people spell them."""
    found = {}
    for path in (SOURCE / "samplers").glob("*.py"):
        for node in (node for node in tree(path).body if isinstance(node, ast.ClassDef)):
            for line in (line for line in node.body if isinstance(line, ast.AnnAssign) and line.value is not None):
                if getattr(line.target, "id", "") == "name" and isinstance(line.value, ast.Constant):
                    found[node.name] = str(line.value.value)
    return found


def samplers_named(path: Path) -> int:
    """How often a file imports the class or the file of one sampler, or spells the name of one that has two words."""
    leaves = {name: re.sub(r"(?<=.)([A-Z])", r"_\1", name).lower() for name in samplers()}
    spelt = {name for name in samplers().values() if "-" in name}
    if path.suffix != ".py":
        return sum(path.read_text("utf-8").count(name) for name in spelt)
    found = 0
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent.samplers"):
            whole = (node.module or "").rpartition(".")[2] in leaves.values()
            found += sum(1 for alias in node.names if whole or alias.name in leaves)
        elif isinstance(node, ast.Constant):
            found += node.value in spelt
    return found


def old_ways() -> dict[str, int]:
    source = sorted(SOURCE.rglob("*.py"))
    outside = [path for path in source if folder_of(path) != "mechanisms"]
    drawing = [path for kind in ("py", "css", "js", "html") for path in SOURCE.rglob(f"*.{kind}")]
    drawing = [path for path in drawing if folder_of(path) != "samplers"]
    foreign = re.compile(r"\bctypes\b|_getframe|get_referents|\.__class__ = ")
    return {
        "private names in tests": sum(len(list(private_uses(path))) for path in TESTS.rglob("*.py")),
        "isinstance of a ledger": sum(isinstance_of(path, LEDGERS) for path in source),
        "isinstance of a mechanism outside of mechanisms": sum(isinstance_of(path, mechanisms()) for path in outside),
        "samplers named outside of samplers": sum(map(samplers_named, drawing)),
        "touches of other people's types": sum(len(foreign.findall(path.read_text("utf-8"))) for path in source),
    }


@pytest.mark.parametrize("way", RATCHET["ways"])
def test_an_old_way_becomes_no_more_frequent(way: str) -> None:
    assert old_ways()[way] == RATCHET["ways"][way], "more is refused; where it is less, write the lower number down"


def test_every_old_way_is_counted() -> None:
    assert old_ways().keys() == RATCHET["ways"].keys()


def test_no_folder_is_above_its_budget() -> None:
    """A budget may grow in the commit that says why."""
    lines: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        lines[folder_of(path)] += lines_of_code(path)
    above = {name: count for name, count in lines.items() if count > RATCHET["lines"].get(name, 0)}
    assert not above
    assert sum(RATCHET["lines"].values()) <= RATCHET["most"]["lines"]


def test_what_counts_as_private(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    imports = "from reticent.a import _b\nfrom reticent.a._g import h\nfrom reticent import c\n"
    path.write_text(f"{imports}c._d\nself._e\nmonkeypatch.setattr(c, '_f', 1)\nc.__doc__\n", encoding="utf-8")
    assert sorted(private_uses(path)) == ["_b", "_d", "_f", "_g"]
