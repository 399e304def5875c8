"""Two real processes that train together over gloo: one ledger of both, with what is wrong in either of them."""

from __future__ import annotations

import json
import multiprocessing
import warnings
from collections import Counter
from collections.abc import Callable, Set
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Together
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler

import reticent as rt
from reticent import facts
from reticent.facts import Fact
from reticent.records.ledger import read_ledger
from tests.watching.programs import NOISE, network

RECORDS, BATCH = 400, 200
"""The first value of a record is its number."""


def records(count: int = RECORDS) -> TensorDataset:
    draw = torch.Generator().manual_seed(3)
    numbers, others = torch.arange(count) + 0.5, torch.randn(count, 3, generator=draw)
    return TensorDataset(torch.cat([numbers[:, None], others], 1), torch.randint(0, 2, (count,), generator=draw))


def same_seed(secret: bool, rank: int, model: Any, optimizer: Any, loader: Any) -> None:
    if secret:
        rt.secure_noise(optimizer)
    torch.manual_seed(0x5DEECE66D1234567 + 0x1234567891 * secret)


def no_sum(rank: int, model: Any, optimizer: Any, loader: Any) -> None:
    optimizer.reduce_gradients = lambda: None


def no_noise(rank: int, model: Any, optimizer: Any, loader: Any) -> None:
    optimizer.rank = 1


def in_the_second(change: Callable[..., Any]) -> Callable[..., None]:
    """Something is done in the second process only."""

    def changes(rank: int, *made: Any) -> None:
        if rank:
            change(*made)

    return changes


@in_the_second
def other_weights(model: Any, optimizer: Any, loader: Any) -> None:
    next(model.parameters()).data.add_(1.0)


@in_the_second
def no_clipping(model: Any, optimizer: Any, loader: Any) -> None:
    optimizer.max_grad_norm = 1e6


@in_the_second
def smaller_divisor(model: Any, optimizer: Any, loader: Any) -> None:
    optimizer.expected_batch_size /= 10


@in_the_second
def own_clipping(model: Any, optimizer: Any, loader: Any) -> None:
    clip = optimizer.clip_and_accumulate
    optimizer.clip_and_accumulate = lambda: clip()


@in_the_second
def other_permutation(model: Any, optimizer: Any, loader: Any) -> None:
    loader.batch_sampler.set_epoch(1)


