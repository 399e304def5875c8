"""One severity of each fault: in the reference, in `lint`, in the numbers and on the certificate."""

from __future__ import annotations

import re

import pytest

from reticent import facts
from reticent.facts import Fact, Severity, all_facts
from reticent.facts.base import Seen
from reticent.kernel.mechanisms import Ledger
from reticent.verbs.watching import Linted
from tests.docs.follow import ROOT, text_of
from tests.records.test_vouched import watched

PAGE = text_of(ROOT / "docs/reference/warnings.md")
pytestmark = pytest.mark.docs


def on_the_page(code: str) -> str:
    """The severity under whose heading a code of a watched loop stands."""
    section = PAGE.partition("## Warnings of a watched loop")[2].partition("\n## ")[0]
    found = [part for part in re.split(r"^### ", section, flags=re.MULTILINE) if f"\n| `{code}` |" in part]
    assert len(found) == 1, code
    return re.findall(r"\(`([a-z]+)`\)", found[0].partition("\n")[0])[0]


@pytest.mark.parametrize("fault", [fact for fact in all_facts().values() if fact.said], ids=str)
def test_page_lint_numbers_and_certificate_agree(fault: Fact) -> None:
    ledger = watched(facts={fault.key: ["layer"] if fault is facts.MIXES_RECORDS else Seen.FOUND})
    said = {row[0]: row for row in Linted(ledger).rows()}[fault.key]
    assert said[1] == on_the_page(fault.key) == fault.severity.value
    released = ledger.mechanism()
    parts = released.parts if isinstance(released, Ledger) else (released,)
    assert all(part.noise_multiplier == 0.0 for part in parts) == (said[1] == Severity.ERROR.value)
    shown = {fact.key: str(fact.text) for fact in ledger.faults}
    assert shown[fault.key] == f"{said[2]} {said[3]}"


@pytest.mark.parametrize("fact", [fact.of_ours() for fact in all_facts().values() if fact.ours], ids=str)
def test_a_warning_of_a_run_is_on_the_page_with_its_remedy(fact: Fact) -> None:
    section = PAGE.partition("## Warnings of a run of `reticent train`")[2].partition("\n## ")[0]
    assert f"| `{fact}` | {fact.text} | {fact.remedy} |".replace("\\|", "|") in section.replace("\\|", "|")
