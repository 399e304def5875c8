"""What a number rests on beyond its theorem's own mathematics: one sentence each, and who vouches for it.

``CONDITIONS`` lists all of them; a condition that is not listed cannot be stated. docs/concepts/conditions.md asks of
each theorem what it assumes about training that nothing checks, and names the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from reticent.errors import ParameterError
from reticent.text import owners


class Status(StrEnum):
    """Who vouches for a condition."""

    CHECKED = "checked"
    """The code that ran, or a ledger that saw it run, establishes it."""
    DECLARED = "declared"
    """Somebody says so, or a setting does."""
    ASSUMED = "assumed"
    """Nobody looked, or what was seen does not establish it."""


class Bearing(StrEnum):
    """What a condition is about, and so what becomes of a claim while nobody has checked it."""

    GENERAL = "general"
    """Every number of differential privacy needs it. The claim stays."""
    RELEASE = "release"
    """It says what was released, as a noise multiplier does. The claim stays; a policy has to accept it."""
    DATA = "data"
    """It is about the records. The claim is conditional."""
    ATTACKER = "attacker"
    """It is about what the attacker knows. The claim is conditional."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A condition as it is listed.

    Attributes:
        says: one sentence for people.
        bearing: what it is about.
    """

    says: str
    bearing: Bearing


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that a number rests on.

    Attributes:
        key: of ``CONDITIONS``.
        status: who vouches for it.

    Raises:
        ParameterError: the key is not listed.
    """

    key: str
    status: Status

    def __post_init__(self) -> None:
        if self.key not in CONDITIONS:
            raise ParameterError("condition", self.key, f"one of {', '.join(CONDITIONS)}")

    @property
    def says(self) -> str:
        """One sentence for people."""
        return CONDITIONS[self.key].says

    @property
    def bearing(self) -> Bearing:
        """What it is about."""
        return CONDITIONS[self.key].bearing

    @property
    def open(self) -> bool:
        """Whether nobody checked something that not every number of differential privacy needs."""
        return self.status is not Status.CHECKED and self.bearing is not Bearing.GENERAL

    @property
    def weakens(self) -> bool:
        """Whether a proof that rests on it is conditional."""
        return self.status is not Status.CHECKED and self.bearing in (Bearing.DATA, Bearing.ATTACKER)


