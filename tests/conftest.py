"""What tests of several folders share."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)  # a busy one is no failure
settings.load_profile("any machine")


def forget() -> None:
    """Empty every cache of what was composed and read."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("reticent.accountants", "reticent.adversaries", "reticent.risk", "reticent.dashboard")):
            for value in list(vars(module).values()):
                if isinstance(value, type(lru_cache(len))):
                    value.cache_clear()


@contextmanager
def coarse_lattice() -> Iterator[None]:
    """An eighth of the points for one unknown sign: as valid, eight times as wide, a fifth of the time."""
    from reticent.adversaries.relaxed.sign import join

    with pytest.MonkeyPatch.context() as patch:
        forget()
        patch.setattr(join.latticed, "__defaults__", (2**18,))
        yield
    forget()


@pytest.fixture(autouse=True)
def seed_of_the_system() -> Iterator[None]:
    """No test is watched under the seed that another test gave to torch."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].seed()


_KNOWN: dict[object, object] = {}


@contextmanager
def derived_once() -> Iterator[None]:
    """Computes each curve and reads it once in a test session: both are pure functions of what they are given.

    For tests under ``coarse_signs`` only: what is kept belongs to that lattice.
    """
    from reticent.certificates import derive as deriving

    with pytest.MonkeyPatch.context() as patch:

        def once(name: str, key: Callable[..., object]) -> None:
            real = getattr(deriving, name)

            def known(*arguments):
                found = (name, key(*arguments))
                if found not in _KNOWN:
                    _KNOWN[found] = (arguments, real(*arguments))  # the arguments are kept: ids stay theirs
                return _KNOWN[found][1]

            patch.setattr(deriving, name, known)

        once("assessed", lambda *arguments: repr(arguments))
        once("measures", lambda assessment, questions: (id(assessment), questions))
        once("curve_points", id)
        yield


@pytest.fixture(scope="module")
def quick_documents(coarse_signs: None) -> Iterator[None]:
    """For modules in which documents are derived again and again."""
    with derived_once():
        yield


@pytest.fixture(scope="module")
def coarse_signs() -> Iterator[None]:
    """For modules in which the width of an enclosure is not the point."""
    with coarse_lattice():
        yield


def pytest_collection_finish() -> None:
    """What was imported and collected stays: looking for garbage in it again and again costs a tenth of the suite."""
    gc.collect()
    gc.freeze()
