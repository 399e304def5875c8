"""Loops of several processes: each is recognised or declared unknown, and gets no amplification."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, RandomSampler
from torch.utils.data.distributed import DistributedSampler

from reticent import facts
from reticent.facts.steps import Drawn, Source
from reticent.records.ledger import read_ledger
from reticent.watching.detectors.samplers import look_at
from tests.watching.loops import BATCH, NOISE, RECORDS, network, private, records, watched

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
def test_two_real_processes_over_gloo(tmp_path, kind, name, noise, steps) -> None:
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


@pytest.fixture
def one_process(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("when", ["never", "after the noise", "after the sum over processes", "noise replaced"])
@pytest.mark.parametrize(("mode", "clipping"), [("hooks", "flat"), ("ghost", "flat"), ("hooks", "per_layer")])
def test_what_is_written_in_the_first_process_is_seen(one_process, mode, clipping, when) -> None:
    """Sums over processes come between the noise and the step; nothing was compared there."""
    made = private(model=DifferentiallyPrivateDistributedDataParallel(network()), mode=mode, clipping=clipping)
    optimizer = made[1]

    def add(*_):
        for p in optimizer.params:
            p.grad = p.grad + p.summed_grad.view_as(p)

    def quiet():
        for p in optimizer.params:
            p.grad = p.summed_grad.view_as(p).clone()

    if when == "after the noise":
        optimizer.attach_step_hook(add)
    elif when == "after the sum over processes":
        optimizer.original_optimizer.register_step_pre_hook(add)
    elif when == "noise replaced":
        optimizer.add_noise = quiet
    seen = watched(*made)
    wanted = {"never": set(), "noise replaced": {facts.TOO_LITTLE_NOISE}}
    assert {f for f in seen.ledger.faults if f.voids} == wanted.get(when, {facts.CHANGED_GRADIENTS})


@pytest.fixture
def three_processes(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)


def test_a_sampler_that_is_not_shared_out_may_draw_a_record_in_each_process(three_processes) -> None:
    poisson = look_at(private()[2])
    assert (poisson.drawn, poisson.times_per_epoch, poisson.sample_rate) == (Drawn.DISTRIBUTED, 3, None)
    shuffled = look_at(DataLoader(records(), batch_size=BATCH, shuffle=True))
    assert (shuffled.drawn, shuffled.times_per_epoch) == (Drawn.DISTRIBUTED, 3)
    filled = look_at(DataLoader(records(), batch_size=BATCH, sampler=RandomSampler(records(), replacement=True)))
    assert (filled.drawn, filled.batch_size) == (Drawn.WITH_REPLACEMENT, 3 * BATCH)
    nobody = look_at(None)
    assert (nobody.drawn, nobody.times_per_epoch) == (Drawn.UNKNOWN, 3)


def test_padding_of_a_distributed_sampler_may_repeat_a_record_many_times() -> None:
    few = torch.utils.data.TensorDataset(torch.zeros(3, 1), torch.zeros(3))
    sampler = DistributedSampler(few, num_replicas=16, rank=0)
    assert look_at(DataLoader(few, batch_size=1, sampler=sampler)).times_per_epoch == 6  # 16 draws of 3 records
    usual = DistributedSampler(records(), num_replicas=2, rank=0)
    assert look_at(DataLoader(records(), batch_size=BATCH, sampler=usual)).times_per_epoch == 2


def test_a_distributed_sampler_that_draws_in_its_own_way_is_unknown() -> None:
    class Own(DistributedSampler):
        def __iter__(self):
            return iter([0] * RECORDS)

    batches = BatchSampler(Own(records(), num_replicas=2, rank=0), BATCH, drop_last=False)
    assert look_at(DataLoader(records(), batch_sampler=batches)).drawn is Drawn.UNKNOWN
