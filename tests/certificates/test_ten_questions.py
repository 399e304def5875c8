"""The ten questions of docs/officers/reading.md: each answer is on the page, on certificates of several kinds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reticent.certificates.build import certify_run, public
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Declaration
from reticent.certificates.document.signature import signed
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.mechanisms.units import Unit
from tests.certificates.conftest import make_ledger, make_sensitivity
from tests.certificates.making import key_in, of, page_of, policy
from tests.certificates.test_page import Reader

PAGE = Path(__file__).parents[2] / "docs/officers/reading.md"
GUIDE = PAGE.read_text().partition("## Ten questions that the page answers\n")[2].partition("\n## ")[0]
EVERYWHERE = (
    "What each attacker can learn",
    "How sure",
    "Taken on trust: nobody checked this",
    "Who vouches",
    "fingerprint of the model",
    "What is not covered",
    "other uses of the same data, and other models trained on it: risks add up",
    "Not on this page",
    "How to check it",
    "verify.html",
)
OWN = {
    "plan": (
        "No policy is part of this certificate",
        "Nobody: the document is not signed",
        "Stop: can one person have several records?",
        "Plan: nobody saw a run.",
        "no date of expiry was set",
    ),
    "run with a policy": (
        "The issuer’s policy says: no",
        "Nobody: the document is not signed",
        "Stop: can one person have several records?",
        "Checked in the run",
        "Recorded by",
        "do not rely on it from",
    ),
    "signed, one record each": (
        "The issuer’s policy says: yes",
        "The owner of this key",
        "people who contributed more than 1 record",
        "several people together, such as a family",
        "The issuer declares: each person contributed",
    ),
    "clients": ("No policy is part of this certificate", "people with several clients", "Plan: nobody saw a run."),
}
NEVER = {
    "plan": ("policy says", "Checked in the run", "Recorded by", "do not rely on it from"),
    "run with a policy": ("Plan:", "policy says: yes", "No policy is part"),
    "signed, one record each": ("Stop:", "Nobody: the document", "policy says: no"),
    "clients": ("Stop:", "policy says", "such as a family"),
}


def allowing(most: float) -> Policy:
    accepted = ["public-divisor", "poisson-draws", "clipped", "planned-steps", "start-weights", "records-per-person"]
    limit = {"measure": "advantage", "at_most": most, "neighbouring": "add-remove"}
    return policy(limit, per="record", accept_conditions=accepted)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    until = Declaration(subject="a run", created="2026-11-22", expires="2030-01-01")
    one, run = of(DPSGD(2.0, 0.25, 8, records_per_user=1), policy=allowing(0.9)), (make_ledger(), make_sensitivity())
    found = {
        "plan": of(DPSGD(2.0, 0.25, 8)),
        "run with a policy": public(certify_run(*run, until, policy=allowing(0.001))),
        "signed, one record each": signed(one, key_in(tmp_path_factory.mktemp("keys"))),
        "clients": of(DPSGD(2.0, 0.25, 8, unit=Unit.CLIENT)),
    }
    return {kind: " ".join(" ".join(Reader(page_of(document)).text).split()) for kind, document in found.items()}


@pytest.mark.parametrize("kind", list(OWN))
def test_every_answer_is_on_the_page(pages: dict[str, str], kind: str) -> None:
    assert [text for text in (*EVERYWHERE, *OWN[kind]) if text not in pages[kind]] == []
    assert [text for text in NEVER[kind] if text in pages[kind]] == []


def test_the_guide_quotes_what_the_pages_say(pages: dict[str, str]) -> None:
    guide = " ".join(GUIDE.split())
    assert len(re.findall(r"^\| \d+\. ", GUIDE, re.MULTILINE)) == 10
    quoted = set(re.findall(r"(?<!\*)\*([^*|]+)\*(?!\*)", guide))
    assert len(quoted) > 15
    assert [text for text in quoted if not any(text in page for page in pages.values())] == []
    tested = {*EVERYWHERE, *(text for own in OWN.values() for text in own)}
    assert [text for text in quoted if text not in tested] == []
