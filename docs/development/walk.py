"""Which rooms a command walks through: ``python docs/development/walk.py risk dpsgd --noise-multiplier 1 ...``.

A room is a package of ``reticent``. Every call from one file into another is seen while the command runs; equal calls
(same function, called from the same function) count once. Printed: the rooms in the order in which they are first
entered, the arrows between them, and how many of these run upwards, against the order of the import rules.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import reticent
from reticent.cli import main

ROOT = Path(reticent.__file__).parent


def room_of(frame: FrameType | None) -> tuple[str, str] | None:
    """The package and the file:function of a frame; None outside of the library."""
    if frame is None or not frame.f_code.co_filename.startswith(str(ROOT)):
        return None
    parts = Path(frame.f_code.co_filename).relative_to(ROOT).parts
    return (parts[0] if len(parts) > 1 else "ground"), f"{'/'.join(parts)}:{frame.f_code.co_name}"


class Walk:
    """Calls between rooms, each pair of functions once."""

    def __init__(self) -> None:
        self.calls: dict[tuple[tuple[str, str], tuple[str, str]], None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_name in {"<module>", "<listcomp>", "<genexpr>", "<lambda>"}:
            return
        to, back = room_of(frame), frame.f_back
        while to and back is not None and room_of(back) is None:
            back = back.f_back
        start = room_of(back)
        if to and start and to[1].partition(":")[0] != start[1].partition(":")[0]:
            self.calls[start, to] = None

    def report(self) -> dict[str, Any]:
        """Rooms in order, calls between them, and how often the walk comes back into a room that it had left."""
        rooms, order, back, left = [], [], 0, set()
        for _, (room, _name) in self.calls:
            if not order or order[-1] != room:
                back += room in left
                if order:
                    left.add(order[-1])
                order.append(room)
            if room not in rooms:
                rooms.append(room)
        arrows = sorted({(a[0], b[0]) for a, b in self.calls if a[0] != b[0]})
        return {"rooms": rooms, "arrows": len(arrows), "calls": len(self.calls), "back": back}


if __name__ == "__main__":
    walk = Walk()
    sys.setprofile(walk)
    try:
        main(sys.argv[1:])
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    print(json.dumps(walk.report()))
