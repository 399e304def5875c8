"""An entry for the registry of deployments of differential privacy that OpenDP keeps.

Its schema of 2026-07-15 is the one that tests compare with (opendp/deployments-registry-data). What a certificate does
not know stays out, or says so where the schema demands a text: an entry is a draft that its author completes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import yaml

from reticent.certificates.document.schema import Certificate, CertifiedAssessment
from reticent.certificates.document.sentences import parts_in, persons
from reticent.certificates.exports.wording import asked, plain, reserved, unit_in_words
from reticent.certificates.page import facts, words
from reticent.kernel.risk.questions import MEASURES
from reticent.kernel.text import digits

NOT_STATED = "Not stated in the certificate."
_ADJACENT = {
    "add-remove": "one of two data sets has one unit more than the other",
    "replace": "two data sets of the same size differ in one unit",
    "zero-out": "in one of two data sets the contribution of one unit is set to zero",
}


def entry(certificate: Certificate) -> str:
    """The entry as YAML, with status ``Draft`` and tier 1.

    Epsilon is that of the worst case at the smallest delta that the certificate states, rounded up.
    """
    declared, worst = certificate.declared, certificate.assessments[0]
    curator = plain(declared.issuer or NOT_STATED)
    slug = re.sub(r"[^a-z0-9]+", "-", declared.subject.lower()).strip("-")
    unit = unit_in_words(persons(certificate.mechanism))
    of_measures = {key for one in MEASURES.values() for key in one.theorems}
    theorems = ", ".join(key for key in worst.theorems if key not in of_measures)
    basic = {
        "name": plain(declared.subject),
        "data_curators": [curator],
        "intended_use": plain(declared.purpose or NOT_STATED),
        "data_product_type": "Machine learning model" if _trains(certificate) else "Summary statistics",
        "data_product_region": NOT_STATED,
        "description": NOT_STATED,
        "publication_date": declared.created[:10],
    }
    loss = {
        "privacy_unit": unit,
        "privacy_unit_details": f"{worst.neighbouring}: {_ADJACENT[worst.neighbouring]}. A unit is {unit}.",
        "privacy_parameters": _parameters(worst),
        "privacy_parameters_details": _lines([certificate.headline, *asked(certificate)]),
    }
    found = {
        "url_slug": f"{slug}-{certificate.content_sha256[:8]}".strip("-"),
        "status": "Draft",
        "tier": 1,
        "deployment": {
            "basic": basic,
            "dp_variant": {"variant_name": "Approximate DP" if loss["privacy_parameters"] else "Custom"},
            "privacy_loss": loss,
            "accounting": {"composition": f"Trade-off curves ({worst.method}), theorems of reticent: {theorems}."},
            "implementation": {"mechanisms": _mechanisms(certificate)},
            "administrative": {"notes": _notes(certificate), "registry_authors": [curator]},
        },
    }
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120)


def _lines(found: Iterable[str]) -> str:
    return "\n".join(f"- {plain(line)}" for line in found)


def _parameters(worst: CertifiedAssessment) -> dict[str, float]:
    """(epsilon, delta) at the smallest delta at which a finite epsilon is proven; none where there is no such delta."""
    known = {float(delta): number.value for delta, number in worst.epsilon_at_delta.items() if number.value is not None}
    if not known:
        return {}
    delta = min(known)
    return {"epsilon": float(digits(known[delta], up=True)), "delta": delta}


def _trains(certificate: Certificate) -> bool:
    """Whether some part is DP-SGD, or a program watched it train."""
    return certificate.ledger is not None or any(part["kind"] == "dpsgd" for part in parts_in(certificate.mechanism))


def _mechanisms(certificate: Certificate) -> str:
    stated = [f"{before}{label}: {value}" for before, (label, value) in facts.facts(certificate)]
    return _lines([*stated, f"accounted for by reticent {certificate.reticent_version}"])


_DRAFT = (
    "A draft that was made from a certificate. The publication date is the date of the certificate. Nobody stated of "
    "what type the data product is, nor who writes this entry."
)


def _notes(certificate: Certificate) -> str:
    """What the author has to complete, what a reader must know, and everything that the worst case rests on."""
    every = words.conditions(certificate).items()
    of_worst = [f"{status}: {line}" for status, found in every for line, _ in found]
    return _lines([_DRAFT, *reserved(certificate), *of_worst])
