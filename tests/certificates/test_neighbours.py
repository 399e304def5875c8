"""The public edition shows nothing of a record but through the mechanism: neighbouring data, leaf by leaf."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import reticent as rt
from reticent.adversaries import MembershipGame
from reticent.certificates.build import certify, certify_run, public, run_declaration
from reticent.certificates.document.opening import opening_of
from reticent.certificates.document.rounding import leaves
from reticent.certificates.document.schema import Certificate
from reticent.certificates.page.page import render_html
from reticent.certificates.store import write_certificate
from reticent.io.commitments import commit, new_salt, opens
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.languages import languages
from reticent.records.ledger import RunLedger
from reticent.records.parts import Diagnostics, Utility
from reticent.records.publication import published
from tests.certificates.conftest import make_ledger, make_sensitivity

PEOPLE = b"age,visits\n" + b"".join(b"%d,%d\n" % (20 + i % 60, i % 7) for i in range(400))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def run_on(table: bytes, salt: str, *, records: int = 400, secret: bool = False, **changes: Any) -> RunLedger:
    """What a run writes down that was trained on ``table``: everything that the records decide follows from them."""
    seen = digest(table)
    mark = int(seen[:4], 16)
    ledger = make_ledger()
    sizes = tuple(90 + (mark >> step) % 21 for step in range(12))
    config = {
        **ledger.config,
        "data": {
            "name": "own",
            "split_seed": 0,
            "table": {
                "file": f"ward-{mark}.csv",
                "file_sha256": seen,
                "schema_sha256": digest(b"schema" + table),
                "derived": [],
            },
        },
        "sensitive": {"group": f"column {mark}", "scope": "whole-data", "records": None, "budget": None, "every": 1},
    }
    if secret:
        config |= {"divisor": 100.0, "sample_rate": 0.25, "batch_size": None}
    data = ledger.data.model_copy(
        update={
            "name": f"ward-{mark}",
            "source": f"a table of the user, ward-{mark}.csv",
            "content_hash": digest(b"features" + table),
            "salt": salt,
            "dataset_size": records,
            "test_size": mark % 90 + 10,
            "notes": (f"column {mark}",),
        }
    )
    fields = {
        "data": data,
        "config": config,
        "utility": Utility(test_accuracy=0.5 + mark / 2**17, test_loss=mark / 2**16),
        "diagnostics": Diagnostics(batch_sizes=sizes, clipped=(mark % 50,) * 12, train_accuracy=0.9, seconds=1.0),
        "divisor": 100.0 if secret else 0.25 * records,
    }
    return ledger.model_copy(update=fields | changes).sealed()


def certificate_on(
    table: bytes, salt: str, publishes: tuple[str, ...] = (), few: tuple[Adversary, ...] = (), **more: Any
) -> Certificate:
    ledger = run_on(table, salt, **more)
    said = run_declaration(ledger, publishes, weights_sha256="cd" * 32)
    if few:
        return certify(ledger.mechanism(), said, adversaries=few, ledger=ledger)
    return certify_run(ledger, make_sensitivity(), said)


NEIGHBOUR = PEOPLE.replace(b"21,1\n", b"77,6\n", 1)

MAY_DIFFER = {
    "ledger.data.commitment": "salted: it tells nobody anything who has no salt",
    "ledger.config.data.table.file_commitment": "salted",
    "ledger.config.data.table.schema_commitment": "salted",
    "ledger.digest": "follows from the commitments",
    "content_sha256": "follows from the commitments",
    **dict.fromkeys((f"pages.{code}" for code in languages()), "follow from the commitments, which a page shows"),
}
"""Every leaf of the public document that may depend on the records, and why that shows nothing."""


def differences(first: Certificate, second: Certificate) -> set[str]:
    one, other = (leaves(json.loads(public(c).to_json())) for c in (first, second))
    return {".".join(path) for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def test_neighbours_have_the_same_public_certificate_but_for_commitments() -> None:
    first, second = certificate_on(PEOPLE, new_salt()), certificate_on(NEIGHBOUR, new_salt())
    assert differences(first, second) == set(MAY_DIFFER)
    assert not rt.verify(first).checked.problems
    for shown in map(public, (first, second)):
        assert rt.verify(shown).accepted


def test_whoever_has_the_same_salt_would_see_nothing_else() -> None:
    """With one salt for both, even the commitments are the only leaves that the records reach."""
    salt = new_salt()
    same = certificate_on(PEOPLE, salt), certificate_on(PEOPLE, salt)
    assert differences(*same) == set()
    assert differences(certificate_on(PEOPLE, salt), certificate_on(NEIGHBOUR, salt)) == set(MAY_DIFFER)


def test_the_page_differs_in_nothing_else() -> None:
    pages = [
        render_html(public(certificate_on(table, new_salt()))).split("<template")[0] for table in (PEOPLE, NEIGHBOUR)
    ]
    first, second = (re.sub(r"[0-9a-f]{64}|[0-9a-f]{16}…", "<digest>", page) for page in pages)
    assert first == second


def test_a_number_of_records_that_the_training_kept_secret_stays_secret() -> None:
    fewer = PEOPLE.rsplit(b"\n", 2)[0]
    few = (WorstCase(), MembershipGame())
    first = certificate_on(PEOPLE, new_salt(), secret=True, few=few)
    second = certificate_on(fewer, new_salt(), secret=True, records=399, few=few)
    assert differences(first, second) == set(MAY_DIFFER)
    shown = public(first)
    assert shown.mechanism["dataset_size"] is None
    assert "batch_size" in str(shown.skipped["membership-game"])
    assert rt.verify(shown).accepted
    assert published(run_on(PEOPLE, new_salt())).data.dataset_size == 400, "size-treated-as-public says so"


def test_consent_shows_names_and_two_digits_of_accuracy() -> None:
    shown = public(certificate_on(PEOPLE, new_salt(), ("names", "accuracy")))
    assert shown.ledger is not None
    assert shown.ledger.data.name.startswith("ward-")
    assert shown.ledger.asked["data"]["table"]["file"].endswith(".csv")
    assert shown.ledger.asked["sensitive"]["group"].startswith("column")
    accuracy = shown.ledger.utility.test_accuracy
    assert accuracy == pytest.approx(round(accuracy, 2), rel=0, abs=0)
    assert shown.ledger.utility.test_loss is None
    assert rt.verify(shown).accepted
    assert "no number here covers what it shows about them" in render_html(shown)
    silent = public(certificate_on(PEOPLE, new_salt()))
    assert "ward-" not in silent.to_json()
    assert "column " not in silent.to_json()


def test_a_published_data_set_is_named() -> None:
    ledger = make_ledger()
    asked = {**ledger.config, "data": {"name": "letters", "split_seed": 0}}
    known = published(ledger.model_copy(update={"config": asked}))
    assert (known.data.name, known.data.test_size, known.utility.test_accuracy) == ("letters", 100, 0.9)
    assert known.utility.test_loss is None


def test_records_that_only_borrow_a_public_name_are_private() -> None:
    ledger = make_ledger()
    asked = {**ledger.config, "data": {"name": "adult", "split_seed": 0}}
    hidden = published(ledger.model_copy(update={"config": asked}))
    assert (hidden.data.name, hidden.data.test_size, hidden.utility.test_accuracy) == (None, None, None)


def test_1001_candidates_and_no_hit() -> None:
    """The attack of the issue: who knows all records but one hashes every candidate and looks for it on the page."""
    salt = new_salt()
    whole = certificate_on(PEOPLE, salt)
    text = public(whole).to_json() + render_html(public(whole))
    seen = set(re.findall(r"[0-9a-f]{64}", text))
    candidates = [PEOPLE.replace(b"21,1\n", b"%d,%d\n" % (age, visits), 1) for age in range(91) for visits in range(11)]
    assert len(set(candidates)) == 1001
    assert PEOPLE in candidates
    for table in candidates:
        for name, content in (
            ("training-data", digest(b"features" + table)),
            ("table-file", digest(table)),
            ("table-schema", digest(b"schema" + table)),
        ):
            assert not seen & {content, hashlib.sha256(bytes.fromhex(content)).hexdigest()}
            assert commit("00" * 32, name, bytes.fromhex(content)) not in seen
    assert salt not in text
    commitment = _commitment(whole)
    hits = [table for table in candidates if opens(commitment, salt, "training-data", _features(table))]
    assert hits == [PEOPLE], "with the salt the same attack succeeds: it is not blind"


def _features(table: bytes) -> bytes:
    return hashlib.sha256(b"features" + table).digest()


def _commitment(certificate: Certificate) -> str:
    shown = public(certificate).ledger
    assert shown is not None
    return shown.data.commitment


def test_an_opening_opens_what_it_belongs_to_and_nothing_else(tmp_path: Path) -> None:
    files = write_certificate(certificate_on(PEOPLE, new_salt()), tmp_path / "a")
    other = write_certificate(certificate_on(NEIGHBOUR, new_salt()), tmp_path / "b")
    (tmp_path / "people.csv").write_bytes(PEOPLE)
    (tmp_path / "others.csv").write_bytes(NEIGHBOUR)
    assert files.opening.stat().st_mode & 0o077 == 0
    good = rt.verify(files.public, opening=files.opening, data=tmp_path / "people.csv")
    assert good.accepted
    assert len(good.checked.compared) == 4
    for opening, data in ((other.opening, None), (files.opening, tmp_path / "others.csv")):
        assert not rt.verify(files.public, opening=opening, data=data).accepted
    forged = json.loads(files.opening.read_text())
    del forged["table_file"]
    (tmp_path / "fewer.json").write_text(json.dumps(forged))
    assert not rt.verify(files.public, opening=tmp_path / "fewer.json").accepted
    with pytest.raises(ArtifactError, match="public certificate of a run"):
        rt.verify(files.complete, opening=files.opening)
    with pytest.raises(ArtifactError, match="--opening"):
        rt.verify(files.public, data=tmp_path / "people.csv")
    assert opening_of(public(Certificate.load(files.complete))) is None


def test_the_complete_document_lists_what_is_not_for_publication() -> None:
    whole = certificate_on(PEOPLE, new_salt())
    hidden = {path for path in whole.do_not_publish if not path.startswith("assessments")}
    assert {
        "ledger.data.salt",
        "ledger.data.content_hash",
        "ledger.data.name",
        "ledger.config.data.table.file_sha256",
        "ledger.utility.test_loss",
        "ledger.diagnostics",
    } <= hidden
