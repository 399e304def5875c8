"""What a mutant does to the source: a place by its name, and an edit of its syntax tree.

Neither the file nor the layout of the code matters: a mutant outlives every move of its function. Only the statement
with the edit is written anew; the rest of its file stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_OPERATORS = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "**": ast.Pow, "%": ast.Mod,
    "@": ast.MatMult, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor, "<<": ast.LShift, ">>": ast.RShift,
    "and": ast.And, "or": ast.Or, "==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt,
    ">=": ast.GtE, "is": ast.Is, "is not": ast.IsNot, "in": ast.In, "not in": ast.NotIn,
}  # fmt: skip
_LISTS = ("args", "keywords", "elts", "ifs", "bases", "decorator_list")
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Put:
    """One part becomes another: an operator, an expression, a keyword ``name=value``, or statements.

    ``if x:`` stands for the condition of the statement that begins so.
    """

    before: str
    after: str

    def __str__(self) -> str:
        return f"{_shown(self.before)} becomes {_shown(self.after)}"

    def edits(self, root: ast.AST) -> Iterator[Edit]:
        """Each place below ``root`` where the edit is possible."""
        if self.before in _OPERATORS:
            for slot in _slots(root, ast.operator | ast.boolop | ast.cmpop):
                if type(slot.now) is _OPERATORS[self.before]:
                    yield slot.edit(_OPERATORS[self.after]())
            return
        if self.before.endswith(":") and self.after.endswith(":"):
            after = _body(self.after)[0]
            for slot in _slots(root, ast.If):
                if _same(slot.now, _body(self.before)[0]):
                    yield _Slot(slot.now, "test", None, slot.now.test, slot.now).edit(after.test)
            return
        before, after = _parts(self.before), _parts(self.after)
        for part in before.keys() & after.keys():
            for slot in _slots(root, type(before[part])):
                if _same(slot.now, before[part]):
                    yield slot.edit(after[part])
        if not ("expression" in before and "expression" in after):
            yield from _statements(root, _body(self.before), _body(self.after))


@dataclass(frozen=True)
class Drop:
    """One part goes.

    An operand with its operator (``+ x``, ``x and``), an argument, a keyword or an entry of a list, or statements.
    ``if x:`` stands for the whole statement that begins so.
    """

    what: str

    def __str__(self) -> str:
        return f"{_shown(self.what)} goes"

    def edits(self, root: ast.AST) -> Iterator[Edit]:
        """Each place below ``root`` where the edit is possible."""
        for operator in sorted(_OPERATORS, key=len, reverse=True):
            for first in (True, False):
                rest = self.what.removesuffix(f" {operator}") if first else self.what.removeprefix(f"{operator} ")
                if rest != self.what:
                    yield from _operands(root, _OPERATORS[operator], _parts(rest)["expression"], first)
                    return
        yield from _statements(root, _body(self.what), [])
        for part in _parts(self.what).values():
            for slot in _slots(root, type(part)):
                if slot.field in _LISTS and _same(slot.now, part):
                    yield slot.edit(None)


@dataclass(frozen=True)
class Edit:
    """Statements that follow each other, and the text that replaces them."""

    first: ast.stmt
    last: ast.stmt
    text: str

    def applied(self, source: str) -> str:
        """The source of the file with the edit."""
        lines = source.encode().splitlines(keepends=True)
        begins = min([self.first.lineno, *(d.lineno for d in getattr(self.first, "decorator_list", ()))]) - 1
        head, tail = lines[begins][: self.first.col_offset], lines[self.last.end_lineno - 1][self.last.end_col_offset :]
        text = self.text
        if lines[begins][self.first.col_offset :].startswith(b"elif"):
            text = "else:\n" + "\n".join(f"    {line}" for line in text.splitlines())
        text = text.replace("\n", "\n" + " " * self.first.col_offset)
        return b"".join([*lines[:begins], head, text.encode(), tail, *lines[self.last.end_lineno :]]).decode()


@dataclass(frozen=True)
class Place:
    """What one dotted name stands for: the file, and each definition there under that name."""

    file: Path
    nodes: tuple[ast.AST, ...]

    def edits(self, operation: Put | Drop) -> list[Edit]:
        """Every way to apply ``operation`` here; one if the mutant is as it should be."""
        return [edit for node in self.nodes for edit in operation.edits(node)]


class Places:
    """The functions, classes, fields and constants of a package, by dotted name."""

    def __init__(self, package: Path) -> None:
        self._found: dict[str, list[tuple[str, Place]]] = {}
        for path in sorted(package.rglob("*.py")):
            module = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
            named: dict[str, list[ast.AST]] = {}
            for name, node in _definitions(ast.parse(path.read_text())):
                named.setdefault(name, []).append(node)
            for name, nodes in named.items():
                full = f"{module}.{name}"
                self._found.setdefault(name.rpartition(".")[2], []).append((full, Place(path, tuple(nodes))))

    def find(self, name: str) -> list[Place]:
        """Every place whose full name ends with ``name``: ``Segment.charged``, or ``lattice._STEP_ERROR``."""
        known = self._found.get(name.rpartition(".")[2], [])
        return [place for full, place in known if f".{full}".endswith(f".{name}")]


def _definitions(node: ast.AST, inside: str = "", of_function: bool = False) -> Iterator[tuple[str, ast.AST]]:
    """Everything that has a name at the level of a module or a class, and functions in functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _NAMED):
            yield inside + child.name, child
            yield from _definitions(child, f"{inside}{child.name}.", not isinstance(child, ast.ClassDef))
        elif isinstance(child, ast.Assign | ast.AnnAssign) and not of_function:
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            yield from ((inside + name.id, child) for name in names if isinstance(name.ctx, ast.Store))
        elif not isinstance(child, ast.expr):
            yield from _definitions(child, inside, of_function)


