"""What may differ between two answers of one case, and by how much.

An answer is a tree of JSON: objects, lists, texts, numbers. ``[lower, upper]`` under a key that ends in ``[]`` is an
enclosure, and each end is compared by itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SHARE_OF_WIDTH = 0.01
RELATIVE = 1e-9
_MASKED = (
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|\+00:00| UTC)?)?", "DAY"),
    (
        r"\b\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December) \d{4}",
        "DAY",
    ),
    (r"\b[0-9a-f]{16,128}\b", "DIGEST"),
    (r"(?:\b\d+(?:\.\d+)?|\ba)(?: CPU)?\s+s(?:ec(?:onds?)?)?\b", "SECONDS"),
    (r" at 0x[0-9a-f]+", ""),
    (r"(?:/[\w.+-]+)*/tmp\w*(?:/[\w.+-]+)*/", "FOLDER/"),
)


def masked(text: str) -> str:
    """Without days, digests, seconds and temporary folders."""
    for pattern, word in _MASKED:
        text = re.sub(pattern, word, text)
    return text


@dataclass(frozen=True)
class Difference:
    """One leaf that is not as it was.

    Attributes:
        where: the keys to it, after section and case.
        before: what is stored; None where there was nothing.
        after: what is answered now.
        unsafe: an upper end that fell or a lower end that rose: it needs a proof by name.
    """

    where: str
    before: Any
    after: Any
    unsafe: bool = False

    def __str__(self) -> str:
        mark = "  UNSAFE WITHOUT A PROOF" if self.unsafe else ""
        return f"{self.where}: {_short(self.before)} -> {_short(self.after)}{mark}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:140]} ... {text[-50:]}"


def differences(before: Any, after: Any, where: str = "") -> Iterator[Difference]:
    """All leaves that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            place = f"{where}/{key}"
            if key not in before or key not in after:
                yield Difference(place, before.get(key), after.get(key))
            elif key.endswith("[]"):
                yield from _ends(before[key], after[key], place)
            else:
                yield from differences(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{where}/{index}")
    elif isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield from _lines(before, after, where)
    elif not _same(before, after, 0.0):
        yield Difference(where, before, after)


def _lines(before: str, after: str, where: str) -> Iterator[Difference]:
    """The lines that went and those that came."""
    old, new = before.split("\n"), after.split("\n")
    gone, come = [line for line in old if line not in new], [line for line in new if line not in old]
    if gone or come or len(old) != len(new):
        yield Difference(where, "\n".join(gone), "\n".join(come))


def _ends(before: Any, after: Any, where: str) -> Iterator[Difference]:
    """Each end of an enclosure; the room is a hundredth of the old width."""
    if before is None or after is None:
        if before != after:
            yield Difference(where, before, after)
        return
    width = before[1] - before[0] if all(map(_is_number, before)) else 0.0
    room = SHARE_OF_WIDTH * width if math.isfinite(width) else 0.0
    for name, old, new in zip(("lower", "upper"), before, after, strict=True):
        if not _same(old, new, room):
            tighter = _is_number(old) and _is_number(new) and (new > old) == (name == "lower")
            yield Difference(f"{where}/{name}", old, new, unsafe=tighter)


def _same(old: Any, new: Any, room: float) -> bool:
    if _is_number(old) and _is_number(new):
        return old == new or abs(new - old) <= max(room, RELATIVE * max(abs(old), abs(new)))
    return type(old) is type(new) and old == new


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
