"""``reticent verify``, ``keygen`` and ``gate`` from the command line: verdicts and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import reticent as rt
from reticent.adversaries import Attribute
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration, content_hash
from reticent.certificates.store import write_certificate
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import Gaussian
from reticent.signing.keys import key_id, load_private_key, load_public_key, write_key_pair
from tests.cli.calling import run

pytestmark = pytest.mark.usefixtures("quick_documents")

HOSTILE = "<script>alert(1)</script> name"
POLICY = """
accept_conditions: [clipped]
schema: reticent.policy/1
per: record
signature: true
limits: [{measure: advantage, neighbouring: add-remove, at_most: %s}]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_key_pair(folder / "key", folder / "key.pub")
    weights = folder / "weights.safetensors"
    weights.write_bytes(b"weights")
    declared = Declaration(
        subject=HOSTILE,
        created="2026-11-22",
        expires="2999-01-01",
        weights_sha256="9e5dcf7f5cb6e5a3c0d7e2d1e7d6b1a7c8f0f9a1b2c3d4e5f60718293a4b5c6d",
    )
    certificate = certify(Gaussian(2.0), declared, adversaries=(WorstCase(), Attribute(0.5)))
    write_certificate(certificate, folder, key=load_private_key(folder / "key"))
    return folder


@pytest.mark.parametrize("name", ["certificate.json", "certificate.public.json", "certificate.html"])
def test_every_file_verifies_with_its_key(made: Path, capsys, name: str) -> None:
    code, out, _ = run(capsys, "verify", made / name, "--key", made / "key.pub")
    assert code == 0
    assert "ACCEPTED" in out.splitlines()[0] or "ACCEPTED" in out.splitlines()[1], "a long path may fill the first line"
    assert ("private measurements" in out) == (name == "certificate.json")
    assert "declared: subject" in out
    assert "Signed with the key of" in out
    for character in ("\x1b", "\u202e", "\x07"):
        assert character not in out


def test_a_detached_signature_counts_too(made: Path, capsys) -> None:
    options = ("--key", made / "key.pub", "--signature", made / "certificate.public.dsse.json")
    assert run(capsys, "verify", made / "certificate.public.json", *options)[0] == 0
    assert run(capsys, "verify", made / "certificate.json", *options)[0] == 1, "it signs the other document"
    code, _, err = run(capsys, "verify", made / "certificate.json", *options[2:])
    assert code == 2
    assert "--key" in err


def test_another_key_and_another_model_are_refused(made: Path, tmp_path: Path, capsys) -> None:
    write_key_pair(tmp_path / "other", tmp_path / "other.pub")
    code, out, _ = run(capsys, "verify", made / "certificate.json", "--key", tmp_path / "other.pub")
    assert (code, out.split()[1]) == (1, "REFUSED")
    code, out, _ = run(capsys, "verify", made / "certificate.json", "--weights", made / "weights.safetensors")
    assert code == 1
    assert "another model" in " ".join(out.split())
    document, weights = made / "certificate.json", made / "weights.safetensors"
    assert "is the model that it is about" not in str(rt.verify(document, weights=weights))


