"""On a GPU: who waits for the device, and the same noise on it."""

from __future__ import annotations

import warnings

import pytest
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent.training import Settings
from reticent.training.config_models import ConvNetConfig
from reticent.training.models import build_model
from reticent.training.randomness import SeededSource, Stream
from tests.devices import ON_GPU
from tests.training.small import Recorder, stepped

pytestmark = ON_GPU


class Waits:
    """How often the program waits for the device."""

    def __enter__(self) -> Waits:
        self._caught = warnings.catch_warnings(record=True)
        self._found = self._caught.__enter__()
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        return self

    def __exit__(self, *_: object) -> None:
        torch.cuda.set_sync_debug_mode("default")
        self._caught.__exit__(None, None, None)
        self.count = sum("synchronizing CUDA operation" in str(one.message) for one in self._found)


def waits_of_a_loop(secured: bool, watched: bool) -> int:
    """In 24 steps of Opacus after the first 24."""
    model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 4)).cuda()
    data = TensorDataset(torch.randn(48 * 64, 20, device="cuda"), torch.randint(4, (48 * 64,), device="cuda"))
    torch.seed()
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=64),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    if secured:
        rt.secure_noise(optimizer)
    ledger = rt.watch(model, optimizer, loader) if watched else None
    steps, waits = iter(loader), Waits()
    if ledger is not None:
        ledger.__enter__()

    def go() -> None:
        for _ in range(24):
            x, y = next(steps)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    go()
    with waits:
        go()
    if ledger is not None:
        ledger.__exit__(None, None, None)
    return waits.count


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize(("secured", "watched"), [(True, False), (False, True), (True, True)])
def test_neither_noise_nor_watch_waits_for_the_device(secured, watched):
    assert waits_of_a_loop(secured, watched) <= waits_of_a_loop(False, False)


def test_a_step_of_the_trainer_waits_once():
    """Beside what Opacus waits for: nothing of it in this loop."""
    found = []
    features, labels = torch.randn((40, 2, 8, 8), device="cuda"), torch.randint(3, (40,), device="cuda")
    for steps in (2, 7):
        model = build_model(ConvNetConfig(kind="convnet", channels=(3, 4)), (2, 8, 8), 3, seed=4).cuda()
        with Waits() as waits:
            stepped(model, Settings(1.0, 1.0, 0.6, 12.0, steps, physical_batch_size=16), features, labels)
        found.append(waits.count)
    assert found[1] - found[0] == 5


def test_noise_of_a_seed_is_the_same_on_a_gpu():
    """The stream of PCG64 is drawn on the processor and copied at once."""
    one, other = (SeededSource(3, Stream.NOISE).normal(1000, torch.device(name)) for name in ("cpu", "cuda"))
    assert torch.equal(one, other.cpu())
    updates = []
    for device in ("cpu", "cuda"):
        model = build_model(ConvNetConfig(kind="convnet", channels=(3, 4)), (2, 8, 8), 3, seed=4).to(device)
        recorder = Recorder()
        generator = torch.Generator().manual_seed(2)
        features, labels = torch.randn((40, 2, 8, 8), generator=generator), torch.zeros(40, dtype=torch.int64)
        stepped(model, Settings(1.0, 1.0, 0.6, 12.0, 3), features.to(device), labels.to(device), recorder)
        updates.append(torch.stack([update.gradient.cpu() for update in recorder.updates]))
    assert torch.allclose(*updates, rtol=1e-3, atol=1e-4)
