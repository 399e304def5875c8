"""The attacker who sees the final model of a watched loop: what was seen of its updates keeps them from being equal.

Theorems: RETICENT:hidden-steps.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent.adversaries import FinalModel
from reticent.errors import UnsupportedError
from reticent.proofs import Claim
from tests.watching.loops import RECORDS, private, records, run

pytestmark = pytest.mark.usefixtures("quick_documents")


def in_order(batch: int = RECORDS // 3):
    return private(DataLoader(records(), batch_size=batch, shuffle=False), poisson_sampling=False)


def seen(made, **how):
    with rt.watch(*made[:3]) as ledger:
        run(*made, **how)
    return ledger


def twice_in_one_step(made):
    model, optimizer, loader, criterion = made
    with rt.watch(model, optimizer, loader) as ledger:
        for _ in range(2):
            for features, labels in loader:
                criterion(model(features), labels).backward()
        optimizer.step()
    return ledger


def norm_that_falls(made):
    def halve(count: int) -> None:
        made[1].max_grad_norm = 0.5

    return seen(made, epochs=2, after=halve)


def with_adam(made):
    model, optimizer, loader, criterion = made
    optimizer.original_optimizer = torch.optim.Adam(optimizer.params, lr=0.1)
    return seen((model, optimizer, loader, criterion), epochs=2)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    ("ledger", "why"),
    [
        (lambda: seen(in_order(), epochs=2, most=2), "a pass was broken off"),
        (lambda: twice_in_one_step(in_order(RECORDS)), "a record may be in one step more than once"),
        (lambda: norm_that_falls(in_order()), "the clip norm changed"),
        (lambda: with_adam(in_order()), "the optimizer is not SGD"),
    ],
    ids=["passes", "twice", "norm", "adam"],
)
def test_updates_that_were_seen_to_differ_are_refused(ledger, why) -> None:
    found = ledger()
    with pytest.raises(UnsupportedError, match=why):
        rt.assess(found, FinalModel(0.5))
    document = rt.certify(found, contraction=0.5)
    assert why in document.certificate.skipped["final-model"]
    assert document.verify().accepted


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_whole_passes_in_order_are_answered() -> None:
    found = seen(in_order(), epochs=2)
    (last,) = (
        one for one in rt.certify(found, contraction=0.9).certificate.assessments if one.adversary == "final-model"
    )
    assert last.claim == Claim.CONDITIONAL
    assert {one.key for one in last.conditions} >= {"contraction", "equal-updates", "final-model-only"}
