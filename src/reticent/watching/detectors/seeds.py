"""Whether somebody can repeat the noise and the draws: where generators are when numbers are drawn, and their seeds.

The generator that torch begins with has a seed from the operating system. A seed below 2^32 can be tried out, and most
are written in the program anyway; that of a new ``torch.Generator()`` is in torch's source. A generator that is where
it was before gives the same numbers again, whichever watch saw it there: its state is read whenever it draws.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from reticent import facts
from reticent.facts import Fact
from reticent.facts.steps import Generator
from reticent.watching import models, optimisers
from reticent.watching.detectors.base import Detector, Loop, Step

_SMALL = 1 << 32
_OF_A_NEW_ONE = torch.Generator().initial_seed()

_TWISTER = struct.Struct("<16xQ64s4952xB11xB3x")
"""A state of torch's Mersenne twister, after its seed and counts: the place in the block of words, some of these words,
and whether the second number of a pair waits there, in double and in single precision."""

_WEAKER = (Generator.SECURE, Generator.DEFAULT, Generator.OF_PROGRAM)
"""Where a private optimizer draws its noise; each is weaker than the ones before."""

_Where = tuple[int, int]
"""A place in a block of a generator's cycle, and a number for the block."""

_BEEN: dict[str, dict[int, int]] = {"noise": {}, "draws": {}}
"""For each use every block from which numbers were drawn, with the last place in it."""
_LAST: dict[str, dict[Any, _Where]] = {"noise": {}, "draws": {}}
"""For each use where each generator was when it drew last; they stay, as torch 2.6 has no weak references to them."""
_LATE: list[tuple[Seeds, list[tuple[_Look, torch.Tensor]], bool]] = []
"""Noise of all watches, in its order, whose places were not compared yet."""


@dataclass(slots=True)
class Coins:
    """The draw of one batch, until it is known whether a step uses it."""

    public: bool
    states: list[tuple[_Look, torch.Tensor]]
    rate: float = 0.0
    """The probability of each record in this draw, where somebody put it down."""
    shown: bool | None = None
    """Whether somebody can repeat the draw, once that was asked."""


class _Look:
    """One generator, for one use."""

    def __init__(self, generator: Any, use: str) -> None:
        self.generator, self._use = generator, use
        self.go_on()

    def go_on(self) -> None:
        """Take the seed as it is now for that of the start."""
        self._first = self._secret = None if guessable(now := self.generator.initial_seed()) else now

    def seed(self, found: Callable[[Fact], None]) -> bool:
        """Whether the seed can be guessed; ``found`` is called where another one was set."""
        now = self.generator.initial_seed()
        if now == self._secret:
            return False
        if guessable(now):
            return True
        self._secret = now
        if self._first is not None:
            found(facts.SEEDED_ON_THE_WAY)
        return False

    def been(self, state: torch.Tensor, *, after: bool = False) -> bool:
        """Whether numbers were drawn at this place or a later one before; it is remembered.

        Args:
            state: of the generator at the place.
            after: it is that after a draw, if there was one.
        """
        where, been = _where(state), _BEEN[self._use]
        at, block = where
        last, most = _LAST[self._use].get(self.generator), been.get(block)
        if after and where == last:
            return False
        been[block] = at if most is None else max(at, most)
        _LAST[self._use][self.generator] = where
        return most is not None and (at <= most or (last is not None and last[1] != block))


class Seeds:
    """Looks at one generator, or at several that are used together."""

    def __init__(self, generators: list[Any], found: Callable[[Fact], None], use: str = "noise") -> None:
        self._use, self._found = use, found
        self.used = set[tuple[str, int]]()
        """Kinds and seeds of the generators of all numbers that were drawn."""
        self._looks = [_Look(one, use) for one in generators if _has_seed(one)]

    def go_on(self) -> None:
        """Take the seeds as they are now for those of the start."""
        for look in self._looks:
            look.go_on()

    def exchange(self, generators: list[Any]) -> None:
        """The program uses these from now on."""
        known = {look.generator: look for look in self._looks}
        self._looks = [known.get(one) or _Look(one, self._use) for one in generators if _has_seed(one)]

    def public(self) -> bool:
        """Whether a seed can be guessed."""
        known = [look.seed(self._found) for look in self._looks]
        self.used.update((look.generator.device.type, look.generator.initial_seed()) for look in self._looks)
        return any(known)

    def drawn(self, *, after: bool = False) -> None:
        """Noise is about to be drawn, or was drawn; ``settle`` says whether it is a repetition.

        Args:
            after: somebody else drew it since this was called last, perhaps from elsewhere.
        """
        if self.public():
            self._found(facts.PUBLIC_SEED)
        _LATE.append((self, self._states(), after))

    @staticmethod
    def settle() -> None:
        """Compare the places of all noise so far, whichever watch saw it: many at once take less time."""
        while _LATE:
            seeds, states, after = _LATE.pop(0)
            been = [look.been(state, after=after) for look, state in states]  # of each it is remembered
            if any(been):
                seeds._found(facts.REPEATED_NOISE)

    def _states(self) -> list[tuple[_Look, torch.Tensor]]:
        return [(look, look.generator.get_state()) for look in self._looks]

    def coins(self) -> Coins:
        """A batch was drawn just now."""
        return Coins(self.public(), self._states())

    @staticmethod
    def shown(coins: Coins) -> bool:
        """Whether somebody can repeat the draw of a batch that a step uses."""
        if coins.shown is None:
            been = [look.been(state) for look, state in coins.states]
            coins.shown = coins.public or any(been)
        return coins.shown


