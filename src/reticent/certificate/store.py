"""Writing certificates: atomic, and never over something that says something else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reticent._strict import write_atomic
from reticent.certificate.build import public
from reticent.certificate.render import render_html
from reticent.certificate.schema import Certificate
from reticent.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where a certificate was written."""

    complete: Path
    public: Path
    page: Path


def write_certificate(certificate: Certificate, folder: Path, *, include_private: bool = False) -> CertificateFiles:
    """Write ``certificate.json`` (complete), ``certificate.public.json`` and ``certificate.html``.

    The page shows the public part unless ``include_private``. Files that already hold the same certificate
    are written anew; files that hold another one are left alone.

    Raises:
        ArtifactError: the folder already holds a different certificate, or cannot be written.
    """
    files = CertificateFiles(
        folder / "certificate.json", folder / "certificate.public.json", folder / "certificate.html"
    )
    if files.complete.exists() and Certificate.load(files.complete) != certificate:
        raise ArtifactError(f"{files.complete} holds a different certificate; choose another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(files.public, public(certificate).to_json().encode())
        write_atomic(files.page, render_html(certificate, include_private=include_private).encode())
        write_atomic(files.complete, certificate.to_json().encode())
    except OSError as error:
        raise ArtifactError(f"cannot write {folder}: {error.strerror}") from None
    return files