@dataclass(frozen=True)
class _Slot:
    """A child of a node of a syntax tree, and the statement that it is in."""

    owner: ast.AST
    field: str
    index: int | None
    now: ast.AST
    statement: ast.stmt

    def edit(self, new: ast.AST | None) -> Edit:
        """The edit that puts ``new`` here, or takes out what is here."""
        old = getattr(self.owner, self.field)
        put = new if self.index is None else [*old[: self.index], *([new] if new else []), *old[self.index + 1 :]]
        setattr(self.owner, self.field, put)
        text = ast.unparse(self.statement)
        setattr(self.owner, self.field, old)
        return Edit(self.statement, self.statement, text)


def _slots(root: ast.AST, kind: type | object, statement: ast.stmt | None = None) -> Iterator[_Slot]:
    """Every child of ``kind`` of a node below ``root``."""
    inside = root if isinstance(root, ast.stmt) else statement
    for field, value in ast.iter_fields(root):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                if isinstance(child, kind):
                    yield _Slot(root, field, index, child, inside)
                yield from _slots(child, kind, inside)


def _statements(root: ast.AST, before: list[ast.stmt], after: list[ast.stmt]) -> Iterator[Edit]:
    """Statements that follow each other as ``before`` does."""
    text = "\n".join(map(ast.unparse, after)) or "pass"
    bodies = [value for node in ast.walk(root) for _, value in ast.iter_fields(node) if isinstance(value, list)]
    for body in [[root], *bodies]:
        for start in range(len(body) - len(before) + 1):
            found = body[start : start + len(before)]
            if all(map(_same, found, before)):
                yield Edit(found[0], found[-1], text)


def _operands(root: ast.AST, kind: type, operand: ast.expr, first: bool) -> Iterator[Edit]:
    """Sums, products and conditions from which ``operand`` can go, as the first or as a later part."""
    for slot in _slots(root, ast.BinOp | ast.BoolOp):
        now = slot.now
        if not isinstance(now.op, kind):
            continue
        if isinstance(now, ast.BinOp):
            goes, stays = (now.left, now.right) if first else (now.right, now.left)
            if _same(goes, operand):
                yield slot.edit(stays)
            continue
        for index, value in enumerate(now.values):
            if (index == 0) is first and _same(value, operand):
                rest = [*now.values[:index], *now.values[index + 1 :]]
                yield slot.edit(ast.BoolOp(now.op, rest) if len(rest) > 1 else rest[0])


def _body(text: str) -> list[ast.stmt]:
    return ast.parse(f"{text} ..." if text.endswith(":") else text).body


def _parts(text: str) -> dict[str, ast.AST]:
    """What ``text`` can be within a statement."""
    match _body(text):
        case [ast.Expr(value=value)]:
            return {"expression": value}
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            return {"keyword": ast.keyword(name, value)}
    return {}


def _same(node: ast.AST, pattern: ast.AST) -> bool:
    """Whether ``node`` is ``pattern``; a pattern with the body ``...`` stands for every body."""
    if type(node) is not type(pattern):
        return False
    match pattern:
        case ast.If(body=[ast.Expr(value=ast.Constant(value=value))]) if value is ...:
            return ast.dump(node.test) == ast.dump(pattern.test)
    return ast.dump(node) == ast.dump(pattern)


def _shown(code: str) -> str:
    """Code in Markdown, line by line."""
    return " ".join(f"`{line.strip()}`" for line in code.splitlines())
