"""What reticent costs on a GPU, beside the same work without it: ``python -m benchmarks.gpu [ROW ...]``.

Each row is two loops that take turns step by step, and the device is waited for after each step. A row is the median
and the least of the ratios of neighbours, ours over bare, of the later half of the steps. It is printed as soon as it
is there, as a line of Markdown. On a processor everything shrinks: then it only shows that the script runs.

``accuracy`` is no row: it trains ``configs/cifar-10-resnet9.yaml`` at epsilon 3 and 8 with three seeds, for hours.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import itertools
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent.attacks.shadow_training import BLOCK, ShadowBlock, block_size, members_of, model_seed
from reticent.attacks.stacked import StackedMLP
from reticent.sensitivity import GradientSensitivity, Precision, SensitiveAttribute
from reticent.training import RunContext, Settings, fit, load_config, normals, parse_config, train
from reticent.training.cipher import Key
from reticent.training.config_models import ResNet9Config
from reticent.training.models import build_model
from reticent.training.randomness import SystemSource

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = DEVICE.type == "cpu"
STEPS = 6 if SMALL else 96
"""Of each of two loops; the first half of them warms up."""

Steps = Iterator[object]


@dataclass(frozen=True)
class Measured:
    """One row.

    Attributes:
        what: is measured.
        bare, ours: milliseconds of one step or call: the median.
        ratio, least: ours over bare of neighbours: the median, and the least.
        goal: for the ratio.
        met: whether it is reached.
    """

    what: str
    bare: float
    ours: float
    ratio: float
    least: float
    goal: float | None
    met: bool | None

    def line(self) -> str:
        """A line of a table in Markdown."""
        goal, met = "" if self.goal is None else f"{self.goal:g}", {None: "", True: "yes", False: "**no**"}[self.met]
        times = f"{self.bare:.3g} ms | {self.ours:.3g} ms | {self.ratio:.3f} | {self.least:.3f}"
        return f"| {self.what} | {times} | {goal} | {met} |"


class Block(nn.Module):
    """Of a vision transformer, in layers that Opacus knows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.after = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention, and two layers."""
        *three, last = self.parts
        y = self.norms[0](x)
        heads = (part(y).unflatten(2, (-1, 64)).transpose(1, 2) for part in three)
        x = x + last(nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))
        return x + self.after(self.norms[1](x))


class Vit(nn.Module):
    """10.7 million parameters: width 384, six blocks."""

    def __init__(self, width: int = 64 if SMALL else 384, depth: int = 1 if SMALL else 6) -> None:
        super().__init__()
        self.patches, self.norm, self.last = nn.Conv2d(3, width, 4, 4), nn.LayerNorm(width), nn.Linear(width, 10)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.last(self.norm(self.blocks(self.patches(x).flatten(2).transpose(1, 2))).mean(1))


def mlp() -> nn.Module:
    """3.2 million parameters."""
    width = 64 if SMALL else 1024
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, width), nn.ReLU(), nn.Linear(width, 10))


def convnet() -> nn.Module:
    """1.2 million parameters."""
    w = 16 if SMALL else 64
    sizes = [(3, w, 1), (w, 2 * w, 2), (2 * w, 2 * w, 1), (2 * w, 4 * w, 2), (4 * w, 4 * w, 1)]
    layers = [part for i, o, s in sizes for part in (nn.Conv2d(i, o, 3, s, 1), nn.GroupNorm(16, o), nn.ReLU())]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, 10))


MODELS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "MLP": (mlp, 512),
    "convnet": (convnet, 256),
    "ViT": (Vit, 128),
}
"""Each with its batch."""


def wait() -> None:
    """Until the device has done all of its work."""
    if not SMALL:
        torch.cuda.synchronize()


def images(records: int) -> TensorDataset:
    """On the device."""
    return TensorDataset(torch.randn(records, 3, 32, 32, device=DEVICE), torch.randint(10, (records,), device=DEVICE))


def loop(name: str, mode: str, *, secure: bool = False, watched: bool = False, half: bool = False) -> Steps:
    """Steps of Opacus."""
    make, batch = MODELS[name]
    batch = 4 if SMALL else batch
    torch.seed()
    torch.cuda.seed_all()
    model = make().to(DEVICE)
    model, optimizer, *criterion, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        data_loader=DataLoader(images(8 * batch), batch_size=batch),
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    loss = criterion[0] if criterion else nn.CrossEntropyLoss()
    if secure:
        rt.secure_noise(optimizer)
    with rt.watch(model, optimizer, loader) if watched else contextlib.nullcontext():
        for x, y in (pair for epoch in repeat(loader) for pair in epoch):
            yield
            optimizer.zero_grad()
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=half):
                found = loss(model(x), y)
            found.backward()
            optimizer.step()
            yield


def calls(call: Callable[[], object]) -> Steps:
    """A step is one call."""
    while True:
        yield
        call()
        yield


def trained(batch: int) -> Steps:
    """Steps of ``reticent.training.fit`` on ResNet-9, in a thread that takes turns; the setup brings the first."""
    go, done = threading.Semaphore(0), threading.Semaphore(0)

    def progress(step: int, steps: int) -> None:
        done.release()
        if step < steps:
            go.acquire()

    data = images(16 * batch)
    settings = Settings(1.0, 1.0, 1 / 16, float(batch), 1 + STEPS, physical_batch_size=2 * batch)
    context = RunContext(settings, resnet(), *data.tensors)
    sources, make = (SystemSource(), SystemSource()), partial(torch.optim.SGD, lr=0.05)
    threading.Thread(target=fit, args=(context, make, *sources), kwargs={"progress": progress}, daemon=True).start()
    done.acquire()
    while True:
        yield
        go.release()
        done.acquire()
        yield


def by_opacus(batch: int) -> Steps:
    """The same by Opacus alone."""
    model = resnet()
    data = images(16 * batch)
    model, optimizer, _ = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        data_loader=DataLoader(data, batch_size=batch),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    features, labels = data.tensors

    def step() -> None:
        where = torch.from_numpy(np.flatnonzero(SystemSource().uniform(len(labels)) < 1 / 16)).to(DEVICE)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(features[where]), labels[where]).backward()
        optimizer.step()

    yield from calls(step)


def resnet() -> nn.Module:
    """ResNet-9 of the shipped configuration."""
    config = ResNet9Config(kind="resnet9", width=16 if SMALL else 64, groups=16, standardised=True)
    return build_model(config, (3, 32, 32), 10, seed=0).to(DEVICE)


def measured(
    what: str, bare: Steps, ours: Steps, goal: float | None, each: tuple[float, float] = (1.0, 1.0)
) -> Measured:
    """Two loops in turn; ``each`` divides their times."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(STEPS):
        for loop, kept in zip((bare, ours), seconds, strict=True):
            next(loop)
            wait()
            started = time.perf_counter()
            next(loop)
            wait()
            kept.append(1e3 * (time.perf_counter() - started))
    bare.close()
    ours.close()
    first, second = ([t / part for t in kept[STEPS // 2 :]] for kept, part in zip(seconds, each, strict=True))
    ratios = [b / a for a, b in zip(first, second, strict=True)]
    ratio = statistics.median(ratios)
    met = None if goal is None else ratio <= goal
    return Measured(what, statistics.median(first), statistics.median(second), ratio, min(ratios), goal, met)


def watching() -> Iterator[Measured]:
    """The six rows of a watch, and two in half precision."""
    modes = {"MLP": ("hooks", "ghost"), "convnet": ("hooks", "functorch"), "ViT": ("hooks", "ghost")}
    for name, mode in ((name, mode) for name, two in modes.items() for mode in two):
        yield measured(f"watch, {name}, {mode}", loop(name, mode), loop(name, mode, watched=True), 1.03)
    for name in ("convnet", "ViT"):
        one, other = (loop(name, "hooks", watched=watched, half=True) for watched in (False, True))
        yield measured(f"watch, {name}, hooks, bfloat16", one, other, 1.03)


def secure() -> Iterator[Measured]:
    """A step with secure noise."""
    for name in ("MLP", "ViT"):
        yield measured(f"`rt.secure_noise`, {name}", loop(name, "hooks"), loop(name, "hooks", secure=True), 1.03)


def numbers() -> Iterator[Measured]:
    """Normal numbers alone, beside ``torch.normal``; and by torch's operations, as on a GPU without Triton."""
    goal, few, many = (1.5, 10**6, 10**7) if SMALL else (8.0, 10**6, 10**8)
    used = normals.way(DEVICE.type)
    for way, count in ((used, few), (used, many), (normals.by_torch, few if SMALL else many)):
        drawn = torch.empty(count, device=DEVICE)
        peer, ours = calls(drawn.normal_), calls(partial(_filled, way, drawn))
        yield measured(f"{count:.0e} secure numbers, {way.__name__}", peer, ours, goal if way is used else None)


def _filled(way: Callable[[torch.Tensor, Key, float], None], drawn: torch.Tensor) -> None:
    way(drawn, Key(), 1.0)


def training() -> Iterator[Measured]:
    """A step of the trainer."""
    batch = 8 if SMALL else 1024
    yield measured(f"trainer, ResNet-9, batch {batch}", by_opacus(batch), trained(batch), 1.1)


def shadows() -> Iterator[Measured]:
    """A step of one of many models: 16 at once, and as many as the device holds."""
    private = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "batch_size": 64, "steps": 20, "learning_rate": 0.1}
    config = parse_config({"data": {"name": "digits"}, "model": {"kind": "mlp", "widths": [128]}, **private})
    features, labels = torch.randn(5000, 108, device=DEVICE), torch.randint(2, (5000,), device=DEVICE)
    alone = build_model(config.model, (108,), 2, 0)

    def block(size: int) -> Steps:
        seeds, members = [model_seed(0, n) for n in range(size)], [members_of(0, n, 5000, 2500) for n in range(size)]
        made = ShadowBlock(config, features, labels, 2, seeds, members)
        models = StackedMLP([build_model(config.model, (108,), 2, seed).to(DEVICE) for seed in seeds])
        return calls(lambda: made.train_stacked(models, 20))

    size = block_size(alone, DEVICE, 2048)
    row = f"shadow models, one step of one, {BLOCK} and {size} at once"
    yield measured(row, block(BLOCK), block(size), 1.0, (20.0 * BLOCK, 20.0 * size))


def lengths() -> Iterator[Measured]:
    """R_t of a batch: on the processor, and where the model is."""
    ages = ((np.arange(17.0, 91.0) - 40.0) / 15.0)[:, None]
    layers = nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten()
    shapes: dict[str, tuple[nn.Module, torch.Tensor, SensitiveAttribute]] = {
        "Adult": (
            nn.Sequential(nn.Linear(108, 128), nn.Tanh(), nn.Linear(128, 2)),
            (torch.rand(256, 108) < 0.12).float(),
            SensitiveAttribute((0,), ages),
        ),
        "small convnet": (
            nn.Sequential(*layers, nn.Linear(4096, 10)),
            torch.randn(64, 3, 32, 32),
            SensitiveAttribute((5,), np.array([[0.0], [1.0]])),
        ),
    }
    for name, (model, x, attribute) in shapes.items():
        both = []
        for device in (torch.device("cpu"), DEVICE):
            meter = GradientSensitivity(copy.deepcopy(model).to(device), attribute, precision=Precision.SINGLE)
            both.append(
                calls(partial(meter.diameters, x.to(device), torch.zeros(len(x), dtype=torch.int64, device=device)))
            )
        yield measured(f"R_t, {name}: processor and device", *both, 1.0)


ROWS = {"watch": watching, "secure": secure, "numbers": numbers, "train": training, "shadow": shadows, "r_t": lengths}


def accuracy() -> None:
    """The shipped configuration at two targets and three seeds; a line for each, with its time."""
    config = load_config(Path(__file__).parents[1] / "configs" / "cifar-10-resnet9.yaml")
    for epsilon, seed in itertools.product((3.0, 8.0), range(3)):
        asked = config.model_dump(mode="json") | {"target": {"epsilon": epsilon, "delta": 1e-5}, "seed": seed}
        with TemporaryDirectory() as folder:
            ledger = train(parse_config(asked), Path(folder) / "run").ledger
        right, seconds = ledger.utility.test_accuracy, ledger.diagnostics.seconds
        print(f"epsilon {epsilon:g}, seed {seed}: {right:.2%} in {seconds:.0f} s", flush=True)


def main() -> None:
    """Measure what is asked for, or all rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, "accuracy", []], metavar="ROW", help=f"of {', '.join(ROWS)}")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    card = f"{torch.get_num_threads()} threads of a processor" if SMALL else torch.cuda.get_device_name()
    about = f"{card}, torch {torch.__version__}, {datetime.now(UTC).date().isoformat()}"
    print(
        f"{about}\n\n| what | bare | with reticent | ratio | least | goal | met |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    for name in given.rows or ROWS:
        if name == "accuracy":
            accuracy()
            continue
        for row in ROWS[name]():
            print(row.line(), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
