"""Exports of a certificate: what the schema of the receiver asks for, nothing that the document does not say.

``deployments-schema-2026-07-15.yaml`` is that of opendp/deployments-registry-data (MIT licence, Copyright (c) 2025
OpenDP), commit 3e9c812a.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

import reticent as rt
from reticent.certificates.exports import EVERY
from reticent.kernel.errors import ArtifactError, ParameterError
from tests.cli.calling import run

pytestmark = pytest.mark.usefixtures("verified_once")
SCHEMA = yaml.safe_load((Path(__file__).parent / "deployments-schema-2026-07-15.yaml").read_text("utf-8"))
RELEASES = {
    "persons": rt.dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=10, records_per_user=3),
    "record": rt.Gaussian(2.0),
    "laplace": rt.Laplace(1.0),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @cache
    def saved(name: str) -> Path:
        told = {"subject": "Numbers | of *a* survey", "issuer": "A & B <research>", "created": "2026-02-03"}
        folder = tmp_path_factory.mktemp(name)
        rt.certify(RELEASES[name], **told).save(folder, exports=list(EVERY))
        return folder

    return saved


@pytest.fixture(params=list(RELEASES))
def folder(request: pytest.FixtureRequest, tmp_path: Path, exported: Callable[[str], Path]) -> Path:
    """Files of one certificate, which the test may change."""
    return shutil.copytree(exported(request.param), tmp_path, dirs_exist_ok=True)


def test_an_entry_fits_the_schema_of_the_registry(folder: Path) -> None:
    entry = yaml.safe_load((folder / "deployment.yaml").read_text("utf-8"))
    problems = Draft7Validator(SCHEMA, format_checker=Draft7Validator.FORMAT_CHECKER).iter_errors(entry)
    assert [error.message for error in problems] == []
    assert (entry["status"], entry["tier"]) == ("Draft", 1)
    assert entry["url_slug"].startswith("numbers-of-a-survey-")
    assert "Nobody signed" in entry["deployment"]["administrative"]["notes"]
    assert entry["deployment"]["basic"]["name"] == r"Numbers \| of \*a\* survey"
    assert date.fromisoformat(entry["deployment"]["basic"]["publication_date"]) == date(2026, 2, 3)
    worst = rt.verify(folder / "certificate.public.json").checked.document.assessments[0]
    assert "(relaxed" not in entry["deployment"]["administrative"]["notes"], "the entry is about the worst case"
    stated = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert stated["epsilon"] >= worst.epsilon_at_delta[repr(stated["delta"])].value


def test_a_model_card_has_metadata_and_every_attacker(folder: Path) -> None:
    card = (folder / "model-card.md").read_text("utf-8")
    _, metadata, text = card.split("---\n", 2)
    assert yaml.safe_load(metadata) == {"tags": ["differential-privacy"]}
    assert "A \\& B \\<research\\>" in text
    assert "no ledger of a run supports it" in text
    document = rt.verify(folder / "certificate.public.json").checked.document
    for one in document.assessments:
        assert f"| {one.label} | {one.neighbouring} | {one.claim} |" in text
    assert text.count("\n- ") > len(document.conditions)


@pytest.mark.parametrize("file", [file for one in EVERY.values() for file in one])
def test_verify_compares_an_export_with_its_document(folder: Path, file: str) -> None:
    path = folder / file
    assert rt.verify(path).accepted
    text = path.read_text("utf-8")
    path.write_text(text.replace("Nobody signed", "Somebody signed"), "utf-8")
    found = rt.verify(path)
    assert not found.accepted
    assert "is not what certificate.public.json is exported as, from line" in str(found)
    path.write_text(text.replace("\n", "\x0c", 1), "utf-8")
    assert not rt.verify(path).accepted
    (folder / "certificate.public.json").rename(folder / "else.json")
    with pytest.raises(ArtifactError, match="does not lie beside it"):
        rt.verify(path)
    path.write_text("a: 1\n", "utf-8")
    with pytest.raises(ArtifactError, match=r"is no export|neither its page"):
        rt.verify(path)


def test_what_somebody_completed_is_left_alone(tmp_path: Path) -> None:
    first, second = (rt.certify(rt.Gaussian(noise), created="2026-01-01") for noise in (1.0, 2.0))
    for _ in range(2):
        first.save(tmp_path, exports=["model-card"])
    card = tmp_path / "model-card.md"
    mine = f"My card\n{card.read_text('utf-8')}"
    card.write_text(mine, "utf-8")
    with pytest.raises(ArtifactError, match=r"model-card\.md"):
        first.save(tmp_path, exports=["model-card"])
    assert card.read_text("utf-8") == mine
    second.save(tmp_path, overwrite=True)
    assert card.read_text("utf-8") == mine
    first.save(tmp_path, overwrite=True)
    card.write_text(mine.removeprefix("My card\n"), "utf-8")
    second.save(tmp_path, overwrite=True)
    assert not card.exists(), "an export of the certificate that was replaced"


def test_the_command_line_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting = ("--noise-multiplier", "2", "--sample-rate", "0.01", "--steps", "10")
    asked = ("--export", "model-card", "--baseline", "0.01", "--out", str(tmp_path / "here"))
    code, out, _ = run(capsys, "certify", "dpsgd", *setting, *asked)
    assert code == 0
    assert f"model-card: {tmp_path / 'here' / 'model-card.md'}" in out
    assert "What this needs besides" in out
    assert "without the model 1%" in (tmp_path / "here" / "model-card.md").read_text("utf-8")
    assert not (tmp_path / "here" / "deployment.yaml").exists()
    with pytest.raises(ParameterError, match="deployments-registry"):
        rt.certify(rt.Gaussian(1.0)).save(tmp_path / "there", exports=["deployment-registry"])


def test_a_name_that_is_none_is_refused_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = Path(__file__).parents[3] / "configs" / "demo.yaml"
    code, _, err = run(capsys, "certify", demo, "--export", "card", "--out", tmp_path / "here")
    assert (code, "--export must be" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []
