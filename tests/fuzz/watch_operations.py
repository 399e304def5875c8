"""What people do to a training loop between two steps, in one list: ``OPERATIONS``."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import torch
from opacus.optimizers import DPOptimizer
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tests.fuzz.watch_oracle import Oracle, digest
from tests.watching.programs import records

DROPPED = "each backward pass of ghost clipping drops the batch before"


class Toy:
    """One model under one oracle, and what can be done to it."""

    def __init__(self, rng: random.Random, model: Any, optimizer: Any, loader: Any, criterion: Any) -> None:
        self.rng, self.wrapped, self.optimizer, self.loader = rng, model, optimizer, loader
        self.model = getattr(model, "_module", model)
        self.criterion = criterion
        self.oracle = Oracle(self.model)
        self.inner = getattr(optimizer, "original_optimizer", optimizer)
        self.beside: Any = None
        self.seen: Any = None
        self.done: list[str] = []

    def before(self, plan: dict[int, str]) -> None:
        """What happens before the first watch that sees a step: the condition on the start weights speaks of it."""
        waits = any(getattr(p, "summed_grad", None) is not None for p in self.model.parameters())
        kept = [why for why in self.oracle.bare if waits and why != DROPPED]  # of a sum that a watch without steps left
        if -1 in plan:
            self.do(plan[-1])
        self.oracle.bare = kept
        self.oracle.last = digest(self.model)
        if any("step" in state for state in self.inner.state.values()):
            self.oracle.dirty("the optimizer remembers steps that no watch saw")

    def do(self, name: str) -> None:
        self.done.append(name)
        OPERATIONS[name](self)


def evaluate(toy: Toy) -> None:
    toy.model.eval()
    with torch.no_grad():
        toy.model(records().tensors[0][:2])
    toy.model.train()


def assign(toy: Toy) -> None:
    toy.model.load_state_dict({n: t.clone() + 0.1 for n, t in toy.model.state_dict().items()}, assign=True)
    toy.oracle.compare("by assignment")


@torch.no_grad()
def add(toy: Toy) -> None:
    next(iter(toy.model.parameters())).add_(0.01)


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
    torch.manual_seed(toy.rng.choice([0, 42, 2**31]))


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


def exchange_optimizer(toy: Toy) -> None:
    """Another optimizer inside the private one; the noise stays."""
    if isinstance(toy.optimizer, DPOptimizer):
        toy.optimizer.original_optimizer = torch.optim.Adam(toy.model.parameters(), lr=0.01)
        toy.inner = toy.optimizer.original_optimizer
        toy.oracle.follow(toy.optimizer, toy.rate)


def scheduler(toy: Toy) -> None:
    torch.optim.lr_scheduler.StepLR(toy.inner, 1, 0.9).step()


def put_back(toy: Toy) -> None:
    """Weights that a step left, from the second time on."""
    toy.oracle.compare("before others were put back")
    if toy.oracle.releases:
        toy.model.load_state_dict(toy.__dict__.setdefault("kept_weights", copy.deepcopy(toy.model.state_dict())))
        toy.oracle.last = digest(toy.model)


def after_step(toy: Toy) -> None:
    """Weights are clamped, and the program says so."""
    if toy.seen is not None and toy.seen.entered:
        toy.oracle.compare("before they were clamped")
        with toy.seen.after_step(), torch.no_grad():
            next(iter(toy.model.parameters())).clamp_(-0.2, 0.2)
        toy.oracle.last = digest(toy.model)


OPERATIONS: dict[str, Callable[[Toy], Any]] = {
    "evaluate": evaluate,
    "copy": lambda toy: copy.deepcopy(toy.model.state_dict()),
    "learning rate": lambda toy: [g.update(lr=0.05) for g in toy.inner.param_groups],
    "reseed": reseed,
    "new noise": new_noise,
    "new norm": new_norm,
    "data": lambda toy: next(iter(toy.model.parameters())).data.sub_(0.01),
    "add": add,
    "exchange": exchange,
    "vector": vector,
    "assign": assign,
    "raw step": raw_step,
    "other optimizer": other_optimizer,
    "exchange optimizer": exchange_optimizer,
    "optimizer state": lambda toy: toy.inner.load_state_dict(toy.inner.state_dict()),
    "scheduler": scheduler,
    "same weights": lambda toy: toy.model.load_state_dict(toy.model.state_dict()),
    "seed": seed,
    "state": state,
    "hook of weights": hook_of_weights,
    "put back": put_back,
    "after step": after_step,
}
HARMLESS = ("evaluate", "copy", "learning rate", "reseed", "new noise", "new norm", "optimizer state", "scheduler")
MADE_FROM_RELEASED = ("put back", "after step")


def planned(rng: random.Random, steps: int) -> dict[int, str]:
    """Operations by the number of the step after which they happen; half of the loops are harmless."""
    names = HARMLESS + MADE_FROM_RELEASED if rng.random() < 0.5 else tuple(OPERATIONS)
    return {rng.randrange(-1, steps): rng.choice(names) for _ in range(rng.randint(0, 3))}
