"""What a ledger says was released: the safe reading of its facts, at least as much risk as any run that fits them.

Batches of which each record is drawn by itself, one for each step, are accounted as such. Everywhere else no
amplification by sampling is claimed: a record counts as often as it can have been in the sums, and each record of a
person as often as one that is alone. Where draws are not of each record by itself, this rests on no record deciding who
else is in a batch (``RunLedger.rearranges``). A fault that voids the guarantee leaves no noise. Earlier loops on the
same model are composed with it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from reticent.facts.base import Reading
from reticent.facts.steps import Drawn, Segment
from reticent.kernel.mechanisms.base import Mechanism
from reticent.kernel.mechanisms.dpsgd import DPSGD
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.samplers import INDEPENDENT, Sampler
from reticent.kernel.samplers.base import seen_as

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_MOST_PARTS, _STEP = 32, 0.001

_SAME = attrgetter(*(f.name for f in fields(DPSGD) if f.name not in ("noise_multiplier", "steps")))
"""What two releases must share, beside their noise, to be counted as one."""

Releases = list[tuple[DPSGD, float]]
"""Each with the noise that is counted for it."""


def of(run: RunLedger) -> Mechanism:
    """The mechanism of a run and of those that it continues."""
    readings = [(one, read(one)) for one in run.loops]
    if not all(reading.noisy for _, reading in readings):
        steps = sum(one.steps for one in run.loops)
        return _part(run, Segment(noise_multiplier=0.0, steps=steps, max_grad_norm=run.clipping.smallest), 1.0)
    found = [of_segment(one, part, reading) for one, reading in readings for part in reading.segments]
    return together(coarse(found, _MOST_PARTS if run.config is None else len(found)))


def read(run: RunLedger) -> Reading:
    """What counts of one loop: its steps, and what each fact makes of them."""
    reading = Reading(_joined(run))
    for fact in run.found():
        reading = fact.on(run, reading)
    return reading


def equal_steps(run: RunLedger) -> DPSGD:
    """What ran of a run whose steps are equal."""
    (only,) = _joined(run)
    return of_segment(run, only, Reading((only,)))


def filled(run: RunLedger) -> tuple[Segment, ...]:
    """Equal steps in order, each with all that is known of it.

    Changes of gradients count against the least noise, so where nobody saw which steps had which clip norm, all have
    the smallest.
    """
    usual = {
        "sample_rate": run.sampler.sample_rate,
        "max_grad_norm": run.clipping.smallest,
        "divisor": run.divisor,
    }
    return tuple(
        part.model_copy(update={name: value for name, value in usual.items() if getattr(part, name) is None})
        for part in run.segments
    )


def of_segment(run: RunLedger, part: Segment, reading: Reading) -> DPSGD:
    """The release that equal steps amount to.

    Args:
        part: with all that is known of it.
        reading: of the loop.
    """
    noise, steps, sampler = part.noise_multiplier, part.steps, run.sampler
    kind = seen_as(sampler.drawn)
    if kind is not None and not (reading.one_by_one and (reading.secret or kind.public_places)):
        kind = None  # what would be amplified, everybody knows
    if kind is not None and kind.in_passes and sampler.times_per_epoch is not None:
        return _in_passes(run, part, sampler.times_per_epoch, kind)
    if kind is not None and not kind.in_passes and part.sample_rate is not None and part.batches == 1:
        return _part(run, part, part.sample_rate, kind())
    often = sampler.times_per_epoch or 1
    if sampler.drawn in (Drawn.WEIGHTED, Drawn.WITH_REPLACEMENT):
        often = sampler.batch_size or 0  # a record may fill a batch
    noise = noise / (part.batches * often) if often else 0.0
    return replace(_part(run, part, 1.0), noise_multiplier=noise, steps=steps)


def _in_passes(run: RunLedger, part: Segment, times: int, kind: type[Sampler]) -> DPSGD:
    """A record that each pass draws at most ``times`` times.

    If it is in the steps m_1, m_2, ... times, then sum m_t <= passes * times and each m_t <= mixed * times, so
    sum m_t^2 <= passes * times * mixed * times releases of the whole data are on the safe side.
    """
    steps, batches = part.steps, run.sampler.batches_per_epoch
    if part.passes is None:
        whole = _part(run, part, 1.0)
        return replace(whole, noise_multiplier=part.noise_multiplier / (part.batches * times))
    unbroken = batches is not None and part.passes == -(-steps // batches)
    known = kind.of_uses(times) if part.batches == 1 else None
    if known is not None and batches is not None and (known.allocated or unbroken):
        counted = steps if unbroken else part.passes * batches  # each pass that was begun is an epoch
        drawn = _part(run, part, part.sample_rate or 1.0 / batches, known.in_batches(batches))
        return replace(drawn, steps=counted)
    per_step = min(part.batches, part.mixed_passes) if times == 1 else part.mixed_passes * times
    return replace(_part(run, part, 1.0), steps=min(part.passes * times * per_step, steps * per_step**2))


def _part(run: RunLedger, part: Segment, rate: float, sampler: Sampler = INDEPENDENT) -> DPSGD:
    expected = None if run.data is None or run.data.dataset_size is None else rate * run.data.dataset_size
    return DPSGD(
        noise_multiplier=part.noise_multiplier,
        sample_rate=rate,
        steps=part.steps,
        max_grad_norm=part.max_grad_norm or 1.0,
        num_parameters=run.num_parameters,
        batch_size=None if expected is None else max(1, round(expected)),
        dataset_size=run.dataset_size,
        sampler=sampler,
        records_per_user=run.records_per_user,
        copies=run.sampler.copies,
        unit=run.unit,
    )


def _joined(run: RunLedger) -> tuple[Segment, ...]:
    """What ran. Passes of our trainer count whole: only the clip norm may change there, and the smallest counts."""
    parts = filled(run)
    length = run.sampler.batches_per_epoch
    if run.config is None or length is None:
        return parts
    norms = [part.max_grad_norm for part in parts if part.max_grad_norm is not None]
    whole = {"steps": run.steps, "max_grad_norm": min(norms), "passes": -(-run.steps // length)}
    return (parts[0].model_copy(update=whole),)


def coarse(parts: list[DPSGD], most: int = _MOST_PARTS) -> list[DPSGD]:
    """Equal releases as one: the curve of independent releases does not depend on their order.

    Where more than ``most`` are left, noise is rounded down to a grid, which adds risk and never hides it.
    """
    noises, step = [part.noise_multiplier for part in parts], _STEP
    while step < 1.0 and len(_equal(noises, parts)) > most:
        noises = [_down(noise, step) for noise in noises]
        step *= 2.0
    return [_as_one(group) for group in _equal(noises, parts)]


def _equal(noises: list[float], parts: list[DPSGD]) -> list[Releases]:
    """Those with the same noise together, where steps are drawn independently of each other; others each alone."""
    found: dict[Hashable, Releases] = {}
    for place, (part, noise) in enumerate(zip(parts, noises, strict=True)):
        key: Hashable = place if part.sampler.in_passes else (_SAME(part), noise)
        found.setdefault(key, []).append((part, noise))
    return list(found.values())


def _as_one(group: Releases) -> DPSGD:
    part, noise = group[0]
    if len(group) == 1 and noise == part.noise_multiplier:
        return part
    return replace(part, noise_multiplier=noise, steps=sum(one.steps for one, _ in group))


def _down(noise: float, step: float) -> float:
    return min(math.exp(step * math.floor(math.log(noise) / step)), noise) if noise else 0.0
