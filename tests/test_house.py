"""The ratchet of docs/development/house.md: what later steps have to take away may only become less.

``ratchet.toml`` has one number for each old way, and the lines of code of each folder. A number that has fallen is
written down in the commit that lowers it, so that it cannot rise again.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

import reticent as rt

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "reticent"
RATCHET = tomllib.loads((TESTS / "ratchet.toml").read_text(encoding="utf-8"))
LEDGERS = {"RunLedger"}


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def words(path: Path) -> frozenset[str]:
    """Only files that have a word of what is looked for are parsed."""
    return frozenset(re.findall(r"[\w-]+", text_of(path)))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


LONG = re.compile(r'^([^\n\']*?)"""(.*?)"""', re.MULTILINE | re.DOTALL)
"""A long text, and what stands before it."""


def lines_of_code(path: Path) -> int:
    """Lines that hold something else than a comment; a text that begins its line is a docstring."""

    def counted(found: re.Match[str]) -> str:
        return found[1] + "x\n" * found[2].count("\n") + "x" if found[1].strip(" r") else ""

    lines = (line.strip() for line in LONG.sub(counted, text_of(path)).splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def folder_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else "top"


def modules_named(path: Path) -> set[str]:
    """The local names of modules of reticent in a file."""
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent"):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or "reticent" for alias in node.names if alias.name.startswith("reticent")}
    return names


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


MAYBE_PRIVATE = re.compile(
    r"""\b(?!self\b|cls\b)\w+\._[a-z]|['"][\w.]*\b_[a-z]|import .*\b_[a-z]|^ +_\w+,?$""", re.MULTILINE
)


def private_uses(path: Path) -> Iterator[str]:
    """Private names of reticent that a file of tests imports, reads off something of reticent, or replaces."""
    if not MAYBE_PRIVATE.search(text_of(path)):
        return
    ours = modules_named(path)
    for node in nodes(path):
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


ISINSTANCE = re.compile(r"(?<!\.)\bisinstance(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))")


def isinstance_of(path: Path, names: set[str]) -> int:
    return sum(not names.isdisjoint(re.findall(r"(?<!\.)\b\w+", call)) for call in ISINSTANCE.findall(text_of(path)))


def mechanisms() -> set[str]:
    """Those that one may be of; that it is one at all, and no ledger, every door may ask."""
    found = {"Ledger", "Selection", "OneOf"}
    for path in [*(SOURCE / "mechanisms").glob("*.py"), *(SOURCE / "kernel" / "mechanisms").glob("*.py")]:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and any(getattr(b, "id", "") == "Mechanism" for b in node.bases):
                found.add(node.name)
    return found


class Leaves(NamedTuple):
    """The leaves of one kind: where each is at home (a file, or a folder of its own), and how people spell it.

    What is in the kernel is no leaf: every room may name it.
    """

    folder: str
    homes: dict[str, Path]
    spelt: set[str]

    def may_be_in(self, path: Path) -> bool:
        """Whether a file has one of their names, or imports from a file that is called like one of theirs."""
        files = {home.stem for home in self.homes.values()} if f"reticent.{self.folder}." in text_of(path) else set()
        return not {*self.homes, *self.spelt, *files}.isdisjoint(words(path))

    @property
    def modules(self) -> tuple[str, ...]:
        return tuple(".".join(home.relative_to(SOURCE.parent).with_suffix("").parts) for home in self.homes.values())


KINDS = {
    "pairs": ("pairs", "Pair"),
    "routes": ("accountants", "Route"),
    "samplers": ("samplers", "Sampler"),
    "mechanisms": ("mechanisms", "Mechanism"),
    "attackers": ("adversaries", "Adversary"),
}
"""The folder of each kind, and what its leaves are subclasses of; those of a kind may be built on all before it."""
BUILT_ON_LEAVES = tuple(
    SOURCE / name for name in ("interop", "attacks", "training/selecting.py", "watching/allocation.py")
)
"""Leaves of other rooms, each about those that it names: bridges, attacks, the trainer of a selection, a loader."""


@cache
def leaves(kind: str) -> Leaves:
    folder, base = KINDS[kind]
    found, known, spelt = {}, {base: SOURCE}, set()
    rooms = [SOURCE / folder, SOURCE / "kernel" / folder]
    classes = [(path, n) for room in rooms for path in room.rglob("*.py") for n in tree(path).body]
    classes = [(path, node) for path, node in classes if isinstance(node, ast.ClassDef)]
    while more := [
        (p, n) for p, n in classes if n.name not in known and {getattr(b, "id", "") for b in n.bases} & {*known}
    ]:
        for path, node in more:
            known[node.name] = path
            if "kernel" in path.relative_to(SOURCE).parts:
                continue
            found[node.name] = SOURCE / folder / path.relative_to(SOURCE / folder).parts[0]
            lines = (
                line for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Constant)
            )
            spelt |= {str(line.value.value) for line in lines if getattr(line.target, "id", "") == "name"}
    return Leaves(folder, found, {name for name in spelt if "-" in name})