def test_without_a_key_the_verdict_says_so(made: Path, tmp_path: Path, capsys) -> None:
    name = key_id(load_public_key(made / "key.pub"))[:16]
    out = run(capsys, "verify", made / "certificate.json")[1]
    assert f"No signature was checked: the document has one of the key {name}..." in " ".join(out.split())
    document = json.loads((made / "certificate.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps({**document, "signatures": []}))
    out = run(capsys, "verify", tmp_path / "c.json")[1]
    assert "No signature was checked: the document has none." in " ".join(out.split())


def test_a_key_is_shown_by_the_name_that_documents_give_it(made: Path, tmp_path: Path, capsys) -> None:
    out = run(capsys, "keygen", tmp_path / "other")[1]
    other, own = key_id(load_public_key(tmp_path / "other.pub")), key_id(load_public_key(made / "key.pub"))
    assert f"as certificates name it: {other}\n" in out
    out = " ".join(run(capsys, "verify", made / "certificate.json", "--key", tmp_path / "other.pub")[1].split())
    assert f"other.pub ({other[:16]}...); its signature names {own[:16]}..." in out
    assert "changed" not in out


def test_a_document_that_was_changed_after_it_was_signed_is_told_from_another_key(made: Path, tmp_path: Path, capsys):
    document = json.loads((made / "certificate.json").read_text())
    document["declared"]["subject"] = "something else"
    (tmp_path / "c.json").write_text(json.dumps(document))
    out = " ".join(run(capsys, "verify", tmp_path / "c.json", "--key", made / "key.pub")[1].split())
    assert "does not fit this document: one of both was changed" in out
    assert "its signature names" not in out


def test_a_key_given_twice_counts_once(made: Path, capsys) -> None:
    twice = ("verify", made / "certificate.json", "--key", made / "key.pub", "--key", made / "key.pub")
    assert run(capsys, *twice)[1].count("Signed with the key") == 1
    assert run(capsys, *twice, "--threshold", 2)[0] == 2


def test_a_changed_declaration_verifies_but_not_with_the_key(made: Path, tmp_path: Path, capsys) -> None:
    document = json.loads((made / "certificate.public.json").read_text())
    document["declared"]["subject"] = "another model"
    document["pages"] = {}  # those of the other subject
    draft = Certificate.parse(document)
    changed = draft.model_copy(update={"content_sha256": content_hash(draft)})
    (tmp_path / "c.json").write_text(changed.to_json())
    code, out, _ = run(capsys, "verify", tmp_path / "c.json")
    assert code == 1, "a signature that is not of the key that it names is worse than none"
    shown = " ".join(out.split())
    assert "tampered: the signature that names the key" in shown
    assert "is not of that key for this document: one of both was changed" in shown
    (tmp_path / "c.json").write_text(changed.model_copy(update={"signatures": ()}).to_json())
    assert run(capsys, "verify", tmp_path / "c.json")[0] == 0
    code, out, _ = run(capsys, "verify", tmp_path / "c.json", "--key", made / "key.pub")
    assert code == 1
    assert "the document is not signed" in out


def test_an_expired_certificate_is_refused(tmp_path: Path, capsys) -> None:
    declared = Declaration(subject="old", created="2020-01-01", expires="2021-01-01")
    write_certificate(certify(Gaussian(2.0), declared, adversaries=(WorstCase(),)), tmp_path)
    code, out, _ = run(capsys, "verify", tmp_path / "certificate.json")
    assert code == 1
    assert "expired on 2021-01-01" in out


def test_a_date_in_the_future_is_said(tmp_path: Path, capsys) -> None:
    """Its date is the issuer's word; *accepted* and nothing else was said of one of the year 2999."""
    for created, told in (("2999-01-01", True), ("2020-01-01", False)):
        made = certify(Gaussian(2.0), Declaration(subject="s", created=created), adversaries=(WorstCase(),))
        write_certificate(made, tmp_path / created)
        code, out, _ = run(capsys, "verify", tmp_path / created / "certificate.json")
        assert (code, f"dated {created}, which is in the future" in " ".join(out.split())) == (0, told)


def test_a_tampered_certificate_names_the_leaf(made: Path, tmp_path: Path, capsys) -> None:
    document = json.loads((made / "certificate.json").read_text())
    document["assessments"][0]["claim"] = "estimate"
    (tmp_path / "c.json").write_text(json.dumps(document))
    code, out, _ = run(capsys, "verify", tmp_path / "c.json")
    assert code == 1
    assert "tampered: assessments.0.claim is 'estimate', derived 'bound'" in out


@pytest.mark.parametrize("content", [b"", b"<html></html>", b"{}", b"\xff", b"[1]", b"null", b"[" * 5000])
def test_what_is_no_certificate_is_one_line_and_exit_code_2(tmp_path: Path, capsys, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    code, out, err = run(capsys, "verify", tmp_path / "c")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_keygen_overwrites_nothing(tmp_path: Path, capsys) -> None:
    assert run(capsys, "keygen", tmp_path / "key")[0] == 0
    before = (tmp_path / "key").read_bytes()
    code, _, err = run(capsys, "keygen", tmp_path / "key")
    assert code == 2
    assert "never overwritten" in err
    assert (tmp_path / "key").read_bytes() == before


def test_keygen_puts_two_keys_into_two_files(tmp_path: Path, capsys) -> None:
    code, out, err = run(capsys, "keygen", tmp_path / "key", "--public", tmp_path / "." / "key")
    assert (code, out) == (2, "")
    assert "cannot hold both keys" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("more", [("none/key",), ("key", "--public", "none/key.pub")])
def test_keygen_makes_no_folder(tmp_path: Path, capsys, monkeypatch, more: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "keygen", *more)
    assert (code, out) == (2, "")
    assert "none is not a folder that can be written to\n" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("limit", "code"), [("0.5", 0), ("0.1", 1)])
def test_the_gate_opens_and_closes(made: Path, tmp_path: Path, capsys, limit: str, code: int) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY % limit)
    files = ("--junit", tmp_path / "gate.xml", "--markdown", tmp_path / "gate.md", "--key", made / "key.pub")
    found, out, _ = run(capsys, "gate", made / "certificate.html", "--policy", tmp_path / "policy.yaml", *files)
    assert found == code
    assert out.startswith("Privacy gate: " + ("1 of" if code else "passed"))
    assert "**" not in out
    assert "|" not in out
    assert max(map(len, out.splitlines())) <= 100
    assert (tmp_path / "gate.md").read_text().startswith("## Privacy gate")
    asked = ("--policy", tmp_path / "policy.yaml", "--key", made / "key.pub", "--markdown", "-")
    printed = run(capsys, "gate", made / "certificate.html", *asked)
    assert printed[1] == (tmp_path / "gate.md").read_text()
    assert f'failures="{code}"' in (tmp_path / "gate.xml").read_text()


def test_the_gate_needs_the_key_that_its_policy_wants(made: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY % "0.5")
    code, _, err = run(capsys, "gate", made / "certificate.json", "--policy", tmp_path / "policy.yaml")
    assert code == 2
    assert "--key" in err


def test_the_gate_refuses_a_page_with_one_changed_character(made: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY % "0.5")
    page = (made / "certificate.html").read_text()
    (tmp_path / "page.html").write_text(page.replace("Asked whether", "Asked if", 1))
    options = ("--policy", tmp_path / "policy.yaml", "--key", made / "key.pub")
    code, out, _ = run(capsys, "gate", tmp_path / "page.html", *options)
    assert code == 1
    assert "the page shows its document" in out


def _as_json(path: Path, **changes: object) -> str:
    document = json.loads(path.read_text())
    first = {"claim": changes["claim"]} if "claim" in changes else {}
    more = {name: value for name, value in changes.items() if name != "claim"}
    return json.dumps(document | more | {"assessments": [document["assessments"][0] | first]})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda path: _as_json(path, claim="bond"),  # a word that no claim is
        lambda path: _as_json(path, claim="\N{LATIN SMALL LETTER DOTLESS I}"),
        lambda path: _as_json(path, mechanism={"kind": "gaussian", "noise_multiplier": {}}),
        lambda path: _as_json(path, schema="reticent.certificate/2"),
        lambda path: "{}",
        lambda path: "not a certificate",
        lambda path: "",
    ],
)
def test_whatever_is_wrong_with_a_document_is_a_breach_in_every_report(
    made: Path, tmp_path: Path, capsys, wrong
) -> None:
    """A build server that finds no JUnit file, or a traceback, does not know that a release was stopped."""
    (tmp_path / "policy.yaml").write_text(POLICY.replace("signature: true", "") % "0.5")
    (tmp_path / "c.json").write_text(wrong(made / "certificate.json"))
    options = ("--policy", tmp_path / "policy.yaml", "--junit", tmp_path / "j.xml", "--markdown", tmp_path / "m.md")
    code, out, err = run(capsys, "gate", tmp_path / "c.json", *options)
    assert (code, err) == (1, "")
    assert out.startswith("Privacy gate: 1 of ")
    assert 'failures="1"' in (tmp_path / "j.xml").read_text()
    assert "**BREACH**" in (tmp_path / "m.md").read_text()
    code, _, err = run(capsys, "verify", tmp_path / "c.json")
    assert (code, err.count("\n")) in ((1, 0), (2, 1))


