"""Random loops of public operations of torch, Opacus, the Trainer and Lightning: no ledger states less than what ran.

By name: ``pytest -m slow tests/fuzz/test_watch_loops.py``. ``RETICENT_FUZZ_MINUTES`` (20) is shared by the kinds of
loop; those whose library is missing are skipped. A failure prints the seed of its loop.
"""

from __future__ import annotations

import os
import random
import time
import warnings
from collections import Counter

import pytest
import torch
from opacus.optimizers import DPOptimizer

from reticent.kernel.errors import ParameterError
from tests.fuzz.watch_oracle import understated
from tests.fuzz.watch_toys import KINDS

MINUTES = float(os.environ.get("RETICENT_FUZZ_MINUTES", "20"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(0), pytest.mark.filterwarnings("ignore")]
SHARES = {"opacus": 0.4, "plain": 0.2, "lightning": 0.2, "trainer": 0.2}


def fuzz(kind: str, minutes: float) -> Counter[str]:
    """Loops of one kind until the time is over; how they ended."""
    own_clip = DPOptimizer.clip_and_accumulate
    ended: Counter[str] = Counter()
    end = time.monotonic() + 60.0 * minutes
    start = int(os.environ.get("RETICENT_FUZZ_SEED", "0")) or random.SystemRandom().randrange(2**40)
    while time.monotonic() < end:
        start += 1
        torch.seed()
        ended[one(kind, start)] += 1
    assert DPOptimizer.clip_and_accumulate is own_clip
    return ended


def one(kind: str, number: int) -> str:
    """One loop: how it ended.

    Raises:
        AssertionError: its ledger states less than what ran.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            toy, seen = KINDS[kind](random.Random(number))  # noqa: S311
        except ParameterError:
            return "refused"
        except (ValueError, RuntimeError, AttributeError, IndexError, TypeError, AssertionError) as error:
            return f"failed: {type(error).__name__}: {str(error)[:60]}"
    if seen is None:
        return "left out"
    try:
        found = seen.ledger.mechanism()
    except ParameterError:  # no step was taken, as where every batch was empty
        return "refused"
    why = understated(found, toy.oracle)
    assert why is None, f"{kind} {number}: {why}; operations {toy.done}; {seen.ledger.faults}"
    assert "start-weights" not in seen.ledger.vouches()
    void = any(fault.voids for fault in seen.ledger.faults)
    if void and not toy.oracle.bare:
        return f"void without need: {[str(f) for f in seen.ledger.faults if f.voids]} after {sorted(set(toy.done))}"
    return "void, rightly" if void else "stated, rightly"


@pytest.mark.parametrize("kind", KINDS)
def test_no_ledger_states_less_than_what_ran(kind: str) -> None:
    ended = fuzz(kind, MINUTES * SHARES[kind])
    print(f"\n{kind}:", *(f"  {count} {how}" for how, count in ended.most_common()), sep="\n")
    assert ended["void, rightly"]
    assert ended["stated, rightly"]