class NoiseSource(Detector):
    """Noise that somebody can draw again.

    Kind: randomness.

    Seen: seeds of the generators of noise and batches, at each step, also where the program exchanges the generator;
    and their states: the place in the block of 624 numbers from which torch takes the next.

    Not seen: noise that begins inside earlier noise, where more than a block of 624 other numbers was drawn since
    the state was put back, or any right after a seed: it is seen where it begins in a block in which noise or a
    batch began (small models and the same program again are seen); whether a large seed that is set while the loop
    runs is known to somebody (a note), as one whose lower 32 bits, which alone count on a processor, were chosen;
    generators of CUDA graphs and of compiled code that draw noise with seeds of their own. Of a loop of the
    program's own, only torch's default generator is followed, from one recorded step to the next: not noise from
    elsewhere, nor a state that is restored between the noise and its step.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._sources = set[Generator]()
        if loop.private:
            self.seeds = Seeds(of_noise(self._optimizer), self._found)

    def enters(self, again: bool) -> None:
        """Of a loop of the program's own torch's generator is followed; the seeds of now are those of the start."""
        if again:
            self.seeds.go_on()
        elif not self._loop.private:
            own = [default(p.device) for p in models.trained(self._model)[:1]]
            self.seeds = Seeds(own or [torch.default_generator], self._found)

    def on_noise(self, step: Step) -> None:
        """Noise is about to be drawn, perhaps from another source than before: the weakest is written down."""
        if not step.usual:
            self._sources.add(optimisers.randomness_of(self._optimizer))
            self.seeds.exchange(of_noise(self._optimizer))
        if step.noisy:
            self.seeds.drawn()
        elif self.seeds.public():
            self._found(facts.PUBLIC_SEED)

    def by_hand(self, skipped: bool) -> None:
        """Noise was drawn since the step before."""
        self.seeds.drawn(after=True)
        self.seeds.settle()

    @property
    def weakest(self) -> Generator:
        """Where the noise came from, as far as anybody saw."""
        if not self._loop.private or facts.UNKNOWN_NOISE in self._loop.faults:
            return Generator.NOT_SEEN
        return max(self._sources | {optimisers.randomness_of(self._optimizer)}, key=_WEAKER.index)


def _where(state: torch.Tensor) -> _Where:
    """The place at which a generator is."""
    read: Any = state.numpy()
    if len(read) == _TWISTER.size:
        at, words, double, single = _TWISTER.unpack_from(read)
        return 2 * int(at) + (not (double or single)), hash(words)
    return int.from_bytes(read[8:].tobytes(), "little"), hash(read[:8].tobytes())  # of CUDA: an offset, a seed


def guessable(seed: int) -> bool:
    """Whether a seed can be tried out, or is that of every new ``torch.Generator()``."""
    return seed < _SMALL or seed == _OF_A_NEW_ONE


def of_noise(optimizer: Any) -> list[Any]:
    """The generators from which an optimizer of Opacus draws its noise; none where they have no seed."""
    if optimisers.is_secured(optimizer) or not optimisers.adds_noise(optimizer):
        return []
    if optimizer.generator is not None:
        return [optimizer.generator]
    devices = {p.device for group in optimizer.param_groups for p in group["params"]}
    return [default(device) for device in devices]


def of_draws(sampler: Any) -> list[Any]:
    """The generator from which a Poisson sampler draws."""
    own = getattr(sampler, "generator", None)
    return [torch.default_generator if own is None else own]


def default(device: torch.device) -> Any:
    """The generator from which torch draws on this device where nobody gives one."""
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        return torch.cuda.default_generators[index]
    return torch.default_generator


def _has_seed(generator: Any) -> bool:
    """One that asks the operating system for each number has none."""
    try:
        generator.initial_seed()
    except (RuntimeError, NotImplementedError):
        return False
    return True
