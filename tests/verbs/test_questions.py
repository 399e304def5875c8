"""A selection, the final model, a filter: certified, verified, judged by a policy, and inverted by calibration.

Which words ask it at which door is in test_requests.py; secrets and accusations are in the tests of policies.
"""

from __future__ import annotations

import pytest

import reticent as rt
from reticent.adversaries import FinalModel
from reticent.certificates.document.policy import Policy
from reticent.kernel.proofs import CONDITIONS
from reticent.mechanisms import FilteredGaussian

pytestmark = pytest.mark.usefixtures("quick_documents")

WHOLE, FILTER = rt.DPSGD(10.0, 1.0, 50), FilteredGaussian(0.25)
FINAL = {"adversary": "final-model", "parameters": {"contraction": "any"}}
ASKED = {
    "selection": (rt.Selection(WHOLE, rt.Geometric(5.0)), {}, {}, (rt.Selection(rt.Gaussian(1.0), rt.Fixed(3)), {})),
    "final-model": (WHOLE, {"contraction": 0.9}, FINAL, (WHOLE, {"adversary": FinalModel(0.9)})),
    "filtered-gaussian": (FILTER, {}, {}, (FILTER, {})),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_people_ask_is_answered_by_every_verb(name: str) -> None:
    what, how, limit, (release, who) = ASKED[name]
    found = rt.certify(what, **how)
    assert name in {found.certificate.mechanism["kind"], *(one.adversary for one in found.certificate.assessments)}
    assert found.verify().accepted
    for most, code in ((0.99, 0), (1e-4, 1)):
        limits = [{"measure": "advantage", "at_most": most, **limit}]
        policy = {"schema": "reticent.policy/1", "per": "record", "limits": limits}
        accepted = Policy.model_validate({**policy, "accept_conditions": list(CONDITIONS)})
        assert rt.gate(found, accepted).exit_code == code
    answer = rt.calibrate(release, advantage=0.2, **who)
    assert 0.99 * 0.2 <= answer[0].achieved.value <= 0.2
    if name == "final-model":
        assert rt.advantage(FinalModel(0.9).assess(answer.mechanism)) <= 0.2
