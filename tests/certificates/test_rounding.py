"""The digits that a certificate states: those that do not depend on the machine, rounded to the safe side."""

from __future__ import annotations

import pytest

from reticent.adversaries.report import assessment_record
from reticent.certificates.build import CERTIFICATE_QUESTIONS
from reticent.certificates.document.rounding import agrees, leaves, settled
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian
from tests.certificates.making import of

PATHS = [("advantage", "value"), ("mu", "upper"), ("delta_at_epsilon", "1.0", "lower"), ("bayes_security", "value")]


@pytest.mark.parametrize("path", PATHS)
def test_more_digits_than_a_certificate_states_are_no_rounding(path: tuple[str, ...]) -> None:
    found, digits = 0.123456789012, {"mu": 4, "delta_at_epsilon": 5}.get(path[0], 8)
    assert agrees(path, settled(path, found), found)
    for other in (
        found,
        float(f"{found:.9g}"),
        *(float(f"{found + 3 * k * 10.0**-digits:.{digits}g}") for k in (-1, 1)),
    ):
        assert not agrees(path, other, found)
    assert not agrees(path, found, found, tolerance=1e-5)


def test_numbers_are_rounded_to_the_safe_side() -> None:
    found = 0.1234567890123
    assert settled(("advantage", "upper"), found) > found > settled(("advantage", "lower"), found)
    assert settled(("bayes_security", "value"), found) < found < settled(("advantage", "value"), found)
    assert settled(("curve", "fnr", "0"), found) < found < settled(("curve", "tpr", "0"), found)
    mechanism = DPSGD(1.1, 0.02, 200)
    (record,), curve = of(mechanism).assessments, WorstCase().assess(mechanism).curve
    exact = assessment_record(WorstCase().assess(mechanism), CERTIFICATE_QUESTIONS)
    for measure in ("advantage", "mu"):
        stated, computed = getattr(record, measure), getattr(exact, measure)
        assert stated.lower <= computed.lower <= computed.value <= stated.value <= stated.upper
        assert stated.upper - computed.upper <= 1e-3 * computed.upper
        assert len(str(stated.value).lstrip("0.")) <= 8
    assert record.bayes_security.value <= exact.bayes_security.value
    for key, number in exact.epsilon_at_delta.items():
        assert record.epsilon_at_delta[key].value >= number.value
    for fpr, fnr, tpr in zip(record.curve.fpr, record.curve.fnr, record.curve.tpr, strict=True):
        assert fnr <= float(curve.beta(fpr))
        assert tpr >= float(curve.power(fpr))


def test_every_computed_number_has_the_digits_that_do_not_depend_on_the_machine() -> None:
    """The curve, too: whatever is a number of an assessment, and is not what the issuer asked for."""
    stated = leaves(of(Gaussian(2.0)).assessments[0].model_dump(exclude={"parameters"}))
    numbers = {path: x for path, x in stated.items() if isinstance(x, float)}
    assert {"advantage", "mu", "curve"} <= {path[0] for path in numbers}
    assert [path for path, number in numbers.items() if number != settled(path, number)] == []