def test_json_says_what_the_text_says(made: Path, tmp_path: Path, capsys) -> None:
    key = ("--key", made / "key.pub")
    code, out, _ = run(capsys, "verify", made / "certificate.json", *key, "--json")
    found = json.loads(out)
    assert (code, found["accepted"], found["problems"], found["differences"]) == (0, True, [], [])
    assert found["equal"] > 50
    assert found["declared"]["declared.subject"] == HOSTILE
    assert any("private measurements" in line for line in found["reservations"])
    assert not any("No signature" in line for line in found["reservations"])
    document = json.loads((made / "certificate.json").read_text())
    document["assessments"][0]["claim"] = "estimate"
    (tmp_path / "c.json").write_text(json.dumps(document))
    code, out, _ = run(capsys, "verify", tmp_path / "c.json", *key, "--json")
    found = json.loads(out)
    assert (code, found["accepted"]) == (1, False)
    assert any("signature" in problem for problem in found["problems"])
    assert [d["refused"] for d in found["differences"] if d["where"].endswith("claim")] == [True]


@pytest.mark.parametrize("limit", [0.9, 1e-9])
def test_gate_in_json(made: Path, tmp_path: Path, capsys, limit: float) -> None:
    (tmp_path / "p.yaml").write_text(POLICY % limit)
    options = ("--policy", tmp_path / "p.yaml", "--key", made / "key.pub", "--json")
    code, out, _ = run(capsys, "gate", made / "certificate.json", *options)
    found = json.loads(out)
    assert (code, found["passed"]) == ((0, True) if limit > 0.5 else (1, False))
    assert [r["passed"] for r in found["requirements"] if "advantage" in r["name"]] == [limit > 0.5]
    code, _, err = run(capsys, "gate", made / "certificate.json", *options, "--markdown", "-")
    assert code == 2
    assert "--json prints nothing else" in err


