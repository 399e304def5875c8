"""Which batches a loader drew, seen at its sampler: sizes in order, and where passes over the data begin."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

from reticent import facts
from reticent.facts.steps import Drawn, SamplerRecord, Source
from reticent.kernel.errors import ParameterError
from reticent.watching import declared, optimisers
from reticent.watching.detectors import samplers, seeds
from reticent.watching.detectors.base import Detector, Fields, Loop, Undos
from reticent.watching.detectors.samplers import copies
from reticent.watching.events import draws_of

_LONGEST_WAIT = 256


@dataclass(slots=True)
class Draw:
    """One batch that was drawn.

    Attributes:
        size: records in it.
        number: which pass over the data, from 1.
        coins: of a Poisson sampler, from where its generator drew.
    """

    size: int
    number: int
    coins: seeds.Coins | None


Fresh = tuple[list[Draw | None], int, int]
"""What a loader drew since somebody asked last: batches, None where a pass began; the passes that had begun; and
records of batches that are too many to remember."""


@dataclass(frozen=True, slots=True)
class Used:
    """The draws that one step used; no draws where they are unknown.

    Attributes:
        batches: how many draws were added up.
        mixed: from how many passes over the data they came.
        passes: numbers of the passes that had begun, from that of the first of these draws.
    """

    batches: int
    mixed: int
    passes: tuple[int, ...]


class Draws:
    """Batches that were drawn since the watch was entered, and which of them belong to steps."""

    def __init__(self, loader: Any, *, ahead: bool, passes: int, coins: Callable[[], seeds.Coins] | None) -> None:
        """Nothing was drawn yet.

        Args:
            loader: that the loop reads, or None.
            ahead: the loop asks for a batch before it has used the one before.
            passes: that have begun before.
            coins: called when a Poisson sampler has drawn a batch.
        """
        self._fresh: list[Draw | None] = []
        self._dropped = 0
        self._waiting: deque[Draw] = deque(maxlen=_LONGEST_WAIT)
        self.passes = passes
        """Passes over the data that have begun."""
        self._drawn = coins
        self.skipped = 0
        """Batches that were drawn and belong to no step."""
        self._exact = not ahead and type(loader) in _known_loaders() and loader.num_workers == 0
        self.most = 1
        """Batches that a step added up at most, where nobody says its size."""
        self._in_advance = 0 if self._exact or loader is None else _in_advance(loader, ahead)
        self.unfinished = self._unused = 0
        """Passes that have begun in this entry and not ended; batches that were drawn without a step."""
        self.ahead = self._in_advance > 0
        """Whether batches are drawn before the loop asks for them."""
        self._left_out, self._unknown = 0, 0
        """Batches that were drawn and not used, in a pass of which a later one was; steps whose draws are unknown."""
        self._doubtful: list[Draw] = []
        """Draws that belong to no step, unless the loop reads ahead: then the step used the oldest of them."""
        self.repeats = False
        """Whether one batch held a record more than once."""
        self.coins: tuple[seeds.Coins, ...] = ()
        """Of the draws that were taken last."""
        self._taken, self._lost = 0, 0
        self._sizes, self._passed = set[int](), deque[int](maxlen=_LONGEST_WAIT)
        """Of all batches that waited for a step, and of those that belong to none: a step may use an old one again."""
        self._alone = (0, 0, Used(1, 1, ()))  # for each pass one object
        self._positions: deque[int] | None = None
        self.seen = False
        """Whether draws can be seen at all."""

    @property
    def left_out(self) -> bool:
        """Whether a batch was drawn and not used, in a pass of which a later one was; known when the loop has ended.

        A loop that keeps batches for later takes a step for each that was taken for left out.
        """
        return self._left_out + len(self._doubtful) > self._unknown

    def keep_positions(self) -> None:
        """Remember the positions that are drawn, for ``next_positions``."""
        self._positions = deque() if self.seen else None

    def next_positions(self, count: int) -> np.ndarray | None:
        """The next ``count`` positions in the order in which they were drawn; None where they are unknown."""
        if self._positions is None or len(self._positions) < count:
            self._positions = None
            return None
        return np.array([self._positions.popleft() for _ in range(count)], dtype=np.int64)

    def fresh(self) -> Fresh:
        """What was drawn since this was asked last."""
        found, self._fresh = (self._fresh, self.passes, self._dropped), []
        self._dropped = 0
        return found

    def take(self, size: int | None, fresh: Fresh, empty: int = 0, batches: int | None = None) -> Used | None:
        """The draws of a step, or None where they are unknown.

        Args:
            size: realised number of records, if it is known: draws that add up to it are those of the step.
            fresh: what was drawn between the step before and this one.
            empty: batches without records that the step added up.
            batches: in which they went through the model, if that is known.
        """
        drawn, passes, dropped = fresh
        self._lost += dropped
        for draw in drawn:
            self._wait(draw)
        self.coins = ()
        if size is None and not self._exact:
            self._most_added_up(drawn)
            return None
        alone = self._exact and bool(self._waiting) and self._waiting[-1].size == size  # as nearly always
        if alone and (empty <= (not size) or len(self._waiting) == 1):
            draw = self._waiting.pop()
            if self._waiting:
                self._put_aside(draw)
            self.coins += () if draw.coins is None else (draw.coins,)
            self._taken, self._lost = draw.size, 0
            if self._alone[:2] != (draw.number, passes):
                self._alone = (draw.number, passes, Used(1, 1, tuple(range(draw.number, passes + 1))))
            return self._alone[2]
        if self._doubtful and size == self._doubtful[-1].size and not self._matching(list(self._waiting), size)[0]:
            self._take_back(passes)
        waiting = list(self._waiting)
        count, end = (len(waiting), len(waiting)) if size is None else self._matching(waiting, size)
        if not count:
            new = sum(draw is not None and draw.number == passes for draw in drawn)
            more = 0 if batches is None or self.ahead else max(0, new - batches)
            self._left_out += more
            self._unknown += not more
            return None
        count, end = self._with_empty(waiting, count, end, empty)
        used = waiting[end - count : end]
        for _ in range(end):
            self._waiting.popleft()
        self._exact = self._exact and not self._waiting  # the loop reads ahead by itself: the oldest come first
        self._skip(waiting[: end - count], used)
        self._taken, self._lost = sum(draw.size for draw in used), 0
        numbers = [draw.number for draw in used]
        self.coins = tuple([draw.coins for draw in used if draw.coins is not None])
        return Used(count, len(set(numbers)), tuple(range(min(numbers), passes + 1)))

    def in_this_pass(self) -> int:
        """Batches that were drawn in this pass since the last step."""
        return sum(draw is not None and draw.number == self.passes for draw in self._fresh)

    def before_this_pass(self, size: int, most: int) -> bool:
        """Whether so many records are those of the batches that were drawn last before this pass began.

        Of the pass before no more than ``most`` may have been drawn since the last step: it used no later ones.
        """
        drawn = [draw for draw in self._fresh if draw is not None and draw.number < self.passes]
        last = sum(draw.number == self.passes - 1 for draw in drawn)
        return last <= most and _adding_up(drawn[::-1], size) > 0

    def _put_aside(self, used: Draw) -> None:
        """The newest draw is taken for that of the step; older ones belong to none, or to the steps that come."""
        same = [draw for draw in self._waiting if draw.number == used.number]
        self._skip(self._waiting, [used])
        if same and same[0].size == used.size:
            self._left_out -= len(same)
            self._doubtful += same
            self.coins = tuple([draw.coins for draw in same if draw.coins is not None])
        self._waiting.clear()

    def _take_back(self, number: int) -> None:
        """The step used none of the newest: the loop reads ahead, and those that were put aside are its next ones."""
        self.skipped -= len(self._doubtful)
        self._waiting.extendleft([draw for draw in reversed(self._doubtful) if draw.number == number])
        self._doubtful, self._exact = [], False

    def _most_added_up(self, drawn: Sequence[Draw | None]) -> None:
        """More batches than steps are drawn in advance; of a pass that was broken off one more was often asked for."""
        self._unused += sum(draw is not None for draw in drawn) - 1
        broken_off = max(0, self.unfinished - 1)
        self.most = 1 + max(0, self._unused - self._in_advance - broken_off * (self._in_advance + 1))

    def _skip(self, skipped: Sequence[Draw], used: Sequence[Draw]) -> None:
        """Batches belong to no step, and later ones do."""
        self.skipped += len(skipped)
        self._passed.extend([draw.size for draw in skipped])
        passes = {draw.number for draw in used}
        self._left_out += sum(draw.number in passes for draw in skipped)

    def _wait(self, draw: Draw | None) -> None:
        """A batch was drawn, or a pass began: what a loader drew ahead in the pass before is lost."""
        if draw is None:
            if not self._exact:
                self._lost += sum(draw.size for draw in self._waiting)
                self._waiting.clear()
            return
        if len(self._waiting) == _LONGEST_WAIT:
            self._lost += self._waiting[0].size
        self._waiting.append(draw)
        self._sizes.add(draw.size)

    def fewer_than(self, size: int, batches: int | None) -> bool:
        """Whether fewer records were drawn for the step that was just taken, whose draws could not be told.

        A step for which nothing was drawn may use an old batch once more, as one of a list; any other step a batch
        that was taken for one that belongs to no step.

        Args:
            size: records in it.
            batches: in which they went through the model, if that is known.
        """
        drawn = self._lost + sum(draw.size for draw in self._waiting)
        if size in (self._passed if drawn else self._sizes):
            return False
        most = size if batches is None else batches * max(self._sizes, default=0)
        return 0 < min(drawn or self._taken, most) < size

    def _matching(self, waiting: list[Draw], size: int) -> tuple[int, int]:
        """(how many draws, where they end) of neighbours that hold ``size`` records together; (0, 0) if there are none.

        A loader that draws nothing ahead used its newest draws; another one its oldest.
        """
        if self._exact:
            ends = range(len(waiting), 0, -1)
            return next(((n, end) for end in ends if (n := _adding_up(waiting[:end][::-1], size))), (0, 0))
        return next(((n, at + n) for at in range(len(waiting)) if (n := _adding_up(waiting[at:], size))), (0, 0))

    def _with_empty(self, waiting: list[Draw], count: int, end: int, empty: int) -> tuple[int, int]:
        """The same with draws next to them that hold no record, as many as belong to the step."""
        missing = empty - sum(not draw.size for draw in waiting[end - count : end])
        for _ in range(missing):
            if self._exact and count < end and not waiting[end - count - 1].size:
                count += 1
            elif end < len(waiting) and not waiting[end].size:
                count, end = count + 1, end + 1
        return count, end

    def ends(self) -> None:
        """A pass over the data has ended."""
        self.unfinished -= 1

    def begin(self) -> int:
        """A pass over the data begins."""
        self.passes += 1
        self.unfinished += 1
        if self._positions is not None:
            self._positions.clear()
        self._fresh.append(None)
        return self.passes

    def remember(self, batch: Any, number: int) -> None:
        """A batch was drawn, in the pass of this number."""
        positions = batch if type(batch) is list else list(batch)
        coins = None if self._drawn is None else self._drawn()
        self.repeats = self.repeats or (coins is None and len(set(positions)) < len(positions))
        if self._positions is not None:
            self._positions.extend(map(int, positions))
        if len(self._fresh) >= _LONGEST_WAIT:
            oldest = self._fresh.pop(0)
            self._dropped += 0 if oldest is None else oldest.size
        self._fresh.append(Draw(len(positions), number, coins))


class Drawing(Detector):
    """Records that are drawn otherwise than it seems, or batches that no step used.

    Kind: how records are drawn.

    Seen: the sampler itself: its class, and whether any code overrode how it draws; again at the start of each pass.
    One that changed counts as the worse of both, or as unknown, for all steps. Each time that it is iterated is a pass,
    and one that is broken off counts in full. What it yields is compared with the number of gradients that were
    clipped: more gradients than records is a fault. So is a batch that was drawn between two steps of one pass, and
    that no step used; a loop that reads ahead, as through a loader of accelerate, leaves none out. The rate of a batch
    is that of the sampler when it drew it. Copies of a record: ``Subset``, ``ConcatDataset``, ``StackDataset``, lists
    and selections of Hugging Face's ``datasets`` are taken apart.

    Not seen: an old batch that is used again instead of the one that was drawn (a replay buffer), or one of another
    loader, where it has the same size, or in a step more for one that was left out; a batch that was drawn and left
    out, where no later one of the same pass was used; several views of a record in one batch, each clipped alone, where
    no loader is watched, or where the batch is no larger than what was drawn; which records of a batch the program
    keeps, in its collate function or in the loop, by comparing them; a sampler that puts records of about one length
    together; a data set whose items are made of several records: what is protected is an item; of a loop of the
    program's own, batches that a step adds up while workers draw ahead, if it does not say ``batch_size``: a few in
    single steps, no more than are drawn ahead; batches of worker processes that were there before the watch, as they
    are handed out.

    Attributes:
        sampler: as it was seen so far, the worst of all.
        draws: since the watch was entered.
        shards: of several processes, from which part of the records each pass drew, where it is another one.
        drawn_at: the largest rate at which the batches of the last step were drawn, where each record has a coin.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.sampler = samplers.look_at(loop.loader, joined=optimisers.adds_up(loop.optimizer))
        self._batches = samplers.logical_batches(loop.loader)
        self.shards: list[samplers.Shard | None] = []
        self._said = declared.sampler(loop.said.sampler, self.sampler)
        self.drawn_at, self._repeats = 0.0, False
        self.draws = Draws(loop.loader, ahead=False, passes=0, coins=None)

    def enters(self, again: bool) -> None:
        """Which generator a Poisson sampler draws from, and whether an empty batch gets a made-up record."""
        if not again:
            self.seeds = seeds.Seeds(seeds.of_draws(self._batches), self._found, use="draws")
            self._drawn_from = getattr(self._batches, "generator", None)
        self.seeds.go_on()
        if getattr(getattr(self._loop.loader, "collate_fn", None), "rand_on_empty", False):  # whoever joins replaces it
            self._found(facts.LARGER_BATCH)

    def attach(self) -> Undos:
        """Watch the sampler from now on."""
        before = self.draws.passes
        if self.draws.left_out:
            self._found(facts.LEFT_OUT)
        self._repeats = self._repeated
        loader, coins = self._loop.loader, self._coins if self.sampler.drawn is Drawn.POISSON else None
        draws = self.draws = Draws(loader, ahead=self._loop.said.draws_ahead, passes=before, coins=coins)
        self._begins, sampler = self._loop.tells(Detector.on_pass), samplers.observed_sampler(loader)
        if sampler is not None:
            begin, remember = self.guarded(self._begin), self.guarded(draws.remember)
            with suppress(TypeError):
                yield draws_of(sampler, samplers.holders_of(loader), begin, remember, draws.ends)
                draws.seen = True

    def _begin(self) -> int:
        self._begins()
        return self.draws.begin()

    @property
    def _repeated(self) -> bool:
        """Whether one batch held a record more than once, in this entry or one before."""
        return self._repeats or self.draws.repeats

    def on_pass(self) -> None:
        """A sampler that was changed since it was looked at counts as changed for the whole loop."""
        self.sampler = samplers.look_again(self._loop.loader, self.sampler)
        shard = samplers.shard_of(self._loop.loader)
        if self.shards[-1:] != [shard]:
            self.shards.append(shard)

    def _coins(self) -> seeds.Coins:
        now = getattr(self._batches, "generator", None)
        if now is not self._drawn_from:
            self._drawn_from = now
            self.seeds.exchange(seeds.of_draws(self._batches))
        coins = self.seeds.coins()
        coins.rate = float(self._batches.sample_rate)
        return coins

    def used(
        self,
        size: int | None,
        fresh: Fresh | None = None,
        parts: int = 0,
        empty: int = 0,
        batches: int | None = None,
    ) -> Used | None:
        """The draws of a step. seeds.Coins from where others that a step used came are the same.

        Args:
            size: records in it, if known.
            fresh: what was drawn between the step before and this one; None for what was drawn until now.
            parts: how many of the records belong to batches that were not drawn for this step; what it used is unknown
                then, but for what it left out.
            empty: batches without records that it added up.
            batches: in which they went through the model, if that is known.
        """
        draws = self.draws
        used = draws.take(size and size - parts, draws.fresh() if fresh is None else fresh, empty, batches)
        self.drawn_at = 0.0
        for coins in draws.coins:
            self.drawn_at = max(self.drawn_at, coins.rate)
            if self.seeds.shown(coins):
                self._found(facts.PUBLIC_DRAWS)
        if used is None and size is not None and draws.fewer_than(size - parts, batches):
            self._found(facts.LARGER_BATCH)
        return None if parts else used

    @property
    def coins(self) -> Any:
        """What draws each record independently, at its ``sample_rate`` now; None where nothing does."""
        return self._batches if self.sampler.drawn is Drawn.POISSON else None

    def rate(self, said: float | None) -> float | None:
        """The sample rate of the step that was just taken, if batches are Poisson.

        Raises:
            ParameterError: ``said`` is not that of the loader.
        """
        if self.coins is None:
            return said if self._said in (Drawn.POISSON, Drawn.FIXED_SIZE) else None
        seen = float(self.coins.sample_rate)
        if said is not None and abs(said - seen) > 1e-9 * seen:
            raise ParameterError("sample_rate", said, f"as in the loader, {seen:g}, or left out")
        return max(seen, self.drawn_at)

    @property
    def by_chance(self) -> bool:
        """Whether each record joins a batch by chance, so that nobody may learn how many did."""
        return self.sampler.drawn in (Drawn.POISSON, Drawn.RANDOM_ALLOCATION) or self._said is Drawn.POISSON

    def says(self) -> Fields:
        """The sampler as far as it is known."""
        return {"sampler": self._record()}

    def ends(self) -> None:
        """Batches that were left out; and how often a record is listed, as a Subset may change on the way."""
        if self.draws.left_out:
            self._found(facts.LEFT_OUT)
        listed = copies(getattr(self._loop.loader, "dataset", None))
        if listed > (self.sampler.copies or 1):
            self.sampler = self.sampler.model_copy(update={"copies": listed})

    def _record(self) -> SamplerRecord:
        steps = self._loop.steps
        seen, rates = self.sampler, [rate for rate in steps.rates if rate is not None]
        once = seen.drawn in (Drawn.SHUFFLED, Drawn.IN_ORDER) and seen.times_per_epoch == 1
        if once and self._repeated:
            seen = samplers.unknown(seen)
        if seen.drawn is not Drawn.UNKNOWN:
            return seen.model_copy(update={"sample_rate": max(rates)}) if rates else seen
        said = {"drawn": self._said, "source": Source.DECLARED, "name": "declared", "copies": seen.copies}
        if self._said in (Drawn.POISSON, Drawn.FIXED_SIZE) and rates:
            return SamplerRecord(**said, sample_rate=max(rates))
        if self._said is Drawn.SHUFFLED:
            return SamplerRecord(**said, times_per_epoch=1)
        if self._repeated:
            most = max(size for size in steps.batch_sizes if size is not None)
            return seen.model_copy(update={"drawn": Drawn.WITH_REPLACEMENT, "batch_size": most})
        return seen


def _adding_up(draws: list[Draw], size: int) -> int:
    """How many of the first draws hold ``size`` records together; 0 if no number does."""
    total = 0
    for count, draw in enumerate(draws, 1):
        total += draw.size
        if total >= size:
            return count if total == size else 0
    return 0


def _in_advance(loader: Any, ahead: bool) -> int:
    """Batches that a loader draws before the one that it gives."""
    workers = getattr(loader, "num_workers", 0)
    by_workers = workers * (getattr(loader, "prefetch_factor", None) or 2)
    return by_workers + (ahead or type(loader) not in _known_loaders())


def _known_loaders() -> set[type]:
    """Loaders that draw a batch when it is asked for, none ahead."""
    return {DataLoader, *optimisers.of_opacus("data_loader", "DPDataLoader")}
