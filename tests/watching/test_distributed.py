"""Loops of several processes: each is recognised or declared unknown, and gets no amplification."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reticent import facts
from reticent.facts.steps import Drawn, Source
from reticent.records.ledger import read_ledger
from tests.watching.programs import NOISE

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "noise", "steps"),
    [
        ("dpddp", "DistributedUniformWithReplacementSampler", NOISE, 6),
        ("sampler", "DistributedSampler", NOISE / 2.0, 3),
        ("plain", "UniformWithReplacementSampler", NOISE / 2.0, 6),
    ],
)
def test_two_real_processes_over_gloo(tmp_path, kind, name, noise, steps):
    """A real group of two: real DPDDP, a real DistributedSampler, and Poisson draws of each process on its own."""
    outs = [tmp_path / f"{rank}.json" for rank in (0, 1)]
    command = [sys.executable, "-m", "tests.watching.distributed_worker"]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store"), str(out), kind],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, out in enumerate(outs)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    for out in outs:
        ledger = read_ledger(out)
        assert (ledger.sampler.drawn, ledger.sampler.source) == (Drawn.DISTRIBUTED, Source.SEEN)
        assert ledger.sampler.name == name
        assert ledger.clipping.kind == "flat"
        assert facts.DISTRIBUTED in ledger.faults
        release = ledger.mechanism()
        assert (release.sample_rate, release.steps) == (1.0, steps)
        assert release.noise_multiplier == pytest.approx(noise, rel=1e-12, abs=0)
