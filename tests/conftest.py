"""What tests of several folders share."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from itertools import product
from typing import Any, get_type_hints

import pytest
from hypothesis import settings

from reticent.facts import Fact
from reticent.kernel.adversaries.witness import Witness

pytest.register_assert_rewrite("tests.watching.loops")
gc.disable()  # what is imported and collected is no garbage
settings.register_profile("any machine", deadline=None)  # a busy one is no failure
settings.load_profile("any machine")


def forget() -> None:
    """Empty every cache of what was composed and read."""
    rooms = tuple(f"reticent.{room}" for room in ("accountants", "adversaries", "dashboard", "kernel", "pairs"))
    for name, module in list(sys.modules.items()):
        if name.startswith(rooms):
            for value in list(vars(module).values()):
                if isinstance(value, type(lru_cache(len))):
                    value.cache_clear()


def some(cases: Sequence[Any], *kept: int) -> list[Any]:
    """Members of a long family: those at the indices ``kept`` by default, the others as slow tests."""
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*v, marks=() if k in kept else pytest.mark.slow) for k, v in enumerate(values)]


def pytest_make_parametrize_id(val: object) -> str | None:
    """A fact in the name of a test is its key."""
    return val.key if isinstance(val, Fact) else None


FINE = ("docs", "relaxed")
"""Folders whose tests print the digits that users get, or measure widths."""


DOORS = (
    "api",
    "attacks",
    "certificates",
    "cli",
    "dashboard",
    "interop",
    "records",
    "sensitivity",
    "training",
    "watching",
)
"""Folders whose tests ask what is said about a number, not how narrow it is."""

_COARSE_SELECTION = {"thresholds": 101, "factor": 0.24, "levels": 70, "epsilons": 41, "coarse": 11, "paths": 15}
_COARSE_CURVE = {"width": 1e-4, "relative": 1e-2, "deepest": -16.0, "aimed": 5e-6, "split_points": 2**14}
_COARSE_CURVE |= {"enclosed_points": 2**14, "aimed_share": 5e-6}
_COARSE_CURVE |= {"first_points": 2**14, "cheap_points": 2**15, "most_points": 2**16}


def as_users_get_it(signs: bool = False, selection: bool = False, curve: bool = False) -> None:
    """What is as narrow from here on as users get it; the rest is coarse: as valid, wider, a fifth of the time.

    What was composed otherwise is forgotten.

    Args:
        signs: the lattice for one unknown sign.
        selection: the best of several runs.
        curve: every worst case.
    """
    users = _of_users()
    coarse = (2**16, replace(users[1], **_COARSE_SELECTION), replace(users[2], **_COARSE_CURVE), 100)
    fine = (signs, selection, curve, curve)
    wanted = tuple(one if narrow else other for one, other, narrow in zip(users, coarse, fine, strict=True))
    if wanted != settled():
        forget()
        lattice, best, portfolio, contours = _settings()
        lattice.POINTS, best._ACCURACY, portfolio.enclose.__kwdefaults__["accuracy"], contours._PER_SPAN = wanted


def settled() -> tuple[Any, ...]:
    """How narrow each is now."""
    lattice, best, portfolio, contours = _settings()
    return lattice.POINTS, best._ACCURACY, portfolio.enclose.__kwdefaults__["accuracy"], contours._PER_SPAN


@cache
def _of_users() -> tuple[Any, ...]:
    """How narrow each is before anybody changed it."""
    return settled()


def _settings() -> list[Any]:
    modules = (
        "adversaries.relaxed.sign.lattice",
        "pairs.selected",
        "kernel.accountants.enclose",
        "accountants.transform",
    )
    return [import_module(f"reticent.{name}") for name in modules]


@pytest.fixture
def fine_selection() -> Iterator[None]:
    """For tests of how near the two ends of a selection are."""
    as_users_get_it(selection=True, curve=True)
    yield
    as_users_get_it(curve=True)


@pytest.fixture(scope="module", autouse=True)
def _width(request: pytest.FixtureRequest) -> None:
    """Coarse where the width of an enclosure is not the point; slow tests have all but the signs as users get it."""
    fine, slow = request.path.parent.name in FINE, _are_slow(request)
    as_users_get_it(signs=fine, selection=fine or slow, curve=_is_narrow(request))


@pytest.fixture(scope="module", autouse=True)
def _what_came_before() -> None:
    """A watch looks twice among all objects: what other modules left is not among them."""
    gc.collect()
    gc.freeze()


def _are_slow(request: pytest.FixtureRequest) -> bool:
    return "not slow" not in request.config.option.markexpr


def _is_narrow(request: pytest.FixtureRequest) -> bool:
    return request.path.parent.name not in DOORS or _are_slow(request)


@pytest.fixture(autouse=True)
def seed_of_the_system() -> Iterator[None]:
    """No test is watched under the seed that another test gave to torch."""
    torch = sys.modules.get("torch")
    before = None if torch is None else torch.initial_seed()
    yield
    torch = sys.modules.get("torch")
    if torch is not None and torch.initial_seed() != before:
        torch.seed()


_KNOWN: dict[object, object] = {}


def _shown(ledger: Witness) -> Iterator[object]:
    """All that an attacker is shown of a ledger, as runs of one loop have in common: each member of ``Witness``."""
    for name in (name for name in vars(Witness) if not name.startswith("_")):
        member = getattr(ledger, name)
        if callable(member):  # for each relation, and whatever else there is to choose from
            choices = [kind for of, kind in get_type_hints(vars(Witness)[name]).items() if of != "return"]
            yield from (member(*chosen) for chosen in product(*choices))
        else:
            yield member


def _content(argument: object) -> bytes:
    """All that it holds: words for it are shorter."""
    is_ledger = callable(getattr(argument, "vouches", None))
    return pickle.dumps([*_shown(argument)] if is_ledger else argument)  # type: ignore[arg-type]


@contextmanager
def derived_once() -> Iterator[None]:
    """Computes each curve and reads it once in a test session: both are pure functions of what they are given.

    What is kept belongs to how narrow enclosures are at the time.
    """
    from reticent.certificates.document import derive as deriving

    with pytest.MonkeyPatch.context() as patch:

        def once(name: str, key: Callable[..., object]) -> None:
            real = getattr(deriving, name)

            def known(*arguments):
                found = (name, settled(), key(*arguments))
                if found not in _KNOWN:
                    _KNOWN[found] = (arguments, real(*arguments))  # the arguments are kept: ids stay theirs
                return _KNOWN[found][1]

            patch.setattr(deriving, name, known)

        once("assessed", lambda *arguments: tuple(_content(argument) for argument in arguments))
        once("assessment_record", lambda assessment, questions: (id(assessment), questions))
        once("curve_points", id)
        yield


@pytest.fixture(scope="module")
def quick_documents(coarse_signs: None) -> Iterator[None]:
    """For modules in which documents are derived again and again."""
    with derived_once():
        yield


@pytest.fixture(scope="module")
def coarse_signs(request: pytest.FixtureRequest, _width: None) -> None:
    """For modules of the other folders in which the width is not the point either."""
    as_users_get_it(selection=_are_slow(request), curve=_is_narrow(request))


@pytest.fixture(scope="module")
def coarse(request: pytest.FixtureRequest, _width: None) -> None:
    """For modules of the other folders in which no width is the point, neither of signs nor of worst cases."""
    as_users_get_it(selection=_are_slow(request), curve=_are_slow(request))


def pytest_collection_finish() -> None:
    """What was imported and collected stays: looking for garbage in it again and again costs a tenth of the suite."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
