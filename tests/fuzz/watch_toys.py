"""Toy loops of torch, Opacus, the Trainer and Lightning, each from one generator of random numbers."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from opacus.optimizers import DPOptimizerFastGradientClipping
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from tests.fuzz.watch_operations import DROPPED, HARMLESS, Toy, planned
from tests.watching.programs import BATCH, RECORDS, network, plain_step, private, records


def numbered() -> TensorDataset:
    """Records with their number."""
    return TensorDataset(*records().tensors, torch.arange(RECORDS))


def opacus_toy(rng: random.Random) -> tuple[Toy, float | None]:
    poisson = rng.random() < 0.6
    options: dict[str, Any] = rng.choice([{}, {}, {"mode": "functorch"}, {"mode": "ghost"}, {"clipping": "per_layer"}])
    model, optimizer, loader, criterion = private(
        DataLoader(numbered(), batch_size=BATCH, shuffle=True), poisson_sampling=poisson, **options
    )
    if rng.random() < 0.3:
        optimizer.original_optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    toy = Toy(rng, model, optimizer, loader, criterion)
    if rng.random() < 0.15:
        rt.secure_noise(optimizer)
        toy.oracle.secure = True
    rate = float(loader.batch_sampler.sample_rate) if poisson else None
    toy.rate = lambda: rate  # type: ignore[attr-defined]
    toy.oracle.follow(optimizer, toy.rate)
    return toy, rate


def opacus_pass(
    toy: Toy, plan: dict[int, str], most: int | None, every: int, physical: int | None, left_out: int | None
) -> None:
    """One pass over the data; operations of the plan happen after its steps."""

    def over(loader: Any) -> None:
        count = 0
        dropped = False
        for index, (features, labels, numbers) in enumerate(loader):
            if index == most:
                break
            if index == left_out and every == 1:
                dropped = True
                if physical is not None:
                    toy.oracle.dirty("a part of a batch that was left out")
                continue
            if index % every == 0:
                toy.optimizer.zero_grad()
            toy.criterion(toy.wrapped(features), labels).backward()
            toy.oracle.used(numbers.tolist())
            if (index + 1) % every == 0:
                if every > 1 and isinstance(toy.optimizer, DPOptimizerFastGradientClipping):
                    toy.oracle.dirty(DROPPED)
                if dropped:
                    toy.oracle.dirty("a batch that was left out")
                toy.optimizer.step()
                count += 1
                if count in plan:
                    toy.do(plan[count])

    if 0 in plan:
        toy.do(plan[0])
    if physical is None:
        over(toy.loader)
    else:
        with BatchMemoryManager(
            data_loader=toy.loader, max_physical_batch_size=physical, optimizer=toy.optimizer
        ) as small:
            over(small)


def opacus_loop(rng: random.Random) -> tuple[Toy, Any]:
    toy, _ = opacus_toy(rng)
    phases = rng.choice([1, 1, 2, 3])
    again = rng.random() < 0.5
    seen: Any = None
    nothing_ran = True
    for _ in range(phases):
        plan = planned(rng, 6)
        nothing_ran = seen is None or (nothing_ran and not again and not len(seen))
        if nothing_ran:
            toy.before(plan)
        elif -1 in plan:
            toy.do(plan[-1])
            toy.oracle.compare("between two watches")
        if seen is None or not again:
            seen = toy.seen = rt.watch(toy.wrapped, toy.optimizer, toy.loader)
        every = rng.choice([1, 1, 1, 2])
        ghost = not hasattr(toy.wrapped, "force_functorch") or every > 1
        physical = None if ghost else rng.choice([None, None, 4])
        with seen:
            for _ in range(rng.choice([1, 1, 2])):
                left_out = rng.choice([*[None] * 12, 0, 1, 3])
                opacus_pass(toy, plan, rng.choice([None, None, 2]), every, physical, left_out)
            toy.oracle.compare("after the last step")
    return toy, seen


def plain_loop(rng: random.Random) -> tuple[Toy, Any]:
    """Noise by hand, with an optimizer or without."""
    model, by_hand = network(), rng.random() < 0.5
    loader = DataLoader(numbered(), batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    toy = Toy(rng, model, optimizer, loader, nn.CrossEntropyLoss())
    noise, plan = rng.choice([0.6, 1.1, 3.0]), planned(rng, 12)
    if by_hand:  # what torch does not count cannot be told from the updates themselves: docs/reference/watch.md says so
        plan = {
            at: name for at, name in plan.items() if name in (*HARMLESS, "add", "assign", "other optimizer", "seed")
        }
    silent = rng.choice([0.0, 0.0, 0.3])
    uncounted = rng.random() < 0.3 and not silent
    toy.before(plan)
    with rt.watch(model, None if by_hand else optimizer, loader) as seen:
        toy.seen, count = seen, 0
        for _ in range(rng.choice([1, 2])):
            for features, labels, numbers in loader:
                toy.oracle.compare("before a step")
                plain_step(model, features, labels, noise, 1.0)
                if by_hand:
                    for p in model.parameters():
                        if uncounted:
                            p.data.sub_(0.05 * p.grad)
                        else:
                            with torch.no_grad():
                                p.sub_(0.05 * p.grad)
                else:
                    optimizer.step()
                toy.oracle.used(numbers.tolist())
                toy.oracle.released(noise, None)
                if rng.random() >= silent or count == 0:
                    seen.step(noise_multiplier=noise, batch_size=rng.choice([None, len(labels)]))
                else:
                    toy.oracle.dirty("a step that nobody recorded")
                count += 1
                if count in plan:
                    toy.do(plan[count])
        toy.oracle.compare("after the last step")
    return toy, seen


def lightning_loop(rng: random.Random) -> tuple[Toy, Any]:
    lightning = pytest.importorskip("lightning")
    from reticent.watching.lightning import WatchCallback

    toy, _ = opacus_toy(rng)
    plan, epochs = planned(rng, 8), rng.choice([1, 2])

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = toy.wrapped

        def training_step(self, batch: Any, index: int) -> Any:
            toy.oracle.used(batch[2].tolist())
            return toy.criterion(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return toy.optimizer

        def train_dataloader(self) -> Any:
            return toy.loader

    class Planned(lightning.pytorch.callbacks.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step in plan:
                toy.do(plan.pop(trainer.global_step))

        def on_train_end(self, *_: Any) -> None:
            toy.oracle.compare("after the last step")

    if type(toy.wrapped).__name__.endswith("FastGradientClipping"):
        return toy, None  # the ghost loss is no tensor, and Lightning wants one
    toy.before(plan)
    seen = WatchCallback()
    fitted = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[Planned(), seen],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    fitted.fit(Module())
    return toy, seen


def trainer_loop(rng: random.Random) -> tuple[Toy, Any]:
    transformers = pytest.importorskip("transformers")
    from reticent.watching.huggingface import WatchCallback

    toy, _ = opacus_toy(rng)
    if type(toy.wrapped).__name__.endswith("FastGradientClipping"):
        return toy, None
    plan, epochs = planned(rng, 8), rng.choice([1, 2])
    toy.loader.collate_fn = collated(toy.loader.collate_fn)

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            return toy.loader

        def compute_loss(self, model: Any, inputs: Any, **_: Any) -> Any:
            toy.oracle.used(inputs["numbers"].tolist())
            return nn.functional.cross_entropy(model(inputs["features"]), inputs["labels"])

    class Planned(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            toy.optimizer.zero_grad()
            if state.global_step in plan:
                toy.do(plan.pop(state.global_step))

        def on_train_end(self, *_: Any, **__: Any) -> None:
            toy.oracle.compare("after the last step")

    arguments = transformers.TrainingArguments(
        output_dir="/tmp/none",  # noqa: S108  nothing is written
        num_train_epochs=epochs,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=["labels"],
        logging_strategy="no",
        log_level="error",
    )
    seen = WatchCallback()
    trainer = Trainer(
        model=toy.wrapped, args=arguments, train_dataset=numbered(), optimizers=(toy.optimizer, None),
        callbacks=[Planned(), seen],
    )  # fmt: skip
    if rng.random() < 0.8:
        torch.seed()
    else:
        toy.oracle.known_seed = True
    toy.before(plan)
    trainer.train()
    return toy, seen


def collated(own: Any) -> Any:
    def collate(samples: Any) -> Any:
        features, labels, numbers = own(samples)
        return {"features": features, "labels": labels, "numbers": numbers}

    return collate


KINDS = {"opacus": opacus_loop, "plain": plain_loop, "lightning": lightning_loop, "trainer": trainer_loop}
