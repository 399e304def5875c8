"""``reticent verify`` and ``keygen`` from the command line: verdicts and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import reticent as rt
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration, content_hash
from reticent.certificates.store import write_certificate
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import Gaussian
from reticent.signing.keys import key_id, load_public_key, write_key_pair
from tests.cli.calling import HOSTILE, refused, run

pytestmark = pytest.mark.usefixtures("quick_documents")
DSSE = "certificate.public.dsse.json"


def verify(capsys: pytest.CaptureFixture[str], path: Path, *more: object, code: int) -> str:
    """What is said, as if the terminal had no end."""
    found, out, _ = run(capsys, "verify", path, *more)
    assert found == code, out
    return " ".join(out.split())


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another public key."""
    write_key_pair(tmp_path / "other", tmp_path / "other.pub")
    return tmp_path / "other.pub"


@pytest.mark.parametrize("name", ["certificate.json", "certificate.public.json", "certificate.html"])
def test_every_file_verifies_with_its_key(signed: Path, capsys, name: str) -> None:
    out = verify(capsys, signed / name, "--key", signed / "key.pub", code=0)
    assert ": ACCEPTED. All " in out
    assert ("private measurements" in out) == (name == "certificate.json")
    assert "declared: subject" in out
    assert "Signed with the key of" in out
    for character in ("\x1b", "\u202e", "\x07"):
        assert character not in out


def test_a_detached_signature_counts_for_its_document_alone(signed: Path, capsys) -> None:
    options = ("--key", signed / "key.pub", "--signature", signed / DSSE)
    verify(capsys, signed / "certificate.public.json", *options, code=0)
    verify(capsys, signed / "certificate.json", *options, code=1)
    assert "--key" in refused(capsys, "verify", signed / "certificate.json", *options[2:])


def test_another_key_and_another_model_are_refused(signed: Path, other: Path, capsys) -> None:
    document, weights = signed / "certificate.json", signed / "weights.safetensors"
    out = verify(capsys, document, "--key", other, code=1)
    own, theirs = (key_id(load_public_key(path))[:16] for path in (signed / "key.pub", other))
    assert out.split()[1] == "REFUSED"
    assert f"other.pub ({theirs}...); its signature names {own}..." in out
    assert "changed" not in out
    assert "another model" in verify(capsys, document, "--weights", weights, code=1)
    assert "is the model that it is about" not in str(rt.verify(document, weights=weights))
    assert [rt.verify(document, key=key).accepted for key in (signed / "key.pub", str(other))] == [True, False]


