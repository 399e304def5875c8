"""How batches are drawn, and what a reader must know of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reticent.facts.base import Fact, Found, Reading, Severity, Shown, section
from reticent.facts.steps import MOST_STEPS, Drawn, Source
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status
from reticent.kernel.samplers.base import not_by_coins, seen_as

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

VOUCHED = {Source.SEEN: Status.CHECKED, Source.DECLARED: Status.DECLARED}
"""What a source is worth."""
_PASSES = (Drawn.SHUFFLED, Drawn.IN_ORDER, Drawn.RANDOM_ALLOCATION)
_BLIND = frozenset(Drawn) - {Drawn.WEIGHTED, Drawn.UNKNOWN}
"""Draws that look at no record: one that has another value moves nobody."""


def _drawn(kind: Drawn) -> Shown:
    return lambda run: run.sampler.drawn is kind


def size_is_secret(config: Mapping[str, Any]) -> bool:
    """Whether the training never used the number of records: rate and divisor are constants of the configuration."""
    return config.get("divisor") is not None and config.get("sample_rate") is not None


def _size_is_public(run: RunLedger) -> bool:
    return run.sampler.dataset_size is not None if run.config is None else not size_is_secret(run.config)


def rearranges(run: RunLedger, neighbouring: Neighbouring) -> bool:
    """Whether a record may have decided who else was in a batch of one loop, as far as its ledger shows.

    Draws of each record by itself leave the others where they are. So do batches of all records. Batches of a fixed
    size that are counted as such have a theorem of their own. Our loop draws by itself and looks at no record; but
    places in a table of one's own follow hashes, so one that is replaced moves others.
    """
    drawn, other = run.sampler.drawn, OTHER_BATCHES.key in run.facts
    if run.config is not None:
        kind, table = seen_as(drawn), section(run.config, "data").get("table")
        by_place = kind is not None and kind.public_places and run.first.sample_rate != 1.0
        return neighbouring is Neighbouring.REPLACE and table is not None and by_place
    if not other and neighbouring is not Neighbouring.ADD_REMOVE and drawn in _BLIND:
        return False
    if other or PUBLIC_DRAWS.key in run.facts:
        return True
    once = all(segment.batches == 1 for segment in run.segments)
    alone = drawn in (Drawn.POISSON, Drawn.RANDOM_ALLOCATION) or (drawn is Drawn.FIXED_SIZE and once)
    return not alone and not (run.sampler.batches_per_epoch == 1 and once)


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    kind, source = seen_as(run.sampler.drawn), VOUCHED.get(run.sampler.source)
    other = OTHER_BATCHES.key in run.facts or PUBLIC_DRAWS.key in run.facts
    if kind is None or source is None or other or (run.sampler.times_per_epoch or 1) > 1:
        return {}
    return dict.fromkeys((kind.condition.key, "drawn-anew"), source)


def _one_source(run: RunLedger) -> Found:
    """What nobody saw or declared is unknown."""
    sampler = run.sampler
    nobody_looked = sampler.source is Source.UNKNOWN
    if sampler.drawn is Drawn.UNKNOWN and not nobody_looked:
        yield "sampler.source", f"is {sampler.source.value}, and how batches are drawn is unknown"
    if nobody_looked and sampler.drawn not in (Drawn.UNKNOWN, Drawn.WITH_REPLACEMENT):
        yield "sampler.drawn", f"is {sampler.drawn.value}, and nobody saw or declared it"
    if sampler.source is Source.DECLARED and sampler.drawn not in (Drawn.POISSON, Drawn.FIXED_SIZE, Drawn.SHUFFLED):
        yield "sampler.drawn", "is none of poisson, fixed-size and shuffled, which is all that can be declared"
    if sampler.source is Source.SEEN and sampler.drawn in (Drawn.POISSON, *_PASSES) and sampler.dataset_size is None:
        yield "sampler.dataset_size", "is missing, and the sampler was seen"
    if sampler.drawn is Drawn.FIXED_SIZE and sampler.source is not Source.DECLARED:
        yield "sampler.source", f"is {sampler.source.value}, and batches of a fixed size can only be declared"
    if sampler.drawn is Drawn.RANDOM_ALLOCATION and (sampler.batch_size, sampler.drop_last) != (None, None):
        yield (
            "sampler.batch_size",
            "has no place with random-allocation: batches vary in size, and no record is left out",
        )
    if sampler.source is Source.DECLARED or sampler.drawn is Drawn.POISSON:
        names = ["batch_size", "batches_per_epoch", "drop_last"]
        names += ["dataset_size"] if sampler.source is Source.DECLARED else ["times_per_epoch"]
        for name in names:
            if getattr(sampler, name) is not None:
                yield f"sampler.{name}", f"has no place with batches that are {sampler.drawn.value}: nobody sees it"


def _rates(run: RunLedger) -> Found:
    """Where records are drawn by coins there is a rate, and no segment has a higher one."""
    usual = run.sampler.sample_rate
    if usual is not None and run.sampler.drawn not in (Drawn.POISSON, Drawn.FIXED_SIZE):
        yield "sampler.sample_rate", "has no place here: nothing is drawn by coins"
    for index, segment in enumerate(run.segments):
        if segment.sample_rate is not None and (usual is None or segment.sample_rate >= usual):
            where = f"segments.{index}.sample_rate"
            yield where, "is not below that of the sampler" if usual else "has no place here: nothing is drawn by coins"


def _passes(run: RunLedger) -> Found:
    """A pass has as many batches as its records fill; a step draws from no more passes than it has batches."""
    sampler = run.sampler
    batches, size, records = sampler.batches_per_epoch, sampler.batch_size, sampler.dataset_size
    if sampler.source is Source.SEEN and sampler.drawn in _PASSES and None in (batches, sampler.times_per_epoch):
        yield "sampler.batches_per_epoch", "is missing, and the sampler was seen"
    if batches is not None and (records is None or sampler.times_per_epoch is None):
        yield "sampler.batches_per_epoch", "is stated without the number of records that a pass draws"
    elif batches is not None and records is not None and sampler.times_per_epoch is not None:
        most = -(-sampler.times_per_epoch * records // (size or 1))
        if batches > most:
            yield "sampler.batches_per_epoch", f"is {batches}, and a pass over {records} records has at most {most}"
    for index, segment in enumerate(run.segments):
        if segment.passes is None:
            continue
        drawn = segment.steps * segment.batches
        if batches is not None and drawn > segment.passes * batches:
            where = f"segments.{index}.passes"
            yield where, f"is {segment.passes} of {batches} batches, and {drawn} were drawn"
        if segment.mixed_passes > min(segment.batches, segment.passes):
            yield f"segments.{index}.mixed_passes", "is more than the batches or the passes of the segment"


def _sizes(run: RunLedger) -> Found:
    """The batches can have been drawn as the ledger says."""
    if run.diagnostics is None:
        return
    sampler, sizes = run.sampler, run.diagnostics.batch_sizes
    seen = sampler.source is Source.SEEN and OTHER_BATCHES.key not in run.facts
    passes = [segment.passes or MOST_STEPS for segment in run.segments]
    records = sum(size or 0 for size in sizes)
    once = seen and sampler.drawn is Drawn.RANDOM_ALLOCATION
    if once and records > sum(passes) * (sampler.dataset_size or records):
        yield "diagnostics.batch_sizes", "hold more records than the passes draw"
    if not seen or sampler.drawn is not Drawn.POISSON or sampler.dataset_size is None or None in sizes:
        return
    usual = sampler.sample_rate or 0.0
    coins = [(segment.sample_rate or usual, segment.steps * segment.batches) for segment in run.segments]
    expected = sampler.dataset_size * sum(rate * batches for rate, batches in coins)
    if not_by_coins(sum(size or 0 for size in sizes), expected, min(rate for rate, _ in coins)):
        yield "diagnostics.batch_sizes", f"are not those of a sample rate of {usual:g}"


def _equal_passes(run: RunLedger) -> Found:
    """Where our trainer draws in passes, noise and rate stay as they are."""
    kind, parts = seen_as(run.sampler.drawn), {(part.noise_multiplier, part.sample_rate) for part in run.segments}
    if len(parts) > 1 and kind is not None and kind.in_passes:
        yield "segments", "have other noise or another rate, and each record is in one step of a pass"


def _own_sizes(run: RunLedger) -> Found:
    """The batches of our trainer can have been drawn as the ledger says; as many records were kept as asked."""
    kept, records, kind = section(run.asked, "data").get("train_size"), run.dataset_size, seen_as(run.sampler.drawn)
    if kept is not None and records is not None and kept != records:
        yield "data.dataset_size", f"is not the {kept} records that were kept"
    if run.diagnostics is None or kind is None:
        return
    sizes, records = [size or 0 for size in run.diagnostics.batch_sizes], records or 0
    if max(sizes) > records:
        yield "diagnostics.batch_sizes", f"has more than the {records} records"
    parts = [(part.steps, part.sample_rate or 1.0) for part in run.every_segment]
    parts = [(len(sizes), parts[0][1])] if kind.in_passes else parts  # an epoch may end in another stage
    start = 0
    for steps, rate in parts:
        problem = kind().impossible(sizes[start : start + steps], records, rate)
        start += steps
        if problem is not None:
            yield "diagnostics.batch_sizes", problem


def _not_one_by_one(_run: RunLedger, reading: Reading) -> Reading:
    return replace(reading, one_by_one=False)


def _not_secret(_run: RunLedger, reading: Reading) -> Reading:
    return replace(reading, secret=False)


_WARNING = Severity.WARNING
LARGER_BATCH = Fact("batches-larger-than-drawn")
LEFT_OUT = Fact("batches-left-out")
SHUFFLED = Fact("shuffled-not-poisson", _WARNING, _drawn(Drawn.SHUFFLED), ours=True)
IN_ORDER = Fact("in-order-not-poisson", _WARNING, _drawn(Drawn.IN_ORDER))
WEIGHTED = Fact("weighted-sampler", _WARNING, _drawn(Drawn.WEIGHTED))
WITH_REPLACEMENT = Fact("with-replacement-sampler", _WARNING, _drawn(Drawn.WITH_REPLACEMENT))
DISTRIBUTED = Fact("distributed-sampler", _WARNING, _drawn(Drawn.DISTRIBUTED))
FIXED_SIZE = Fact("fixed-size-not-poisson", Severity.NOTE, _drawn(Drawn.FIXED_SIZE), ours=True)
UNKNOWN_SAMPLER = Fact(
    "unknown-sampler",
    _WARNING,
    _drawn(Drawn.UNKNOWN),
    vouches=_vouches,
    watched=(_one_source, _rates, _passes, _sizes),
    trained=(_equal_passes, _own_sizes),
)
OTHER_BATCHES = Fact("batches-not-from-the-loader", _WARNING, effect=_not_one_by_one)
PUBLIC_DRAWS = Fact("publicly-seeded-draws", _WARNING, effect=_not_secret)
ACCUMULATION = Fact("gradient-accumulation", _WARNING, lambda run: any(part.batches > 1 for part in run.segments))
REPEATED_RECORDS = Fact("records-listed-again", _WARNING, lambda run: (run.sampler.copies or 1) > 1)
SIZE_PUBLIC = Fact("size-treated-as-public", _WARNING, _size_is_public, ours=True)
DROP_LAST = Fact("drop-last", Severity.NOTE, lambda run: run.sampler.drop_last is True)
