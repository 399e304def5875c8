"""A plugin of pytest that writes down what each watch of the running tests found: ``-p tests.corpus.listening``.

The loops of ``tests/watching`` are the corpus of loops: what a watch says at its end is kept under the name of its
test. The file is named by ``$RETICENT_HEARD``.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from hashlib import sha256
from itertools import count
from typing import Any

import pytest

from reticent.mechanisms.codec import mechanism_record
from tests.corpus.project import projected

SEEDS_OF_OTHERS = (
    "test_a_look_draws_nothing",
    "test_seeds[a generator of the program]",
    "test_seeds[a new generator of the program]",
    "test_seeds[a public seed without noise]",
    "test_seeds[a seed of a loop of one's own]",
    "test_seeds[a small seed before each step]",
    "test_seeds[secure mode without a generator]",
    "test_a_small_or_known_seed_before_the_watch[0]",
    "test_steps_that_are_not_measured_count_with_the_most_that_clipping_allows",
    "test_weights_are_bit_identical_with_and_without[hooks]",
    "test_losses[a loss that mixes in a loop of Opacus, ghost]",  # its sum is longer than clipping allows now and then
)
"""Tests that set a seed as others do: whether their noise was seen before hangs on who ran first, so none is kept."""
_heard: dict[str, list[Any]] = defaultdict(list)


def _said(watch: Any) -> Any:
    """Faults, what ran and statuses of a watch that has ended; a word where it ended in an error."""
    run = watch.ledger
    vouched = {key: status.value for key, status in sorted(run.vouches().items())}
    return {"faults": sorted(fault.key for fault in run.faults), "ran": _ran(run), "vouches": vouched}


def _ran(run: Any) -> Any:
    """The mechanism."""
    try:
        ran = projected(mechanism_record(run.mechanism()))
        for part in ran.get("parts", [ran]):
            part.pop("max_grad_norm", None)  # adaptive ones are random, and no number depends on it
        return {key: value for key, value in ran.items() if value is not None}
    except Exception as error:  # what cannot be said is an answer too
        return f"{type(error).__name__}: {error}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Listen while one test runs. It draws the same batches each time, from seeds that nobody guesses."""
    import torch

    from reticent.watching.session import Watch

    enter, leave, seed = Watch.__enter__, Watch.__exit__, torch.seed
    name = "::".join(part.name for part in item.listchain() if isinstance(part, pytest.Class | pytest.Function))
    seeds = (int.from_bytes(sha256(f"{name} {turn}".encode()).digest()[:7]) + 2**56 for turn in count())
    inside: list[Any] = []

    def entering(self: Any) -> Any:
        inside.append(self)
        return enter(self)

    def leaving(self: Any, *raised: Any) -> Any:
        try:
            return leave(self, *raised)
        finally:
            inside.remove(self)
            try:
                if item.name not in SEEDS_OF_OTHERS:
                    _heard[name].append(_said(self))
            except Exception as error:  # a watch that cannot be read
                _heard[name].append(type(error).__name__)

    def seeding() -> int:
        return seed() if inside else int(torch.manual_seed(next(seeds)).initial_seed())

    with pytest.MonkeyPatch.context() as put:
        put.setattr(Watch, "__enter__", entering)
        put.setattr(Watch, "__exit__", leaving)
        put.setattr(torch, "seed", seeding)
        seeding()
        yield


def pytest_sessionfinish() -> None:
    """Write what was heard."""
    with open(os.environ["RETICENT_HEARD"], "w", encoding="utf-8") as file:
        json.dump(_heard, file)
