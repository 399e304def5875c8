"""Several processes that train one model: each watches what it does itself, and their ledgers become one at the end.

A step releases the sum over all processes, to which one of them adds the noise. Where Opacus's sampler shares one data
set out among them, each record belongs to one process and joins by a coin of its own. So the sum is that of one Poisson
batch, whoever has which record: that the shares follow from the number of records changes nothing. It takes

- the same records in the same order in all processes, and the same permutation in the same pass: else a record may be
  in two shares, and moves the sum twice;
- generators that differ: with one seed two records join together, or by what makes the noise;
- no empty batch of a process. Opacus leaves it out, and takes the next one for the same step. With n records and rate q
  it is empty with probability (1 - q)^n. Where that is below ``_NEVER`` for all steps together, less is left open than
  by coins in floating point;
- the largest of the clip norms, each over the divisor of its process: that is how far a record moves the sum, whichever
  process adds the noise.

What is compared goes through the store by which the processes found each other, when the loop has ended. No process
waits for one that does not watch.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count, zip_longest
from typing import Any, ClassVar

from torch import distributed

from reticent import facts
from reticent.facts.base import Seen
from reticent.facts.steps import ClippingRecord, Drawn, SamplerRecord, Segment, Source
from reticent.records.ledger import RunLedger
from reticent.watching import optimisers
from reticent.watching.detectors import samplers
from reticent.watching.detectors.base import Detector, Loop
from reticent.watching.detectors.draws import Drawing
from reticent.watching.detectors.seeds import NoiseSource

_NEVER = 1e-15
"""A run in which something happens with at most this probability is one in which it does not."""

_NOTHING: Any = b"-"


@dataclass(frozen=True, slots=True)
class Told:
    """What one process tells the others.

    Attributes:
        run: its ledger, of its own part.
        shards: from which parts of the records its passes drew.
        records: which record is where, as far as it can tell.
        adds_noise: whether it is the one that does.
        divisors: of its steps.
        noise, coins: digests of the seeds from which these came.
    """

    run: RunLedger
    shards: list[samplers.Shard | None]
    records: str
    adds_noise: bool
    divisors: list[float | None]
    noise: list[str]
    coins: list[str]

    def packed(self) -> bytes:
        """As bytes for the store."""
        shards = [one and asdict(one) for one in self.shards]
        told = {name: getattr(self, name) for name in ("records", "adds_noise", "divisors", "noise", "coins")}
        return zlib.compress(json.dumps({"run": self.run.to_json(), "shards": shards} | told).encode())

    @classmethod
    def of(cls, packed: bytes) -> Told:
        """What a process told."""
        found = json.loads(zlib.decompress(packed))
        shards = [one and samplers.Shard(**one) for one in found["shards"]]
        return cls(**found | {"run": RunLedger.from_json(found["run"]), "shards": shards})

    @property
    def moves(self) -> float | None:
        """What one record moves the released sum at most; None where nobody knows."""
        norm, divisors = self.run.clipping.largest, [one or 0.0 for one in self.divisors]
        return norm / min(divisors) if norm and all(divisors) else None


class Processes(Detector):
    """Processes that train with this one and do otherwise.

    Kind: several processes.

    Seen: what every detector sees in any process, which all must watch. At the end, whether they took as many steps,
    ended at the same weights, drew from different seeds and share one data set out; and with what norms, divisors and
    rates, of which the worst counts.

    Not seen: a data set of the program's own that gives other records under the same numbers in another process, or a
    ``TensorDataset`` whose records differ only beside the 256 that are compared; processes of a loop whose optimizer
    does not add up gradients by itself, each of which has a ledger of its own.
    """

    _entered: ClassVar[Iterator[int]] = count(1)

    @classmethod
    def fits(cls, loop: Loop) -> bool:
        """There are others."""
        return optimisers.adds_up(loop.optimizer)

    def enters(self, again: bool) -> None:
        """This process watches from now on."""
        self._store: Any = distributed.distributed_c10d._get_default_store()
        self._key, self._waited_for = f"reticent/{next(self._entered)}", True
        self._store.set(self._of(distributed.get_rank(), "watches"), _NOTHING)
        if not optimisers.by_opacus(optimisers.method_of(self._optimizer, "reduce_gradients")):
            self._found(facts.UNKNOWN_NOISE)

    def _of(self, rank: int, what: str) -> str:
        return f"{self._key}/{rank}/{what}"

    def _tell(self, told: Any) -> None:
        self._waited_for = False
        self._store.set(self._of(distributed.get_rank(), "told"), told)

    def leaves(self) -> None:
        """The others need not wait for a ledger that is not there."""
        if self._waited_for:
            self._tell(_NOTHING)

    def joined(self, run: RunLedger, ended: bool) -> RunLedger:
        """The ledger of all processes.

        Args:
            run: of this process.
            ended: its loop did not end with an error.
        """
        loop, ranks = self._loop, range(optimisers.processes())
        drawing = loop.of(Drawing)
        told = Told(
            run,
            drawing.shards,
            samplers.order_of(getattr(loop.loader, "dataset", ())),
            optimisers.adds_noise(self._optimizer),
            sorted(loop.steps.divisors, key=lambda one: one or 0.0),
            _digests(loop.of(NoiseSource).seeds.used),
            _digests(drawing.seeds.used),
        )
        self._tell(told.packed() if ended else _NOTHING)
        if ended and self._store.check([self._of(rank, "watches") for rank in ranks]):  # they did before the first step
            each = [self._store.get(self._of(rank, "told")) for rank in ranks]
            if _NOTHING not in each:
                return together([Told.of(one) for one in each])
        alone = run.model_copy(update={"facts": run.facts | {facts.UNSEEN_PROCESSES.key: Seen.FOUND}})
        return _with(alone, _apart([run.sampler], len(ranks)), run.segments)


def _digests(seeds: Iterable[tuple[str, int]]) -> list[str]:
    return sorted(hashlib.sha256(str(seed).encode()).hexdigest() for seed in seeds)


def together(each: Sequence[Told]) -> RunLedger:
    """One ledger of what all processes did.

    Args:
        each: what they told, in the order of their numbers.
    """
    runs = [one.run for one in each]
    first = next((one for one in each if one.adds_noise), each[0])
    base, found, coins = first.run, _all_facts(runs), [seed for one in each for seed in one.coins]
    wrong = {
        facts.TOO_LITTLE_NOISE: not first.adds_noise,
        facts.UNEQUAL_PROCESSES: len({(run.steps, run.weights_sha256, _stated(run)) for run in runs}) > 1,
        facts.PUBLIC_DRAWS: len(set(coins)) < len(coins),
        facts.REPEATED_NOISE: any(set(a.noise) & set(b.coins) for a in each for b in each if a is not b),
    }
    found |= {fact.key: Seen.FOUND for fact, is_so in wrong.items() if is_so}
    segments = _segments(each, _worth(each, first))
    private = [run.diagnostics for run in runs if run.diagnostics is not None]
    sizes = zip_longest(*(one.batch_sizes for one in private))
    clipped = zip_longest(*(one.clipped for one in private))
    numbers = {"batch_sizes": tuple(map(_sum, sizes)), "clipped": tuple(map(_sum, clipped))}
    whole = {"facts": found, "clipping": _clipping(runs), "diagnostics": private[0].model_copy(update=numbers)}
    return _with(base.model_copy(update=whole), _sampler(each, segments), segments)


def _with(run: RunLedger, sampler: SamplerRecord, segments: Sequence[Segment]) -> RunLedger:
    """The ledger with other draws; without coins there is no rate."""
    usual = sampler.sample_rate
    rates = [None if usual is None or part.sample_rate == usual else part.sample_rate for part in segments]
    told = [part.model_copy(update={"sample_rate": rate}) for part, rate in zip(segments, rates, strict=True)]
    return run.model_copy(update={"sampler": sampler, "segments": tuple(told)}).sealed()


def _sum(counts: tuple[int | None, ...]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


def _all_facts(runs: Sequence[RunLedger]) -> dict[str, Any]:
    """What was found in any process; of a fact that lists things all of them."""
    found: dict[str, Any] = {}
    for run in runs:
        for key, value in run.facts.items():
            listed = isinstance(value, tuple)
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), *value))) if listed else found.get(key, value)
    return found


def _stated(run: RunLedger) -> str:
    """What the program says of the whole loop."""
    return repr((run.unit, run.records_per_user, run.gradients, run.facts.get(facts.PLANNED_STEPS.key)))


def _worth(each: Sequence[Told], first: Told) -> float:
    """The share of its noise that counts, where another process moves the sum further than the one that adds it."""
    if all((one.run.clipping, one.divisors) == (first.run.clipping, first.divisors) for one in each):
        return 1.0
    moves, low, divisor = [one.moves for one in each], first.run.clipping.smallest, first.divisors[-1]
    far = [one for one in moves if one is not None]
    return min(1.0, low / divisor / max(far)) if low and divisor and len(far) == len(moves) else 0.0


def _segments(each: Sequence[Told], worth: float) -> list[Segment]:
    """Equal steps of all processes; where these do not go together one by one, all steps as the worst of all."""
    columns = [[(part, one) for part in one.run.segments] for one in each]
    alike = len({tuple(part.steps for part, _ in column) for column in columns}) == 1
    if alike:
        return [_worst(row, row[0][0].steps, worth) for row in zip(*columns, strict=True)]
    return [_worst([part for column in columns for part in column], max(one.run.steps for one in each), worth)]


def _worst(parts: Sequence[tuple[Segment, Told]], steps: int, worth: float) -> Segment:
    rates = [part.sample_rate or one.run.sampler.sample_rate for part, one in parts]
    passes = [part.passes for part, _ in parts]
    return Segment(
        noise_multiplier=worth * min((part.noise_multiplier for part, one in parts if one.adds_noise), default=0.0),
        steps=steps,
        sample_rate=None if None in rates else max(rate for rate in rates if rate),
        batches=max(part.batches for part, _ in parts),
        passes=None if None in passes else max(number for number in passes if number),
        mixed_passes=max(part.mixed_passes for part, _ in parts),
    )


def _clipping(runs: Sequence[RunLedger]) -> ClippingRecord:
    """How gradients were clipped; unknown where processes do it in different ways."""
    found = [run.clipping for run in runs]
    if len({(one.kind, one.source) for one in found}) > 1:
        return ClippingRecord(kind="unknown", source=Source.UNKNOWN)
    smallest, largest = ([getattr(one, end) for one in found] for end in ("smallest", "largest"))
    if None in (*smallest, *largest):
        return found[0]
    return found[0].model_copy(update={"smallest": min(smallest), "largest": max(largest)})


def _sampler(each: Sequence[Told], segments: Sequence[Segment]) -> SamplerRecord:
    """How all processes together draw: by coins, where their parts of the records are those of one data set."""
    found = [one.run.sampler for one in each]
    cuts = {(one.records, *(shard and replace(shard, part=0, length=0) for shard in one.shards)) for one in each}
    lengths = {tuple(shard and shard.length for shard in one.shards) for one in each}
    places = [{shard.part if shard else None for shard in one.shards} for one in each]
    first = each[0].shards[0] if each[0].shards else None
    if first is None or len(cuts) > 1 or places != [{rank} for rank in range(len(each))] or first.parts != len(each):
        return _apart(found, len(each))
    copies = max(one.copies or 1 for one in found)
    rates = [part.sample_rate or one.run.sampler.sample_rate or 0.0 for one in each for part in one.run.segments]
    steps = sum(part.steps for part in segments)
    empty = len(each) * steps * (1.0 - min(rates)) ** ((first.records - 1) // first.parts)
    if any(one.drawn is not Drawn.POISSON for one in found) or len(lengths) > 1 or empty > _NEVER:
        return _apart(found, 1)
    return found[0].model_copy(update={"sample_rate": max(rates), "copies": copies if copies > 1 else None})


def _apart(found: Sequence[SamplerRecord], times: int) -> SamplerRecord:
    """Draws of several processes that no theorem joins: the worst of them, a record in so many processes at once."""
    kinds = (Drawn.WEIGHTED, Drawn.WITH_REPLACEMENT, Drawn.UNKNOWN)
    worst = next((one for kind in kinds for one in found if one.drawn is kind), found[0])
    if worst.drawn in kinds[:2]:
        return worst
    drawn = Drawn.UNKNOWN if worst.drawn is Drawn.UNKNOWN else Drawn.DISTRIBUTED
    often = times * max(one.times_per_epoch or 1 for one in found)
    changes = {"drawn": drawn, "times_per_epoch": often, "sample_rate": None, "batches_per_epoch": None}
    return worst.model_copy(update=changes)
