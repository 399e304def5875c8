"""What tests of several folders share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import pytest


def forget() -> None:
    """Empty every cache of what was composed and read."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("reticent.composition", "reticent.risk", "reticent.dashboard")):
            for value in list(vars(module).values()):
                if isinstance(value, type(lru_cache(len))):
                    value.cache_clear()


@contextmanager
def coarse_lattice() -> Iterator[None]:
    """An eighth of the points for one unknown sign: as valid, eight times as wide, a fifth of the time."""
    from reticent.composition.sign import join

    with pytest.MonkeyPatch.context() as patch:
        forget()
        patch.setattr(join.latticed, "__defaults__", (2**18,))
        yield
    forget()


@pytest.fixture(scope="module")
def coarse_signs() -> Iterator[None]:
    """For modules in which the width of an enclosure is not the point."""
    with coarse_lattice():
        yield
