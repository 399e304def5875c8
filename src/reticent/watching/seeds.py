"""Whether somebody can repeat the noise and the draws: where the generators got their seeds.

The generator that torch begins with has a seed from the operating system. A seed below 2^32 can be tried out, and most
are written in the program anyway; that of a new ``torch.Generator()`` is in torch's source. A seed that was set while
the loop ran was known to the program, unless ``torch.seed()`` asked the operating system. A generator that goes back to
where it was gives the same noise again, whichever watch saw it there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

_SMALL = 1 << 32
_USES = ("noise", "draws")

_HEAD, _WORDS = 24, 624 * 8
"""Bytes of a state of torch's Mersenne twister: a head that ends with the place in the block of words; the block."""

_BEEN: dict[tuple[str, int], tuple[int, dict[int, int]]] = {}
"""For each use of each generator the last block of its state, and every block with the last place in it."""


_TAKEN: Counter[tuple[str, int]] = Counter()
"""How often each use drew from torch's own generator, by the seed that this generator had."""

_READ: dict[int, dict[str, int]] = {}
"""States that ``torch.get_rng_state`` handed out: how often each use had drawn under that seed until then."""

_BEHIND: dict[str, int] = {}
"""Uses that drew after the state to which ``torch.set_rng_state`` put the generator, with its seed."""


class Seeds:
    """Looks at one generator, or at several that are used together."""

    def __init__(self, generators: list[Any], use: str = "noise") -> None:
        self._use = use
        self._generators = [(one, seed) for one in generators if (seed := _seed(one)) is not None]
        self._asked: set[int] = set()
        self._back: dict[int, int] = {}  # generators that went back, and their seeds then

    def watch_torch(self) -> Callable[[], None]:
        """Remember seeds of the operating system and states that are read or set; what is returned ends that."""
        own, read, put = torch.seed, torch.get_rng_state, torch.set_rng_state

        def asked() -> int:
            found = own()
            self._asked.add(found)
            return found

        def handed_out() -> Any:
            state, seed = read(), torch.initial_seed()
            _READ.setdefault(_whole(state), {use: _TAKEN[use, seed] for use in _USES})
            return state

        def set_back(new_state: Any) -> None:
            put(new_state)
            seed = torch.initial_seed()
            for use, times in _READ.get(_whole(new_state), {}).items():
                _BEHIND.pop(use, None)
                if times < _TAKEN[use, seed]:
                    _BEHIND[use] = seed

        torch.seed = torch.random.seed = asked
        torch.get_rng_state = torch.random.get_rng_state = handed_out
        torch.set_rng_state = torch.random.set_rng_state = set_back

        def undo() -> None:
            torch.seed = torch.random.seed = own
            torch.get_rng_state = torch.random.get_rng_state = read
            torch.set_rng_state = torch.random.set_rng_state = put

        return undo

    def go_on(self) -> None:
        """Take the seeds as they are now for those of the start; where they were stays known."""
        self._generators = [(one, seed) for one, _ in self._generators if (seed := _seed(one)) is not None]

    def public(self) -> bool:
        """Whether a seed can be guessed, or was set while this was watched."""
        return any(self._is_public(generator, first) for generator, first in self._generators)

    def arrive(self) -> None:
        """Remember where the generators are, at the beginning and after noise."""
        for generator, _ in self._generators:
            if _passed(("all", id(generator)), *_where(generator.get_state().numpy().tobytes()), again=True):
                self._back[id(generator)] = generator.initial_seed()

    def drawn(self) -> None:
        """Noise was drawn just now: count it, and remember where the generators are."""
        if any(generator is torch.default_generator for generator, _ in self._generators):
            _TAKEN[self._use, torch.initial_seed()] += 1
        self.arrive()

    def repeated(self) -> bool:
        """Whether a generator went back to where it was, since this was asked before in this process."""
        back = [self._went_back(generator) for generator, _ in self._generators]
        return any(back)

    def _went_back(self, generator: Any) -> bool:
        seed, back = _seed(generator), False
        if generator is torch.default_generator:
            back = _BEHIND.get(self._use) == seed
            if self._use != "noise":  # noise counts once it is drawn
                _TAKEN[self._use, torch.initial_seed()] += 1
        back |= self._back.get(id(generator)) == seed
        block, place = _where(generator.get_state().numpy().tobytes())
        own = _passed((self._use, id(generator)), block, place)
        back |= _passed(("all", id(generator)), block, place, again=True)  # another use may have looked just here
        return own or back

    def _is_public(self, generator: Any, first: int) -> bool:
        now = _seed(generator)
        return now is not None and (guessable(now) or (now != first and now not in self._asked))


def _passed(key: tuple[str, int], block: int, place: int, again: bool = False) -> bool:
    """Whether a look at a later place was taken before, or at this one unless that may be; it is remembered."""
    last, been = _BEEN.get(key, (block, {}))
    before = been.get(block)
    been[block] = place if before is None else max(place, before)
    _BEEN[key] = block, been
    return before is not None and (block != last or place < before or (place == before and not again))


def _whole(state: Any) -> int:
    return hash(state.numpy().tobytes())


def _where(state: bytes) -> tuple[int, int]:
    """A state as a block of the generator's cycle and a place in it: it only goes on while nobody sets it."""
    if len(state) > _HEAD + _WORDS:
        return hash(state[_HEAD : _HEAD + _WORDS]), int.from_bytes(state[_HEAD - 8 : _HEAD], "little")
    return hash(state[:8]), int.from_bytes(state[8:], "little")  # of CUDA: a seed and an offset


def guessable(seed: int) -> bool:
    """Whether a seed can be tried out, or is that of every new ``torch.Generator()``."""
    return seed < _SMALL or seed == torch.Generator().initial_seed()


def of_noise(optimizer: Any) -> list[Any]:
    """The generators from which an optimizer of Opacus draws its noise; none where they have no seed."""
    if hasattr(optimizer, "reticent_noise"):
        return []
    if optimizer.generator is not None:
        return [optimizer.generator]
    devices = {p.device for group in optimizer.param_groups for p in group["params"]}
    return [default(device) for device in devices]


def of_draws(loader: Any) -> list[Any]:
    """The generator from which a Poisson sampler draws."""
    own = getattr(getattr(loader, "batch_sampler", None), "generator", None)
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
