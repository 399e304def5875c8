"""Printed digits of a bound never promise more than the bound."""

from __future__ import annotations

import re

import numpy as np
import pytest

import reticent as rt
from reticent.adversaries.report import Number
from reticent.auditing import Design, Scores
from reticent.auditing.verdict import Verdict, judge_p_values
from reticent.certificates.document.numbers import tables
from reticent.certificates.document.sentences import percent
from reticent.dashboard.words import number_table
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import advantage, bayes_security, epsilon_at_delta, success, tpr_at_fpr
from reticent.kernel.text import digits
from tests.cli.calling import run


@pytest.mark.parametrize(
    ("x", "up", "text"),
    [
        (0.14034, True, "0.1404"),
        (0.14034, False, "0.1403"),
        (0.14036, None, "0.1404"),
        (0.85966, False, "0.8596"),
        (0.1, True, "0.1"),
        (0.1 + 2e-17, True, "0.1"),
        (0.5 + 1e-16, True, "0.5"),
        (1.00001e-300, True, "1.001e-300"),
        (0.99999, True, "1"),
        (0.0, True, "0"),
        (123456.0, True, "1.235e+05"),
        (float("inf"), True, "inf"),
    ],
)
def test_the_side_that_a_claim_needs(x: float, up: bool | None, text: str) -> None:
    assert digits(x, up=up) == text


def test_rounding_never_crosses_to_the_other_side() -> None:
    for x in np.random.default_rng(0).lognormal(0.0, 20.0, 2000).tolist():
        for count in (2, 4, 6):
            assert float(digits(x, count, up=False)) <= x * (1.0 + 1e-11)
            assert float(digits(x, count, up=True)) >= x * (1.0 - 1e-11)
            assert float(digits(x, count, up=True)) <= x * (1.0 + 10.0 ** (1 - count) + 1e-11)


@pytest.mark.parametrize("noise", [1.7, 3.3, 7.1])
def test_what_risk_prints_and_the_dashboard_shows_is_no_less_than_the_bound(
    capsys: pytest.CaptureFixture[str], noise: float
) -> None:
    _, out, _ = run(capsys, "risk", "gaussian", "--noise-multiplier", str(noise), "--full")
    (row,) = (line for line in out.splitlines() if line.startswith("worst-case "))
    shown = [float(cell) for cell in row.split()[2:]]
    curve = rt.assess(rt.Gaussian(noise))[0].curve
    readers = (advantage, bayes_security, lambda c: success(c, 0.5), lambda c: tpr_at_fpr(c, 0.001))
    truth = [read(curve) for read in (*readers, lambda c: tpr_at_fpr(c, 0.01), lambda c: epsilon_at_delta(c, 1e-5))]
    assert shown[1] <= truth[1]
    assert shown[0] >= truth[0]
    assert all(stated >= true for stated, true in zip(shown[2:], truth[2:], strict=False))
    page = number_table(rt.assess(rt.Gaussian(noise)), {}).children[1].children[0].children[1:]
    cells = [float(cell.children[0]) for cell in page[:2]]
    assert cells[0] >= truth[0] * (1.0 - 1e-11)
    assert cells[1] <= truth[1] * (1.0 + 1e-11)


@pytest.mark.parametrize("allowed", [0.1, 0.123, 0.21])
def test_noise_that_is_copied_from_the_screen_keeps_the_target(
    capsys: pytest.CaptureFixture[str], allowed: float
) -> None:
    _, out, _ = run(capsys, "calibrate", "gaussian", "--target", f"advantage={allowed}")
    found = re.search(r"noise multiplier: (\S+)", out)
    assert found is not None
    assert advantage(rt.assess(rt.Gaussian(float(found[1])))[0].curve) <= allowed
    table = rt.calibrate(rt.Gaussian(1.0), advantage=allowed)
    assert advantage(rt.assess(rt.Gaussian(float(repr(table).splitlines()[2].split()[3])))[0].curve) <= allowed
    releases = rt.calibrate(rt.Gaussian(3e4), advantage=allowed, unknown="steps")
    few = float(repr(releases).splitlines()[2].split()[3])
    assert few <= releases.value


def test_tables_know_which_side_is_safe() -> None:
    assert rt.calibrate(rt.Gaussian(1.0), advantage=0.1).ways(()) == [None, None, None, True, True, True]
    secure = rt.calibrate(rt.Gaussian(1.0), bayes_security=0.9)
    assert secure.ways(())[4:] == [False, False]


def test_a_certificate_in_python_shows_no_less_than_its_bounds() -> None:
    made = rt.certify(rt.DPSGD(1.1, 0.01, 1000), created="2026-01-01", adversary="worst-case")
    row = next(line for line in repr(made).splitlines() if line.startswith("worst-case "))
    advantage_of, first_rate = row.split()[3:5]
    record = made.certificate.assessments[0]
    assert float(advantage_of) >= (record.advantage.value or 0.0)
    assert float(first_rate) >= (next(iter(record.tpr_at_fpr.values())).value or 0.0)
    assert advantage_of == "0.1404"


def test_certificate_pages_and_verdicts_round_outwards() -> None:
    wide = Number(lower=0.12346, value=0.23454, upper=0.23454)
    made = rt.certify(rt.Gaussian(2.0), created="2026-01-01", adversary="worst-case").certificate
    for claim, shown in ((Claim.BOUND, "0.2346"), (Claim.ESTIMATE, "0.2345")):
        changed = {"claim": str(claim), "mu": wide}
        records = tuple(one.model_copy(update=changed) for one in made.assessments)
        (_, cells), *_ = tables(made.model_copy(update={"assessments": records}))[0].rows
        assert str(cells[2]) == f"{shown} [0.1234, 0.2346]"
    verdict: Verdict = judge_p_values(0.0123, 0.0, 0.0, 0.95, ("RETICENT:audit-ranks",), ())
    assert "at most 0.013" in verdict.reason


def test_percentages_of_bounds_are_rounded_up_from_the_smallest_excess() -> None:
    assert str(percent(1e-13, up=True)) == "0.1%"
    assert str(percent(0.5 + 0.5 * 1e-12, up=True)) == "50.1%"
    assert [str(percent(0.001 * tenths, up=True)) for tenths in range(1001)] == [f"{k / 10:g}%" for k in range(1001)]


def test_limits_of_an_audit_are_rounded_outwards() -> None:
    rng = np.random.default_rng(3)
    scores = Scores(rng.normal(1.0, 1.0, 300), rng.normal(size=300), design=Design.INDEPENDENT)
    found = rt.audit(scores)
    rows = repr(found).splitlines()[2:]
    for line, row in zip(rows, found.rows(), strict=False):
        cells = line.removeprefix(row[0]).split()
        least, most = (cells[1], cells[2]) if row[1] is not None else (cells[0], None)
        assert float(least) <= row[2]
        assert most is None or float(most) >= row[3]
