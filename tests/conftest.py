"""What tests of several folders share."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

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


def some(cases: Sequence[Any], *kept: int) -> list[Any]:
    """Members of a long family: those at the indices ``kept`` by default, the others as slow tests."""
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*v, marks=() if k in kept else pytest.mark.slow) for k, v in enumerate(values)]


FINE = ("docs", "relaxed")
"""Folders whose tests print the digits that users get, or measure widths."""


def lattice_for_one_sign(points: int) -> None:
    """How many points the lattice for one unknown sign has from here on; what was composed on another is forgotten."""
    from reticent.adversaries.relaxed.sign import join

    if points != join._POINTS:
        forget()
        join._POINTS = points


_COARSE_POINTS = 2**18


def coarse_lattice() -> None:
    """An eighth of the points: as valid, eight times as wide, a fifth of the time."""
    lattice_for_one_sign(_COARSE_POINTS)


_COARSE = {"thresholds": 101, "factor": 0.24, "levels": 70, "epsilons": 41, "coarse": 11, "paths": 15}
"""Of the best of several runs: a third of the places, as valid, a tenth of the time."""


def selection_as_users_get_it(fine: bool) -> None:
    """How exactly the best of several runs is taken from here on; what was composed otherwise is forgotten."""
    from reticent.accountants import selection

    accuracy = selection.Accuracy() if fine else selection.Accuracy(**_COARSE)
    if accuracy != selection._ACCURACY:
        forget()
        selection._ACCURACY = accuracy


@pytest.fixture
def fine_selection() -> Iterator[None]:
    """For tests of how near the two ends of a selection are."""
    selection_as_users_get_it(True)
    yield
    selection_as_users_get_it(False)


@pytest.fixture(scope="module", autouse=True)
def _width(request: pytest.FixtureRequest) -> None:
    """Coarse where the width of an enclosure is not the point."""
    from reticent.adversaries.relaxed.sign.lattice import POINTS

    fine = request.path.parent.name in FINE
    selection_as_users_get_it(fine)
    lattice_for_one_sign(POINTS if fine else _COARSE_POINTS)


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

    For tests with the coarse lattice only: what is kept belongs to it.
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
def coarse_signs(_width: None) -> None:
    """For modules of the other folders in which the width is not the point either."""
    coarse_lattice()


def pytest_collection_finish() -> None:
    """What was imported and collected stays: looking for garbage in it again and again costs a tenth of the suite."""
    gc.collect()
    gc.freeze()
