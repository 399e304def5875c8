"""A ledger that was changed after the run is refused, and so is one that is not that of its certificate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import reticent as rt
from reticent.certificates.build import certify_run, run_declaration
from reticent.certificates.document.ledger_rules import contradictions
from reticent.certificates.document.schema import Declaration, Edition
from reticent.certificates.verify import verify
from reticent.kernel.errors import ArtifactError
from reticent.records.ledger import RunLedger
from reticent.records.publication import published
from tests.certificates.conftest import make_ledger
from tests.certificates.edits import Edits, document_of, forged, parsed, resealed
from tests.certificates.ledgers import elsewhere, poisson
from tests.cli.calling import run

SAID = Declaration(subject="a run", created="2026-11-22")

NONE: list[tuple[Callable[[], RunLedger], Edits]] = [
    (make_ledger, {"created": "last tuesday"}),
    (make_ledger, {"created": "2026-13-45"}),
    (make_ledger, {"unit": "client"}),
    (make_ledger, {"environment.device": "cpu\nand more"}),
    (poisson, {"environment.randomness": "fresh"}),
    (poisson, {"config": {"noise_multiplier": 1.1}}),
    (poisson, {"utility": {"test_accuracy": 0.9, "test_loss": 0.1}}),
    (poisson, {"diagnostics.batch_sizes": [10] * 11}),
]


@pytest.mark.parametrize(("make", "edits"), NONE)
def test_what_is_no_ledger_is_not_read(make: Callable[[], RunLedger], edits: Edits) -> None:
    assert parsed(document_of(make())) is not None
    assert parsed(forged(document_of(make()), edits)) is None


def test_what_was_edited_is_named_unless_it_is_sealed_again() -> None:
    for ledger in (make_ledger(), poisson()):
        changed = elsewhere(ledger, device="cuda")
        assert [where for where, _ in changed.contradictions()] == ["digest"]
        assert not list(changed.sealed().contradictions())
        assert [where for where, _ in ledger.model_copy(update={"digest": ""}).contradictions()] == ["digest"]


def test_certify_lint_and_the_mechanism_of_a_file_refuse_it(tmp_path: Path) -> None:
    changed = parsed(forged(document_of(make_ledger()), {"segments.0.noise_multiplier": 30.0}))
    assert changed is not None
    (tmp_path / "ledger.json").write_text(changed.to_json())
    for what in (changed, tmp_path / "ledger.json", poisson().model_copy(update={"records_per_user": 2})):
        with pytest.raises(ArtifactError, match="contradicts itself"):
            rt.certify(what)
        assert rt.lint(what).worst == "error"


@pytest.mark.parametrize("ledger", [make_ledger(), poisson()], ids=["run", "watch"])
@pytest.mark.parametrize(("ran", "fits"), [("2026-11-22T23:30:00-05:00", False), ("2026-11-23T01:00:00+14:00", True)])
def test_days_are_compared_where_it_is_the_same_time(ledger: RunLedger, ran: str, fits: bool) -> None:
    """Half past eleven at night in New York is the next day."""
    found = contradictions(ledger.model_copy(update={"created": ran}).sealed(), SAID)
    assert ("created" not in dict(found)) == fits


@pytest.mark.parametrize(("name", "said"), [("weights_sha256", "ab" * 32), ("created", "2020-01-01")])
def test_the_declared_model_and_time_are_those_of_the_run(name: str, said: str) -> None:
    assert not list(contradictions(poisson(), SAID))
    assert name in dict(contradictions(poisson(), SAID.model_copy(update={name: said})))
    document = document_of(certify_run(poisson()))
    assert verify(resealed(document)).accepted
    found = verify(resealed(forged(document, {f"declared.{name}": said})))
    assert [one.leaf for one in found.differences if found.refuses(one)] == [f"ledger.{name}"]


def test_the_command_says_first_that_a_fact_was_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = forged(document_of(certify_run(poisson())), {"ledger.segments.0.noise_multiplier": 5.0})
    (tmp_path / "c.json").write_text(json.dumps(document))
    code, out, _ = run(capsys, "verify", tmp_path / "c.json")
    said = " ".join(out.split())
    assert code == 1
    assert said.index("it is not that of the other facts") < said.index("headline is")


@pytest.mark.parametrize(
    "edits",
    [
        {"data.name": "patients of ward 7"},
        {"data.test_size": 100},
        {"utility": {"test_accuracy": 0.9, "test_loss": None}},
        {"utility": {"test_accuracy": None, "test_loss": 0.25}},
        {"config.data.table": {"file_sha256": "ab" * 32, "derived": []}},
        {"data.notes": ["age"]},
        {"facts.read-aloud-to": "patients of ward 7"},
    ],
    ids=str,
)
def test_a_public_ledger_with_something_private_is_refused(edits: Edits) -> None:
    said, ledger = run_declaration(make_ledger()), published(make_ledger())
    assert not list(contradictions(ledger, said, Edition.PUBLIC))
    changed = RunLedger.model_validate(forged(document_of(ledger), edits)).sealed()
    assert list(contradictions(changed, said, Edition.PUBLIC))
