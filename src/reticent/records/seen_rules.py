"""What the facts of a loop without a configuration must say about each other; see ``reticent.records.rules``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reticent.mechanisms.gradients import Gradients
from reticent.records.chain import broken_links
from reticent.records.parts import MOST_STEPS, Drawn, Generator, Source
from reticent.records.rules import Found, Rule, digest_is_that_of_the_facts
from reticent.records.watch_faults import Fault
from reticent.samplers.base import not_by_coins

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_BY_KIND = {
    Drawn.SHUFFLED: Fault.SHUFFLED,
    Drawn.IN_ORDER: Fault.IN_ORDER,
    Drawn.WEIGHTED: Fault.WEIGHTED,
    Drawn.WITH_REPLACEMENT: Fault.WITH_REPLACEMENT,
    Drawn.DISTRIBUTED: Fault.DISTRIBUTED,
    Drawn.FIXED_SIZE: Fault.FIXED_SIZE,
    Drawn.UNKNOWN: Fault.UNKNOWN_SAMPLER,
}
_PASSES = (Drawn.SHUFFLED, Drawn.IN_ORDER, Drawn.RANDOM_ALLOCATION)


def _differ(values: list[float]) -> bool:
    """Whether they are not all one number, but for the rounding of a computer."""
    return max(values) > min(values) * (1.0 + 1e-9)


def _more_than_planned(run: RunLedger) -> int:
    """Steps, less those that were planned."""
    return run.steps - (run.steps if run.planned is None else run.planned.steps)


_CASES: dict[Fault, Callable[[RunLedger], bool]] = {
    **{fault: lambda run, kind=kind: run.sampler.drawn is kind for kind, fault in _BY_KIND.items()},  # type: ignore[misc]
    Fault.MIXES_RECORDS: lambda run: bool(run.mixing_layers),
    Fault.UNKNOWN_CLIPPING: lambda run: run.clipping.kind == "unknown",
    Fault.NO_NOISE: lambda run: any(segment.noise_multiplier == 0.0 for segment in run.segments),
    Fault.ACCUMULATION: lambda run: any(segment.batches > 1 for segment in run.segments),
    Fault.ADAPTIVE_COUNT: lambda run: run.clipping.kind == "adaptive",
    Fault.SEEDED_NOISE: lambda run: run.environment.randomness is Generator.OF_PROGRAM,
    Fault.INSECURE_GENERATOR: lambda run: run.environment.randomness is Generator.DEFAULT,
    Fault.DECLARED: lambda run: Source.DECLARED in (run.sampler.source, run.clipping.source),
    Fault.SIZE_PUBLIC: lambda run: run.sampler.dataset_size is not None,
    Fault.ENDED_EARLY: lambda run: run.weights_sha256 is None,
    Fault.STOPPED_BEFORE_PLAN: lambda run: _more_than_planned(run) < 0,
    Fault.MORE_THAN_PLANNED: lambda run: _more_than_planned(run) > 0,
    Fault.DROP_LAST: lambda run: run.sampler.drop_last is True,
    Fault.CHANGED_CLIP_NORM: lambda run: run.clipping.smallest != run.clipping.largest,
    Fault.CHANGED_NOISE: lambda run: (
        _differ([s.noise_multiplier for s in run.segments]) or _differ([s.sample_rate or 0.0 for s in run.segments])
    ),
    Fault.REPEATED_RECORDS: lambda run: (run.sampler.copies or 1) > 1,
}
"""Every fault that follows from other facts, and when it does."""
FOLLOWING = frozenset(_CASES)


def demanded_faults(run: RunLedger) -> tuple[Fault, ...]:
    """The faults that follow from the other facts, in the order of their type."""
    return tuple(fault for fault in Fault if fault in _CASES and _CASES[fault](run))


def _seen(run: RunLedger) -> Found:
    for fault in run.seen:
        if fault in FOLLOWING:
            yield "seen", f"has {fault.value}, which follows from other facts or does not hold"
    if len(set(run.seen)) < len(run.seen):
        yield "seen", "repeats a fault"


def _sampler_source(run: RunLedger) -> Found:
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
    usual = run.sampler.sample_rate
    if usual is not None and run.sampler.drawn not in (Drawn.POISSON, Drawn.FIXED_SIZE):
        yield "sampler.sample_rate", "has no place here: nothing is drawn by coins"
    for index, segment in enumerate(run.segments):
        if segment.sample_rate is not None and (usual is None or segment.sample_rate >= usual):
            where = f"segments.{index}.sample_rate"
            yield where, "is not below that of the sampler" if usual else "has no place here: nothing is drawn by coins"


def _length_of_a_pass(run: RunLedger) -> Found:
    sampler = run.sampler
    batches, size, records = sampler.batches_per_epoch, sampler.batch_size, sampler.dataset_size
    if sampler.source is Source.SEEN and sampler.drawn in _PASSES and None in (batches, sampler.times_per_epoch):
        yield "sampler.batches_per_epoch", "is missing, and the sampler was seen"
    if batches is None:
        return
    if records is None or sampler.times_per_epoch is None:
        yield "sampler.batches_per_epoch", "is stated without the number of records that a pass draws"
        return
    most = -(-sampler.times_per_epoch * records // (size or 1))
    if batches > most:
        yield "sampler.batches_per_epoch", f"is {batches}, and a pass over {records} records has at most {most}"


def _passes(run: RunLedger) -> Found:
    """A pass holds so many batches and no more; a step draws from no more passes than it has batches."""
    batches = run.sampler.batches_per_epoch
    for index, segment in enumerate(run.segments):
        if segment.passes is None:
            continue
        drawn = segment.steps * segment.batches
        if batches is not None and drawn > segment.passes * batches:
            yield (
                f"segments.{index}.passes",
                f"is {segment.passes} of {batches} batches, and {drawn} were drawn",
            )
        if segment.mixed_passes > min(segment.batches, segment.passes):
            yield f"segments.{index}.mixed_passes", "is more than the batches or the passes of the segment"


def _clipping(run: RunLedger) -> Found:
    clipping = run.clipping
    if (clipping.kind == "unknown") != (clipping.source is Source.UNKNOWN):
        yield "clipping.source", f"is {clipping.source.value}, and the kind is {clipping.kind}"
    ends = clipping.smallest, clipping.largest
    if (None in ends) != (ends == (None, None)):
        yield "clipping.smallest", "and largest are known together or not at all"
    if clipping.smallest is not None and clipping.largest is not None and clipping.smallest > clipping.largest:
        yield "clipping.smallest", "is above the largest"


def _gradients(run: RunLedger) -> Found:
    """A watch sees one linear layer without a bias where Opacus clips as a whole, and never what the loss is."""
    form = run.gradients
    if form is None:
        return
    if form.kind not in (Gradients.ANY, Gradients.LINEAR_HEAD) or form.normalised or form.known_share:
        yield "gradients.kind", "is one that no watch sees: it is linear-head without a bias, or any"
    if form.kind is Gradients.ANY:
        return
    if run.clipping.kind != "flat" or run.clipping.source is not Source.SEEN:
        yield "gradients.kind", f"is {form.kind.value}, and nobody saw gradients clipped as a whole"
    if run.num_parameters is not None and run.num_parameters % (form.dimension or 1):
        yield "gradients.dimension", f"is {form.dimension}, and {run.num_parameters} numbers are no rows of it"


def _start(run: RunLedger) -> Found:
    """Only random weights are seen to be so, and steps that were taken before are known to somebody."""
    start = run.start
    if start is None:
        return
    if start.source is not Source.DECLARED and (start.source is Source.SEEN) != (start.weights == "random"):
        yield "start.source", f"is {start.source.value}, and the weights are {start.weights}"
    unknown = start.source is not Source.DECLARED and not run.earlier
    if start.trainer_step and unknown and Fault.STEPS_BEFORE not in run.faults:
        yield "start.trainer_step", f"is {start.trainer_step}, and no ledger of those steps is there"
    if start.salt is not None and not run.earlier:
        yield "start.salt", "is there, and the ledger that it continues is not"


def _private_noise(run: RunLedger) -> Found:
    """An optimizer that adds noise holds another one inside, and its generator is seen unless its noise is unknown."""
    where = run.environment
    unseen, private = where.randomness is Generator.NOT_SEEN, len(where.optimiser) > 1
    if unseen and Fault.UNKNOWN_NOISE in run.faults:
        return
    if unseen == private:
        yield (
            "environment.randomness",
            f"is {where.randomness.value}, and the optimizer is {' around '.join(where.optimiser) or 'unknown'}",
        )
    if unseen and run.clipping.source is Source.SEEN:
        yield "environment.randomness", "was not seen, and the optimizer that adds the noise was"


def _batches_were_drawn_so(run: RunLedger) -> Found:
    if run.diagnostics is None:
        return
    sampler, sizes = run.sampler, run.diagnostics.batch_sizes
    seen = sampler.source is Source.SEEN and Fault.OTHER_BATCHES not in run.faults
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


SEEN_RULES: tuple[Rule, ...] = (
    Rule(("digest",), "All facts are as they were when the loop ended.", digest_is_that_of_the_facts),
    Rule(
        ("sampler.source", "sampler.drawn"),
        "What nobody saw or declared is unknown.",
        _sampler_source,
    ),
    Rule(
        ("segments.sample_rate", "sampler.sample_rate"),
        "Where records are drawn by coins there is a rate, and no segment has a higher one.",
        _rates,
    ),
    Rule(
        ("sampler.batches_per_epoch", "sampler.dataset_size", "sampler.batch_size", "sampler.times_per_epoch"),
        "A pass has as many batches as its records fill.",
        _length_of_a_pass,
    ),
    Rule(
        ("segments.passes", "segments.steps", "segments.batches", "sampler.batches_per_epoch"),
        "The passes hold the batches that the steps used.",
        _passes,
    ),
    Rule(
        ("clipping.kind", "clipping.source", "clipping.smallest", "clipping.largest"),
        "Clipping is unknown to both or to neither, and its norms are in order.",
        _clipping,
    ),
    Rule(
        ("gradients", "clipping.kind", "clipping.source", "num_parameters"),
        "Gradients have a form that a watch can see.",
        _gradients,
    ),
    Rule(("start", "earlier", "faults"), "Where the loop began is recorded or declared.", _start),
    Rule(("environment", "clipping.source"), "Who saw the optimizer saw its generator.", _private_noise),
    Rule(
        ("start", "earlier", "weights_sha256"),
        "Each loop of a chain begins at the weights at which the one before ended.",
        broken_links,
    ),
    Rule(("seen",), "What was seen follows from no other fact.", _seen),
    Rule(
        ("diagnostics", "sampler.sample_rate", "sampler.dataset_size"),
        "The batches can have been drawn as the ledger says.",
        _batches_were_drawn_so,
    ),
)
"""Every constraint between facts of a watched loop."""
