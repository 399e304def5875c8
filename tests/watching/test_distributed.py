"""Two real processes that train together over gloo: one ledger of both, with what is wrong in either of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from reticent import facts
from reticent.facts import Fact
from reticent.records.ledger import read_ledger
from tests.watching.distributed_worker import BATCH, LOOPS, RECORDS
from tests.watching.programs import NOISE

ROOT = Path(__file__).parents[2]
RATE = BATCH / RECORDS


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the ledger of a loop must say.

    Attributes:
        faults: those that void it, or that a loop of one process does not have.
        noise, rate: that count; no noise where nothing is proven.
        steps: that count.
        uses: how often a record was in one step, at most, as the loop itself tells.
    """

    faults: set[Fact] = frozenset()  # type: ignore[assignment]
    noise: float = NOISE
    rate: float = RATE
    steps: int = 4
    uses: int = 1


VOID = {"noise": 0.0, "rate": 1.0}
APART = {"faults": {facts.DISTRIBUTED}, "rate": 1.0}
SAID = {
    **dict.fromkeys(
        (
            "hooks",
            "ghost",
            "torch's own DDP",
            "parts of batches",
            "a permutation for each pass",
            "secure noise",
            "a watch for each pass",
        ),
        Said(),
    ),
    "small shares": Said(**APART, steps=2),
    "no coins": Said(**APART, noise=NOISE / 2),
    "a record twice in one process": Said(**APART, noise=NOISE / 2, uses=2),
    "a split for each process": Said(**APART, noise=NOISE / 2, uses=2),
    "another permutation in one process": Said(**APART, noise=NOISE / 2, uses=2),
    "one process shuffles": Said(**APART, noise=NOISE / 4, steps=2, uses=2),
    "one seed": Said(faults={facts.REPEATED_NOISE, facts.PUBLIC_DRAWS}, **VOID),
    "one seed, and secure noise": Said(faults={facts.PUBLIC_DRAWS}, rate=1.0),
    "one process does not clip": Said(faults={facts.CHANGED_CLIP_NORM}, noise=NOISE * 1e-6),
    "one process clips in its own way": Said(faults={facts.UNKNOWN_CLIPPING}, **VOID),
    "one process divides by less": Said(noise=NOISE / 10),
    "one process mixes records": Said(faults={facts.MIXES_RECORDS}, **VOID),
    "nobody adds noise": Said(faults={facts.TOO_LITTLE_NOISE}, **VOID),
    "nobody adds up": Said(faults={facts.UNKNOWN_NOISE, facts.UNEQUAL_PROCESSES}, **VOID),
    "one process begins elsewhere": Said(faults={facts.UNEQUAL_PROCESSES}, **VOID),
    "one process does not watch": Said(faults={facts.UNSEEN_PROCESSES, facts.DISTRIBUTED}, **VOID),
}
USUAL = {facts.SIZE_PUBLIC, facts.BASE_MODEL, facts.INSECURE_GENERATOR, facts.REPEATED_RECORDS, facts.NO_NOISE}
"""What one process says, too; and what follows from the rest."""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """What both processes wrote; all loops run once."""
    folder = tmp_path_factory.mktemp("processes")
    command = [sys.executable, "-m", "tests.watching.distributed_worker"]
    given = [[*command, str(rank), str(folder / "store"), str(folder)] for rank in (0, 1)]
    processes = [subprocess.Popen(one, cwd=ROOT, stderr=subprocess.PIPE, text=True) for one in given]
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    return folder


@pytest.mark.parametrize("name", LOOPS)
def test_two_real_processes(out, name):
    """The oracle below the watch counts how often a record was in a step; both processes hold one ledger."""
    said = SAID[name]
    steps = zip(*(json.loads((out / f"{name}-{rank}.drawn").read_text()) for rank in (0, 1)), strict=True)
    together = [Counter(one + other) for one, other in steps]
    assert max(max(step.values()) for step in together) == said.uses
    ledger = read_ledger(out / f"{name}-0.json")
    if facts.UNSEEN_PROCESSES not in said.faults:
        assert read_ledger(out / f"{name}-1.json") == ledger
        assert ledger.diagnostics.batch_sizes == tuple(step.total() for step in together)[-ledger.steps :]
    assert set(ledger.faults) - USUAL == set(said.faults)
    assert not list(ledger.contradictions())
    release = ledger.mechanism()
    assert (release.sample_rate, release.steps) == (said.rate, said.steps)
    assert release.noise_multiplier == pytest.approx(said.noise, rel=1e-12, abs=0)
