"""What each step divides the noisy sum by: nobody may learn from it how many records were drawn."""

from __future__ import annotations

from reticent import facts
from reticent.facts.base import Seen
from reticent.watching.detectors.base import Detector, Fields
from reticent.watching.detectors.draws import Drawing


class Divisor(Detector):
    """A divisor that tells how many records were drawn, where each joins by chance.

    Kind: divisor.

    Seen: what each step divides by: divisors that go with one size of batch each, always or in some steps.

    Not seen: divisors that follow the size in fewer than half of the sizes, and lie on no line over them.
    """

    def facts(self) -> Fields:
        """Whether it does."""
        follows = self._loop.of(Drawing).by_chance and self._loop.steps.divided_by_size
        return {facts.PRIVATE_DIVISOR.key: Seen.FOUND} if follows else {}
