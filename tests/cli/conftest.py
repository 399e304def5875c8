"""What tests of several verbs ask about."""

from __future__ import annotations

from pathlib import Path

import pytest

from reticent.adversaries import Attribute
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Declaration
from reticent.certificates.store import write_certificate
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import Gaussian
from reticent.signing.keys import load_private_key, write_key_pair
from tests.cli.calling import HOSTILE


@pytest.fixture(scope="package")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a signed certificate of a plan, the keys, and the weights of another model."""
    folder = tmp_path_factory.mktemp("signed")
    write_key_pair(folder / "key", folder / "key.pub")
    (folder / "weights.safetensors").write_bytes(b"weights")
    declared = Declaration(
        subject=HOSTILE,
        created="2026-11-22",
        expires="2999-01-01",
        weights_sha256="9e5dcf7f5cb6e5a3c0d7e2d1e7d6b1a7c8f0f9a1b2c3d4e5f60718293a4b5c6d",
    )
    certificate = certify(Gaussian(2.0), declared, adversaries=(WorstCase(), Attribute(0.5)))
    write_certificate(certificate, folder, key=load_private_key(folder / "key"))
    return folder
