"""Which numbers grow with risk: ends of enclosures are told apart by it."""

from __future__ import annotations

import pytest

from reticent.kernel import risk
from reticent.kernel.curves import GaussianTradeOff, from_advantage, no_privacy

GROWING = {
    risk.advantage: (),
    risk.mu: (),
    risk.mu_above: (),
    risk.success: (0.3,),
    risk.tpr_at_fpr: (0.01,),
    risk.ppv: (0.1, 0.01),
    risk.delta_at_epsilon: (1.0,),
    risk.epsilon_at_delta: (1e-5,),
    risk.recovered: (0.1,),
    risk.secret_success: (10.0, 3),
}


@pytest.mark.parametrize("number", GROWING, ids=lambda number: number.__name__)
@pytest.mark.parametrize("weaker", [from_advantage(0.0), GaussianTradeOff(0.5)], ids=["nothing", "gaussian"])
def test_numbers_grow_with_risk(number, weaker) -> None:
    assert number(weaker, *GROWING[number]) < number(no_privacy(), *GROWING[number])


def test_bayes_security_falls() -> None:
    assert risk.bayes_security(from_advantage(0.0)) > risk.bayes_security(no_privacy())
