"""The attacker who sees the final model of a watched loop: what was seen of its updates keeps them from being equal.

Theorems: RETICENT:hidden-steps.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent.adversaries import FinalModel
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.proofs import Claim
from tests.watching.loops import Loop, passes
from tests.watching.programs import RECORDS, private, records

pytestmark = [
    pytest.mark.usefixtures("quick_documents"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning"),
]


def in_order(batch: int = RECORDS // 3):
    return private(DataLoader(records(), batch_size=batch, shuffle=False), poisson_sampling=False)


def with_adam():
    made = in_order()
    made[1].original_optimizer = torch.optim.Adam(made[1].params, lr=0.1)
    return made


def at_the_end(toy) -> None:
    if toy.step == 1:
        toy.optimizer.step()


WHOLE = Loop(made=in_order, batches=passes(2))
REFUSED = {
    "a pass was broken off": WHOLE.but(batches=passes(2, most=2)),
    "a record may be in one step more than once": WHOLE.but(
        made=lambda: in_order(RECORDS), clears=False, update=at_the_end
    ),
    "the clip norm changed": WHOLE.but(after=lambda toy: setattr(toy.optimizer, "max_grad_norm", 0.5)),
    "the optimizer is not SGD": WHOLE.but(made=with_adam),
}


@pytest.mark.parametrize("why", REFUSED)
def test_updates_that_were_seen_to_differ_are_refused(why) -> None:
    found, _ = REFUSED[why].watched()
    with pytest.raises(UnsupportedError, match=why):
        rt.assess(found, FinalModel(0.5))
    document = rt.certify(found, contraction=0.5)
    assert why in document.certificate.skipped["final-model"]
    assert document.verify().accepted


def test_whole_passes_in_order_are_answered() -> None:
    found, _ = WHOLE.watched()
    (last,) = (
        one for one in rt.certify(found, contraction=0.9).certificate.assessments if one.adversary == "final-model"
    )
    assert last.claim == Claim.CONDITIONAL
    assert {one.key for one in last.conditions} >= {"contraction", "equal-updates", "final-model-only"}
