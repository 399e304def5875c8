"""What a ledger says of a run that was the best of several: how many were drawn, from which list, and how scored.

How many runs there were is in no ledger: the theorem needs that nobody learns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from reticent.facts.base import Fact, Severity
from reticent.io.models import Closed, Positive
from reticent.kernel.errors import ReticentError
from reticent.kernel.mechanisms.gaussian import Gaussian
from reticent.kernel.mechanisms.ledger import Ledger
from reticent.kernel.proofs import Status
from reticent.mechanisms.codec import mechanism_of

if TYPE_CHECKING:
    from reticent.kernel.mechanisms.base import Mechanism
    from reticent.records.ledger import RunLedger


class SelectionRecord(Closed):
    """How the run of a ledger came to be released.

    Attributes:
        mechanism: the selection as ``mechanism_record`` writes it: the law of the number of runs, and one run with a
            setting of the list and its score.
        settings: on the list.
        score: which records the runs were scored on: those of the test, or of the training with noise.
        score_noise: standard deviation of the noise on the number of right answers; of the training records only.
    """

    mechanism: dict[str, Any]
    settings: Annotated[int, Field(ge=1, le=1000)]
    score: Literal["test", "train"]
    score_noise: Positive | None = None

    @model_validator(mode="after")
    def _is_a_selection(self) -> SelectionRecord:
        try:
            found = mechanism_of(self.mechanism)
        except ReticentError as error:
            raise ValueError(str(error)) from None
        if found.runs is None:
            raise ValueError("mechanism must be a selection")
        if found.base.weights and sum(found.base.weights) != self.settings:
            raise ValueError("settings must be as many as the weights of the mechanism say")
        if (self.score == "train") != (self.score_noise is not None):
            raise ValueError("score_noise goes with score train")
        return self

    def release(self) -> Mechanism:
        """The best of several runs."""
        return mechanism_of(self.mechanism)


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """What the loop of ``reticent train`` establishes: whether anybody looked on, no ledger can see."""
    if run.selection is None:
        return {}
    return {
        "hidden-runs": Status.ASSUMED,
        "drawn-setting": Status.CHECKED,
        "independent-runs": Status.CHECKED,
        "best-only": Status.CHECKED,
        "counted-scores": Status.CHECKED if run.selection.score == "train" else Status.DECLARED,
    }


def with_score(release: Mechanism, noise: float | None) -> Mechanism:
    """One run with its score: a number of right answers, which one record moves by at most 1.

    Args:
        release: of the training.
        noise: standard deviation on that number; None where it is not computed from the training records.
    """
    return release if noise is None else Ledger((*release.parts, Gaussian(noise)))


SELECTION = Fact("selection", Severity.NOTE, vouches=_vouches)
