"""What several files of this folder share."""

from __future__ import annotations

import pytest

from reticent.adversaries.relaxed.sign import join, lattice, unknown_sign


@pytest.fixture
def small_lattice(monkeypatch):
    """An eighth of the points, with nothing remembered from before or for later."""
    caches = (unknown_sign, join.bounds)
    monkeypatch.setattr(lattice, "POINTS", 2**18)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()
