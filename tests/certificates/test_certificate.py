"""Certificates: strict, sealed, private where they must be, and written beside nothing of somebody else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import reticent as rt
from reticent.adversaries import FinalModel, Relaxed
from reticent.adversaries.report import RiskDocument
from reticent.certificates.build import certify_run, public
from reticent.certificates.check import check
from reticent.certificates.document.derive import Inputs, derive
from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.signature import signed
from reticent.certificates.store import write_certificate
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, DominanceError
from reticent.kernel.mechanisms import Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import Questions
from reticent.records.ledger import RunLedger
from tests.certificates.conftest import make_ledger
from tests.certificates.making import DECLARED, key_in, of, small_certificate

SCHEMAS = Path(__file__).parents[2] / "docs/schema"


@pytest.mark.parametrize(("model", "name"), [(Certificate, "certificate-4"), (RiskDocument, "risk-2")])
def test_the_published_schema_is_the_code(model: Any, name: str) -> None:
    published = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    assert published == model.model_json_schema(by_alias=True)


def test_round_trip_and_schema(certificate: Certificate, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(certificate.to_json())
    assert Certificate.load(tmp_path / "c.json") == certificate
    jsonschema.validate(json.loads(certificate.to_json()), Certificate.model_json_schema(by_alias=True))
    assert all(set(one.theorems) <= set(certificate.theorems) for one in certificate.assessments)
    with pytest.raises(ArtifactError, match="approved_by"):
        Certificate.parse(json.loads(certificate.to_json()) | {"approved_by": "me"})
    no_noise = of(Gaussian(0.0))
    assert not [word for word in ("Infinity", "NaN") if word in no_noise.to_json()]
    assert no_noise.assessments[0].mu.value is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not valid JSON"),
        ("{}", "it has no schema"),
        ("[" * 60 + "]" * 60, "nests deeper"),
        ('{"a": NaN}', "NaN"),
        ("\x00\x01", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
    ids=["nothing", "no schema", "deep", "NaN", "bytes", "deeper"],
)
def test_broken_files_end_in_one_clear_error(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ArtifactError, match=complaint) as caught:
        Certificate.load(tmp_path / "bad.json")
    assert "\n" not in str(caught.value)


def test_each_attacker_is_assessed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides who can be answered is what the numbers are read from; a public edition computes nothing new."""
    asked: list[str] = []
    for kind in (WorstCase, Relaxed):
        own = kind.assess
        monkeypatch.setattr(kind, "assess", lambda self, *what, own=own: asked.append(self.name) or own(self, *what))
    certificate = of(Gaussian(2.25), Relaxed(), WorstCase())
    assert sorted(asked) == ["relaxed", "worst-case"]
    public(certificate)
    assert len(asked) == 2


def test_nobody_exceeds_the_worst_case(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = Inputs(DECLARED, Gaussian(2.125), ((Relaxed(), Neighbouring.ADD_REMOVE),), Questions())
    stronger = WorstCase().assess(Gaussian(1.9), Neighbouring.ADD_REMOVE, WorstCase.methods[0])
    own = Relaxed.assess
    monkeypatch.setattr(Relaxed, "assess", lambda self, *asked: replace(own(self, *asked), proofs=stronger.proofs))
    with pytest.raises(DominanceError, match="exceeds the worst case"):
        derive(inputs)


def test_private_numbers_and_signatures_stay_out_of_the_public_document(
    certificate: Certificate, tmp_path: Path
) -> None:
    shown = public(certificate)
    assert "attribute" in {a.adversary for a in certificate.assessments}
    assert "attribute" not in {a.adversary for a in shown.assessments}
    assert shown.ledger is not None
    assert shown.ledger.diagnostics is None
    assert "squared_change" not in shown.to_json()
    assert shown.do_not_publish == []
    again = signed(shown, key_in(tmp_path))
    assert again.signatures
    assert public(again) == public(shown) == shown


def test_what_a_ledger_establishes_of_its_updates_comes_before_what_is_declared(monkeypatch: Any) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(RunLedger, "contraction", property(lambda ledger: 0.9))
    monkeypatch.setattr("reticent.certificates.build.certify", lambda *_, **given: asked.update(given))
    certify_run(make_ledger(), contraction=0.5)
    assert [one.factor for one in asked["adversaries"] if isinstance(one, FinalModel)] == [0.9]


def test_a_model_is_not_the_one_of_a_certificate_that_names_none(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"1")
    found = check(small_certificate(), weights=tmp_path / "weights")
    assert (found.problems, found.accepted) == (("the certificate names no model",), False)
    told = rt.verify(small_certificate(), weights=tmp_path / "weights")
    assert told.notes()[0] == "the certificate names no model"
    assert told.title().startswith("REFUSED")


def test_files_are_written_once_and_never_replaced_by_something_else(certificate: Certificate, tmp_path: Path) -> None:
    files = write_certificate(certificate, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_certificate(certificate, tmp_path)
    with pytest.raises(ArtifactError, match="different certificate"):
        write_certificate(of(Gaussian(3.0)), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert sorted(before) == [f"certificate.{end}" for end in ("html", "json", "opening.json", "public.json")]
    assert files.complete.read_text() == certificate.to_json()


@pytest.mark.parametrize("name", ["certificate.public.json", "certificate.html", "certificate.public.dsse.json"])
def test_files_of_somebody_else_beside_a_certificate_stay(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(ArtifactError, match="nothing is overwritten"):
        write_certificate(of(Gaussian(2.0)), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"mine"}
