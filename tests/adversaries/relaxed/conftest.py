"""What several files of this folder share."""

from __future__ import annotations

import pytest

from reticent.adversaries.relaxed.sign import join, lattice, unknown_sign


@pytest.fixture
def forget_signs():
    """Forgets what was enclosed: now, when it is called, and in the end."""

    def forget() -> None:
        unknown_sign.cache_clear()
        join.bounds.cache_clear()

    forget()
    yield forget
    forget()


@pytest.fixture
def small_lattice(monkeypatch, forget_signs):
    """An eighth of the points."""
    monkeypatch.setattr(lattice, "POINTS", 2**18)
