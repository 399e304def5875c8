"""Write certificates in one rename each; a file that holds another certificate is left alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reticent._strict import write_atomic
from reticent.certificate.build import public
from reticent.certificate.page import render_html
from reticent.certificate.schema import Certificate
from reticent.certificate.signature import sign, signed
from reticent.errors import ArtifactError
from reticent.io.outputs import refuse_existing


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where a certificate was written.

    Attributes:
        complete: JSON with what depends on private data; not for publication.
        public: JSON for publication.
        page: HTML.
        signature: detached; exists only if a key was given.
    """

    complete: Path
    public: Path
    page: Path
    signature: Path


def write_certificate(
    certificate: Certificate,
    folder: Path,
    *,
    include_private: bool = False,
    key: Ed25519PrivateKey | None = None,
    overwrite: bool = False,
) -> CertificateFiles:
    """Write ``certificate.json`` (complete), ``certificate.public.json`` and ``certificate.html``.

    The page shows the public document unless ``include_private``. With a key both documents carry a signature,
    and ``certificate.public.json.sig`` holds that of the public one for those who keep them apart. Files that
    already hold the same certificate are written anew; files that hold another one are left alone unless ``overwrite``,
    which replaces them, and takes away a signature that no longer fits.

    Raises:
        ArtifactError: the folder already holds a different certificate or other files of these names, or cannot be
            written.
    """
    files = CertificateFiles(
        *(folder / f"certificate{end}" for end in (".json", ".public.json", ".html", ".public.json.sig"))
    )
    if files.complete.exists() and not overwrite:
        _refuse_to_lose(Certificate.load(files.complete), certificate, files.complete, signing=key is not None)
    else:  # what lies beside no certificate is somebody's own
        for field in fields(files):
            refuse_existing(getattr(files, field.name))
    shown = public(certificate)
    if key is not None:
        certificate, shown = signed(certificate, key), signed(shown, key)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if overwrite and key is None:
            files.signature.unlink(missing_ok=True)
        write_atomic(files.public, shown.to_json().encode())
        if key is not None:
            write_atomic(files.signature, (sign(shown, key).model_dump_json(indent=1) + "\n").encode())
        write_atomic(files.page, render_html(certificate if include_private else shown).encode())
        write_atomic(files.complete, certificate.to_json().encode())
    except OSError as error:
        raise ArtifactError(f"cannot write {folder}: {error.strerror}") from None
    return files


def _refuse_to_lose(present: Certificate, new: Certificate, path: Path, *, signing: bool) -> None:
    if present.model_copy(update={"signature": None}) != new.model_copy(update={"signature": None}):
        raise ArtifactError(f"{path} holds a different certificate; choose another --out")
    if present.signature is not None and not signing:
        raise ArtifactError(f"{path} holds this certificate with a signature; say --sign or choose another --out")
