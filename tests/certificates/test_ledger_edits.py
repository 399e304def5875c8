"""No edit of a ledger at random lowers a number: its rules, its digest and its parser see to that."""

from __future__ import annotations

import json

import pytest

from reticent.records.ledger import RunLedger
from reticent.records.publication import published
from reticent.records.run_warnings import RunWarning
from reticent.samplers import Shuffled
from tests.certificates.conftest import make_ledger
from tests.certificates.edits import attacks, edited, lower_in, read
from tests.certificates.ledgers import poisson, shuffled

ATTACKED = {
    "run": make_ledger,
    "shuffled run": lambda: (
        make_ledger(sampler=Shuffled())
        .model_copy(update={"warnings": (RunWarning.SHUFFLED_NOT_POISSON, RunWarning.SIZE_TREATED_AS_PUBLIC)})
        .sealed()
    ),
    "public run": lambda: published(make_ledger()),
    "opacus": poisson,
    "public opacus": lambda: poisson().published(),
    "plain loop": shuffled,
    "accumulation": lambda: shuffled(segments=[{"noise_multiplier": 1.1, "steps": 9, "batches": 2, "passes": 3}]),
    "weighted": lambda: shuffled(
        sampler={"drawn": "weighted", "source": "seen", "name": "W", "batch_size": 10, "dataset_size": 60},
        segments=[{"noise_multiplier": 1.1, "steps": 18}],
    ),
}


AGREEING = (
    {"noise_multiplier", "config.noise_multiplier"},
    {"records_per_user", "config.records_per_user"},
    {"records_per_user", "tally.records_per_user"},
    {"divisor", "tally.divisor"},
    {"sampler.sample_rate", "tally.coins"},
    {"segments.0.noise_multiplier", "tally.inverse_noise"},
)
"""Facts that are stated twice: who changes both alike describes another run, and only a signature tells."""


def survivors(ledger: RunLedger, count: int, seed: int, *, sealed: bool = True) -> list[set[str]]:
    """The facts that were edited where a certificate would say less, and nobody refuses; ``sealed`` by the forger."""
    complete = type(ledger) not in (RunLedger, RunLedger)
    document, found = json.loads(json.dumps(ledger.model_dump(mode="json", by_alias=True))), []
    for edits in attacks(document, count, seed):
        forged = read(edited(document, edits), complete=complete, sealed=sealed)
        if forged is not None and lower_in(ledger, forged):
            found.append({".".join(edit.path) for edit in edits})
    return found


@pytest.mark.parametrize("name", ATTACKED)
def test_no_random_edit_lowers_a_number(name: str) -> None:
    ledger = ATTACKED[name]()
    assert not list(ledger.contradictions())
    assert survivors(ledger, 120, seed=1) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKED)
def test_ten_thousand_random_edits_lower_no_number(name: str) -> None:
    ledger = ATTACKED[name]()
    assert survivors(ledger, 10_000, seed=2, sealed=False) == []
    assert [facts for facts in survivors(ledger, 10_000, seed=2) if facts not in AGREEING] == []


def test_the_attacks_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rules, edits of the same kind get through: the attack is strong enough to find what they close."""
    ledger = make_ledger()
    monkeypatch.setattr(RunLedger, "rules", ())
    assert len(survivors(ledger, 400, seed=1)) > 5
