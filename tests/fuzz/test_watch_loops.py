"""Random loops of public operations of torch, Opacus, the Trainer and Lightning: no ledger states less than what ran.

By name: ``pytest -m slow tests/fuzz/test_watch_loops.py``. ``RETICENT_FUZZ_MINUTES`` (20) is shared by the kinds of
loop; those whose library is missing are skipped. A failure prints the seed of its loop.
"""

from __future__ import annotations

import copy
import os
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader, Dataset

import reticent as rt
from reticent.errors import ParameterError
from tests.fuzz.watch_oracle import Oracle, digest, no_grad_add, understated
from tests.watching.loops import BATCH, RECORDS, plain_step, private, records

MINUTES = float(os.environ.get("RETICENT_FUZZ_MINUTES", "20"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(0), pytest.mark.filterwarnings("ignore")]


class Numbered(Dataset):
    """Records with their number."""

    def __init__(self) -> None:
        self.inside = records()

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> tuple[Any, Any, int]:
        return (*self.inside[index], index)


class Toy:
    """One model under one oracle, and what can be done to it."""

    def __init__(self, rng: random.Random, model: Any, optimizer: Any, loader: Any, criterion: Any) -> None:
        self.rng, self.wrapped, self.optimizer, self.loader = rng, model, optimizer, loader
        self.model = getattr(model, "_module", model)
        self.criterion = criterion
        self.oracle = Oracle(self.model)
        self.inner = getattr(optimizer, "original_optimizer", optimizer)
        self.beside: Any = None
        self.done: list[str] = []

    def before(self, plan: dict[int, str]) -> None:
        """What happens before the first watch: the condition on the start weights speaks of it."""
        if -1 in plan:
            self.do(plan[-1])
            self.oracle.bare.clear()
            self.oracle.last = digest(self.model)

    def do(self, name: str) -> None:
        self.done.append(name)
        OPERATIONS[name](self)


def evaluate(toy: Toy) -> None:
    toy.model.eval()
    with torch.no_grad():
        toy.model(toy.model_input())
    toy.model.train()


def assign(toy: Toy) -> None:
    toy.model.load_state_dict({n: t.clone() + 0.1 for n, t in toy.model.state_dict().items()}, assign=True)
    toy.oracle.compare("by assignment")


def exchange(toy: Toy) -> None:
    p = next(iter(toy.model.parameters()))
    p.data = p.data + 0.1


def vector(toy: Toy) -> None:
    vector_to_parameters(parameters_to_vector(toy.model.parameters()) * 1.1, toy.model.parameters())


def raw_step(toy: Toy) -> None:
    """The optimizer inside, with whatever gradients are there."""
    toy.oracle.dirty("a step of the optimizer inside")
    for p in toy.model.parameters():
        p.grad = torch.randn_like(p) if p.grad is None else p.grad
    type(toy.inner).step(toy.inner)
    toy.oracle.last = ""


def other_optimizer(toy: Toy) -> None:
    toy.oracle.dirty("a step of another optimizer")
    toy.beside = toy.beside or torch.optim.SGD(toy.model.parameters(), lr=0.01)
    for p in toy.model.parameters():
        p.grad = torch.randn_like(p) if p.grad is None else p.grad
    toy.beside.step()


def seed(toy: Toy) -> None:
    toy.oracle.known_seed = True
    torch.manual_seed(toy.rng.choice([0, 42, 2**31, 2**60]))


def reseed(toy: Toy) -> None:
    torch.seed()
    toy.oracle.known_seed = False


def state(toy: Toy) -> None:
    """Back to the state of another step: the same noise again, if a step drew noise since."""
    oracle, seed = toy.oracle, torch.initial_seed()
    found = (torch.get_rng_state(), seed, oracle.under[seed], oracle.known_seed)
    kept, seed, releases, known = toy.__dict__.setdefault("kept_state", found)
    torch.set_rng_state(kept)
    oracle.known_seed = known or oracle.under[seed] > releases


def hook(toy: Toy) -> None:
    """Noiseless gradients beside the noisy ones."""
    if not isinstance(toy.optimizer, DPOptimizer):
        return

    def add(*_: Any) -> None:
        for p in toy.optimizer.params:
            p.grad = p.grad + p.summed_grad.view_as(p)
        toy.oracle.dirty("a hook added the sum")

    if toy.rng.random() < 0.5:
        toy.inner.register_step_pre_hook(add)
    else:
        toy.optimizer.attach_step_hook(add)


def hook_of_weights(toy: Toy) -> None:
    def write(*_: Any) -> None:
        next(iter(toy.model.parameters())).data.add_(0.03)  # "data" does not take it back bit for bit
        toy.oracle.dirty("a hook wrote weights")

    chosen = toy.rng.choice([toy.inner.register_step_pre_hook, toy.inner.register_step_post_hook])
    chosen(write)


def new_noise(toy: Toy) -> None:
    if isinstance(toy.optimizer, DPOptimizer):
        toy.optimizer.noise_multiplier = toy.rng.choice([0.6, 1.1, 1.5])


def new_norm(toy: Toy) -> None:
    if type(toy.optimizer) is DPOptimizer:
        toy.optimizer.max_grad_norm = toy.rng.choice([0.5, 1.0, 2.0])


def quiet(toy: Toy) -> None:
    """Noise that is none, put on the object."""
    if not isinstance(toy.optimizer, DPOptimizer):
        return

    def add_noise() -> None:
        for p in toy.optimizer.params:
            p.grad = p.summed_grad.view_as(p).clone()

    toy.optimizer.add_noise = add_noise


def gradient_hook(toy: Toy) -> None:
    """Writes in the backward pass."""

    def write(p: Any) -> None:
        p.data.add_(0.01)
        toy.oracle.dirty("a hook of a gradient wrote weights")

    next(iter(toy.model.parameters())).register_post_accumulate_grad_hook(write)


def exchange_optimizer(toy: Toy) -> None:
    """Another optimizer inside the private one; the noise stays."""
    if isinstance(toy.optimizer, DPOptimizer):
        toy.optimizer.original_optimizer = torch.optim.Adam(toy.model.parameters(), lr=0.01)
        toy.oracle.follow(toy.optimizer, toy.rate)


def scheduler(toy: Toy) -> None:
    torch.optim.lr_scheduler.StepLR(toy.inner, 1, 0.9).step()


OPERATIONS: dict[str, Callable[[Toy], Any]] = {
    "evaluate": evaluate,
    "copy": lambda toy: copy.deepcopy(toy.model.state_dict()),
    "learning rate": lambda toy: [g.update(lr=0.05) for g in toy.inner.param_groups],
    "reseed": reseed,
    "new noise": new_noise,
    "new norm": new_norm,
    "data": lambda toy: next(iter(toy.model.parameters())).data.sub_(0.01),
    "one value": lambda toy: next(iter(toy.model.parameters())).data.view(-1)[3:4].add_(0.5),
    "add": lambda toy: no_grad_add(toy.model, 0.01),
    "exchange": exchange,
    "vector": vector,
    "assign": assign,
    "raw step": raw_step,
    "other optimizer": other_optimizer,
    "gradient hook": gradient_hook,
    "exchange optimizer": exchange_optimizer,
    "optimizer state": lambda toy: toy.inner.load_state_dict(toy.inner.state_dict()),
    "scheduler": scheduler,
    "same weights": lambda toy: toy.model.load_state_dict(toy.model.state_dict()),
    "seed": seed,
    "state": state,
    "hook": hook,
    "hook of weights": hook_of_weights,
    "quiet": quiet,
}
HARMLESS = ("evaluate", "copy", "learning rate", "reseed", "new noise", "new norm", "optimizer state", "scheduler")


def planned(rng: random.Random, steps: int) -> dict[int, str]:
    """Operations by the number of the step after which they happen; half of the loops are harmless."""
    names = HARMLESS if rng.random() < 0.5 else tuple(OPERATIONS)
    return {rng.randrange(-1, steps): rng.choice(names) for _ in range(rng.randint(0, 3))}


def opacus_toy(rng: random.Random) -> tuple[Toy, float | None]:
    poisson = rng.random() < 0.6
    options: dict[str, Any] = rng.choice([{}, {}, {"mode": "functorch"}, {"mode": "ghost"}, {"clipping": "per_layer"}])
    model, optimizer, loader, criterion = private(
        DataLoader(Numbered(), batch_size=BATCH, shuffle=True), poisson_sampling=poisson, **options
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


def opacus_pass(toy: Toy, plan: dict[int, str], most: int | None, every: int, physical: int | None) -> None:
    """One pass over the data; operations of the plan happen after its steps."""

    def over(loader: Any) -> None:
        count = 0
        for index, (features, labels, numbers) in enumerate(loader):
            if index == most:
                break
            if index % every == 0:
                toy.optimizer.zero_grad()
            toy.criterion(toy.wrapped(features), labels).backward()
            toy.oracle.waiting.update(numbers.tolist())
            if (index + 1) % every == 0:
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
    toy.model_input = lambda: records().tensors[0][:2]  # type: ignore[attr-defined]
    phases = rng.choice([1, 1, 2, 3])
    again = rng.random() < 0.5
    seen: Any = None
    for phase in range(phases):
        plan = planned(rng, 6)
        if phase == 0:
            toy.before(plan)
        elif -1 in plan:
            toy.do(plan[-1])
            toy.oracle.compare("between two watches")
        if seen is None or not again:
            seen = rt.watch(toy.wrapped, toy.optimizer, toy.loader)
        every = rng.choice([1, 1, 1, 2])
        ghost = not hasattr(toy.wrapped, "force_functorch") or every > 1
        physical = None if ghost else rng.choice([None, None, 4])
        with seen:
            for _ in range(rng.choice([1, 1, 2])):
                opacus_pass(toy, plan, rng.choice([None, None, 2]), every, physical)
            toy.oracle.compare("after the last step")
    return toy, seen


def plain_loop(rng: random.Random) -> tuple[Toy, Any]:
    """Noise by hand, with an optimizer or without."""
    from tests.watching.loops import network

    model, by_hand = network(), rng.random() < 0.5
    loader = DataLoader(Numbered(), batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    toy = Toy(rng, model, optimizer, loader, nn.CrossEntropyLoss())
    toy.model_input = lambda: records().tensors[0][:2]  # type: ignore[attr-defined]
    noise, plan = rng.choice([0.6, 1.1, 3.0]), planned(rng, 12)
    if by_hand:  # what torch does not count cannot be told from the updates themselves: docs/reference/watch.md says so
        plan = {
            at: name for at, name in plan.items() if name in (*HARMLESS, "add", "assign", "other optimizer", "seed")
        }
    silent = rng.choice([0.0, 0.0, 0.3])
    uncounted = rng.random() < 0.3 and not silent
    toy.before(plan)
    with rt.watch(model, None if by_hand else optimizer, loader) as seen:
        count = 0
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
                toy.oracle.waiting.update(numbers.tolist())
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
    toy.model_input = lambda: records().tensors[0][:2]  # type: ignore[attr-defined]
    plan, epochs = planned(rng, 8), rng.choice([1, 2])

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = toy.wrapped

        def training_step(self, batch: Any, index: int) -> Any:
            toy.oracle.waiting.update(batch[2].tolist())
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
    toy.model_input = lambda: records().tensors[0][:2]  # type: ignore[attr-defined]
    if type(toy.wrapped).__name__.endswith("FastGradientClipping"):
        return toy, None
    plan, epochs = planned(rng, 8), rng.choice([1, 2])
    toy.loader.collate_fn = collated(toy.loader.collate_fn)

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            return toy.loader

        def compute_loss(self, model: Any, inputs: Any, **_: Any) -> Any:
            toy.oracle.waiting.update(inputs["numbers"].tolist())
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
        model=toy.wrapped, args=arguments, train_dataset=Numbered(), optimizers=(toy.optimizer, None),
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
SHARES = {"opacus": 0.4, "plain": 0.2, "lightning": 0.2, "trainer": 0.2}


def fuzz(kind: str, minutes: float) -> Counter[str]:
    """Loops of one kind until the time is over; how they ended."""
    own_clip = DPOptimizer.clip_and_accumulate
    ended: Counter[str] = Counter()
    end = time.monotonic() + 60.0 * minutes
    start = int(os.environ.get("RETICENT_FUZZ_SEED", "0")) or random.SystemRandom().randrange(2**40)
    while time.monotonic() < end:
        start += 1
        torch.seed()
        ended[one(kind, start)] += 1
    assert DPOptimizer.clip_and_accumulate is own_clip
    return ended


def one(kind: str, number: int) -> str:
    """One loop: how it ended.

    Raises:
        AssertionError: its ledger states less than what ran.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            toy, seen = KINDS[kind](random.Random(number))  # noqa: S311
        except ParameterError:
            return "refused"
        except (ValueError, RuntimeError, AttributeError, IndexError, TypeError, AssertionError) as error:
            return f"failed: {type(error).__name__}: {str(error)[:60]}"
    if seen is None:
        return "left out"
    found = seen.ledger.mechanism()
    why = understated(found, toy.oracle)
    assert why is None, f"{kind} {number}: {why}; operations {toy.done}; {seen.ledger.faults}"
    assert "start-weights" not in seen.ledger.vouches()
    void = any(fault.voids for fault in seen.ledger.faults)
    if void and not toy.oracle.bare:
        return f"void without need: {[str(f) for f in seen.ledger.faults if f.voids]} after {sorted(set(toy.done))}"
    return "void, rightly" if void else "stated, rightly"


@pytest.mark.parametrize("kind", KINDS)
def test_no_ledger_states_less_than_what_ran(kind: str) -> None:
    ended = fuzz(kind, MINUTES * SHARES[kind])
    print(f"\n{kind}:", *(f"  {count} {how}" for how, count in ended.most_common()), sep="\n")
    assert ended["void, rightly"]
    assert ended["stated, rightly"]
