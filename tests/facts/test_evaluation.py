"""Records of the training that are read in an evaluation: what is shown of them has no noise."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from tests.watching.programs import private, records, run


@pytest.mark.parametrize("own", [False, True])
def test_an_evaluation_on_the_records_of_the_training_is_named(own: bool) -> None:
    """A loss on them is printed without noise; one on other records is nobody's business."""
    made = private()
    others = DataLoader(records(1), batch_size=16)
    with rt.watch(*made[:3]) as seen:
        run(*made)
        with seen.evaluation(), torch.no_grad():
            made[0].eval()
            for features, _ in made[2] if own else others:
                made[0](features)
            made[0].train()
    assert (facts.SEEN_IN_EVALUATION in seen.ledger.faults) == own
    assert not any(fault.voids for fault in seen.ledger.faults)


def test_an_evaluation_that_fails_is_named_too() -> None:
    made = private()
    with rt.watch(*made[:3]) as seen:
        run(*made)
        with contextlib.suppress(KeyError), seen.evaluation():
            for _ in made[2]:
                raise KeyError
    assert facts.SEEN_IN_EVALUATION in seen.ledger.faults
