"""The public edition shows nothing of a record but through the mechanism: neighbouring data, leaf by leaf."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import reticent as rt
from reticent.adversaries import Attribute, MembershipGame
from reticent.certificates.build import public, run_declaration
from reticent.certificates.document.opening import opening_of
from reticent.certificates.document.rounding import leaves
from reticent.certificates.document.schema import Certificate
from reticent.certificates.page.page import render_html
from reticent.certificates.store import write_certificate
from reticent.io.commitments import commit, new_salt, opens
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.languages import languages
from reticent.records.ledger import RunLedger
from reticent.records.publication import published
from tests.certificates.conftest import make_ledger, make_sensitivity
from tests.certificates.edits import document_of, forged
from tests.certificates.making import of, page_of

pytestmark = pytest.mark.usefixtures("verified_once")
PEOPLE = b"age,visits\n" + b"".join(b"%d,%d\n" % (20 + i % 60, i % 7) for i in range(400))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def run_on(table: bytes, salt: str, *, records: int = 400, secret: bool = False) -> RunLedger:
    """What a run writes down that was trained on ``table``: everything that the records decide follows from them."""
    seen = digest(table)
    mark = int(seen[:4], 16)
    stated = {"file": f"ward-{mark}.csv", "file_sha256": seen, "schema_sha256": digest(b"schema" + table)}
    edits = {
        "config.data": {"name": "own", "split_seed": 0, "table": {**stated, "derived": []}},
        "config.sensitive": {"group": f"column {mark}", "scope": "whole-data", "every": 1},
        "data.name": f"ward-{mark}",
        "data.source": f"a table of the user, ward-{mark}.csv",
        "data.content_hash": digest(b"features" + table),
        "data.salt": salt,
        "data.dataset_size": records,
        "data.test_size": mark % 90 + 10,
        "data.notes": [f"column {mark}"],
        "utility.test_accuracy": 0.5 + mark / 2**17,
        "utility.test_loss": mark / 2**16,
        "diagnostics.batch_sizes": [90 + (mark >> step) % 21 for step in range(12)],
        "diagnostics.clipped": [mark % 50] * 12,
        "divisor": 100.0 if secret else 0.25 * records,
    }
    if secret:
        edits |= {"config.divisor": 100.0, "config.sample_rate": 0.25, "config.batch_size": None}
    return RunLedger.model_validate(forged(document_of(make_ledger()), edits)).sealed()


WHO = (WorstCase(), MembershipGame(), Attribute(make_sensitivity()))


def certificate_on(table: bytes, salt: str, publishes: tuple[str, ...] = (), **more: Any) -> Certificate:
    ledger = run_on(table, salt, **more)
    said = run_declaration(ledger, publishes, weights_sha256="cd" * 32)
    return of(ledger.mechanism(), *WHO, declared=said, ledger=ledger)


@cache
def pair() -> tuple[Certificate, Certificate]:
    """Of neighbouring data, under salts of their own."""
    return certificate_on(PEOPLE, new_salt()), certificate_on(NEIGHBOUR, new_salt())


NEIGHBOUR = PEOPLE.replace(b"21,1\n", b"77,6\n", 1)
MAY_DIFFER = {
    "ledger.data.commitment",
    "ledger.config.data.table.file_commitment",
    "ledger.config.data.table.schema_commitment",
    "ledger.digest",
    "content_sha256",
    *(f"pages.{code}" for code in languages()),
}
"""Every leaf of the public document that may depend on the records: salted commitments, and what follows from them."""


def differences(first: Certificate, second: Certificate) -> set[str]:
    one, other = (leaves(document_of(public(each))) for each in (first, second))
    return {".".join(path) for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def test_neighbours_have_the_same_public_certificate_but_for_commitments() -> None:
    """Whoever has the same salt would see nothing else."""
    assert differences(*pair()) == MAY_DIFFER
    for shown in map(public, pair()):
        assert rt.verify(shown).accepted
    salt = new_salt()
    first, again, other = (certificate_on(table, salt) for table in (PEOPLE, PEOPLE, NEIGHBOUR))
    assert differences(first, again) == set()
    assert differences(first, other) == MAY_DIFFER


def test_the_page_differs_in_nothing_else() -> None:
    first, second = (re.sub(r"[0-9a-f]{64}|[0-9a-f]{16}…", "<digest>", page_of(public(one))) for one in pair())
    assert first == second


def test_a_number_of_records_that_the_training_kept_secret_stays_secret() -> None:
    fewer = PEOPLE.rsplit(b"\n", 2)[0]
    first = certificate_on(PEOPLE, new_salt(), secret=True)
    second = certificate_on(fewer, new_salt(), secret=True, records=399)
    assert differences(first, second) == MAY_DIFFER
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
    assert not [word for word in ("ward-", "column ") if word in public(pair()[0]).to_json()]


@pytest.mark.parametrize(("name", "shown"), [("letters", ("letters", 100, 0.9)), ("adult", (None, None, None))])
def test_a_published_data_set_is_named_and_records_that_only_borrow_its_name_are_private(name: str, shown: Any) -> None:
    ledger = make_ledger()
    asked = {**ledger.config, "data": {"name": name, "split_seed": 0}}
    known = published(ledger.model_copy(update={"config": asked}))
    assert (known.data.name, known.data.test_size, known.utility.test_accuracy) == shown
    assert known.utility.test_loss is None


def test_1001_candidates_and_no_hit() -> None:
    """The attack of the issue: who knows all records but one hashes every candidate and looks for it on the page."""
    salt = new_salt()
    shown = public(certificate_on(PEOPLE, salt))
    text = shown.to_json() + render_html(shown)
    seen = set(re.findall(r"[0-9a-f]{64}", text))
    candidates = [PEOPLE.replace(b"21,1\n", b"%d,%d\n" % (age, visits), 1) for age in range(91) for visits in range(11)]
    assert len(set(candidates)) == 1001
    assert PEOPLE in candidates
    for table in candidates:
        parts = {"training-data": b"features" + table, "table-file": table, "table-schema": b"schema" + table}
        for name, content in parts.items():
            found = hashlib.sha256(content).digest()
            assert not seen & {found.hex(), digest(found), commit("00" * 32, name, found)}
    assert salt not in text
    commitment = shown.ledger.data.commitment  # type: ignore[union-attr]
    hits = [one for one in candidates if opens(commitment, salt, "training-data", features_of(one))]
    assert hits == [PEOPLE], "with the salt the same attack succeeds: it is not blind"


def features_of(table: bytes) -> bytes:
    return hashlib.sha256(b"features" + table).digest()


def test_an_opening_opens_what_it_belongs_to_and_nothing_else(tmp_path: Path) -> None:
    files, other = (write_certificate(one, tmp_path / name) for one, name in zip(pair(), "ab", strict=True))
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
    whole = pair()[0]
    hidden = {path for path in whole.do_not_publish if not path.startswith("assessments")}
    assert {
        "ledger.data.salt",
        "ledger.data.content_hash",
        "ledger.data.name",
        "ledger.config.data.table.file_sha256",
        "ledger.utility.test_loss",
        "ledger.diagnostics",
    } <= hidden
