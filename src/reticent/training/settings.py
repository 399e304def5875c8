"""Settings of a run; noise, sample rate and clip norm may change along it: stages, each from one step to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, pairwise

import numpy as np

from reticent.facts.plan import OF_A_STAGE
from reticent.facts.steps import Segment
from reticent.kernel import checks
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.samplers import INDEPENDENT, Sampler
from reticent.training.augmentation import Augmentation
from reticent.training.randomness import Source


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one DP-SGD run.

    Attributes:
        noise_multiplier: noise standard deviation over ``max_grad_norm``, on the sum, >= 0.
        max_grad_norm: clip norm (L2).
        sample_rate: inclusion probability per step (Poisson), in (0, 1].
        divisor: what the noisy sum is divided by.
        steps: noisy updates to take.
        sampler: how batches are drawn.
        batch_size: size of a batch, for samplers other than Poisson.
        physical_batch_size: most records in one forward and backward pass.
        stages: what changes later in the run: first steps, from 0, with the settings that hold from there on.
        augmentation: views of each record, whose mean gradient is clipped.
        normalise: bring every gradient to the clip norm, not only those that are longer.
    """

    noise_multiplier: float
    max_grad_norm: float
    sample_rate: float
    divisor: float
    steps: int
    sampler: Sampler = INDEPENDENT
    batch_size: int | None = None
    physical_batch_size: int = 1024
    stages: tuple[tuple[int, Settings], ...] = ()
    augmentation: Augmentation | None = None
    normalise: bool = False

    def __post_init__(self) -> None:
        checks.non_negative(noise_multiplier=self.noise_multiplier)
        checks.positive(max_grad_norm=self.max_grad_norm)
        checks.rate(sample_rate=self.sample_rate)
        checks.positive(divisor=self.divisor)
        checks.count(steps=self.steps)
        checks.count(physical_batch_size=self.physical_batch_size)
        for at, _ in self.stages:
            checks.count(at=at)


def staged(settings: Settings, planned: Sequence[Segment], dataset_size: int) -> Settings:
    """``settings`` with the noise, rates, norms and divisors of ``planned``, each from its first step on."""
    sized, at, parts = settings.batch_size is not None, 0, []
    for part in planned:
        batch = round((part.sample_rate or 1.0) * dataset_size) if sized else None
        now = replace(settings, batch_size=batch, **{name: getattr(part, name) for name in OF_A_STAGE})
        parts.append((at, now))
        at += part.steps
    return replace(parts[0][1], stages=tuple(parts[1:]))


def batches_of(settings: Settings, source: Source, dataset_size: int) -> Iterator[np.ndarray]:
    """An endless stream of batches, drawn in each stage with its own rate or size."""

    def drawn(now: Settings) -> Iterator[np.ndarray]:
        return now.sampler.batches(source, dataset_size, now.sample_rate, now.batch_size)

    parts = [(0, settings), *settings.stages]
    if all((s.sample_rate, s.batch_size) == (settings.sample_rate, settings.batch_size) for _, s in parts):
        return drawn(settings)
    lengths = [later - first for (first, _), (later, _) in pairwise(parts)]
    begun = (islice(drawn(now), length) for (_, now), length in zip(parts, lengths, strict=False))
    return chain(chain.from_iterable(begun), drawn(parts[-1][1]))


def release_of(settings: Settings, records_per_user: int | None = None) -> Mechanism:
    """What the run would release as it is planned; one mechanism where its steps are equal or fill epochs."""
    starts = [(0, settings), *settings.stages]
    ends = [at for at, _ in starts[1:]] + [settings.steps]
    parts = tuple(
        DPSGD(now.noise_multiplier, now.sample_rate, end - at, sampler=now.sampler, records_per_user=records_per_user)
        for (at, now), end in zip(starts, ends, strict=True)
    )
    if settings.sampler.in_passes:  # over whole epochs only the clip norm may change
        return replace(parts[0], steps=settings.steps)
    return together(parts)


def segments_of(ran: Sequence[tuple[float, ...]]) -> tuple[Segment, ...]:
    """Steps of which each says what ``OF_A_STAGE`` names, as equal steps in order."""
    return tuple(
        Segment(steps=sum(1 for _ in equal), **dict(zip(OF_A_STAGE, now, strict=True))) for now, equal in groupby(ran)
    )
