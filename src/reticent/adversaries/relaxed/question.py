"""What is asked about a relaxed attacker, and the form of a proof that answers it."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof, condition

AVERAGE = Message("note.average")


def noisy_sums(release: Mechanism) -> list[DPSGD] | None:
    """The parts of a release, where each is sums with noise whose batches show no record that the target displaces.

    Such a record shows its direction.
    """
    sums = [run for part in release.parts if (run := part.sums) is not None and run.noise_multiplier > 0.0]
    hidden = [run for run in sums if not run.sampler.tells_all]
    return hidden if len(hidden) == len(release.parts) else None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes:
        mechanism: what was released.
        neighbouring: between which data sets.
        dimension: of the space in which the direction is unknown, as stated; None where nothing is stated.
        mu: (lower, upper) around mu of the worst case of all that was released.
    """

    mechanism: Mechanism
    neighbouring: Neighbouring
    dimension: int | None
    mu: tuple[float, float]

    def proof(
        self,
        enclosure: Enclosure,
        theorems: tuple[str, ...],
        notes: tuple[Message, ...] = (),
        needs: tuple[str, ...] = ("fixed-length",),
        *,
        floor: bool = True,
        average: bool = True,
    ) -> Proof:
        """A proof that answers this question.

        Args:
            needs: keys of the conditions on the data, which nobody checked.
            floor: whether the smallest error rates show as much as those of the worst case: no direction matters there.
            average: whether the number is an average over one direction.
        """
        return Proof(
            enclosure,
            theorems=(*theorems, "RETICENT:all-rates-mu"),
            conditions=tuple(map(condition, needs)),
            notes=(AVERAGE, *notes) if average else notes,
            mu=self.mu if floor else (0.0, self.mu[1]),
        )
