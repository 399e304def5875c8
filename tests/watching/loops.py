"""A row of a table of loops, and what a watch says of it.

A ``Loop`` is a loop as somebody wrote it with everything that is true of it; ``check`` runs it with a watch and without
and compares. The tables stand in the tests of what looks at them, by its name.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager

import reticent as rt
from reticent.facts import Fact
from reticent.kernel.samplers import Poisson
from reticent.records.ledger import RunLedger
from reticent.watching.session import Watch
from tests.conftest import derived_once
from tests.fuzz.watch_oracle import Oracle, understated
from tests.watching.programs import NOISE, RATE, Made, by_hand, plain_step, private, run

Act = Callable[["Toy"], Any]

DELTA = 1e-5


def watched(*made, how=None, **options):
    with rt.watch(*made[:3], **options) as seen:
        run(*made, **(how or {}))
    return seen


def prepared(act, make=private):
    """A loop to which something was done before the watch."""

    def made():
        loop = make()
        act(loop)
        return loop

    return made


def earlier(change=lambda made: None, make=private, **options):
    """A loop that was watched before, and to which something was done since."""
    return prepared(lambda made: (watched(*made, how={"epochs": 1}, **options), change(made)), make)


def epsilon(what):
    return rt.epsilon_at_delta(rt.assess(what)[0].curve, DELTA)


def most_that_fits(seen, target):
    """Whether the advantage of what ran keeps to a target, and one step more would exceed it."""
    within = rt.assess(seen)[0].measure(rt.advantage).value
    beyond = rt.assess(rt.DPSGD(NOISE, RATE, seen.steps + 1))[0].measure(rt.advantage).value
    return within <= target < beyond


def parts(seen):
    """The releases that a ledger amounts to."""
    return getattr(seen.mechanism(), "parts", (seen.mechanism(),))


def void(seen):
    return any(part.noise_multiplier == 0.0 for part in parts(seen))


def faults(seen):
    return {fault for fault in seen.ledger.faults if fault.voids}


class Unwatched:
    """Stands where a watch would: the same program, and nobody looks."""

    def __init__(self) -> None:
        self.steps = 0

    def __len__(self) -> int:
        return self.steps

    def step(self, **_: Any) -> None:
        self.steps += 1

    def evaluation(self) -> Any:
        return nullcontext()

    no_records = after_step = evaluation


class Toy(SimpleNamespace):
    """A loop while it runs: its parts, the batch and the step that it is at, and whatever a row wants to keep.

    Attributes:
        model, optimizer, loader, criterion: as ``private`` makes them.
        seen: the watch, or one that stands for it.
        features, labels: the batch.
        step: how many steps were taken.
    """

    @property
    def bare(self) -> Any:
        return getattr(self.model, "_module", self.model)

    @property
    def inner(self) -> Any:
        return self.optimizer.original_optimizer

    @property
    def first(self) -> Any:
        """The first parameter."""
        return next(self.bare.parameters())

    def train(self, loader: Any = None, **how: Any) -> None:
        """An ordinary loop over all of the data, or of another loader."""
        run(self.model, self.optimizer, self.loader if loader is None else loader, self.criterion, **how)


def nothing(toy: Toy) -> None:
    """As most loops do at most places."""


def backward(toy: Toy) -> None:
    """The loss of the batch."""
    toy.criterion(toy.forward(toy.features), toy.labels).backward()


def update(toy: Toy) -> None:
    toy.optimizer.step()


def gradients_by_hand(toy: Toy) -> None:
    """Clipped, with noise, without Opacus."""
    plain_step(toy.model, toy.features, toy.labels, NOISE, 1.0)


def update_by_hand(toy: Toy) -> None:
    """A step, and its numbers for the watch."""
    toy.optimizer.step()
    toy.seen.step(noise_multiplier=NOISE, max_grad_norm=1.0, batch_size=len(toy.labels))


def one_pass(toy: Toy) -> Iterable[Any]:
    return toy.loader


def passes(count: int, most: int | None = None) -> Callable[[Toy], Iterable[Any]]:
    """So many passes over the loader, each of ``most`` batches at most."""
    return lambda toy: chain.from_iterable(islice(toy.loader, most) for _ in range(count))


def in_parts(size: int, count: int = 1) -> Callable[[Toy], Iterable[Any]]:
    """So many passes in parts of batches, which Opacus adds up."""

    def batches(toy: Toy) -> Iterator[Any]:
        manager = BatchMemoryManager(data_loader=toy.loader, max_physical_batch_size=size, optimizer=toy.optimizer)
        with manager as parts:
            for _ in range(count):
                yield from parts

    return batches


def every(count: int) -> dict[str, Any]:
    """So many batches for each step, without a word to Opacus."""

    def step(toy: Toy) -> None:
        if toy.step % count == count - 1:
            toy.optimizer.step()
            toy.optimizer.zero_grad()

    def allows(toy: Toy) -> None:
        getattr(toy.model, "allow_grad_accumulation", lambda: None)()

    return {"clears": False, "update": step, "enters": allows}


def at(step: int, act: Act) -> Act:
    """After one step."""
    return lambda toy: act(toy) if toy.step == step else None


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A row: a loop that somebody wrote, what it is made of, and everything that is true of it.

    Each part of the loop is a function of the ``Toy``; those that are left out are as in an ordinary loop of Opacus.

    Attributes:
        made: gives (model, optimizer, loader, criterion).
        enters: once, inside the block, before the first batch.
        batches: what the loop reads.
        before: at the begin of a step, before gradients are cleared.
        clears: whether gradients are cleared at the begin of a step.
        forward: the outputs of rows; of the toy and the rows.
        backward: from a batch to its gradients.
        between: between the gradients and the step.
        update: the step.
        after: after each step.
        leaves: once, at the end of the block.
        entries: how often the watch is entered, around the whole loop.
        away: between two entries.
        options: for ``rt.watch``.
        errors: exactly the faults that void the ledger.
        may: errors that chance decides.
        notes: other facts that it names.
        never: facts that it does not name.
        ledger: values of the ledger, by dotted name.
        ran: values of the mechanism, by dotted name.
        segments: all values that the segments have, by name, in their order.
        draws: whether no two runs are alike, as the program draws from the operating system, or was watched before.
        beside: whether the program does beside its steps what it may, and an oracle below the optimizer does not know.
    """

    made: Callable[[], Made] = private
    enters: Act = nothing
    batches: Callable[[Toy], Iterable[Any]] = one_pass
    before: Act = nothing
    clears: bool = True
    forward: Callable[[Toy, Any], Any] = lambda toy, rows: toy.model(rows)
    backward: Act = backward
    between: Act = nothing
    update: Act = update
    after: Act = nothing
    leaves: Act = nothing
    entries: int = 1
    away: Act = nothing
    options: Mapping[str, Any] = field(default_factory=dict)
    errors: Set[Fact] = frozenset()
    may: Set[Fact] = frozenset()
    notes: Set[Fact] = frozenset()
    never: Set[Fact] = frozenset()
    ledger: Mapping[str, Any] = field(default_factory=dict)
    ran: Mapping[str, Any] = field(default_factory=dict)
    segments: Mapping[str, list[Any]] = field(default_factory=dict)
    draws: bool = False
    beside: bool = False

    def but(self, **changes: Any) -> Loop:
        """The row with other parts."""
        return replace(self, **changes)

    def run(self, made: Made, seen: Any) -> Toy:
        """The loop, inside a block of whoever looks."""
        model, optimizer, loader, criterion = made
        toy = Toy(model=model, optimizer=optimizer, loader=loader, criterion=criterion, seen=seen, step=0)
        toy.forward = partial(self.forward, toy)
        self.enters(toy)
        for batch in self.batches(toy):
            toy.features, toy.labels = batch
            self.before(toy)
            if self.clears:
                optimizer.zero_grad()
            self.backward(toy)
            self.between(toy)
            self.update(toy)
            self.after(toy)
            toy.step += 1
        self.leaves(toy)
        return toy

    def watched(self) -> tuple[Any, Toy]:
        """The loop under watch: the watch, and the loop at its end."""
        made = self.made()
        seen = Watch(*made[:3], **self.options)
        return seen, self._entered(made, seen, seen)

    def _entered(self, made: Made, seen: Any, block: Any) -> Toy:
        """The loop as often as its block is entered."""
        toy: Any = None
        for entry in range(self.entries):
            if entry:
                self.away(toy)
            with block:
                toy = self.run(made, seen)
        return toy

    def check(self) -> tuple[Any, Toy]:
        """Run it with a watch and without, and hold what the watch says against the row and against what ran."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seed = torch.default_generator.seed()  # those of accelerators, at a millisecond each, stay
            if not self.draws:
                random.seed(seed)
                alone, truth = self._alone()
                torch.default_generator.manual_seed(seed)
            random.seed(seed)
            seen, toy = self.watched()
        torch.default_generator.seed()
        self._compare(seen)
        if not self.draws:
            torch.testing.assert_close(_weights(toy), _weights(alone), equal_nan=True)
            if not void(seen):
                self._dominates(seen, alone, truth)
        _holds_together(seen)
        return seen, toy

    def _alone(self) -> tuple[Toy, Oracle | None]:
        """The loop without a watch, and what an oracle below a private optimizer saw of it."""
        made, truth = self.made(), None
        sampler = getattr(made[2], "batch_sampler", None)
        if hasattr(made[1], "original_optimizer"):
            truth = Oracle(made[0])
            truth.follow(made[1], lambda: getattr(sampler, "sample_rate", None))
        return self._entered(made, Unwatched(), nullcontext()), truth

    def _compare(self, seen: Any) -> None:
        assert faults(seen) - self.may == self.errors
        assert self.notes <= set(seen.ledger.faults)
        assert not self.never & set(seen.ledger.faults)
        assert void(seen) == bool(self.errors)
        for name, value in self.ledger.items():
            assert attrgetter(name)(seen.ledger) == value, name
        for name, value in self.ran.items():
            assert attrgetter(name)(seen.mechanism()) == value, name
        for name, values in self.segments.items():
            assert list(dict.fromkeys(getattr(one, name) for one in seen.ledger.segments)) == values, name

    def _dominates(self, seen: Any, alone: Toy, truth: Oracle | None) -> None:
        """What the ledger amounts to is no less than what ran without a watch."""
        if truth is None:
            assert seen.ledger.steps == len(alone.seen)
        else:
            assert seen.ledger.steps >= len(truth.releases)
            if self.beside:
                truth.bare.clear()
            if isinstance(getattr(seen.mechanism(), "sampler", None), Poisson):
                assert understated(seen.mechanism(), truth) is None


def _weights(toy: Toy) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in toy.bare.parameters()])


_CERTIFIED: set[Any] = set()
"""The kinds of answers that were certified: a certificate takes longer than a loop."""


def _holds_together(seen: Any) -> None:
    """A ledger says nothing against itself, survives its file, and is derived again from what is public."""
    ledger = seen.ledger
    assert not list(ledger.contradictions())
    assert RunLedger.from_json(seen.to_json()) == ledger
    assert RunLedger.model_validate(ledger.public()).mechanism() == ledger.mechanism()
    kind = void(seen), type(ledger.mechanism()), frozenset(ledger.vouches().items())
    if kind not in _CERTIFIED:
        _CERTIFIED.add(kind)
        with derived_once():
            assert rt.certify(seen).verify().accepted


BY_HAND = Loop(made=by_hand, backward=gradients_by_hand, update=update_by_hand)
"""A loop that clips and adds noise by itself, and tells the watch."""


def update_stated(toy: Toy) -> None:
    """A step whose noise is stated, whatever the gradients are."""
    toy.optimizer.step()
    toy.seen.step(noise_multiplier=1.0, batch_size=len(toy.labels))
