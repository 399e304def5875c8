"""Certificates: strict, sealed, escaped, recomputable, and private where they must be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from reticent.certificate.build import certify, public
from reticent.certificate.numbers import RiskDocument
from reticent.certificate.render import render_html
from reticent.certificate.schema import Certificate, content_hash
from reticent.certificate.sentences import percent, sentence
from reticent.certificate.store import write_certificate
from reticent.certificate.verify import verify
from reticent.errors import ArtifactError
from reticent.mechanism import DPSGD, Gaussian, Neighbouring
from reticent.threat import Attribute, Mixed, Relaxed, WorstCase

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>alert(1)</script>\"&'{{ 7*7 }}"


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return certify(
        DPSGD(1.1, 0.02, 200, num_parameters=100, batch_size=20),
        subject="a run",
        created="2026-01-01T00:00:00Z",
        adversaries=(WorstCase(), Relaxed(), Mixed(0.25)),
    )


def test_round_trip_and_schema(certificate: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(certificate.to_json())
    assert Certificate.load(path) == certificate
    published = json.loads((ROOT / "docs/schema/certificate-1.schema.json").read_text())
    jsonschema.validate(json.loads(path.read_text()), published)


@pytest.mark.parametrize(("model", "name"), [(Certificate, "certificate-1"), (RiskDocument, "risk-1")])
def test_the_published_schema_is_the_code(model, name: str) -> None:
    published = json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())
    assert published == model.model_json_schema(by_alias=True)


def test_verification_agrees_and_notices_each_change(certificate: Certificate) -> None:
    assert verify(certificate).problems == ()
    assert verify(certificate).recomputed == 3
    worst = certificate.assessments[0]
    forged = worst.model_copy(update={"advantage": worst.advantage.model_copy(update={"value": 0.01})})
    changed = certificate.model_copy(update={"assessments": [forged, *certificate.assessments[1:]]})
    assert any("content_sha256" in p for p in verify(changed).problems)
    resealed = changed.model_copy(update={"content_sha256": content_hash(changed)})
    (problem,) = verify(resealed).problems
    assert "worst-case (add-remove): advantage is 0.01" in problem


def test_every_key_it_cites_is_explained(certificate: Certificate) -> None:
    for assessment in certificate.assessments:
        assert set(assessment.theorems) <= set(certificate.theorems)


def test_strict_json_has_no_infinity() -> None:
    no_noise = certify(Gaussian(0.0), subject="none", created="2026-01-01", adversaries=(WorstCase(),))
    text = no_noise.to_json()
    assert "Infinity" not in text
    assert "NaN" not in text
    assert no_noise.assessments[0].mu.value is None


def test_the_page_escapes_everything_and_asks_for_nothing(certificate: Certificate) -> None:
    hostile = certificate.model_copy(
        update={
            "subject": HOSTILE,
            "skipped": {HOSTILE: HOSTILE},
            "assessments": [
                a.model_copy(update={"adversary": HOSTILE, "notes": [HOSTILE], "sentence": HOSTILE})
                for a in certificate.assessments
            ],
        }
    )
    page = render_html(hostile)
    assert "<script" not in page
    assert "alert(1)" in page
    assert "49" not in re.sub(r"\d*\.?\d*49\d*|\d+49", "", page) or "{{ 7*7 }}" in page
    # No address that a browser would load: only XML namespaces remain.
    loads = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(?!#)([^"\')\s]+)', page)
    assert not [target for target in loads if "//" in target]


def test_the_page_shows_every_adversary_and_its_claim(certificate: Certificate) -> None:
    page = render_html(certificate)
    for assessment in certificate.assessments:
        assert assessment.sentence in page.replace("&#39;", "'")
    assert page.count('class="badge bound"') == 3
    assert certificate.content_sha256 != public(certificate).content_sha256 or certificate == public(certificate)


def test_private_numbers_stay_out_of_the_public_document() -> None:
    run = DPSGD(1.1, 0.02, 200)
    full = certify(run, subject="s", created="t", adversaries=(WorstCase(), Attribute(gradient_change=0.3)))
    marked = full.model_copy(
        update={
            "assessments": [
                a.model_copy(update={"do_not_publish": a.adversary == "attribute"}) for a in full.assessments
            ]
        }
    )
    assert "attribute" in {a.adversary for a in marked.assessments}
    assert "attribute" not in {a.adversary for a in public(marked).assessments}
    assert "one field" not in render_html(marked)
    assert "do not publish" in render_html(marked, include_private=True)


def test_files_are_written_once_and_never_replaced_by_something_else(certificate: Certificate, tmp_path: Path) -> None:
    files = write_certificate(certificate, tmp_path / "out")
    before = files.complete.read_bytes()
    write_certificate(certificate, tmp_path / "out")
    assert files.complete.read_bytes() == before
    other = certify(Gaussian(3.0), subject="x", created="t", adversaries=(WorstCase(),))
    with pytest.raises(ArtifactError, match="different certificate"):
        write_certificate(other, tmp_path / "out")
    assert files.complete.read_bytes() == before
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "certificate.html",
        "certificate.json",
        "certificate.public.json",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not valid JSON"),
        ("{}", "missing"),
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
    assert percent(x, up=up) == shown


def test_the_sentence_is_never_stronger_than_the_number(certificate: Certificate) -> None:
    for assessment in certificate.assessments:
        stated = float(re.search(r"to at most ([\d.]+)%", sentence(assessment)).group(1)) / 100  # type: ignore[union-attr]
        assert stated >= assessment.success_at_prior["0.5"].value - 1e-9


def test_under_replacement_the_question_is_which_record() -> None:
    both = [
        certify(Gaussian(2.0), subject="s", created="t", adversaries=(WorstCase(),), neighbouring=relation)
        for relation in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)
    ]
    assert "whether this record was used" in both[0].assessments[0].sentence
    assert "which of two records was used" in both[1].assessments[0].sentence
