"""The release itself: are the weights of a run whole, and are they those that its ledger describes?"""

from __future__ import annotations

import numpy as np
import torch

from reticent.kernel.errors import ArtifactError, DataError
from reticent.training.run import accuracy_and_loss
from reticent.training.rundir import WEIGHTS, Run

_ROUNDING = 0.002
"""Share of test records that may be classified otherwise than recorded: other machines round otherwise."""


def check_release(run: Run) -> str:
    """Check the released weights of a run: finite, of the recorded SHA-256, of the ledger's names, shapes and accuracy.

    Returns:
        What was found, in one sentence.

    Raises:
        ArtifactError: one line that says what is wrong.
    """
    parameters = sum(w.numel() for w in run.weights().values())
    accuracy = "test accuracy unknown" if _accuracy(run) is None else f"{run.ledger.utility}, as recorded"
    return f"{parameters} finite weights as in the ledger, SHA-256 {run.manifest.files[WEIGHTS].sha256}, {accuracy}"


def _accuracy(run: Run) -> float | None:
    """Of the released model on the test records, as the ledger has it; None where that is not known."""
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
