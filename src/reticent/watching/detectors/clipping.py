"""How gradients are clipped, and who says so."""

from __future__ import annotations

from reticent.facts.steps import ClippingRecord, Source
from reticent.watching import declared, optimisers
from reticent.watching.detectors.base import Detector, Fields, Loop, Step


class Clipping(Detector):
    """Clipping that bounds something else than the ledger would say.

    Kind: clipping and gradients of single records.

    Seen: the class of the optimizer, and whether code of the program decides what is summed up. Clip norm, noise and
    divisor are read at the moment at which noise is added. How many records were clipped: in the first step and in
    every 128th, as norms cost a pass over all gradients.

    Not seen: whether gradients of single records that a program computes itself are right (``reticent audit-loop``
    tests that, and the noise): of such a loop the noise, the clipping and the updates are declared.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._kind, self._source = declared.clipping(loop.said.clipping, loop.optimizer if loop.private else None)

    def enters(self, again: bool) -> None:
        """Other code may have replaced it since it was looked at."""
        self._look()

    def on_noise(self, step: Step) -> None:
        """The same."""
        if not step.usual:
            self._look()

    @property
    def _seen(self) -> bool:
        return self._loop.private and self._source is Source.SEEN

    def _look(self) -> None:
        if self._seen and optimisers.clipping_of(self._optimizer) == "unknown":
            self._kind, self._source = "unknown", Source.UNKNOWN

    def not_by_opacus(self) -> None:
        """Noise was added to a sum of others than the gradients that the private optimizer was left to clip."""
        said = self._loop.said.clipping
        self._kind, self._source = ("unknown", Source.UNKNOWN) if said is None else (said, Source.DECLARED)

    def of_the_program(self) -> None:
        """The program states the gradients of records that are clipped; nobody saw where they come from."""
        if self._source is Source.SEEN:
            self._source = Source.DECLARED

    def says(self) -> Fields:
        """How, who says so, and to which norms."""
        low, high = self._loop.steps.clip_norms or (None, None)
        return {"clipping": ClippingRecord(kind=self._kind, source=self._source, smallest=low, largest=high)}

    def ends(self) -> None:
        """Only adaptive clipping leaves such a number."""
        if self._seen and hasattr(self._optimizer, "_adjusted_noise_multiplier"):
            self._kind = "adaptive"