CONDITIONS: Mapping[str, Kind] = {
    "hidden-draws": Kind(
        "Nobody learns which records were drawn in which step. An attacker who does is not covered.", Bearing.GENERAL
    ),
    "unpredictable-noise": Kind("Nobody can predict or repeat the noise; its seed would reveal it.", Bearing.GENERAL),
    "real-numbers": Kind(
        "The noise is taken as real numbers. What the rounding of computers may reveal is not covered.",
        Bearing.GENERAL,
    ),
    "used-once": Kind("Nothing else that was computed from these records was released.", Bearing.GENERAL),
    "public-preparation": Kind(
        "How the records were chosen, encoded and scaled does not depend on these records.", Bearing.GENERAL
    ),
    "public-divisor": Kind(
        "The noisy sum of a step is divided by a number that does not depend on who was drawn.", Bearing.RELEASE
    ),
    "poisson-draws": Kind(
        "Each record is included in each batch independently, with the stated probability, whoever else is in the "
        "data. Batches that are cut from shuffled data, or that have a fixed size, need another answer.",
        Bearing.RELEASE,
    ),
    "fixed-size-draws": Kind("Each batch is drawn anew, uniformly, with a size that is fixed.", Bearing.RELEASE),
    "shuffled-draws": Kind(
        "Each record is in at most one batch of each pass over the data, and all passes that the steps touch are "
        "counted.",
        Bearing.RELEASE,
    ),
    "kept-places": Kind(
        "A record does not decide who else is in a batch: without it, all others stay where they are, and its place is "
        "left empty. Loaders that close the gap of a deleted record, or look at the records, break this.",
        Bearing.RELEASE,
    ),
    "allocation-draws": Kind(
        "In each epoch each record is put into the stated number of steps by a uniform draw of its own, made anew, "
        "that no other record influences. All epochs that the steps touch are counted.",
        Bearing.RELEASE,
    ),
    "kept-allocation-draws": Kind(
        "Each record is put into one step of every epoch by one uniform draw of its own, made before training, that no "
        "other record influences.",
        Bearing.RELEASE,
    ),
    "truncated-draws": Kind(
        "Each record is included in each batch independently, with one probability; of a batch that is too large, as "
        "many as is stated are kept, drawn uniformly; and the number of records that is stated counts the target.",
        Bearing.RELEASE,
    ),
    "stated-guarantee": Kind(
        "Each release has the stated epsilon and delta, whatever was released before, for neighbouring data sets of "
        "the relation that is asked.",
        Bearing.RELEASE,
    ),
    "participation-pattern": Kind(
        "No record takes part in more steps, or in steps that are closer, than is stated.", Bearing.RELEASE
    ),
    "clipped": Kind("No record moves the sum of a step by more than the clip norm.", Bearing.RELEASE),
    "planned-steps": Kind(
        "The number of steps that is counted was fixed before training, and nobody looked at these records, or at "
        "their loss, to decide when to stop.",
        Bearing.RELEASE,
    ),
    "fixed-plan": Kind(
        "Which releases there are, with how much noise and at which rates, was fixed before any result was seen.",
        Bearing.RELEASE,
    ),
    "drawn-anew": Kind(
        "What chance drew for one part - batches, a setting, a number of runs - was drawn anew for it: no other part "
        "used the same draw. Parts in which records keep their steps may share one draw, in whatever order of the "
        "steps, where their passes have equally many.",
        Bearing.RELEASE,
    ),
    "start-weights": Kind("The weights at the start do not depend on these records.", Bearing.RELEASE),
    "records-per-person": Kind("No person contributed more records than is stated.", Bearing.RELEASE),
    "one-direction": Kind(
        "The model is linear with one output, and the slope of the loss keeps its sign: each record's gradient lies "
        "along one direction, that of its features, and never against it, in every step. A bias is trained only where "
        "its share is stated.",
        Bearing.RELEASE,
    ),
    "linear-head": Kind(
        "Only a last linear layer is trained: each record's gradient is its features times some vector, in every step. "
        "A bias is trained only where its share is stated.",
        Bearing.RELEASE,
    ),
    "same-features": Kind(
        "A record's features are the same in every step, and do not depend on the records of the training.",
        Bearing.RELEASE,
    ),
    "known-share": Kind(
        "At most the stated share of each gradient's squared length lies in a bias, whose direction everybody knows.",
        Bearing.DATA,
    ),
    "drawn-setting": Kind(
        "Which setting of the list ran was drawn by chance before the run, whatever is in these records.",
        Bearing.RELEASE,
    ),
    "independent-runs": Kind(
        "Every run drew its settings from the same list, its batches and its noise by itself, without a look at the "
        "others, and how many runs there are was drawn from the stated law before the first.",
        Bearing.RELEASE,
    ),
    "hidden-runs": Kind(
        "Nobody learns how many runs there were, unless that number is fixed, nor anything of the runs that were not "
        "released.",
        Bearing.RELEASE,
    ),
    "best-only": Kind("Only the best run is released, with its score, and nothing of the others.", Bearing.RELEASE),
    "counted-scores": Kind(
        "Scores are computed from other people's records, or with noise that is counted in each run.", Bearing.RELEASE
    ),
    "filtered": Kind(
        "Each release had Gaussian noise and drew no batches, and was made only where the sum of 1 / noise "
        "multiplier^2 over all releases, itself included, kept within the budget.",
        Bearing.RELEASE,
    ),
    "fixed-length": Kind(
        "A record moves every step along one direction, and how far does not depend on this direction. Gradients that "
        "react to the weights break this: in the training of a network, nothing ensures it.",
        Bearing.DATA,
    ),
    "one-direction-per-person": Kind(
        "All records of a person move every step in one and the same direction, each by the full clip norm.",
        Bearing.DATA,
    ),
    "independent-directions": Kind(
        "The directions in which the records of a person move the steps were settled before training, and do not react "
        "to what was released.",
        Bearing.DATA,
    ),
    "bounded-change": Kind(
        "No step changes the record's clipped gradient by more than the stated gradient change.", Bearing.DATA
    ),
    "contraction": Kind(
        "Each update without its noise brings any two weight vectors closer together, by the stated factor: the "
        "clipped loss is convex and smooth, and the step is short. No network does that.",
        Bearing.DATA,
    ),
    "equal-updates": Kind(
        "Every update is a plain gradient step with the same learning rate, clip norm and divisor: no schedule, no "
        "momentum, no average. Batches in order are the same in every pass, and no pass is broken off.",
        Bearing.DATA,
    ),
    "final-model-only": Kind(
        "Nobody sees the weights between the start and the end, nor anything computed from them: no checkpoint, no "
        "log, no early stop.",
        Bearing.ATTACKER,
    ),
    "secret-entropy": Kind(
        "For whoever lacks these records, the secret has at least the stated bits H: no value is likelier than 2^-H. "
        "Secrets that people choose have far fewer bits than their digits suggest.",
        Bearing.DATA,
    ),
    "secret-nowhere-else": Kind(
        "The secret is in the records of one person, in no more of them than are protected together, and nowhere else: "
        "not in other records, nor in what the model was trained on before.",
        Bearing.DATA,
    ),
    "same-stop": Kind(
        "Without this record, training would have ended at the same step. It ends where a budget of private gradients "
        "is spent, and the number of steps shows when that was.",
        Bearing.DATA,
    ),
    "audited-record": Kind("The record is one of those whose gradients the filter measured.", Bearing.DATA),
}
"""Every condition by key, in the order in which it is shown."""

_WORST_FIRST = (Status.ASSUMED, Status.DECLARED, Status.CHECKED)


def condition(key: str, status: Status = Status.ASSUMED) -> Condition:
    """The listed condition ``key``.

    Args:
        status: who vouches for it; by default nobody.

    Raises:
        ParameterError: the key is not listed.
    """
    return Condition(key, status)


def vouched(conditions: Iterable[Condition], statuses: Mapping[str, Status]) -> tuple[Condition, ...]:
    """The same conditions with what is known about them.

    Args:
        statuses: by key, as observed; others keep their status.
    """
    return tuple(Condition(one.key, statuses.get(one.key, one.status)) for one in conditions)


def conditions_by_whom(owned: Iterable[tuple[str, Iterable[Condition]]]) -> list[str]:
    """Each condition as a line, worst status first: its status, the sentence, and whose numbers it is about.

    Args:
        owned: (name, conditions) pairs; a name may occur again. Nobody is named where all need a condition.
    """
    about = owners(owned)
    return [_line(one, about[one]) for one in worst_first(about)]


def _line(one: Condition, names: list[str]) -> str:
    whose = f" ({', '.join(names)})" if names else ""
    return f"{one.status.value}{whose}: {one.says}"


def worst_first(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Each once: first what makes a claim conditional, then by status, then in the order of ``CONDITIONS``."""
    place = list(CONDITIONS)
    return tuple(
        sorted(set(conditions), key=lambda one: (not one.weakens, _WORST_FIRST.index(one.status), place.index(one.key)))
    )
