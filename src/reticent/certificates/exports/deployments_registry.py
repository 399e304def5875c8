"""An entry for the registry of deployments of differential privacy that OpenDP keeps.

Its schema of 2026-07-15 is the one that tests compare with (opendp/deployments-registry-data). What a certificate does
not know stays out, or says so where the schema demands a text: an entry is a draft that its author completes.
"""

from __future__ import annotations

import re

import yaml

from reticent.certificates.document.schema import Certificate, CertifiedAssessment
from reticent.certificates.document.sentences import Protected, parts_in, persons
from reticent.certificates.page import facts, words
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.text import digits

NOT_STATED = "Not stated in the certificate."
_ADJACENT = {
    "add-remove": "one of two data sets has one unit more than the other",
    "replace": "two data sets of the same size differ in one unit",
    "zero-out": "in one of two data sets the contribution of one unit is set to zero",
}


def entry(certificate: Certificate) -> str:
    """The entry as YAML, with status ``Draft`` and tier 2.

    Epsilon is that of the worst case at the smallest delta that the certificate states, rounded up.
    """
    declared, worst = certificate.declared, certificate.assessments[0]
    curator = declared.issuer or NOT_STATED
    loss = {
        "privacy_unit": unit_in_words(persons(certificate.mechanism)),
        "privacy_unit_details": f"{worst.neighbouring}: {_ADJACENT[worst.neighbouring]}.",
        "privacy_parameters": _parameters(worst),
        "privacy_parameters_details": certificate.headline,
    }
    found = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", f"{declared.subject} {declared.created[:4]}".lower()).strip("-"),
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": {
                "name": declared.subject,
                "data_curators": [curator],
                "intended_use": declared.purpose or NOT_STATED,
                "data_product_type": "Machine learning model" if _trains(certificate) else "Summary statistics",
                "data_product_region": NOT_STATED,
                "description": NOT_STATED,
                "publication_date": declared.created[:10],
            },
            "dp_variant": {"variant_name": "Approximate DP" if loss["privacy_parameters"] else "Custom"},
            "privacy_loss": loss,
            "accounting": {"composition": f"Trade-off curves, {worst.method}; {', '.join(worst.theorems)}."},
            "implementation": {"mechanisms": _mechanisms(certificate)},
            "administrative": {"notes": _rests_on(certificate), "registry_authors": [curator]},
        },
    }
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120)


def unit_in_words(records: Protected) -> str:
    """Whom the numbers protect."""
    if isinstance(records, Unit):
        return "one client, with all of its records"
    if records is None:
        return "one record; nobody stated how many records a person can have"
    return f"one person, with up to {records} records" if records > 1 else "one person, who has one record"


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
    lines = [f"- {before}{label}: {value}" for before, (label, value) in facts.facts(certificate)]
    return "\n".join([*lines, f"- accounted for by reticent {certificate.reticent_version}"])


def _rests_on(certificate: Certificate) -> str:
    """Everything that the numbers of the worst case rest on, and what the certificate warns of."""
    every = words.conditions(certificate).items()
    of_worst = [
        f"- {status}: {line}" for status, found in every for line, who in found if not who or WorstCase.name in who
    ]
    return "\n".join(["The numbers rest on:", *of_worst, *(f"- warning: {one.text}" for one in certificate.warnings)])
