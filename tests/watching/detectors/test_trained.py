"""Few trained numbers hide less from an attacker who does not know the direction, so the fewest count."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from tests.watching.loops import Loop, at, gradients_by_hand, passes, prepared, update_by_hand
from tests.watching.programs import by_hand


def freeze(toy, frozen):
    toy.optimizer.zero_grad()
    toy.bare[0].requires_grad_(not frozen)


def head_only():
    model, _, loader, criterion = by_hand()
    return model, torch.optim.SGD(model[2].parameters(), lr=0.1), loader, criterion


LOOPS = {
    f"the head alone {'at first' if first else 'later'}": Loop(
        made=prepared(lambda made, first=first: made[0]._module[0].requires_grad_(not first)),
        batches=passes(2),
        after=at(5, partial(freeze, frozen=not first)),
        ledger={"num_parameters": 14},
    )
    for first in (True, False)
} | {
    "an optimizer that moves the head only": Loop(
        made=head_only, backward=gradients_by_hand, update=update_by_hand, ledger={"num_parameters": 14}
    ),
}


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("name", LOOPS)
def test_trained(name):
    LOOPS[name].check()