def leaves_named(kind: str, path: Path) -> int:
    """How often a file that is no leaf imports something of a leaf's file, or spells a name of two words."""
    kinds, one = [*KINDS], leaves(kind)
    if not one.may_be_in(path) or not {*BUILT_ON_LEAVES}.isdisjoint((path, *path.parents)):
        return 0
    if any(
        home in (path, *path.parents) for built in kinds[kinds.index(kind) :] for home in leaves(built).homes.values()
    ):
        return 0
    if path.suffix != ".py":
        return sum(text_of(path).count(name) for name in one.spelt)
    found = 0
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"reticent.{one.folder}."):
            whole = any(f"{node.module}.".startswith(f"{module}.") for module in one.modules)
            found += sum(1 for alias in node.names if whole or alias.name in one.homes)
        elif isinstance(node, ast.Attribute):
            found += node.attr in one.homes and getattr(node.value, "id", "") == one.folder
        elif isinstance(node, ast.Constant):
            found += node.value in one.spelt
    return found


LOADED = """
import sys
print(*(module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "reticent"), sep="\\n")
assert not {"torch", "matplotlib"} & {*sys.modules}
"""
QUESTION = """
import reticent as rt
rt.assess(rt.DPSGD(1.0, 0.01, 1000), rt.WorstCase())
"""
VERIFIED = """
import contextlib, sys
from reticent.cli import main
sys.argv[1:] = ["verify", sys.argv[1]]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr):
    main()
"""


def loaded_by(program: str, *given: str) -> int:
    """The lines of code that a process loads which was asked for nothing else."""
    command = [sys.executable, "-c", program + LOADED, *given]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sum(lines_of_code(Path(line)) for line in told.splitlines())


def loaded_by_verify() -> int:
    """Of a certificate that claims the worst case alone."""
    with TemporaryDirectory() as folder:
        rt.certify(rt.DPSGD(1.0, 0.01, 1000), adversary="worst-case").save(folder)
        return loaded_by(VERIFIED, str(Path(folder) / "certificate.json"))


def touches(text: str) -> Iterator[str]:
    """What reaches into types, modules or frames of others."""
    return (found.group() for found in re.finditer(r"\bctypes\b|_getframe|get_referents|\.__class__ = ", text))


def exchanges(path: Path) -> int:
    """How often a file sets an attribute of something that it does not own, or removes one."""
    found = 0
    for node in nodes(path):
        if isinstance(node, ast.Call):
            found += getattr(node.func, "id", getattr(node.func, "attr", "")) in ("setattr", "delattr")
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            found += node.attr in _METHODS and getattr(node.value, "id", "") not in ("self", "cls")
    return found


_METHODS = ("add_noise", "backward", "clip_and_accumulate", "collate_fn", "forward", "pre_step", "scale_grad", "step")
"""Names under which a watched object of the program has what it does."""


@cache
def old_ways() -> dict[str, int]:
    source = sorted(SOURCE.rglob("*.py"))
    outside = [path for path in source if "mechanisms" not in path.parts]
    files = [path for kind in ("py", "css", "js", "html") for path in SOURCE.rglob(f"*.{kind}")]
    watched = [path for path in source if folder_of(path) == "watching" and path.name != "events.py"]
    return {
        "private names in tests": sum(len(list(private_uses(path))) for path in TESTS.rglob("*.py")),
        "isinstance of a ledger": sum(isinstance_of(path, LEDGERS) for path in source),
        "isinstance of a mechanism outside of mechanisms": sum(isinstance_of(path, mechanisms()) for path in outside),
        **{f"{kind} named elsewhere": sum(leaves_named(kind, path) for path in files) for kind in KINDS},
        "touches of other people's types": sum(len(list(touches(text_of(path)))) for path in source),
        "touches of other people's objects": sum(map(exchanges, watched)),
        "lines that the worst case of a Poisson run imports": loaded_by(QUESTION),
        "lines that verify loads for a certificate of the worst case": loaded_by_verify(),
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


def test_what_counts_as_an_exchange(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    text = "setattr(loader, 'x', 1)\nloader.collate_fn = f\ndel optimizer.step\nself.step = 1\nx.rate = loader.step\n"
    path.write_text(text, encoding="utf-8")
    assert exchanges(path) == 3
    assert list(touches("import ctypes\nsys._getframe(1)\nit.__class__ = Other\nit.__class__ == Other\n")) == [
        "ctypes",
        "_getframe",
        ".__class__ = ",
    ]


@pytest.mark.parametrize(
    ("kind", "name", "text", "count"),
    [
        ("attackers", "planted.py", 'from reticent.adversaries import Relaxed as R\nx == "norm-only"\n', 2),
        ("attackers", "planted.py", "from reticent.adversaries.relaxed.sign import Law, curve\n", 2),
        ("attackers", "planted.py", 'from reticent.adversaries import Adversary\n"who is not norm-only"\n', 0),
        ("pairs", "planted.py", "from reticent import pairs\npairs.LaplacePair(1.0), pairs.Part\n", 1),
        ("routes", "planted.py", "from reticent.accountants.split import far\n", 1),
        ("samplers", "planted.css", ".random-allocation, .fixed-size-x {}\n", 2),
    ],
)
def test_what_counts_as_naming_a_leaf(tmp_path: Path, kind: str, name: str, text: str, count: int) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert leaves_named(kind, path) == count


def test_leaves_may_be_built_on_leaves_before_them() -> None:
    """An attacker on a mechanism, a sampler on a pair; not the other way round."""
    own = SOURCE / "adversaries" / "mixed.py"
    assert not leaves_named("attackers", own)
    assert not leaves_named("mechanisms", own)
    assert {"Mixed", "Relaxed"} <= leaves("attackers").homes.keys()
    assert leaves("attackers").homes["Relaxed"] == SOURCE / "adversaries" / "relaxed"