def test_without_a_key_the_verdict_says_so(signed: Path, tmp_path: Path, capsys) -> None:
    name = key_id(load_public_key(signed / "key.pub"))[:16]
    out = verify(capsys, signed / "certificate.json", code=0)
    assert f"No signature was checked: the document has one of the key {name}..." in out
    document = json.loads((signed / "certificate.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps({**document, "signatures": []}))
    assert "No signature was checked: the document has none." in verify(capsys, tmp_path / "c.json", code=0)


def test_a_key_is_shown_by_the_name_that_documents_give_it(tmp_path: Path, capsys) -> None:
    out = run(capsys, "keygen", tmp_path / "made")[1]
    assert f"as certificates name it: {key_id(load_public_key(tmp_path / 'made.pub'))}\n" in out


def test_a_changed_declaration_verifies_but_not_with_the_key(signed: Path, tmp_path: Path, capsys) -> None:
    path, key = tmp_path / "c.json", ("--key", signed / "key.pub")
    document = json.loads((signed / "certificate.public.json").read_text())
    document["declared"]["subject"] = "another model"
    path.write_text(json.dumps(document))
    out = verify(capsys, path, *key, code=1)
    assert "does not fit this document: one of both was changed" in out
    assert "its signature names" not in out
    draft = Certificate.parse({**document, "pages": {}})  # those of the other subject
    changed = draft.model_copy(update={"content_sha256": content_hash(draft)})
    path.write_text(changed.to_json())
    out = verify(capsys, path, code=1)  # a signature that is not of the key that it names is worse than none
    assert "tampered: the signature that names the key" in out
    assert "is not of that key for this document: one of both was changed" in out
    path.write_text(changed.model_copy(update={"signatures": ()}).to_json())
    verify(capsys, path, code=0)
    assert "the document is not signed" in verify(capsys, path, *key, code=1)


@pytest.mark.parametrize(
    ("created", "expires", "code", "told"),
    [
        ("2020-01-01", "2021-01-01", 1, "expired on 2021-01-01"),
        ("2999-01-01", None, 0, "dated 2999-01-01, which is in the future"),
        ("2020-01-01", None, 0, ""),
    ],
)
def test_dates_are_the_word_of_the_issuer(created: str, expires, code: int, told: str, tmp_path, capsys) -> None:
    """*Accepted* and nothing else was said of one of the year 2999."""
    declared = Declaration(subject="s", created=created, expires=expires)
    made = certify(Gaussian(2.0), declared, adversaries=(WorstCase(),))
    write_certificate(made, tmp_path)
    out = verify(capsys, tmp_path / "certificate.json", code=code)
    assert told in out
    assert ("in the future" in out) == ("in the future" in told)
    assert rt.verify(made).accepted == (code == 0)


@pytest.mark.parametrize("content", [b"", b"<html></html>", b"{}", b"\xff", b"[1]", b"null", b"[" * 5000])
def test_what_is_no_certificate_is_one_line_and_exit_code_2(tmp_path: Path, capsys, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    refused(capsys, "verify", tmp_path / "c")


def test_json_says_what_the_text_says(signed: Path, tmp_path: Path, capsys) -> None:
    key = ("--key", signed / "key.pub")
    found = json.loads(verify(capsys, signed / "certificate.json", *key, "--json", code=0))
    assert (found["accepted"], found["problems"], found["differences"]) == (True, [], [])
    assert found["equal"] > 50
    assert found["declared"]["declared.subject"] == HOSTILE
    assert any("private measurements" in line for line in found["reservations"])
    assert not any("No signature" in line for line in found["reservations"])
    document = json.loads((signed / "certificate.json").read_text())
    document["assessments"][0]["claim"] = "estimate"
    (tmp_path / "c.json").write_text(json.dumps(document))
    found = json.loads(verify(capsys, tmp_path / "c.json", *key, "--json", code=1))
    assert not found["accepted"]
    assert any("signature" in problem for problem in found["problems"])
    assert [d["refused"] for d in found["differences"] if d["where"].endswith("claim")] == [True]
    told = verify(capsys, tmp_path / "c.json", code=1)
    assert "tampered: assessments.0.claim is 'estimate', derived 'bound'" in told


def test_keys_that_are_encrypted_or_too_few(signed: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("RETICENT_PASSPHRASE", "correct horse")
    assert run(capsys, "keygen", tmp_path / "second", "--encrypt")[0] == 0
    assert b"ENCRYPTED" in (tmp_path / "second").read_bytes()
    asked = ("certify", "dpsgd", "--noise-multiplier", 1.1, "--sample-rate", 1, "--steps", 1)
    both = ("--sign", signed / "key", "--sign", tmp_path / "second")
    assert run(capsys, *asked, *both, "--out", tmp_path / "c")[0] == 0
    document = tmp_path / "c" / "certificate.public.json"
    twice = ("--key", signed / "key.pub", "--key", tmp_path / "second.pub")
    verify(capsys, document, *twice, code=0)
    assert run(capsys, "keygen", tmp_path / "third")[0] == 0
    three = (*twice, "--key", tmp_path / "third.pub")
    for more, code in (((), 1), (("--threshold", 2), 0), (("--threshold", 4), 2)):
        verify(capsys, document, *three, *more, code=code)
    monkeypatch.delenv("RETICENT_PASSPHRASE")
    for more, said in ((("--sign", tmp_path / "second"), "RETICENT_PASSPHRASE"), (("--publish", "name"), "names")):
        assert said in refused(capsys, *asked, *more, "--out", tmp_path / "d")
