"""Certificates: strict, sealed, and private where they must be. See also ``test_verify`` and ``test_page``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from reticent.adversaries import Relaxed
from reticent.adversaries.report import RiskDocument, assessment_record
from reticent.certificates.build import CERTIFICATE_QUESTIONS, certify, public
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.document.sentences import percent, sentence
from reticent.certificates.store import write_certificate
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring

ROOT = Path(__file__).parents[2]
DECLARED = Declaration(subject="s", created="2026-01-01")


def test_round_trip_and_schema(certificate: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(certificate.to_json())
    assert Certificate.load(path) == certificate
    published = json.loads((ROOT / "docs/schema/certificate-4.schema.json").read_text())
    jsonschema.validate(json.loads(path.read_text()), published)


@pytest.mark.parametrize(("model", "name"), [(Certificate, "certificate-4"), (RiskDocument, "risk-2")])
def test_the_published_schema_is_the_code(model, name: str) -> None:
    published = json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())
    assert published == model.model_json_schema(by_alias=True)


def test_each_attacker_is_assessed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides who can be answered is what the numbers are read from; a public edition computes nothing new."""
    asked: list[str] = []
    for kind in (WorstCase, Relaxed):
        own = kind.assess
        monkeypatch.setattr(kind, "assess", lambda self, *what, own=own: asked.append(self.name) or own(self, *what))
    certificate = certify(Gaussian(2.0), DECLARED, adversaries=(Relaxed(), WorstCase()))
    assert sorted(asked) == ["relaxed", "worst-case"]
    public(certificate)
    assert len(asked) == 2


def test_every_key_it_cites_is_explained(certificate: Certificate) -> None:
    for assessment in certificate.assessments:
        assert set(assessment.theorems) <= set(certificate.theorems)


def test_strict_json_has_no_infinity() -> None:
    no_noise = certify(Gaussian(0.0), DECLARED, adversaries=(WorstCase(),))
    text = no_noise.to_json()
    assert "Infinity" not in text
    assert "NaN" not in text
    assert no_noise.assessments[0].mu.value is None


def test_private_numbers_stay_out_of_the_public_document(certificate: Certificate) -> None:
    shown = public(certificate)
    assert "attribute" in {a.adversary for a in certificate.assessments}
    assert "attribute" not in {a.adversary for a in shown.assessments}
    assert shown.ledger is not None
    assert "diagnostics" not in shown.ledger
    assert "squared_change" not in shown.to_json()
    assert shown.do_not_publish == []
    assert public(shown) == shown


def test_numbers_are_rounded_to_the_safe_side() -> None:
    mechanism, questions = DPSGD(1.1, 0.02, 200), CERTIFICATE_QUESTIONS
    (record,) = certify(mechanism, DECLARED, adversaries=(WorstCase(),)).assessments
    exact = assessment_record(WorstCase().assess(mechanism), questions)
    for measure in ("advantage", "mu"):
        stated, computed = getattr(record, measure), getattr(exact, measure)
        assert stated.lower <= computed.lower <= computed.value <= stated.value <= stated.upper
        assert stated.upper - computed.upper <= 1e-3 * computed.upper
        assert len(str(stated.value).lstrip("0.")) <= 8
    assert record.bayes_security.value <= exact.bayes_security.value
    for key, number in exact.epsilon_at_delta.items():
        assert record.epsilon_at_delta[key].value >= number.value
    curve = WorstCase().assess(mechanism).curve
    for fpr, fnr, tpr in zip(record.curve.fpr, record.curve.fnr, record.curve.tpr, strict=True):
        assert fnr <= float(curve.beta(fpr))
        assert tpr >= float(curve.power(fpr))


def test_files_are_written_once_and_never_replaced_by_something_else(certificate: Certificate, tmp_path: Path) -> None:
    files = write_certificate(certificate, tmp_path / "out")
    before = files.complete.read_bytes()
    write_certificate(certificate, tmp_path / "out")
    assert files.complete.read_bytes() == before
    other = certify(Gaussian(3.0), DECLARED, adversaries=(WorstCase(),))
    with pytest.raises(ArtifactError, match="different certificate"):
        write_certificate(other, tmp_path / "out")
    assert files.complete.read_bytes() == before
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "certificate.html",
        "certificate.json",
        "certificate.opening.json",
        "certificate.public.json",
    ]


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
)
def test_broken_files_end_in_one_clear_error(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ArtifactError, match=complaint) as caught:
        Certificate.load(path)
    assert "\n" not in str(caught.value)


def test_an_unknown_key_is_refused_by_name(certificate: Certificate, tmp_path: Path) -> None:
    document = json.loads(certificate.to_json())
    document["approved_by"] = "me"
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match="approved_by"):
        Certificate.load(path)


@pytest.mark.parametrize(
    ("x", "up", "shown"),
    [
        (0.5, True, "50%"),
        (0.52301, True, "52.4%"),
        (0.523, True, "52.3%"),
        (0.99999, True, "100%"),
        (0.52349, False, "52.3%"),
    ],
)
def test_percentages_of_bounds_are_rounded_up(x: float, up: bool, shown: str) -> None:
    assert str(percent(x, up=up)) == shown


def test_the_sentence_is_never_stronger_than_the_number(certificate: Certificate) -> None:
    for assessment in certificate.assessments:
        stated = float(re.search(r"to (?:at most|about) ([\d.]+)%", str(sentence(assessment))).group(1)) / 100  # type: ignore[union-attr]
        assert stated >= assessment.success_at_prior["0.5"].value - 1e-9


def test_under_replacement_the_question_is_which_record() -> None:
    both = [
        certify(Gaussian(2.0), DECLARED, adversaries=(WorstCase(),), neighbouring=relation)
        for relation in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)
    ]
    assert "whether this record was used" in str(both[0].assessments[0].sentence)
    assert "which of two possible records was used" in str(both[1].assessments[0].sentence)
