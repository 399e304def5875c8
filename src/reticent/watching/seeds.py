"""Whether somebody can repeat the noise and the draws: where the generators got their seeds.

The generator that torch begins with has a seed from the operating system. A seed below 2^32 can be tried out, and most
are written in the program anyway; that of a new ``torch.Generator()`` is in torch's source. A seed that was set while
the loop ran was known to the program, unless ``torch.seed()`` asked the operating system. A generator that goes back to
where it was gives the same noise again, whichever watch saw it there: ``generators`` sees it put back, and
here a look is taken at where it is, before and after noise.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from reticent import facts
from reticent.facts import Fact
from reticent.watching import generators
from reticent.watching.generators import Draw
from reticent.watching.optimisers import is_secured

_SMALL, _TINY = 1 << 32, 1 << 10
_NOBODY = -1
_OF_A_NEW_ONE = torch.Generator().initial_seed()

_HEAD, _PLACE, _WHOLE = 16, struct.Struct("<Q64s"), 5000
"""Bytes of a state of torch's Mersenne twister: the seed and counts; then the place in the block of words, and some of
these words; and fewer than all."""

_LOOKED_AT = 8
"""Batches after each entry at whose draw the state is looked at; later the calls that put it tell enough."""

_Where = tuple[int, bytes]

_BEEN: dict[str, dict[bytes, int]] = {"noise": {}, "draws": {}}
"""For each use every block of a state that was looked at, with the last place in it."""


@dataclass(slots=True)
class Coins:
    """The draw of one batch, until it is known whether a step uses it."""

    public: bool
    draws: list[tuple[_Look, Draw, _Where | None]]
    rate: float = 0.0
    """The probability of each record in this draw, where somebody put it down."""
    shown: bool | None = None
    """Whether somebody can repeat the draw, once that was asked."""


class _Look:
    """One generator, and where it was seen."""

    def __init__(self, generator: Any, use: str, first: int) -> None:
        self.generator, self._use = generator, use
        self._first, self._secret = first, _NOBODY
        self.track = generators.track(generator, use)
        self.track.go_on()
        self._seed = int(generator.initial_seed())
        self._back: Any = None

    def go_on(self) -> None:
        """Take the seed as it is now for that of the start; where it was stays known."""
        self._first = int(self.generator.initial_seed())
        self._secret = _NOBODY
        self.track.go_on()

    def public(self) -> bool:
        """Whether the seed can be guessed, or was set while this was watched."""
        now = self.generator.initial_seed()
        return now != self._secret and self._known(now)

    def _known(self, now: int) -> bool:
        if guessable(now) or (now != self._first and not generators.from_the_system(now)):
            return True
        self._secret = now
        return False

    def drawn(self) -> tuple[Draw, bool]:
        """It draws from where it is now; and whether its seed is public."""
        now = self.generator.initial_seed()
        if now != self._seed:
            self._seed = now
            self.track.go_on()
        track = self.track
        track.at = draw = Draw(track.at.stream, track.at)
        return draw, now != self._secret and self._known(now)

    def goes_on(self) -> bool:
        """Whether it draws noise right after its last noise, with the same secret seed; as nearly always."""
        at = self.track.at
        same = self.generator.initial_seed() == self._seed == self._secret
        return same and self._back is not at.stream and at.again()

    def arrive(self) -> None:
        """Remember where the generator is, at the beginning and after noise."""
        if self.passed(after=True):
            self._back = self.track.at.stream

    def went_back(self, draw: Draw) -> bool:
        """Whether a draw gives numbers that came before."""
        return draw.repeats() or self._back is draw.stream

    def passed(self, where: _Where | None = None, after: bool = False) -> bool:
        """Whether a look at this place or a later one was taken before; it is remembered.

        Args:
            where: the place; None for that of now.
            after: what was to be drawn is drawn, so that the next draw may begin here.
        """
        at, block = where = where or _where(self.generator)
        been = _BEEN[self._use]
        last, drawn = self.track.looked or (where, True)
        most = been.get(block)
        been[block] = at if most is None else max(at, most)
        self.track.looked = where, after
        here = where == last and (after or drawn)
        return most is not None and not here and (block != last[1] or at <= most)


class Seeds:
    """Looks at one generator, or at several that are used together."""

    def __init__(self, generators: list[Any], use: str = "noise") -> None:
        self._use, self._batches = use, 0
        self._looks = [_Look(one, use, seed) for one in generators if (seed := _seed(one)) is not None]

    def go_on(self) -> None:
        """Take the seeds as they are now for those of the start."""
        for look in self._looks:
            look.go_on()

    def exchange(self, generators: list[Any]) -> None:
        """The program uses these from now on; what seed it gave to a new one, it knew."""
        known = {look.generator: look for look in self._looks}
        self._looks = [known.get(one) or _Look(one, self._use, _NOBODY) for one in generators if _seed(one) is not None]

    def public(self) -> bool:
        """Whether a seed can be guessed, or was set while this was watched."""
        found = False
        for look in self._looks:
            found |= look.public()
        return found

    def arrive(self) -> None:
        """Remember where the generators are, at the beginning and after noise."""
        self._batches = 0
        for look in self._looks:
            look.arrive()

    def drawn(self, found: Callable[[Fact], None], look: bool = True) -> None:
        """Noise is about to be drawn: call ``found`` where a seed is public, or numbers come that came before.

        Args:
            found: called with each fault.
            look: at the states of the generators, as well as at what the program did to them.
        """
        for one in self._looks:
            if not look and one.goes_on():
                continue
            draw, known = one.drawn()
            if known:
                found(facts.PUBLIC_SEED)
            back = one.went_back(draw)
            if (look and one.passed()) or back:
                found(facts.REPEATED_NOISE)

    def coins(self) -> Coins:
        """A batch was drawn just now."""
        self._batches += 1
        see, public, draws = self._batches <= _LOOKED_AT, False, []
        for look in self._looks:
            draw, known = look.drawn()
            public |= known
            draws.append((look, draw, _where(look.generator) if see else None))
        return Coins(public, draws)

    def shown(self, coins: Coins) -> bool:
        """Whether somebody can repeat the draw of a batch that a step uses."""
        if coins.shown is not None:
            return coins.shown
        back = coins.public
        for one, draw, where in coins.draws:
            back |= one.went_back(draw)
            if where is not None:
                back |= one.passed(where)
        coins.shown = back
        return back


def _where(generator: Any) -> _Where:
    """A place in a block of the generator's cycle, and the block."""
    state = generators.read_state(generator).numpy()
    if len(state) > _WHOLE:
        at, words = _PLACE.unpack_from(state, _HEAD)  # type: ignore[arg-type]  # numpy's arrays are buffers
        return int(at), bytes(words)
    return int.from_bytes(state[8:].tobytes(), "little"), state[:8].tobytes()  # of CUDA: an offset and a seed


def guessable(seed: int) -> bool:
    """Whether a seed can be tried out, or is that of every new ``torch.Generator()``.

    The twister of the processor takes the lower 32 bits: 2^60 gives the numbers of 0. One seed of the operating system
    in four million looks like that.
    """
    return seed < _SMALL or seed % _SMALL < _TINY or seed == _OF_A_NEW_ONE


def of_noise(optimizer: Any) -> list[Any]:
    """The generators from which an optimizer of Opacus draws its noise; none where they have no seed."""
    if is_secured(optimizer):
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


def _seed(generator: Any) -> int | None:
    """Of a generator; None where it has none, as one that asks the operating system for each number."""
    try:
        return int(generator.initial_seed())
    except (RuntimeError, NotImplementedError):
        return None
