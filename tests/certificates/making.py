"""Certificates, pages, policies and keys, as small as tests of what is said about them need."""

from __future__ import annotations

import html
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reticent.adversaries import Attribute, MembershipGame
from reticent.certificates.build import certify
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.page.language import language_of
from reticent.certificates.page.page import render_html
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.records.ledger import RunLedger
from reticent.signing.keys import load_private_key, write_key_pair
from tests.certificates.conftest import make_ledger

DECLARED = Declaration(subject="a release", created="2026-11-22")
RUN = DPSGD(2.0, 0.25, 10, batch_size=5, num_parameters=8, records_per_user=1)
BOTH = (WorstCase(), MembershipGame())
"""They ask both questions of a page."""
MOST: dict[str, Any] = {"measure": "advantage", "at_most": 0.999}
"""A limit that hardly anything breaks."""


def of(mechanism: Mechanism, *who: Adversary, declared: Declaration = DECLARED, **more: Any) -> Certificate:
    """The certificate of these attackers; the worst case where nobody is named."""
    return certify(mechanism, declared, adversaries=who or (WorstCase(),), **more)


def of_ledger(ledger: RunLedger) -> Certificate:
    """What a ledger says of the worst case."""
    return of(ledger.mechanism(), ledger=ledger)


@cache
def small_certificate() -> Certificate:
    """Few leaves, every kind of them."""
    run = make_ledger(sample_rate=1.0)
    return of(run.mechanism(), WorstCase(), Attribute(0.5), ledger=run)


def with_first(certificate: Certificate, **changes: object) -> Certificate:
    """The first assessment says something else."""
    first, *others = certificate.assessments
    return certificate.model_copy(update={"assessments": [first.model_copy(update=changes), *others]})


def policy(*limits: dict[str, Any], **more: Any) -> Policy:
    return Policy.model_validate({"schema": "reticent.policy/1", "limits": list(limits), **more})


def key_in(folder: Path, name: str = "key") -> Ed25519PrivateKey:
    """A new key, with its files in a folder."""
    write_key_pair(folder / name, folder / f"{name}.pub")
    return load_private_key(folder / name)


def page_of(certificate: Certificate, code: str = "en") -> str:
    """What the page shows, without the document in it; each blank once, and nothing escaped."""
    return html.unescape(" ".join(render_html(certificate, language_of(code)).partition("<template")[0].split()))