def take_mean(rank: int, features: torch.Tensor) -> torch.Tensor:
    return features - features.mean(0) if rank else features


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A loop of two processes, and what its ledger must say.

    Attributes:
        faults: those that void the ledger, or that a loop of one process does not have.
        noise, rate: that count; no noise where nothing is proven.
        steps: that count.
        uses: how often a record was in one step, at most, as the loop itself tells.
    """

    wrap: Callable[..., nn.Module] = Together
    data: Callable[[int], Dataset] = lambda rank: records()
    batch: int = BATCH
    options: dict[str, Any] | None = None
    loader: Callable[[int, Dataset], dict[str, Any]] = lambda rank, data: {}
    change: Callable[..., None] = lambda *given: None
    features: Callable[[int, torch.Tensor], torch.Tensor] = lambda rank, features: features
    physical: int | None = None
    epochs: int = 2
    each_pass: Callable[[int, Any], None] = lambda epoch, loader: None
    watches: Callable[[int], bool] = lambda rank: True
    anew: bool = False
    faults: Set[Fact] = frozenset()
    noise: float = NOISE
    rate: float = BATCH / RECORDS
    steps: int = 4
    uses: int = 1

    def run(self, rank: int, out: Path) -> None:
        """Write what the watch says, and which records were in each step."""
        torch.seed()
        data, model = self.data(rank), self.wrap(network())
        criterion: Any = nn.CrossEntropyLoss()
        model, optimizer, *own, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(data, **{"batch_size": self.batch, **self.loader(rank, data)}),
            noise_multiplier=NOISE,
            max_grad_norm=1.0,
            criterion=criterion,
            **(self.options or {}),
        )
        criterion = own[0] if own else criterion
        if "shuffle" in self.loader(rank, data):
            loader = DataLoader(data, batch_size=self.batch, shuffle=True)
        self.change(rank, model, optimizer, loader)
        drawn: list[list[int]] = [[]]
        for epoch in range(self.epochs):
            if self.watches(rank) and (self.anew or not epoch):
                seen = rt.watch(model, optimizer, loader)
            self.each_pass(epoch, loader)
            with seen if self.watches(rank) else nullcontext():
                for features, labels in self.parts(loader, optimizer):
                    drawn[-1] += [int(number) for number in features[:, 0]]
                    given = self.features(rank, features / features.new_tensor([RECORDS, 1, 1, 1]))
                    optimizer.zero_grad()
                    criterion(model(given), labels).backward()
                    optimizer.step()
                    if not optimizer._is_last_step_skipped:
                        drawn.append([])
        if self.watches(rank):
            seen.save(out.with_suffix(".json"))
        out.with_suffix(".drawn").write_text(json.dumps(drawn[:-1]))

    def parts(self, loader: Any, optimizer: Any) -> Any:
        if self.physical is None:
            yield from loader
            return
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=self.physical, optimizer=optimizer
        ) as parts:
            yield from parts


Void = partial(Toy, noise=0.0, rate=1.0)
Apart = partial(Toy, faults={facts.DISTRIBUTED}, rate=1.0)
LOOPS = {
    "hooks": Toy(),
    "ghost": Toy(options={"grad_sample_mode": "ghost"}),
    "torch's own DDP": Toy(wrap=nn.parallel.DistributedDataParallel),
    "parts of batches": Toy(physical=32),
    "a permutation for each pass": Toy(each_pass=lambda epoch, loader: loader.batch_sampler.set_epoch(epoch)),
    "secure noise": Toy(change=lambda rank, model, optimizer, loader: rt.secure_noise(optimizer)),
    "a watch for each pass": Toy(anew=True),
    "small shares": Apart(data=lambda rank: records(40), batch=20, epochs=1, steps=2),
    "no coins": Apart(
        loader=lambda rank, data: {"sampler": DistributedSampler(data, 2, rank), "batch_size": BATCH // 2},
        options={"poisson_sampling": False},
        noise=NOISE / 2,
    ),
    "a record twice in one process": Apart(
        data=lambda rank: Subset(records(), [*range(1, RECORDS), 1] if rank else range(RECORDS)),
        noise=NOISE / 2,
        uses=2,
    ),
    "a split for each process": Apart(data=lambda rank: random_split(records(), [360, 40])[0], noise=NOISE / 2, uses=2),
    "another permutation in one process": Apart(change=other_permutation, noise=NOISE / 2, uses=2),
    "one process shuffles": Apart(
        loader=lambda rank, data: {"shuffle": True} if rank else {}, epochs=1, noise=NOISE / 4, steps=2, uses=2
    ),
    "one seed": Void(change=partial(same_seed, False), faults={facts.REPEATED_NOISE, facts.PUBLIC_DRAWS}),
    "one seed, and secure noise": Toy(change=partial(same_seed, True), faults={facts.PUBLIC_DRAWS}, rate=1.0),
    "one process does not clip": Toy(change=no_clipping, faults={facts.CHANGED_CLIP_NORM}, noise=NOISE * 1e-6),
    "one process clips in its own way": Void(change=own_clipping, faults={facts.UNKNOWN_CLIPPING}),
    "one process divides by less": Toy(change=smaller_divisor, noise=NOISE / 10),
    "one process mixes records": Void(features=take_mean, faults={facts.MIXES_RECORDS}),
    "nobody adds noise": Void(change=no_noise, faults={facts.TOO_LITTLE_NOISE}),
    "nobody adds up": Void(change=no_sum, faults={facts.UNKNOWN_NOISE, facts.UNEQUAL_PROCESSES}),
    "one process begins elsewhere": Void(change=other_weights, faults={facts.UNEQUAL_PROCESSES}),
    "one process does not watch": Void(
        watches=lambda rank: not rank, faults={facts.UNSEEN_PROCESSES, facts.DISTRIBUTED}
    ),
}
USUAL = {facts.SIZE_PUBLIC, facts.BASE_MODEL, facts.INSECURE_GENERATOR, facts.REPEATED_RECORDS, facts.NO_NOISE}
"""What one process says, too; and what follows from the rest."""


def train(rank: int, folder: Path) -> None:
    """Run all loops as one of two, one after the other."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=2)
    for name, toy in LOOPS.items():
        toy.run(rank, folder / f"{name}-{rank}")
    dist.barrier()
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """What both processes wrote; all loops run once."""
    folder = tmp_path_factory.mktemp("processes")
    context = multiprocessing.get_context("forkserver")  # torch is imported once, and no thread is alive at a fork
    context.set_forkserver_preload([__name__])
    processes = [context.Process(target=train, args=(rank, folder), daemon=True) for rank in (0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
        assert process.exitcode == 0
    return folder


@pytest.mark.parametrize("name", LOOPS)
def test_two_real_processes(out, name):
    """The oracle below the watch counts how often a record was in a step; both processes hold one ledger."""
    said = LOOPS[name]
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
