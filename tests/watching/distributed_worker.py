"""One of two processes that train together, for tests: ``python -m tests.watching.distributed_worker RANK STORE OUT``.

Each loop of ``LOOPS`` runs in both, one after the other, and writes what the watch says, and which records were in each
step: the first value of a record is its number.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Together
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler

import reticent as rt
from tests.watching.programs import NOISE, network

RECORDS, BATCH = 400, 200


def records(count: int = RECORDS) -> TensorDataset:
    draw = torch.Generator().manual_seed(3)
    numbers, others = torch.arange(count) + 0.5, torch.randn(count, 3, generator=draw)
    return TensorDataset(torch.cat([numbers[:, None], others], 1), torch.randint(0, 2, (count,), generator=draw))


def of_the_second(change: Callable[..., Any], rank: int, *made: Any) -> None:
    """The same in the second process only."""
    if rank:
        change(*made)


def same_seed(secret: bool, rank: int, model: Any, optimizer: Any, loader: Any) -> None:
    if secret:
        rt.secure_noise(optimizer)
    torch.manual_seed(0x5DEECE66D1234567 + 0x1234567891 * secret)


def no_sum(rank: int, model: Any, optimizer: Any, loader: Any) -> None:
    optimizer.reduce_gradients = lambda: None


def no_noise(rank: int, model: Any, optimizer: Any, loader: Any) -> None:
    optimizer.rank = 1


def other_weights(model: Any, optimizer: Any, loader: Any) -> None:
    next(model.parameters()).data.add_(1.0)


def no_clipping(model: Any, optimizer: Any, loader: Any) -> None:
    optimizer.max_grad_norm = 1e6


def smaller_divisor(model: Any, optimizer: Any, loader: Any) -> None:
    optimizer.expected_batch_size /= 10


def own_clipping(model: Any, optimizer: Any, loader: Any) -> None:
    clip = optimizer.clip_and_accumulate
    optimizer.clip_and_accumulate = lambda: clip()


def other_permutation(model: Any, optimizer: Any, loader: Any) -> None:
    loader.batch_sampler.set_epoch(1)


def take_mean(rank: int, features: torch.Tensor) -> torch.Tensor:
    return features - features.mean(0) if rank else features


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A loop of two processes."""

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

    def run(self, rank: int, out: Path) -> None:
        torch.seed()
        data, model = self.data(rank), self.wrap(network())
        criterion: Any = nn.CrossEntropyLoss()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
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


LOOPS = {
    "hooks": Toy(),
    "ghost": Toy(options={"grad_sample_mode": "ghost"}),
    "torch's own DDP": Toy(wrap=nn.parallel.DistributedDataParallel),
    "parts of batches": Toy(physical=32),
    "a permutation for each pass": Toy(each_pass=lambda epoch, loader: loader.batch_sampler.set_epoch(epoch)),
    "secure noise": Toy(change=lambda rank, model, optimizer, loader: rt.secure_noise(optimizer)),
    "a watch for each pass": Toy(anew=True),
    "small shares": Toy(data=lambda rank: records(40), batch=20, epochs=1),
    "no coins": Toy(
        loader=lambda rank, data: {"sampler": DistributedSampler(data, 2, rank), "batch_size": BATCH // 2},
        options={"poisson_sampling": False},
    ),
    "a record twice in one process": Toy(
        data=lambda rank: Subset(records(), [*range(1, RECORDS), 1] if rank else range(RECORDS))
    ),
    "a split for each process": Toy(data=lambda rank: random_split(records(), [360, 40])[0]),
    "another permutation in one process": Toy(change=partial(of_the_second, other_permutation)),
    "one process shuffles": Toy(loader=lambda rank, data: {"shuffle": True} if rank else {}, epochs=1),
    "one seed": Toy(change=partial(same_seed, False)),
    "one seed, and secure noise": Toy(change=partial(same_seed, True)),
    "one process does not clip": Toy(change=partial(of_the_second, no_clipping)),
    "one process clips in its own way": Toy(change=partial(of_the_second, own_clipping)),
    "one process divides by less": Toy(change=partial(of_the_second, smaller_divisor)),
    "one process mixes records": Toy(features=take_mean),
    "nobody adds noise": Toy(change=no_noise),
    "nobody adds up": Toy(change=no_sum),
    "one process begins elsewhere": Toy(change=partial(of_the_second, other_weights)),
    "one process does not watch": Toy(watches=lambda rank: not rank),
}


def main(rank: int, store: str, out: str) -> None:
    """Run all loops with a real group of two."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    for name, toy in LOOPS.items():
        toy.run(rank, Path(out) / f"{name}-{rank}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:4])
