"""Signatures of certificates: who signed is who vouches, for all that is declared, and no page names anybody else."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import reticent as rt
from reticent.certificates.document.schema import Certificate, Declaration, content_hash
from reticent.certificates.document.signature import (
    envelope_of,
    false_signatures,
    load_envelope,
    payload,
    signed,
    signers,
)
from reticent.certificates.store import write_certificate
from reticent.certificates.verify import verify
from reticent.io.strict import canonical
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import Gaussian
from reticent.signing import envelope
from reticent.signing.keys import key_id, key_text
from tests.certificates.making import key_in, of, page_of

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
PUBLIC, FOREIGN = KEY.public_key(), OTHER.public_key()


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    said = {"subject": "a run", "issuer": "A clinic", "purpose": "triage"}
    return of(Gaussian(2.0), declared=Declaration(**said, created="2026-11-22", expires="2030-01-01"))


def test_the_right_key_accepts_and_every_other_refuses(certificate: Certificate) -> None:
    honest = Certificate.parse(json.loads(signed(certificate, KEY).to_json()))
    (signature,) = honest.signatures
    assert signature.keyid == key_id(PUBLIC)
    assert signers(honest, [PUBLIC]) == [key_text(PUBLIC)]
    assert not false_signatures(honest)
    assert signers(honest, [FOREIGN]) == []
    for update in ({"public_key": key_text(FOREIGN)}, {"keyid": key_id(FOREIGN)}):
        impostor = honest.model_copy(update={"signatures": (signature.model_copy(update=update),)})
        assert signers(impostor, [FOREIGN]) == []
        assert false_signatures(impostor)


@pytest.mark.parametrize("leaf", ["subject", "created", "issuer", "purpose", "expires", "weights_sha256"])
def test_a_changed_declaration_breaks_the_signature(certificate: Certificate, leaf: str) -> None:
    honest = signed(certificate, KEY)
    new = {"created": "2026-11-23", "expires": "2031-01-01", "weights_sha256": "ef" * 32}.get(leaf, "other")
    changed = honest.model_copy(update={"declared": honest.declared.model_copy(update={leaf: new})})
    assert not signers(changed, [PUBLIC]), "the declaration itself is signed, not only its hash"
    assert not signers(changed.model_copy(update={"content_sha256": content_hash(changed)}), [PUBLIC])


def test_canonical_json_is_that_of_rfc_8785(certificate: Certificate) -> None:
    # Section 3.2.3 of the RFC: its sample input and output.
    sample = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\nA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical(sample).decode() == expected
    with pytest.raises(ArtifactError, match="canonical"):
        canonical({"seed": 2**53 + 1})
    document = json.loads(certificate.to_json())
    document["mechanism"]["releases"] = 2**53 + 1
    with pytest.raises(ArtifactError, match=r"2\^53"):
        Certificate.parse(document)


def test_an_envelope_of_another_document_or_type_says_nothing(certificate: Certificate) -> None:
    run = envelope.seal(payload(certificate), envelope.RUN, [KEY])
    assert signers(certificate, [PUBLIC], run) == [key_text(PUBLIC)], "it is of these bytes"
    relabelled = {**json.loads(run.to_json()), "payloadType": envelope.CERTIFICATE}
    assert signers(certificate, [PUBLIC], envelope.parse(relabelled, envelope.CERTIFICATE, "x")) == []
    with pytest.raises(ArtifactError, match="another document"):
        signers(certificate, [PUBLIC], envelope_of(signed(of(Gaussian(3.0)), KEY)))


def test_several_keys_must_sign_or_as_many_as_are_enough(certificate: Certificate, tmp_path: Path) -> None:
    keys = [key_in(tmp_path, name) for name in "abc"]
    public = [tmp_path / f"{name}.pub" for name in "abc"]
    one, two = signed(certificate, keys[0]), signed(certificate, *keys[:2])
    twice = tmp_path / "again.pub"
    twice.write_bytes(public[0].read_bytes())
    repeated = one.model_copy(update={"signatures": one.signatures * 2})
    for document, given, threshold, accepted in (
        (two, public[:2], None, True),
        (two, public, None, False),
        (two, public, 2, True),
        (one, [public[0], twice, public[1]], 2, False),  # one key counts once
        (repeated, public[:2], 2, False),
    ):
        assert rt.verify(document, key=given, threshold=threshold).accepted is accepted
    assert not verify(repeated).accepted
    for wrong in (0, 4):
        with pytest.raises((ArtifactError, ParameterError), match="threshold"):
            rt.verify(two, key=public, threshold=wrong)


def test_no_page_names_a_key_that_did_not_sign(certificate: Certificate) -> None:
    honest = signed(certificate, KEY)
    assert honest.signatures[0].keyid in page_of(honest)
    garbage = honest.signatures[0].model_copy(update={"value": "ab" * 64})
    forged = honest.model_copy(update={"signatures": (garbage,)})
    assert garbage.keyid not in page_of(forged)
    assert "not signed" in page_of(forged)
    assert not verify(forged).accepted


def test_both_documents_are_signed_and_a_signature_is_never_lost(certificate: Certificate, tmp_path: Path) -> None:
    files = write_certificate(certificate, tmp_path / "out", key=KEY)
    for path in (files.complete, files.public):
        assert signers(Certificate.load(path), [PUBLIC])
    unsigned = Certificate.load(files.public).model_copy(update={"signatures": ()})
    assert signers(unsigned, [PUBLIC], load_envelope(files.signature))
    before = files.complete.read_bytes()
    with pytest.raises(ArtifactError, match="--sign"):
        write_certificate(certificate, tmp_path / "out")
    assert files.complete.read_bytes() == before


def test_what_is_private_is_for_its_owner(certificate: Certificate, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        files = write_certificate(certificate, tmp_path / "out", include_private=True)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (files.complete, files.page, files.public)]
    assert modes == [0o600, 0o600, 0o644]
