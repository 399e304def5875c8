"""A fact of a ledger that was changed after it was sealed is named, where the document says what it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reticent.certificates.build import public
from reticent.certificates.changed_fact import changed_fact
from reticent.certificates.schema import Certificate
from reticent.certificates.verify import verify
from reticent.cli import main
from reticent.facts.steps import Randomness
from tests.certificates.conftest import make_ledger
from tests.certificates.forging import set_at
from tests.certificates.ledgers import elsewhere


def edited(certificate: Certificate, **facts: Any) -> Certificate:
    """The public document with facts of its ledger changed, by their paths with underscores."""
    document = json.loads(public(certificate).to_json())
    for path, value in facts.items():
        set_at(f"ledger.{path.replace('__', '.')}", value)(document)
    return Certificate.parse(document)


@pytest.mark.parametrize(
    ("fact", "now", "before"),
    [
        ("segments__0__noise_multiplier", 5.0, "3"),
        ("segments__0__steps", 5, "12"),
        ("sampler__sample_rate", 0.1, "0.25"),
        ("environment__optimiser__0", "adam", "'sgd'"),
    ],
)
def test_a_changed_fact_is_named_with_what_it_was(certificate: Certificate, fact: str, now: Any, before: str) -> None:
    found = {one.leaf: one.found for one in verify(edited(certificate, **{fact: now})).differences if one.rule}
    assert (
        found[f"ledger.{fact.replace('__', '.')}"]
        == f"was {before} when the ledger was sealed: its digest agrees with that"
    )


def test_a_word_of_a_short_list_is_found_by_trying() -> None:
    ledger = make_ledger()
    changed = elsewhere(ledger, randomness=Randomness.REPRODUCIBLE)
    assert changed_fact(changed, {}) == (
        "environment.randomness",
        "fresh",
    )
    assert changed_fact(elsewhere(ledger, device="cuda"), {}) is None


def test_what_cannot_be_known_is_not_guessed(certificate: Certificate) -> None:
    found = [one.leaf for one in verify(edited(certificate, environment__device="cuda")).differences if one.rule]
    assert found == ["ledger.digest"]
    two = verify(edited(certificate, segments__0__noise_multiplier=5.0, environment__device="cuda"))
    assert not any("was 3" in one.found for one in two.differences)


@pytest.mark.parametrize("junk", [{}, [], True, "nan", 0.5, None], ids=repr)
def test_what_is_no_such_fact_is_not_tried(certificate: Certificate, junk: Any) -> None:
    """A forger may write anything under the name of a fact, as an object for ``config.steps``."""
    same_names = dict.fromkeys(("steps", "optimiser", "noise_multiplier", "records_per_user"), junk)
    config = {**public(certificate).ledger.config, **same_names}
    document = edited(certificate, environment__device="cuda", config=config)
    assert "ledger.digest" in [one.leaf for one in verify(document).differences]


def test_the_command_says_it_first(
    certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.json").write_text(edited(certificate, segments__0__noise_multiplier=5.0).to_json())
    with pytest.raises(SystemExit, match="1"):
        main(["verify", str(tmp_path / "c.json")])
    said = " ".join(capsys.readouterr().out.split())
    assert "ledger.segments.0.noise_multiplier is 5; it was 3 when the ledger was sealed" in said
    assert said.index("ledger.segments.0.noise_multiplier is") < said.index("headline is")
