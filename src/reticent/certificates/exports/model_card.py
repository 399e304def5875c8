"""A block for a model card on Hugging Face: metadata and a section in Markdown."""

from __future__ import annotations

import yaml

from reticent.certificates.document.schema import OWN_WORDS, Certificate, CertifiedAssessment
from reticent.certificates.document.sentences import even_guess, percent, persons
from reticent.certificates.exports.wording import asked, plain, reserved, unit_in_words
from reticent.certificates.page import words
from reticent.kernel.text import digits


def block(certificate: Certificate) -> str:
    """Metadata between lines of dashes, and a section *Privacy*: the headline, a row an attacker, what it rests on."""
    metadata = yaml.safe_dump({"tags": ["differential-privacy"]}).rstrip()
    declared = [f"{name}: {text}" for name in _SHOWN if (text := getattr(certificate.declared, name))]
    rests = [
        f"{status}: {line}" + (f" ({', '.join(map(str, who))})" if who else "")
        for status, found in words.every_condition(certificate).items()
        for line, who in found
    ]
    rows = ["| attacker | between | claim | right guesses | epsilon |", "|---|---|---|---|---|"]
    rows += map(_row, certificate.assessments)
    lines = ["---", metadata, "---", "", "## Privacy", "", plain(certificate.headline), ""]
    lines += [f"Protected: {unit_in_words(persons(certificate.mechanism))}.", ""]
    lines += [*(f"- {plain(one)}" for one in (*reserved(certificate), *asked(certificate))), "", *rows, ""]
    lines += ["What the numbers rest on:", "", *(f"- {plain(one)}" for one in rests), ""]
    return "\n".join([*lines, "What the issuer declares:", "", *(f"- {plain(one)}" for one in declared), ""])


_SHOWN = (*OWN_WORDS, "created", "expires")


def _row(record: CertifiedAssessment) -> str:
    """One attacker: the share of right guesses where both answers are equally likely, and epsilon at each delta."""
    stated = [(float(delta), number.value) for delta, number in record.epsilon_at_delta.items()]
    epsilons = [f"{'inf' if value is None else digits(value, up=True)} at delta {delta:g}" for delta, value in stated]
    guessed = percent(even_guess(record), up=True)
    cells = (record.label, record.neighbouring, record.claim, f"{guessed} (50% without the model)", ", ".join(epsilons))
    return f"| {' | '.join(map(plain, cells))} |"
