"""One severity of each fault: in the reference, in `lint`, in the numbers and on the certificate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reticent.api.watching import Linted
from reticent.mechanisms import Ledger
from reticent.records.run_warnings import RunWarning
from reticent.records.watch_faults import Fault, Severity
from tests.records.test_vouched import watched

PAGE = (Path(__file__).parents[2] / "docs/reference/warnings.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.docs


def on_the_page(code: str) -> str:
    """The severity under whose heading a code of a watched loop stands."""
    section = PAGE.partition("## Warnings of a watched loop")[2].partition("\n## ")[0]
    found = [part for part in re.split(r"^### ", section, flags=re.MULTILINE) if f"\n| `{code}` |" in part]
    assert len(found) == 1, code
    return re.findall(r"\(`([a-z]+)`\)", found[0].partition("\n")[0])[0]


@pytest.mark.parametrize("fault", Fault, ids=str)
def test_page_lint_numbers_and_certificate_agree(fault: Fault) -> None:
    ledger = watched(seen=[fault])
    said = {row[0]: row for row in Linted(ledger).rows()}[fault.value]
    assert said[1] == on_the_page(fault.value) == fault.explanation.severity.value
    released = ledger.mechanism()
    parts = released.parts if isinstance(released, Ledger) else (released,)
    assert all(part.noise_multiplier == 0.0 for part in parts) == (said[1] == Severity.ERROR.value)
    shown = {warning.value: warning.text for warning in ledger.warnings}
    assert shown[fault.value] == f"{said[2]} {said[3]}"


@pytest.mark.parametrize("warning", RunWarning, ids=str)
def test_a_warning_of_a_run_is_on_the_page_with_its_remedy(warning: RunWarning) -> None:
    section = PAGE.partition("## Warnings of a run of `reticent train`")[2].partition("\n## ")[0]
    assert f"| `{warning}` | {warning.text} | {warning.remedy} |".replace("\\|", "|") in section.replace("\\|", "|")
