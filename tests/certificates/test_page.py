"""The page: a pure function of its document, inert whoever wrote the names, and readable without a script."""

from __future__ import annotations

import hashlib
import math
import random
import re
from decimal import Decimal
from html.parser import HTMLParser

import pytest

import reticent as rt
from reticent.adversaries import MembershipGame
from reticent.certificates.build import certify, public
from reticent.certificates.document.schema import Certificate, CertifiedAssessment, Declaration
from reticent.certificates.document.sentences import above_blind
from reticent.certificates.page.language import language_of
from reticent.certificates.page.page import embedded, first_difference, is_page, render_html
from reticent.certificates.page.words import EVERYWHERE
from reticent.kernel.adversaries import WorstCase, everybody
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import Gaussian
from reticent.kernel.risk.questions import Questions
from reticent.kernel.text import printable
from tests.certificates.ledgers import poisson

HOSTILE = "<script>alert(1)</script></title></template>'&{{ 7*7 }}"


@pytest.fixture(scope="module")
def page(certificate: Certificate) -> str:
    return render_html(public(certificate))


class Reader(HTMLParser):
    """Tags and visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_under_which_of_two_records_nobody_wants_to_know_whether_this_record_was_used(page: str) -> None:
    about = re.findall(r"<dt>[^<]* \(replace\)</dt><dd>(.*?)</dd>", page)
    assert len(about) >= 2
    assert any("Wants to know which of two possible records was used." in one for one in about)
    assert not any("Wants to know whether this record was used" in one for one in about)


def test_it_holds_the_document_and_renders_to_itself(certificate: Certificate, page: str) -> None:
    document = embedded(page, "page")
    assert document == public(certificate)
    assert is_page(page)
    assert first_difference(page, document) is None


def test_a_page_with_one_changed_character_is_refused(page: str) -> None:
    document = embedded(page, "page")
    visible = [i for i, c in enumerate(page[: page.index("<template")]) if c.isalnum()]
    for at in random.Random(3).sample(visible, 12):  # noqa: S311
        changed = page[:at] + ("x" if page[at] != "x" else "y") + page[at + 1 :]
        assert first_difference(changed, document) is not None
    number = re.search(r"\d\d\.\d%", page)
    assert number is not None
    assert first_difference(page.replace(number.group(), "01.0%"), document) is not None
    assert first_difference(page + "<p>Audited.</p>", document) is not None
    assert first_difference(page[:-2], document) is not None


def test_a_page_whose_document_was_changed_is_refused(page: str) -> None:
    forged = page.replace("&quot;claim&quot;: &quot;bound&quot;", "&quot;claim&quot;: &quot;estimate&quot;", 1)
    assert forged != page
    assert first_difference(forged, embedded(forged, "page")) is not None


@pytest.mark.parametrize("text", ["<html></html>", '<template id="certificate">{}', '<template id="certificate">' * 2])
def test_a_page_without_one_document_is_one_line(text: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        embedded(text, "page")
    assert "\n" not in str(caught.value)


def test_the_hash_shown_is_that_of_the_file_named(certificate: Certificate) -> None:
    for document, name in ((certificate, "certificate.json"), (public(certificate), "certificate.public.json")):
        shown = re.search(r"SHA-256 of the file <code>(.*?)</code>: <code>(.*?)</code>", render_html(document))
        assert shown is not None
        assert shown.groups() == (name, hashlib.sha256(document.to_json().encode()).hexdigest())


def test_hostile_text_is_inert_and_nothing_is_fetched() -> None:
    declared = Declaration(subject=HOSTILE, created="2026-11-22", issuer=HOSTILE, purpose=HOSTILE)
    document = certify(Gaussian(2.0), declared, adversaries=(WorstCase(),))
    page = render_html(document)
    reader = Reader(page)
    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "base"})
    for tag, attributes in reader.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"], tag
        assert (attributes.get("href") or "#").startswith("#"), tag
    before = page[: page.index("<template")]
    assert "{{ 7*7 }}" in before
    assert [tag for tag, _ in reader.tags].count("template") == 1
    assert embedded(page, "page") == document


def test_it_names_every_attacker_and_every_reason(certificate: Certificate, page: str) -> None:
    text = " ".join(" ".join(Reader(page).text).split())
    assert certificate.headline in text
    for name in (str(kind.title) for kind in everybody().values()):
        assert name in text
    assert "rest on private data" in text
    for theorem in public(certificate).theorems.values():
        assert theorem.conditions in text
    assert len(EVERYWHERE) <= 12
    for pointer in ("EDPB Opinion 28/2024", "NIST SP 800-226", "GDPR Article 35"):
        assert pointer in text
    assert "errata" not in text


def test_an_attacker_has_one_name_in_every_table_picture_and_note(certificate: Certificate, page: str) -> None:
    names = {record.adversary for record in certificate.assessments}
    heads = re.findall(r'<th scope="row">([^<]+)<', page)
    legend = re.findall(r"</svg> ([^<]+)</li>", page)[:-1]
    about = re.findall(r'<span class="small">\(([^)]+)\)</span></li>', page)
    assert heads
    assert legend
    assert about
    for found in (*heads, *legend, *about):
        each = re.split("[,;] ", re.sub(r" \((add-remove|replace|zero-out)\)", "", found))
        assert set(each) <= names | {"all attackers", "blind guess"}, found


@pytest.mark.parametrize(
    ("blind", "share", "shown"),
    [
        (0.9, 0.9, "90%"),
        (0.9, 0.90000001, "90.000001%"),
        (0.9, 0.900000011, "90.000002%"),
        (0.9, 0.90000413, "90.0005%"),
        (0.9, 0.9042, "90.5%"),
        (1.0 - 0.07, 0.93000001, "93.000001%"),
        (0.01, 0.010000001, "1.0000001%"),
        (0.01, 0.0225, "2.3%"),
        (0.999, 1.0, "100%"),
    ],
)
def test_a_small_gain_over_the_blind_guess_is_shown_small_and_never_too_small(
    blind: float, share: float, shown: str
) -> None:
    assert str(above_blind(blind, share)) == shown
    assert Decimal(shown.rstrip("%")) / 100 >= Decimal(repr(share))


def test_the_answer_says_what_an_accusation_is_worth() -> None:
    """The demo: of people of whom 1 in 10 is in the data, how many of those accused are."""
    demo = rt.dpsgd(noise_multiplier=4.0, batch_size=64, dataset_size=455, epochs=40)
    shown = render_html(rt.certify(demo, adversary="worst-case", subject="the demo", created="2026-01-01").certificate)
    assert "Accused, 1% false alarms" in shown
    assert ">at most 32.3%<" in shown
    assert ">at most 42.2%<" in shown
    assert (
        "accusations that are right, if 1 in 10 is in the data, independently of others, and nobody is known to "
        "be likelier; without the model 10%" in shown
    )
    assert "90.0" not in shown.partition("<h2")[2].partition("</table>")[0]


def test_beside_the_headline_is_how_sure_somebody_can_be_who_accuses_few() -> None:
    """At even odds, tpr / (tpr + fpr) of the accusations are right."""
    demo = rt.dpsgd(noise_multiplier=4.0, batch_size=64, dataset_size=455, epochs=40)
    both, declared = (WorstCase(), MembershipGame()), Declaration(subject="the demo", created="2026-01-01")
    document = certify(demo, declared, adversaries=both)
    used, versions = (
        one.tpr_at_fpr["0.001"].value / (one.tpr_at_fpr["0.001"].value + 0.001) for one in worst(document)
    )
    top = render_html(document).partition("<table")[0]
    said = re.search(
        r"can be surer: with 0\.1% false alarms, at most ([\d.]+)% of the accusations are right, if both", top
    )
    other = re.search(r"Asked which of two possible records was used: at most ([\d.]+)%\.", top)
    for found, share in ((said, used), (other, versions)):
        assert found is not None
        assert 0 <= float(found[1]) - 100 * share < 0.11
    assert 0.5 < used < versions < 1
    rare = {
        language_of("en"): "where 1 in 10 is accused",
        language_of("de"): "1 von 10 zu Recht",
        language_of("fr"): "1 sur 10 est",
    }
    for language, words in rare.items():  # the table has another prior than this sentence, and smaller shares
        assert words in render_html(document, language).partition("<table")[0]
    for asked in (Questions(fprs=(0.1,)), Questions(priors=(0.1,))):
        assert "can be surer" not in render_html(certify(demo, declared, adversaries=both[:1], questions=asked))


def worst(document: Certificate) -> list[CertifiedAssessment]:
    return [one for one in document.assessments if one.adversary == "worst-case"]


def test_a_secret_is_on_the_page_where_it_was_asked_for_with_what_it_needs() -> None:
    asked = rt.certify(Gaussian(2.0), subject="x", created="2026-01-01", secret_bits=math.log2(10_000), guesses=10)
    shown = render_html(asked.certificate)
    table = shown.partition('id="secret"')[2].partition('id="conditions"')[0]
    assert '<td class="n">0.1%</td>' in table
    assert "at most 0.48%" in table
    assert table.count("relaxed") == 0
    assert "no value is likelier" in table
    assert "no value is likelier" not in shown.partition('id="conditions"')[2].partition("<template")[0]
    assert asked.verify().accepted
    assert 'id="secret"' not in render_html(rt.certify(Gaussian(2.0), created="2026-01-01").certificate)


def test_private_numbers_are_marked(certificate: Certificate, page: str) -> None:
    assert "Do not publish" not in page
    assert "gradients were clipped" not in page
    complete = render_html(certificate)
    assert "Do not publish" in complete
    assert "gradients were clipped" in complete


def test_a_megabyte_is_shown_in_a_line() -> None:
    assert len(printable("W" * 1_000_000, 300)) < 400
    assert printable("a\nb\x00\u2028\ud800") == r"a\nb\x00\u2028\ud800"


@pytest.mark.parametrize(
    ("plan", "said"),
    [({"steps": 60}, "at most 60"), ({"steps": 12, "stop_at": "mu=9"}, "at most 12, where the watch stops at mu=9")],
)
def test_a_plan_is_on_the_page(plan: dict[str, object], said: str) -> None:
    page = render_html(rt.certify(poisson(facts={"planned-steps": plan}), subject="s").certificate)
    assert "planned steps" in page
    assert said in page[: page.index("<template")]
