"""What people ask: a selection, the final model, a secret, an accusation, several releases, a filter.

Each is in the certificate, which verifies, beside a policy that it keeps and one that it breaches; and calibration
inverts it. Which words ask it at which door is in test_requests.py and in the tests of the dashboard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import reticent as rt
from reticent.adversaries import FinalModel
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Certificate
from reticent.kernel.proofs import CONDITIONS
from reticent.mechanisms import FilteredGaussian
from reticent.pairs import Fixed

pytestmark = pytest.mark.usefixtures("quick_documents")

SMALL, WHOLE = rt.DPSGD(4.0, 0.1, 5), rt.DPSGD(10.0, 1.0, 50)
BOTH = rt.Ledger((rt.Gaussian(4.0), rt.Gaussian(3.0)))
FILTER = FilteredGaussian(0.25)


@dataclass(frozen=True)
class Asked:
    """One question.

    Attributes:
        certify: what, and how.
        seen: whether the certificate has it.
        calibrate: what, and how.
        limit: of a policy, without its number.
        tight: a number of that limit that is breached.
    """

    certify: tuple[Any, dict[str, Any]]
    seen: Callable[[Certificate], bool]
    calibrate: tuple[Any, dict[str, Any]]
    limit: dict[str, Any] = field(default_factory=lambda: {"measure": "advantage"})
    tight: float = 1e-4


def worst(found: Certificate) -> Any:
    return next(one for one in found.assessments if one.adversary == "worst-case")


ASKED = {
    "selection": Asked(
        (rt.Selection(SMALL, rt.Geometric(5.0)), {}),
        lambda found: found.mechanism["kind"] == "selection",
        (rt.Selection(rt.Gaussian(1.0), Fixed(3)), {"advantage": 0.2}),
    ),
    "final model": Asked(
        (WHOLE, {"contraction": 0.9}),
        lambda found: any(one.adversary == "final-model" for one in found.assessments),
        (WHOLE, {"adversary": FinalModel(0.9), "advantage": 0.2}),
        {"measure": "advantage", "adversary": "final-model", "parameters": {"contraction": "any"}},
    ),
    "secret": Asked(
        (SMALL, {"secret_bits": 13.29, "guesses": 10}),
        lambda found: "13.29" in worst(found).secret_at_bits_and_guesses,
        (rt.Gaussian(1.0), {"target": "secret=0.01@13.29,10"}),
        {"measure": "secret", "at": [13.29, 10]},
        0.001,  # just above a blind guess
    ),
    "accusation": Asked(
        (SMALL, {}),
        lambda found: "0.01" in worst(found).ppv_at_prior_and_fpr["0.1"],
        (rt.Gaussian(1.0), {"target": "ppv=0.3@0.1,0.01"}),
        {"measure": "ppv", "at": [0.1, 0.01]},
        0.1001,
    ),
    "several releases": Asked(
        (list(BOTH.parts), {}),
        lambda found: len(found.mechanism["parts"]) == 2,
        (BOTH, {"unknown": "noise_scale", "advantage": 0.2}),
    ),
    "filter": Asked(
        (FILTER, {}),
        lambda found: found.mechanism["kind"] == "filtered-gaussian",
        (FILTER, {"advantage": 0.2}),
    ),
}
each = pytest.mark.parametrize("name", ASKED)


@each
def test_the_certificate_has_it_verifies_and_a_gate_judges_it(name: str) -> None:
    asked = ASKED[name]
    what, how = asked.certify
    found = rt.certify(what, **how)
    assert asked.seen(found.certificate)
    assert found.verify().accepted
    for most, code in ((0.99, 0), (asked.tight, 1)):
        limits = [{**asked.limit, "at_most": most}]
        policy = {"schema": "reticent.policy/1", "per": "record", "limits": limits}
        accepted = Policy.model_validate({**policy, "accept_conditions": list(CONDITIONS)})
        assert rt.gate(found, accepted).exit_code == code


@each
def test_calibration_inverts_it(name: str) -> None:
    what, how = ASKED[name].calibrate
    found = rt.calibrate(what, **how)
    limit, achieved = float(str(found.target).partition("=")[2].partition("@")[0]), found[0].achieved.value
    assert 0.99 * limit <= achieved <= limit
    if name == "final model":
        assert rt.advantage(FinalModel(0.9).assess(found.mechanism)) <= limit
