"""How batches are drawn, and what a reader must know of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reticent.facts.base import Fact, Reading, Severity, Shown, section
from reticent.facts.steps import Drawn, Source
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status
from reticent.kernel.samplers.base import seen_as

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

VOUCHED = {Source.SEEN: Status.CHECKED, Source.DECLARED: Status.DECLARED}
"""What a source is worth."""
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
    if kind is None or source is None or other or kind.of_uses(run.sampler.times_per_epoch or 1) is None:
        return {}
    return dict.fromkeys((kind.condition.key, "drawn-anew"), source)


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
)
OTHER_BATCHES = Fact("batches-not-from-the-loader", _WARNING, effect=_not_one_by_one)
PUBLIC_DRAWS = Fact("publicly-seeded-draws", _WARNING, effect=_not_secret)
ACCUMULATION = Fact("gradient-accumulation", _WARNING, lambda run: any(part.batches > 1 for part in run.segments))
REPEATED_RECORDS = Fact("records-listed-again", _WARNING, lambda run: (run.sampler.copies or 1) > 1)
SIZE_PUBLIC = Fact("size-treated-as-public", _WARNING, _size_is_public, ours=True)
DROP_LAST = Fact("drop-last", Severity.NOTE, lambda run: run.sampler.drop_last is True)
