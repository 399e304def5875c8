"""A run is signed when it ends, so that a folder that was edited later does not pass."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import reticent as rt
from reticent.certificates.document.schema import Certificate
from reticent.io.outputs import signature_of
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.records.ledger import RunLedger
from reticent.signing.envelope import RUN
from reticent.signing.keys import key_id, load_private_key, load_public_key, write_key_pair
from reticent.signing.provenance import SIGNATURE, sealed
from reticent.training import load_config, train
from reticent.training.rundir import signer_of
from tests.training.small import reseal

pytestmark = pytest.mark.usefixtures("quick_documents")

CONFIG = "{data: {name: breast-cancer}, model: {kind: logistic}, noise_multiplier: 2.0, batch_size: 64, steps: 3, "
CONFIG += "learning_rate: 0.5}"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    for name in ("key", "other"):
        write_key_pair(folder / name, folder / f"{name}.pub")
    (folder / "small.yaml").write_text(CONFIG)
    for name, sign in (("run", load_private_key(folder / "key")), ("unsigned", None)):
        train(load_config(folder / "small.yaml"), folder / name, sign=sign)
    return folder


def more_noise(run: Path) -> None:
    document = json.loads((run / "ledger.json").read_text())
    document["segments"][0]["noise_multiplier"] = document["config"]["noise_multiplier"] = 20.0
    (run / "ledger.json").write_text(RunLedger.model_validate(document).sealed().to_json())


def spoil_weights(run: Path) -> None:
    (run / "weights.safetensors").write_bytes(b"x" * 384)


def sign_again(run: Path) -> None:
    manifest = (run / "manifest.json").read_bytes()
    (run / SIGNATURE).write_bytes(sealed(manifest, RUN, Ed25519PrivateKey.generate()))


EDITS: dict[str, tuple[Callable[[Path], object], ...]] = {
    "the ledger": (more_noise,),
    "the ledger, with its checksum": (more_noise, reseal),
    "the weights": (spoil_weights,),
    "the weights, with their checksum": (spoil_weights, reseal),
    "a link added": (lambda run: (run / "note").symlink_to("/etc/hostname"),),
    "the signature, garbage": (lambda run: (run / SIGNATURE).write_text("{}"),),
    "the signature of another run": (more_noise, reseal, sign_again),
}


def test_a_signed_run_is_certified_and_says_who_signed_it(made: Path, tmp_path: Path, command) -> None:
    code, said = command("certify", made / "run", "--sign", made / "key", "--out", tmp_path / "c")
    assert code == 0, said
    assert (made / "run" / "ledger.json").stat().st_mode & 0o077 == 0, "a ledger is for its owner"
    shown = Certificate.load(tmp_path / "c" / "certificate.public.json")
    assert shown.declared.run_signed_by == key_id(load_public_key(made / "key.pub"))
    found = rt.verify(tmp_path / "c" / "certificate.public.json", key=made / "key.pub")
    assert found.accepted
    assert not [line for line in found.checked.reservations() if "Nobody signed the run" in line]
    other = load_private_key(made / "other")
    assert signer_of(made / "run", [other], made / "key.pub") == shown.declared.run_signed_by


def test_a_configuration_that_is_certified_is_signed_when_its_run_ends(made: Path, tmp_path: Path, command) -> None:
    assert command("certify", made / "small.yaml", "--sign", made / "key", "--out", tmp_path / "c")[0] == 0
    assert Certificate.load(tmp_path / "c" / "certificate.json").declared.run_signed_by is not None


@pytest.mark.parametrize("name", EDITS)
def test_a_folder_that_was_edited_is_not_signed(made: Path, tmp_path: Path, command, name: str) -> None:
    shutil.copytree(made / "run", tmp_path / "run")
    for edit in EDITS[name]:
        edit(tmp_path / "run")
    code, said = command("certify", tmp_path / "run", "--sign", made / "key", "--out", tmp_path / "c")
    assert code == 2
    assert said.count("\n") == 1
    assert not (tmp_path / "c").exists()


def test_a_run_that_nobody_signed_must_be_as_it_was_recorded_and_the_verdict_says_so(
    made: Path, tmp_path: Path, command
) -> None:
    code, _ = command("certify", made / "unsigned", "--sign", made / "key", "--out", tmp_path / "c")
    assert code == 0
    found = rt.verify(tmp_path / "c" / "certificate.public.json", key=made / "key.pub")
    assert found.accepted
    assert [line for line in found.checked.reservations() if "Nobody signed the run" in line]
    asked = ("--sign", made / "key", "--run-key", made / "key.pub", "--out", tmp_path / "d")
    assert command("certify", made / "unsigned", *asked)[0] == 2, "the signature was taken away, or never made"
    shutil.copytree(made / "unsigned", tmp_path / "run")
    spoil_weights(tmp_path / "run")
    with pytest.raises(ArtifactError, match="weights"):
        signer_of(tmp_path / "run", [load_private_key(made / "key")], None)


def test_what_is_no_key_is_refused_before_a_loop_begins(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="sign must be an Ed25519 private key, or the path of its file"):
        rt.watch(torch.nn.Linear(2, 2), sign=True)
    with pytest.raises(ArtifactError, match="key"):
        rt.watch(torch.nn.Linear(2, 2), sign=tmp_path / "key")


def test_a_watched_ledger_is_signed_when_its_loop_ends(made: Path, tmp_path: Path, command) -> None:
    ledger, key = tmp_path / "ledger.json", load_private_key(made / "key")
    for given in (str(made / "key"), key):
        with rt.watch(torch.nn.Linear(2, 2), sign=given) as seen:
            seen.step(noise_multiplier=2.0)
        seen.save(ledger, overwrite=True)
        assert signature_of(ledger).is_file()
        assert signer_of(ledger, [key], None) == key_id(key.public_key())
    asked = ("certify", ledger, "--sign", made / "key", "--out")
    assert command(*asked, tmp_path / "c")[0] == 0
    shown = Certificate.load(tmp_path / "c" / "certificate.public.json")
    assert shown.declared.run_signed_by == key_id(key.public_key())
    elsewhere = seen.ledger.environment.model_copy(update={"device": "cuda"})
    forged = seen.ledger.model_copy(update={"environment": elsewhere}).sealed()
    ledger.write_text(forged.to_json())
    code, said = command(*asked, tmp_path / "d")
    assert code == 2
    assert "changed after it was signed" in " ".join(said.split())
