"""What may differ between two answers of one case, and by how much.

An answer is a tree of JSON: objects, lists, texts, numbers. ``[lower, upper]`` under a key that ends in ``[]`` is an
enclosure, and each end is compared by itself; a third number is what is claimed, where that is not the safe end.
Lists of texts, and texts of several lines, are compared line by line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from itertools import zip_longest
from typing import Any

SHARE_OF_WIDTH = 0.01
"""Of an enclosure, and of the slack of a search: rounding says where that ends."""
RELATIVE = 1e-9
STATED_DIGITS = 8
"""Significant digits of an end in a document. Another processor may round the last of them to its neighbour."""
_NEEDS_PROOF = (("assumed", "declared", "checked"), ("not read", "refused", "accepted"))
"""From left to right somebody vouches for more than before: such a move needs a proof, too."""
_MASKED = (
    (r"\b\d\d[./]\d\d[./]\d{4}\b", "DAY"),
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|\+00:00| UTC)?)?", "DAY"),
    (
        r"\b\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December) \d{4}",
        "DAY",
    ),
    (r"\b[0-9a-f]{16,128}\b", "DIGEST"),
    (r"(?:\b\d+(?:\.\d+)?|\ba)(?: CPU)?\s+s(?:ec(?:onds?)?)?\b", "SECONDS"),
    (r"SECONDS\s+on this machine", "SECONDS"),
    (r" at 0x[0-9a-f]+", ""),
    (r"\b\d+ (numbers and sentences|facts of the ledger)", r"COUNT \1"),
    (r"(?:/[\w.+-]+)*/tmp\w*(?:/[\w.+-]+)*/", "FOLDER/"),
)


def masked(text: str) -> str:
    """Without days, digests, seconds, temporary folders, and how many leaves a document has."""
    for pattern, word in _MASKED:
        text = re.sub(pattern, word, text)
    return text


@dataclass(frozen=True)
class Difference:
    """One leaf that is not as it was.

    Attributes:
        where: the keys to it, after section and case.
        before: what is stored; None where there was nothing.
        after: what is answered now; None where there is nothing.
        unsafe: an upper end that fell, a lower end that rose, or a word that vouches for more: that needs a proof.
    """

    where: str
    before: Any
    after: Any
    unsafe: bool = False

    @property
    def kind(self) -> str:
        """The section and the last keys: what differs in the same way has the same kind."""
        keys = self.where.split("/")
        last = "a new case" if self.after == "a new case" else keys[-1]
        return f"{keys[0]} ... {last}{self._mark}"

    @property
    def _mark(self) -> str:
        return "  UNSAFE WITHOUT A PROOF" if self.unsafe else ""

    def __str__(self) -> str:
        before, after = ("nothing" if value is None else repr(value) for value in (self.before, self.after))
        same = next((i for i, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0) - 60
        return f"{self.where}: {_short(before, same)} -> {_short(after, same)}{self._mark}"


def _short(text: str, same: int) -> str:
    """Long ones from where they begin to differ."""
    text = f"... {text[same:]}" if same > 60 else text
    return text if len(text) < 250 else f"{text[:200]} ... {text[-40:]}"


def differences(before: Any, after: Any, where: str = "") -> Iterator[Difference]:
    """All leaves that differ."""
    before, after = _by_name(before), _by_name(after)
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            place = f"{where}/{key}"
            if key not in before or key not in after:
                yield Difference(place, before.get(key), after.get(key))
            elif key.endswith("[]"):
                yield from _ends(before[key], after[key], place)
            else:
                yield from differences(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and not _texts(before):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{where}/{index}")
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lines(list(map(_line, before)), list(map(_line, after)), where)
    elif isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield from _lines(before.split("\n"), after.split("\n"), where)
    elif not _same(before, after, SHARE_OF_WIDTH * before if where.endswith("/slack") and _is_number(before) else 0.0):
        yield Difference(where, before, after, unsafe=_vouches_for_more(before, after))


def _by_name(value: Any) -> Any:
    """A list of attackers by their name and relation, so that one more or less moves no other."""
    if not (isinstance(value, list) and value and all(isinstance(one, dict) and "adversary" in one for one in value)):
        return value
    named = {f"{one.get('label', one['adversary'])}, {one.get('neighbouring')}": one for one in value}
    return named if len(named) == len(value) else value


def _texts(value: list[Any]) -> bool:
    return all(isinstance(one, str) for one in value)


def _line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(before: list[str], after: list[str], where: str) -> Iterator[Difference]:
    """The lines that went and those that came, side by side."""
    changes = list(unified_diff(before, after, n=0, lineterm=""))[2:]
    gone, come = ([line[1:] for line in changes if line.startswith(sign)] for sign in "-+")
    for old, new in zip_longest(gone, come):
        yield Difference(where, old, new)


def claimed_end(key: str, ends: list[Any]) -> Any:
    """The safe end of two: the upper one of a risk, the lower one of a security."""
    return ends[0] if key.startswith("bayes_security") else ends[1]


def _ends(before: Any, after: Any, where: str) -> Iterator[Difference]:
    """Each end of an enclosure, and the number that is claimed; the room is a hundredth of the old width."""
    if before is None or after is None:
        if before != after:
            yield Difference(where, before, after)
        return
    width = before[1] - before[0] if all(map(_is_number, before)) else 0.0
    room = SHARE_OF_WIDTH * width if math.isfinite(width) else 0.0
    key = where.split("/")[-1]
    sides = {"lower": "lower", "upper": "upper", "claimed": claimed_end(key, ["lower", "upper"])}
    claims = [ends if ends[2:] else [*ends, claimed_end(key, ends)] for ends in (before, after)]
    for (name, side), old, new in zip(sides.items(), *claims, strict=True):
        if not (_same(old, new, room) or _neighbours(old, new)):
            tighter = _is_number(new) and (not _is_number(old) or (new > old) == (side == "lower"))
            yield Difference(f"{where}/{name}", old, new, unsafe=tighter)


def _vouches_for_more(old: Any, new: Any) -> bool:
    return any(old in row and new in row and row.index(old) < row.index(new) for row in _NEEDS_PROOF)


def _same(old: Any, new: Any, room: float) -> bool:
    if _is_number(old) and _is_number(new):
        return old == new or abs(new - old) <= max(room, RELATIVE * max(abs(old), abs(new)))
    return type(old) is type(new) and old == new


def _neighbours(old: Any, new: Any) -> bool:
    """Whether two numbers are stated to eight digits and differ by one of the last, or by none."""
    if not all(isinstance(value, float) and value == float(f"{value:.{STATED_DIGITS}g}") for value in (old, new)):
        return False
    one = 10.0 ** (math.floor(math.log10(max(abs(old), abs(new), 1e-300))) - STATED_DIGITS + 1)
    return abs(new - old) < 1.5 * one


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