def test_python_checks_what_the_shell_checks(made: Path, tmp_path: Path) -> None:
    document = made / "certificate.json"
    assert rt.verify(document, key=made / "key.pub").accepted
    assert "No signature was checked" in str(rt.verify(document))
    write_key_pair(tmp_path / "other", tmp_path / "other.pub")
    assert not rt.verify(document, key=str(tmp_path / "other.pub"))
    other = rt.verify(document, weights=made / "weights.safetensors")
    assert not other
    assert any("another model" in problem for problem in other.checked.problems)
    with pytest.raises(ArtifactError, match="says nothing without the issuer's key"):
        rt.verify(document, signature=made / "certificate.public.dsse.json")
    declared = Declaration(subject="old", created="2020-01-01", expires="2021-01-01")
    assert not rt.verify(certify(Gaussian(2.0), declared, adversaries=(WorstCase(),)))


def test_an_option_of_one_value_is_given_once(made: Path, tmp_path: Path, capsys) -> None:
    """Of two keys or two policies only the last would count, and the gate would say that it is signed."""
    write_key_pair(tmp_path / "other", tmp_path / "other.pub")
    (tmp_path / "policy.yaml").write_text(POLICY % "  - {measure: advantage, at_most: 0.999}")
    (tmp_path / "lax.yaml").write_text(POLICY % "  - {measure: mu, at_most: 1000.0}")
    asked = ("gate", made / "certificate.html", "--policy", tmp_path / "policy.yaml")
    mine, other = ("--key", made / "key.pub"), ("--key", tmp_path / "other.pub")
    for more in ((*other, *mine), (f"--key={other[1]}", *mine), (*mine, "--policy", tmp_path / "lax.yaml")):
        code, out, err = run(capsys, *asked, *more)
        assert (code, out) == (2, "")
        assert "is given more than once" in err
        assert len(err.splitlines()) == 1
    assert run(capsys, "verify", made / "certificate.html", *mine, *other, "--threshold", 1)[0] == 0


def test_a_threshold_needs_keys(made: Path, capsys) -> None:
    code, _, err = run(capsys, "verify", made / "certificate.json", "--threshold", 1)
    assert code == 2
    assert "--threshold needs --key" in err


def test_keys_that_are_encrypted_repeated_or_too_few(made: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("RETICENT_PASSPHRASE", "correct horse")
    assert run(capsys, "keygen", tmp_path / "second", "--encrypt")[0] == 0
    assert b"ENCRYPTED" in (tmp_path / "second").read_bytes()
    asked = ("certify", "dpsgd", "--noise-multiplier", 1.1, "--sample-rate", 1, "--steps", 1)
    both = ("--sign", made / "key", "--sign", tmp_path / "second")
    assert run(capsys, *asked, *both, "--out", tmp_path / "c")[0] == 0
    document, keys = tmp_path / "c" / "certificate.public.json", ("--key", made / "key.pub")
    twice = (*keys, "--key", tmp_path / "second.pub")
    assert run(capsys, "verify", document, *twice)[0] == 0
    assert run(capsys, "keygen", tmp_path / "third")[0] == 0
    three = (*twice, "--key", tmp_path / "third.pub")
    assert run(capsys, "verify", document, *three)[0] == 1
    assert run(capsys, "verify", document, *three, "--threshold", 2)[0] == 0
    assert run(capsys, "verify", document, *three, "--threshold", 4)[0] == 2
    monkeypatch.delenv("RETICENT_PASSPHRASE")
    code, _, err = run(capsys, *asked, "--sign", tmp_path / "second", "--out", tmp_path / "d")
    assert code == 2
    assert "RETICENT_PASSPHRASE" in err
    code, _, err = run(capsys, *asked, "--publish", "name", "--out", tmp_path / "d")
    assert code == 2
    assert "names" in err
