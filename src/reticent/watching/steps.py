"""Steps as they were seen, gathered into equal segments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from reticent.facts.steps import Segment

if TYPE_CHECKING:
    from reticent.watching.detectors.draws import Used

_SIZE = itemgetter(1)
_LEAST = 1e-100
"""Less noise than this is none, and more than its inverse as much: squares are finite numbers."""


@dataclass(slots=True)
class SeenStep:
    """One noisy update.

    Attributes:
        noise_multiplier: noise standard deviation over the clip norm, on the sum.
        clip_norm: L2 norm to which gradients were clipped; None where nobody said.
        divisor: what the sum was divided by; None where nobody said.
        sample_rate: of this step under Poisson sampling, if it is known.
        batch_size: realised records, if known.
        clipped: how many of them were clipped, if measured.
        batches: how many batches were added up, as far as the optimizer knows.
        used: the draws of the step, if they are known.
    """

    noise_multiplier: float
    clip_norm: float | None
    divisor: float | None
    sample_rate: float | None
    batch_size: int | None
    clipped: int | None
    batches: int
    used: Used | None

    def __post_init__(self) -> None:
        """What is no number that a step can have says nothing: no noise, no norm, no divisor, and a rate of 1."""
        if self.clip_norm is not None and not 0.0 < self.clip_norm < math.inf:
            self.clip_norm, self.noise_multiplier = None, 0.0
        if not _LEAST < self.noise_multiplier < math.inf:
            self.noise_multiplier = 0.0
        self.noise_multiplier = min(self.noise_multiplier, 1.0 / _LEAST)
        if self.divisor is not None and not 0.0 < self.divisor < math.inf:
            self.divisor = None
        if self.sample_rate is not None and not 0.0 < self.sample_rate <= 1.0:
            self.sample_rate = 1.0


@dataclass
class _Open:
    """A segment that may still grow."""

    key: tuple[float, float | None, int, int, bool]
    steps: int = 0
    passes: set[int] = field(default_factory=set)

    def closed(self, usual_rate: float | None) -> Segment:
        noise, rate, batches, mixed, known = self.key
        return Segment(
            noise_multiplier=noise,
            steps=self.steps,
            sample_rate=None if rate == usual_rate else rate,
            batches=batches,
            passes=len(self.passes) if known and self.passes else None,
            mixed_passes=mixed,
        )


class Steps:
    """All steps of one loop."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self.batch_sizes: list[int | None] = []
        self.clipped: list[int | None] = []
        self.clip_norms: tuple[float, float] | None = None
        self.divisors: set[float | None] = set()
        self._sizes: dict[float | None, int] = {}
        """Of each divisor the size of the batches that it divided; 0 where there were several."""
        self.rates: set[float | None] = set()

    def __len__(self) -> int:
        return len(self.batch_sizes)

    def add(self, step: SeenStep) -> None:
        """Count one step."""
        used = step.used
        batches, mixed = (step.batches, 1) if used is None else (used.batches, used.mixed)
        key = (step.noise_multiplier, step.sample_rate, batches, mixed, used is not None)
        if not self._open or self._open[-1].key != key:
            self._open.append(_Open(key))
        segment = self._open[-1]
        segment.passes.update(() if used is None else used.passes)
        self._divisor = step.divisor
        self.rates.add(step.sample_rate)
        if step.clip_norm is not None:
            low, high = self.clip_norms or (step.clip_norm, step.clip_norm)
            if not low < step.clip_norm < high:
                self.clip_norms = min(low, step.clip_norm), max(high, step.clip_norm)
        self.again(step.batch_size, step.clipped)

    def again(self, size: int | None, clipped: int | None) -> None:
        """Count a step that differs from the last one in its size and its clipped records only."""
        self._open[-1].steps += 1
        self.batch_sizes.append(size)
        self.clipped.append(clipped)
        self.divided(self._divisor)

    def divided(self, divisor: float | None) -> None:
        """The last step divided by this."""
        self.divisors.add(divisor)
        size = self.batch_sizes[-1]
        if size and self._sizes.get(divisor) != 0:
            self._sizes[divisor] = size if self._sizes.get(divisor, size) == size else 0

    def last(self, length: int | None) -> tuple[Hashable, int]:
        """What the last step shares with the others of its segment; and batches of its passes that no step used yet.

        Args:
            length: batches in a pass over the data; None where there are no passes.
        """
        segment = self._open[-1]
        return segment.key, 0 if length is None else len(segment.passes) * length - segment.steps * segment.key[2]

    def segments(self, usual_rate: float | None) -> tuple[Segment, ...]:
        """Equal steps in order; equal ones that lie apart are put together where there are very many."""
        found = self._open
        if len(found) > _MOST_SEGMENTS:
            found = _together(found)
        return tuple(segment.closed(usual_rate) for segment in found)

    @property
    def divided_by_size(self) -> bool:
        """Whether the divisor followed the number of records that were drawn, in all steps or in some.

        A divisor that follows them belongs to one size. Of those that do, half and at least two have the same ratio to
        it, or three and all lie on one line. A schedule meets sizes by chance only.
        """
        known = [(float(divisor), size) for divisor, size in self._sizes.items() if divisor and size]
        ratios = Counter(round(divisor / size, 6) for divisor, size in known)
        most = max(ratios.values(), default=0)
        return most >= max(2, len(known) / 2) or _on_a_line(known)

    @property
    def divisor(self) -> float | None:
        """What every step divided by, or None."""
        return next(iter(self.divisors)) if len(self.divisors) == 1 else None


def _on_a_line(points: list[tuple[float, int]]) -> bool:
    """Whether three divisors or more lie on one line over their sizes, which rises or falls."""
    if len({size for _, size in points}) < 3:
        return False
    (first, low), (last, high) = min(points, key=_SIZE), max(points, key=_SIZE)
    slope = (last - first) / (high - low)
    return slope != 0.0 and all(
        math.isclose(divisor, first + slope * (size - low), rel_tol=1e-6) for divisor, size in points
    )


_MOST_SEGMENTS = 1024


def _together(segments: list[_Open]) -> list[_Open]:
    """Segments with equal steps as one; steps with other noise than 512 levels apart count with the less noise."""
    found: dict[tuple[float, float | None, int, int, bool], _Open] = {}
    lowest = sorted({segment.key[0] for segment in segments})
    stride = -(-len(lowest) // (_MOST_SEGMENTS // 2))
    levels = {noise: lowest[index - index % stride] for index, noise in enumerate(lowest)}
    for segment in segments:
        key = (levels[segment.key[0]], *segment.key[1:])
        same = found.setdefault(key, _Open(key))
        same.steps += segment.steps
        same.passes |= segment.passes
    return list(found.values())
