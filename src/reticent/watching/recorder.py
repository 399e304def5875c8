"""What a watch writes down while a loop runs, and the ledger that it makes of that."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from datetime import UTC, datetime
from typing import Any

from reticent import facts
from reticent.facts.base import Seen, word
from reticent.facts.steps import Generator
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.units import Unit
from reticent.records.ledger import RunLedger
from reticent.records.parts import Diagnostics, Environment
from reticent.watching import models
from reticent.watching.detectors import draws, seeds, start
from reticent.watching.detectors.base import Loop
from reticent.watching.live import Live
from reticent.watching.steps import SeenStep


class Recorder:
    """Writes down one loop.

    Attributes:
        live: the risk of its steps, and the plan; set by the maker of the recorder.
        seconds: wall time so far.
    """

    live: Live

    def __init__(self, loop: Loop, *, records: int | None, unit: Unit) -> None:
        """Prepare; of each ``unit`` a person contributed at most so many ``records``, where the program says it."""
        self._loop, self._steps, self._drawing = loop, loop.steps, loop.of(draws.Drawing)
        self._records, self._unit = records, unit
        self.seconds = 0.0

    def unseen(self, steps: int) -> None:
        """So many steps were taken, and nobody saw any noise."""
        for _ in range(steps):
            self._steps.add(SeenStep(0.0, None, None, None, None, None, 1, None))

    def add(self, step: SeenStep) -> None:
        """A step was taken."""
        if step.used is None and self._drawing.draws.seen:
            self._loop.found(facts.OTHER_BATCHES)
        self._steps.add(step)
        self._kind = self._counted_as() if self.live.listens else ((), 0)
        self.live.after_step(*self._kind)

    def again(self, size: int | None, clipped: int | None) -> None:
        """A step was taken that differs from the last one in these numbers only."""
        self._steps.again(size, clipped)
        self.live.after_step(*self._kind)

    def _counted_as(self) -> tuple[Hashable, int]:
        """What the risk of further steps follows from, if they go on like the last; and batches that no step used."""
        sampler, faults = self._drawing.sampler, self._loop.faults
        same, unused = self._steps.last(sampler.batches_per_epoch)
        return (same, sampler.drawn, facts.PUBLIC_DRAWS in faults, facts.OTHER_BATCHES in faults), unused

    def written(self, ended: bool) -> RunLedger:
        """The ledger of the loop.

        Args:
            ended: it did not end with an error.
        """
        loop, detectors = self._loop, self._loop.detectors.values()
        loop.last = models.fingerprint(loop.model) if ended else None
        for one in detectors:
            one.ends()
        private = {key: value for one in detectors for key, value in one.diagnostics().items()}
        return RunLedger(
            **self._of_both(),
            divisor=self._steps.divisor,
            environment=Environment(
                optimiser=tuple(self._optimizer_names()),
                device=models.device_of(loop.model),
                randomness=loop.of(seeds.NoiseSource).weakest,
                versions=models.versions(),
            ),
            weights_sha256=loop.last,
            diagnostics=Diagnostics(
                batch_sizes=tuple(self._steps.batch_sizes),
                clipped=tuple(self._steps.clipped),
                seconds=self.seconds,
                **private,
            ),
        ).sealed()

    def _of_both(self) -> dict[str, Any]:
        """What a ledger says from which its mechanism follows."""
        detectors, faults = self._loop.detectors.values(), self._loop.faults
        said = {key: value for one in detectors for key, value in one.says().items()}
        stated = {key: value for one in detectors for key, value in one.facts().items()}
        found: dict[str, Any] = {fault.key: Seen.FOUND for fault in faults if fault.shown is None}
        mixed = tuple(fault.cause for fault in faults if fault == facts.MIXES_RECORDS)
        return said | {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "segments": self._steps.segments(said["sampler"].sample_rate),
            "records_per_user": self._records,
            "unit": self._unit,
            "facts": found | ({facts.MIXES_RECORDS.key: mixed} if mixed else {}) | self.live.stated | stated,
        }

    def so_far(self) -> RunLedger | None:
        """What the mechanism of the ledger would follow from, if the loop ended now; None where nothing ran yet.

        Raises:
            ParameterError: nobody knows what ran before.
        """
        begin = self._loop.of(start.Start)
        if not self._loop.count:
            if not begin.begun or any(fault.voids for fault in self._loop.faults):
                raise ParameterError("risk", "asked", "inside the with block, of a model whose training was watched")
            return begin.before
        return RunLedger(
            **self._of_both(),
            earlier=begin.earlier,
            divisor=None,
            environment=Environment(optimiser=(), device="", randomness=Generator.NOT_SEEN, versions={}),
        )

    def _optimizer_names(self) -> Iterator[str]:
        outer = self._loop.optimizer
        for one in (outer, getattr(outer, "original_optimizer", None)):
            if one is not None:
                yield word(type(one).__name__)
