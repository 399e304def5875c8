"""Strategies: good documents with a few things put wrong, and plain noise."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

NUMBERS = (0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 10**400, 0.0, -0.0, 0.5, 1.0, 1e-300, 1e-308, 5e-324)
LARGE = (1e300, 1.7e308, float("nan"), float("inf"))
PATHS = ("../../etc/passwd", "/etc/passwd", "/dev/zero")
WORDS = ("", "nan", "inf", "1e400", "\x1b[2J\x1b]0;x\x07", "\ud800", "\u202e", *PATHS)
LONG = ("a" * 10_000, "1" * 5000, "\0", "0x10", "2024-13-45", "%s%n", "{{7*7}}", "<script>", "0" * 64)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [0] * 50, {"a": {}})
SCALARS = st.one_of(
    st.sampled_from([*NUMBERS, *LARGE, *WORDS, *LONG, *OTHERS]), st.integers(-3, 100), st.floats(), st.text(max_size=12)
)
KEYS = st.one_of(
    st.sampled_from(["", "a", "schema", "value", "0.5", "1e400", "nan", "\x1b", "\ud800"]), st.text(max_size=5)
)


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@st.composite
def damaged(draw: st.DrawFn, document: Any, most: int = 4) -> Any:
    """The document with one to ``most`` changes somewhere in it."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, most))):
        parent, key = _place(draw, changed)
        if parent is None:
            continue
        match draw(st.sampled_from(["set", "set", "set", "drop", "add", "rename", "many", "deep", "swap"])):
            case "set":
                parent[key] = copy.deepcopy(draw(SCALARS))
            case "drop":
                del parent[key]
            case "add" if isinstance(parent, dict):
                parent[draw(KEYS)] = copy.deepcopy(draw(SCALARS))
            case "rename" if isinstance(parent, dict):
                parent[draw(KEYS)] = parent.pop(key)
            case "many":
                old = copy.deepcopy(parent[key])
                count = draw(st.sampled_from([10, 1000, 20_000])) if len(repr(old)) < 200 else 10
                parent[key] = {str(k): old for k in range(count)} if isinstance(parent, dict) else [old] * count
            case "deep":
                parent[key] = nested(draw(st.sampled_from([10, 60, 100, 900])))
            case "swap":
                other, at = _place(draw, changed)
                if other is not None:
                    parent[key] = copy.deepcopy(other[at])
    return changed


def _place(draw: st.DrawFn, document: Any) -> tuple[Any, Any]:
    """A random entry of a random container, the top more often than the bottom."""
    parent, key, here = None, None, document
    while isinstance(here, (dict, list)) and here:
        parent = here
        key = (
            draw(st.sampled_from(sorted(here, key=str)))
            if isinstance(here, dict)
            else draw(st.integers(0, len(here) - 1))
        )
        here = here[key]
        if draw(st.integers(0, 3)) == 0:
            break
    return parent, key


def text_of(document: Any) -> bytes:
    """JSON as a stranger writes it: NaN, surrogates and all."""
    return json.dumps(document).encode("utf-8", "surrogatepass")


@st.composite
def bitten(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes with a few bites taken out, put in, or repeated."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        to = min(len(content), at + draw(st.integers(0, 40)))
        content = draw(
            st.sampled_from(
                [
                    content[:at] + content[to:],
                    content[:at] + draw(st.binary(max_size=12)) + content[to:],
                    content[:to] + content[at:to] * 50 + content[to:],
                    content[:at],
                ]
            )
        )
    return content
