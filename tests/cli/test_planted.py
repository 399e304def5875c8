"""What was planted in the tables of the command line and not seen. Each test fails on the bug that it is for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reticent.cli._audit_output import _print_bounds, _print_rates
from tests.cli.calling import run


def test_who_cannot_be_answered_is_said_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "risk", "gaussian", "--noise-multiplier", 5, "--adversary", "all")
    assert code == 0
    assert "attribute left out: gradient_change must be given" in out


def test_what_an_audit_proves_is_rounded_down_and_its_ceiling_up(capsys: pytest.CaptureFixture[str]) -> None:
    bound = SimpleNamespace(title="mu", rule="ranks", value=0.123456, ceiling=0.234561)
    _print_bounds(SimpleNamespace(bounds=[bound], confidence=0.95))
    assert capsys.readouterr().out.split()[-3:] == ["mu", "0.1234", "0.2346"]


def test_an_interval_is_rounded_outwards(capsys: pytest.CaptureFixture[str]) -> None:
    found = SimpleNamespace(value=0.2, lower=0.123456, upper=0.234561, method="exact")
    _print_rates(SimpleNamespace(auc=found, auc_asymptotic=None, tpr={}, confidence=0.95))
    assert "AUC       0.2 0.1234 0.2346" in capsys.readouterr().out
