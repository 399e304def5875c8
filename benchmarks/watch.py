"""What ``rt.watch`` costs, in CPU seconds of training steps of Opacus: ``python -m benchmarks.watch``.

Two rows for each model and mode. The first is the time inside the calls of the watch during 512 steps, over that of
the same steps without those calls. It is taken by the wall clock, which is read without a call of the system: twelve of
those in a step would slow down what they measure. So it wants an idle machine. The second is the whole cost, in CPU
time: two loops that are alike, one of them watched, take turns step by step, so that a machine that slows down slows
both. One of them can be faster by some percent all the time, so each is watched as often as the other, and
a number is of both together. What happens once is counted in neither: entering, leaving, and the first sixteen steps,
where looks are closer (a copy of the model, whole gradients of records). Notes say what these steps take more.

What was made before the loops is no garbage, and Python's collector does not go through it: one such collection takes
.2 s and would fall into either of the two loops by chance. What the loops and the watch make is collected as ever.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from itertools import islice, product
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from benchmarks._rows import Row, main, spread
from reticent.watching.detectors.draws import Drawing, Draws
from reticent.watching.detectors.ghost import GhostClipping, Lengths
from reticent.watching.detectors.moves import Beside, Moves
from reticent.watching.detectors.noise import AddedNoise, NoisyGradients
from reticent.watching.detectors.record_gradients import RecordGradients
from reticent.watching.private_loop import PrivateLoop

GOAL, STEPS, FIRST, TIMED, REPEATS, TURNS, BATCH = 0.03, 64, 16, 512, 3, 6, 128
"""Share of a step that watching may cost; steps of one pass; the first of a watch; those that are timed after them,
of which one in 128 has its clipped records counted; repeats; those of the second row, each of half as many steps, as
one disturbance of the machine spoils one of them; records of a batch."""

CALLS: dict[type, tuple[str, ...]] = {
    PrivateLoop: ("clips", "releases"),
    RecordGradients: ("gave", "after_clip"),
    AddedNoise: ("after_noise", "after_scale"),
    NoisyGradients: ("after_noise", "on_scale", "after_scale"),
    Moves: ("given", "gave", "_before_any", "_just_before", "_just_after", "after_noise"),
    Beside: ("_after_any",),
    Drawing: ("_begin",),
    Draws: ("remember",),
    GhostClipping: ("after", "after_scale"),
    Lengths: ("before",),
}
"""What runs while the loop runs."""

MODES = ("hooks", "functorch", "ghost")


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of mallopt


def keep_memory() -> None:
    """Let glibc keep what is freed; other C libraries do as they do."""
    with contextlib.suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def parts(kind: str, mode: str) -> tuple[Any, Any, Any, Any]:
    """(model, optimizer, loader, criterion) of Opacus; one pass over the loader is ``STEPS`` steps.

    The seed comes from the operating system, as in each loop that gets a certificate.
    """
    torch.seed()
    shape = (64,) if kind == "mlp" else (1, 16, 16)
    if kind == "mlp":
        model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10))
    else:
        layers = nn.Conv2d(1, 16, 3, 2), nn.Tanh(), nn.Conv2d(16, 32, 3, 2), nn.Tanh(), nn.Flatten()
        model = nn.Sequential(*layers, nn.Linear(32 * 9, 10))
    data = TensorDataset(torch.randn(STEPS * BATCH, *shape), torch.randint(10, (STEPS * BATCH,)))
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        data_loader=DataLoader(data, batch_size=BATCH),
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    model, optimizer, *criterion, loader = made
    return model, optimizer, loader, criterion[0] if criterion else nn.CrossEntropyLoss()


def shares(made: tuple[Any, Any, Any, Any]) -> list[tuple[float, float, float]]:
    """Time inside the calls of the watch, over that of the steps without them; seconds of one step; and of the first.

    What the two looks at the clock around each call take is taken off: they are no part of the watch. It is measured
    in the same places, as a clock costs more there than in a row of looks at it.
    """
    _, clock, _ = inside(made, lambda _: lambda *args, **kwargs: None)
    found = [inside(made, lambda own: own) for _ in range(REPEATS)]
    return [((ours - clock) / (whole - ours), (whole - ours) / TIMED, first) for whole, ours, first in found]


def inside(made: tuple[Any, Any, Any, Any], timed: Callable[[Any], Callable[..., Any]]) -> tuple[float, float, float]:
    """Seconds of a watched loop, those in ``timed`` of each call of the watch, and those of the first steps.

    The call itself is made too.
    """
    spent = 0.0

    def looked_at(own: Callable[..., Any]) -> Callable[..., Any]:
        one = timed(own)

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal spent
            started = time.perf_counter()
            try:
                found = one(*args, **kwargs)
            finally:
                spent += time.perf_counter() - started
            return found if one is own else own(*args, **kwargs)

        return call

    kept = {(owner, name): getattr(owner, name) for owner, names in CALLS.items() for name in names}
    for (owner, name), own in kept.items():
        setattr(owner, name, looked_at(own))
    try:
        model, optimizer, loader, _ = made
        with rt.watch(model, optimizer, loader):
            steps = endless(made, time.perf_counter)
            first = sum(islice(steps, FIRST))
            spent = 0.0
            started = time.perf_counter()
            for _ in range(TIMED):
                next(steps)
            whole = time.perf_counter() - started
            steps.close()
            return whole, spent, first
    finally:
        for (owner, name), own in kept.items():
            setattr(owner, name, own)


def endless(
    made: tuple[Any, Any, Any, Any], clock: Callable[[], float] = time.process_time
) -> Generator[float, None, None]:
    """Train on and on; the seconds of each step."""
    model, optimizer, loader, criterion = made
    while True:
        batches = iter(loader)
        while True:
            started = clock()
            if (batch := next(batches, None)) is None:
                break
            optimizer.zero_grad()
            criterion(model(batch[0]), batch[1]).backward()
            optimizer.step()
            yield clock() - started


def both_ways(one: tuple[Any, Any, Any, Any], other: tuple[Any, Any, Any, Any]) -> float:
    """What watching costs where each of two loops that are alike was watched once beside the other."""
    return math.sqrt((1.0 + turns(one, other)) * (1.0 + turns(other, one))) - 1.0


def turns(bare: tuple[Any, Any, Any, Any], watched: tuple[Any, Any, Any, Any]) -> float:
    """CPU time of as many steps of a watched loop over that of a bare one, minus 1; their steps take turns."""
    model, optimizer, loader, _ = watched
    with rt.watch(model, optimizer, loader):
        loops = endless(bare), endless(watched)
        for loop in loops:
            deque(islice(loop, FIRST), maxlen=0)
        spent = [0.0, 0.0]
        for step in range(TIMED // 2):
            for which in (0, 1) if step % 2 else (1, 0):
                spent[which] += next(loops[which])
        for loop in loops:
            loop.close()
    return spent[1] / spent[0] - 1.0


def rows() -> Iterator[Row]:
    """Both shares for each model and mode."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    keep_memory()
    for kind, mode in product(("mlp", "convnet"), MODES):
        made, other = parts(kind, mode), parts(kind, mode)
        for each in (made, other):
            deque(islice(endless(each), STEPS), maxlen=0)
        gc.collect()
        gc.freeze()
        found = shares(made)
        step, first = (1e3 * spread([times[k] for times in found])["median"] for k in (1, 2))
        notes = {
            "milliseconds of a step": step,
            f"more in the first {FIRST} steps": first - FIRST * step,
            "steps": TIMED,
        }
        yield _row(f"inside the calls of watch, {kind}, {mode}", [times[0] for times in found], notes)
        yield _row(
            f"watched loop beside a bare one, {kind}, {mode}", [both_ways(other, made) for _ in range(TURNS)], notes
        )
        gc.unfreeze()


def _row(work: str, costs: list[float], notes: dict[str, Any]) -> Row:
    cost = spread(costs)
    return Row(
        work=work,
        peer="the same steps without a watch",
        ratio=cost,
        error=None,
        goal=f"at most {GOAL:.0%} of the CPU time of a step, in the median",
        met=cost["median"] <= GOAL,
        notes=notes,
    )


if __name__ == "__main__":
    main(rows, __doc__ or "")
