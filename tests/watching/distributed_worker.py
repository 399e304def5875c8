"""One of two processes of a distributed loop, for tests: ``python distributed_worker.py RANK STORE OUT KIND``."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import reticent as rt
from tests.watching.programs import BATCH, NOISE, network, records, run


def main(rank: int, store: str, out: str, kind: str) -> None:
    """Train under watch with a real group of two and write the ledger."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    data = records()
    sampler = DistributedSampler(data, num_replicas=2, rank=rank) if kind == "sampler" else None
    model = DifferentiallyPrivateDistributedDataParallel(network()) if kind == "dpddp" else network()
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH, sampler=sampler),
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        poisson_sampling=kind != "sampler",
    )
    with rt.watch(model, optimizer, loader) as ledger:
        run(model, optimizer, loader, torch.nn.CrossEntropyLoss(), epochs=1)
    ledger.save(Path(out))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:5])
