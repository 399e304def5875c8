"""What somebody else wrote stands as declared: it looks like what it is, and never where our words stand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

import reticent as rt
from reticent.certificates.document.declared_text import declarable
from reticent.certificates.document.requirements import Check
from reticent.certificates.document.schema import Declaration
from reticent.certificates.gate_report import junit, markdown, plain
from reticent.certificates.page.page import render_html
from reticent.kernel.mechanisms import Gaussian
from tests.certificates.conftest import make_ledger
from tests.certificates.ledgers import poisson
from tests.certificates.making import of

IMITATION = "Whoever tries to find out whether a given record was used: a coin flip becomes at most 50.1%."
HONEST = (
    "DP-SGD run on breast-cancer",
    "Krebsregister Zürich, Modell 3 (2026)",
    "Μοντέλο νοσοκομείου",
    "модель сахара и роста",
    "癌症登録モデル",
    "모델 3",
    "50% < 60% & <b>bold</b>",
    "l'hôpital d’Évreux, modèle de l'été",
    'the "first" model, μ-net',
)
NO_LINE = {
    "two lines": "a run\nSigned by everybody",
    "line separator": "a run\u2028Signed",
    "right to left": "a run \u202egnp.exe",
    "private use": "a run\ue000",
    "empty": "",
    "blank at the end": "a run ",
    "too long": "x" * 301,
}


def test_plain_words_of_any_script_may_be_declared() -> None:
    for text in HONEST:
        assert declarable(text) == text
        assert Declaration(subject=text, created="2026-11-22", issuer=text, purpose=text).subject == text


@pytest.mark.parametrize("name", NO_LINE)
def test_text_that_is_no_line_is_refused(name: str) -> None:
    for field in ("subject", "issuer", "purpose"):
        with pytest.raises(ValidationError):
            Declaration(**{"subject": "a run", "created": "2026-11-22", field: NO_LINE[name]})


def test_a_subject_that_imitates_a_headline_is_shown_as_declared() -> None:
    said = Declaration(subject=IMITATION, created="2026-11-22", issuer=IMITATION, purpose=IMITATION)
    certificate = of(Gaussian(2.0), declared=said)
    page = render_html(certificate).split("<template")[0]
    for tag in ("h1", "h2", "title"):
        assert not [words for words in re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page) if IMITATION in words]
    words = f"<dd>“{IMITATION}”</dd>"
    assert "In quotation marks: the issuer’s own words, which nobody checked." in page
    assert page.count(IMITATION) == page.count(words) == 3
    assert certificate.headline in page
    assert repr(certificate).startswith(certificate.headline.split(".")[0])
    assert f'declared to be of "{IMITATION[:40]}' in " ".join(repr(certificate).split())
    assert not [line for line in plain(certificate, []) if line.startswith(IMITATION)]


def test_a_subject_that_nobody_gave_is_not_said_to_be_the_issuers() -> None:
    """Ours stand where the issuer gives none: of parameters, a loop, several releases and a run."""
    plan, named = rt.Gaussian(2.0), {"publish": ("names",)}
    for what, how in ((plan, {}), (poisson(), {}), ([plan, plan], {}), (make_ledger(), {}), (make_ledger(), named)):
        for subject in (None, "our model"):
            document = rt.certify(what, subject=subject, **how).certificate
            report = ("\n".join(plain(document, [])), markdown(document, []), junit(document, []))
            for text in (*report, repr(document)):
                assert bool(re.search("declares|declared to be", text)) is (subject is not None)
            assert ("<dd>“" in render_html(document)) is (subject is not None)


FOREIGN = (
    "https://example.org/safe",
    "@octocat",
    "GH-1",
    "see #1",
    "www.example.org",
    "a@example.org",
    "PROJ-12",
    "!3",
)
MORE = ("`@me` | x", ":tada:", "owner/name@0123abcdef", "[a](b) @c", "\\`@x`", "gh-7", "HTTP://x.org", "a#2")
LINKED = re.compile(r"[@#!]\w|://|www\.|\w-\d|:\w+:|[0-9a-f]{7}", re.IGNORECASE)


@pytest.mark.parametrize("text", FOREIGN + MORE)
def test_what_markdown_would_link_is_kept_apart(text: str) -> None:
    """Places that show Markdown make links of addresses, people, issues and commits in plain text."""
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    assert LINKED.search(text)
    certificate = of(Gaussian(2.0), declared=Declaration(subject=text, created="2026-11-22"))
    tokens = reader.parse(markdown(certificate, [Check(text, False, text)], [text]))
    lines = [one for one in tokens if text in "".join(shown(one)).replace("\u200b", "")]
    assert len(lines) == 4
    for line in lines:
        assert not LINKED.search("".join(shown(line)))
        assert {inside.type for inside in line.children} == {"text"}


def shown(token: Any) -> list[str]:
    return [inside.content for inside in token.children or ()]
