"""A plugin of pytest that writes down what each watch of the running tests found: ``-p tests.corpus.listening``.

The loops of ``tests/watching`` are the corpus of loops: what a watch says at its end is kept under the name of its
test. The file is named by ``$RETICENT_HEARD``.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from typing import Any

import pytest

from reticent.mechanisms.codec import mechanism_record
from tests.corpus.project import projected

BY_CHANCE = (
    "test_two_batches_in_one_backward_pass",
    "test_several_views_of_a_record",
    "test_batches_of_another_loader_later",
)
"""Loops in which the sizes of random batches decide whether a fault is seen besides others that are."""
_heard: dict[str, list[Any]] = defaultdict(list)


def _said(watch: Any) -> Any:
    """Faults, what ran and statuses of a watch that has ended; a word where it ended in an error."""
    run = watch.ledger
    vouched = {key: status.value for key, status in sorted(run.vouches().items())}
    return {"faults": sorted(fault.value for fault in run.faults), "ran": _ran(run), "vouches": vouched}


def _ran(run: Any) -> Any:
    """The mechanism."""
    try:
        ran = projected(mechanism_record(run.mechanism()))
        for part in ran.get("parts", [ran]):
            part.pop("max_grad_norm", None)  # adaptive ones are random, and no number depends on it
        return ran
    except Exception as error:  # what cannot be said is an answer too
        return f"{type(error).__name__}: {error}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Listen while one test runs."""
    from reticent.watching.session import Watch

    own = Watch.__exit__

    def leaving(self: Any, *raised: Any) -> Any:
        try:
            return own(self, *raised)
        finally:
            try:
                if not item.name.startswith(BY_CHANCE):
                    _heard[item.name].append(_said(self))
            except Exception as error:  # a watch that cannot be read
                _heard[item.name].append(type(error).__name__)

    Watch.__exit__ = leaving  # type: ignore[method-assign]
    try:
        yield
    finally:
        Watch.__exit__ = own  # type: ignore[method-assign]


def pytest_sessionfinish() -> None:
    """Write what was heard."""
    with open(os.environ["RETICENT_HEARD"], "w", encoding="utf-8") as file:
        json.dump(_heard, file)
