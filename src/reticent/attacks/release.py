"""The release itself: are the weights of a run whole, and are they those that its ledger describes?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from reticent.errors import ArtifactError, DataError
from reticent.training.run import accuracy_and_loss
from reticent.training.rundir import WEIGHTS, Run, load_run

_ROUNDING = 0.002
"""Share of test records that may be classified otherwise than recorded: other machines round otherwise."""


@dataclass(frozen=True)
class ReleaseCheck:
    """A release that passed.

    Attributes:
        run: the run.
        sha256: of the weights file, as the manifest has it.
        parameters: released numbers, all finite, of the names and shapes in the ledger.
        test_accuracy: of the released model on the test records, equal to the ledger's up to rounding; None where
            it was not recorded or the records are not at hand.
    """

    run: Run
    sha256: str
    parameters: int
    test_accuracy: float | None

    def __str__(self) -> str:
        """One sentence."""
        known = self.test_accuracy is not None
        accuracy = f"{self.run.ledger.utility}, as recorded" if known else "test accuracy unknown"
        return f"{self.parameters} finite weights as in the ledger, SHA-256 {self.sha256}, {accuracy}"


def check_release(path: Path) -> ReleaseCheck:
    """Check the released weights of a run: finite, of the recorded SHA-256, of the ledger's names, shapes and accuracy.

    Raises:
        ArtifactError: one line that says what is wrong.
    """
    run = load_run(path)
    weights = run.weights()
    return ReleaseCheck(
        run, run.manifest.files[WEIGHTS].sha256, sum(w.numel() for w in weights.values()), _accuracy(run)
    )


def _accuracy(run: Run) -> float | None:
    recorded = run.ledger.utility.test_accuracy
    if recorded is None:
        return None
    try:
        dataset = run.dataset()
    except DataError:
        return None
    features, labels = (torch.from_numpy(np.array(part[dataset.test])) for part in (dataset.features, dataset.labels))
    found, _ = accuracy_and_loss(run.model(), features, labels)
    if abs(found - recorded) > max(_ROUNDING, 1.0 / len(dataset.test)):
        raise ArtifactError(
            f"{run.path}/{WEIGHTS}: test accuracy {found:.4g} where the ledger has {recorded:.4g}: "
            "these are not the weights of this run"
        )
    return found
