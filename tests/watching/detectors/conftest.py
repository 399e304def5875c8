"""What tests of detectors share."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def _of_other_loops() -> None:
    """A watch looks twice among all objects: what loops before left is not among them."""
    gc.collect(1)
    gc.freeze()
