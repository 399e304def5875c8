"""One digest of many results, in their order: equal runs have equal digests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from reticent.tasks import Store, Task


def digest(store: Store, tasks: Sequence[Task]) -> str:
    """Of names, types and values of the results of ``tasks``."""
    total = hashlib.sha256()
    for task in tasks:
        for name, array in sorted(store.load(task).items()):
            total.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return total.hexdigest()
