"""Write certificates, all files of one together; a folder that holds another certificate is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reticent.certificates.build import public
from reticent.certificates.document.opening import opening_of
from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.signature import envelope_of, signed
from reticent.certificates.exports import EVERY, exported, is_as_made
from reticent.certificates.page.language import ENGLISH, language_of
from reticent.certificates.page.page import paged, render_html
from reticent.io.outputs import refuse_existing, write_together
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.text import one_of
from reticent.languages import languages as known_languages


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where a certificate was written.

    Attributes:
        complete: JSON with what depends on private data; not for publication.
        public: JSON for publication.
        page: HTML, in English.
        signature: detached envelope; exists only if a key was given.
        opening: what opens the commitments of the public document; private, and only of a run.
    """

    complete: Path
    public: Path
    page: Path
    signature: Path
    opening: Path


def write_certificate(
    certificate: Certificate,
    folder: Path,
    *,
    include_private: bool = False,
    languages: Sequence[str] = (),
    exports: Sequence[str] = (),
    key: Ed25519PrivateKey | Sequence[Ed25519PrivateKey] | None = None,
    overwrite: bool = False,
) -> CertificateFiles:
    """Write ``certificate.json`` (complete), ``certificate.public.json`` and ``certificate.html``.

    The page shows the public document unless ``include_private``; in each further language there is a page like it,
    such as ``certificate.de.html``. Each of ``exports`` is made from the public document and lies beside it. With keys
    both documents carry their signatures, and ``certificate.public.dsse.json`` is an envelope with the public one. What
    is private can be read by its owner only: the complete document, a page of it, and ``certificate.opening.json``.
    Files that already hold the same certificate are written anew; files that hold another one are left alone unless
    ``overwrite``, which replaces them, and takes away a signature that no longer fits. Pages in other languages and
    exports of an older certificate are taken away; an export that somebody changed stays, and is never written over.

    Raises:
        ArtifactError: the folder already holds a different certificate or other files of these names, or cannot be
            written; or there is no page in one of the languages.
        ParameterError: ``overwrite`` is neither True nor False, or there is no such export.
    """
    if not isinstance(overwrite, bool):
        raise ParameterError("overwrite", overwrite, "True or False")
    for name in exports:
        if name not in EVERY:
            raise ParameterError("exports", name, one_of(name, EVERY))
    made = {folder / file for name in exports for file in EVERY[name]}
    spoken = {one: language_of(one) for one in dict.fromkeys(languages) if one != ENGLISH}
    translated = {code: folder / f"certificate.{code}.html" for code in known_languages() if code != ENGLISH}
    ends = (".json", ".public.json", ".html", ".public.dsse.json", ".opening.json")
    files = CertificateFiles(*(folder / f"certificate{end}" for end in ends))
    keys = [] if key is None else [key] if isinstance(key, Ed25519PrivateKey) else list(key)

    def check() -> None:
        if files.complete.exists() and not overwrite:
            _refuse_to_lose(Certificate.load(files.complete), certificate, files.complete, signing=bool(keys))
        elif not files.complete.exists():  # without a certificate, such files are somebody's own
            for path in (*(getattr(files, field.name) for field in fields(files)), *translated.values()):
                refuse_existing(path)
        for path in made - set(earlier):
            refuse_existing(path)

    earlier = [path for one in EVERY.values() for file in one if is_as_made(path := folder / file)]
    check()
    shown, opens = public(certificate), opening_of(certificate)
    if include_private and not certificate.signatures:
        certificate = paged(certificate)
    certificate, shown = signed(certificate, *keys), signed(shown, *keys)
    contents = {files.complete: certificate.to_json(), files.public: shown.to_json()}
    if keys:
        contents[files.signature] = envelope_of(shown).to_json()
    if opens is not None:
        contents[files.opening] = opens.to_json()
    pages = {files.page: language_of(ENGLISH)} | {translated[code]: language for code, language in spoken.items()}
    for path, language in pages.items():
        contents[path] = render_html(certificate if include_private else shown, language)
    for name in exports:
        contents |= {folder / file: text for file, text in exported(shown, name).items()}
    write_together(
        {path: text.encode() for path, text in contents.items()},
        private=(files.complete, files.opening, *(pages if include_private else ())),
        gone=[*translated.values(), *earlier, *([files.signature] if overwrite else [])],
        check=check,
    )
    return files


def _refuse_to_lose(present: Certificate, new: Certificate, path: Path, *, signing: bool) -> None:
    apart = {"signatures": (), "pages": {}, "content_sha256": ""}  # whether its own page was written is no matter
    if present.model_copy(update=apart) != new.model_copy(update=apart):
        raise ArtifactError(
            f"{path} holds a different certificate; choose another folder (--out), or in Python overwrite=True"
        )
    if present.signatures and not signing:
        raise ArtifactError(f"{path} holds this certificate with a signature; say --sign or choose another --out")
