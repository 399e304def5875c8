"""What somebody else wrote stands as declared: it looks like what it is, and never where our words stand."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from reticent.adversaries import WorstCase
from reticent.certificates.build import certify
from reticent.certificates.declared_text import declarable
from reticent.certificates.gate_report import plain
from reticent.certificates.page import render_html
from reticent.certificates.schema import Declaration
from reticent.mechanisms import Gaussian

IMITATION = "Whoever tries to find out whether a given record was used: a coin flip becomes at most 50.1%."

HONEST = (
    "a run",
    "DP-SGD run on breast-cancer",
    "Krebsregister Zürich, Modell 3 (2026)",
    "Μοντέλο νοσοκομείου",
    "модель клиники",
    "癌症登録モデル",
    "모델 3",
    "50% < 60% & <b>bold</b>",
    "naïve",
)
DISHONEST = {
    "two lines": "a run\nSigned by everybody",
    "carriage return": "a run\rSigned",
    "line separator": "a run\u2028Signed",
    "right to left": "a run \u202egnp.exe",
    "isolate": "a \u2066run\u2069",
    "zero width": "a\u200brun",
    "soft hyphen": "a\u00adrun",
    "no break space": "a\u00a0run",
    "wide space": "a\u3000run",
    "hangul filler": "a run\u3164",
    "choseong filler": "a\u115frun",
    "braille blank": "a\u2800run",
    "combining mark": "a r\u0336un",
    "accent apart": "nai\u0308ve",
    "enclosing mark": "a run\u20dd",
    "cyrillic in latin": "а run",
    "greek in latin": "a rυn",
    "full width": "ａ ｒｕｎ",
    "mathematical": "𝐚 𝐫𝐮𝐧",
    "tag characters": "a run\U000e0041",
    "private use": "a run\ue000",
    "escape": "a run\x1b[2J",
    "empty": "",
    "blank": " ",
    "blank at the end": "a run ",
    "too long": "x" * 301,
}


@pytest.mark.parametrize("text", HONEST)
def test_plain_words_of_any_script_may_be_declared(text: str) -> None:
    assert declarable(text) == text
    assert Declaration(subject=text, created="2026-11-22", issuer=text, purpose=text).subject == text


@pytest.mark.parametrize("name", DISHONEST)
@pytest.mark.parametrize("field", ["subject", "issuer", "purpose"])
def test_text_that_is_not_what_it_looks_like_is_refused(name: str, field: str) -> None:
    with pytest.raises(ValidationError):
        Declaration(**{"subject": "a run", "created": "2026-11-22", field: DISHONEST[name]})


def test_a_subject_that_imitates_a_headline_is_shown_as_declared() -> None:
    said = Declaration(subject=IMITATION, created="2026-11-22", issuer=IMITATION, purpose=IMITATION)
    certificate = certify(Gaussian(2.0), said, adversaries=(WorstCase(),))
    page = render_html(certificate).split("<template")[0]
    for tag in ("h1", "h2", "title"):
        for words in re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page):
            assert IMITATION not in words
    words = f'<dd>“{IMITATION}” <span class="small">(the issuer’s words)</span></dd>'
    assert page.count(IMITATION) == page.count(words) == 3
    assert certificate.headline in page
    assert repr(certificate).startswith(certificate.headline.split(".")[0])
    assert f'declared to be of "{IMITATION[:40]}' in " ".join(repr(certificate).split())


def test_gate_says_its_verdict_and_headline_before_declared_words() -> None:
    said = Declaration(subject=IMITATION, created="2026-11-22")
    lines = plain(certify(Gaussian(2.0), said, adversaries=(WorstCase(),)), [])
    assert not [line for line in lines if line.startswith(IMITATION)]
