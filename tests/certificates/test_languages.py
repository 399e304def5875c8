"""The page in other languages: nothing is missing, nothing is stale, nothing false passes for a translation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

import reticent
from reticent.adversaries import FinalModel, Membership, Mixed, Relaxed, WorstCase
from reticent.certificates.build import certify, public
from reticent.certificates.catalogue import PLACEHOLDER, Message, catalogue, languages, parse
from reticent.certificates.check import read_document
from reticent.certificates.language import Translation, language_of
from reticent.certificates.page import embedded, first_difference, page_language, render_html
from reticent.certificates.schema import Certificate, Declaration
from reticent.certificates.store import write_certificate
from reticent.errors import ArtifactError
from reticent.mechanisms import (
    DPSGD,
    FilteredGaussian,
    Gaussian,
    Guarantee,
    Laplace,
    Ledger,
    MatrixMechanism,
    RandomisedResponse,
    Selection,
)
from reticent.mechanisms.units import Unit
from reticent.pairs import Geometric
from reticent.risk.report import Questions
from reticent.samplers import Shuffled
from tests.certificates.ledgers import poisson, secure_loop, shuffled
from tests.certificates.listed_messages import listed
from tests.certificates.test_page_answers import POLICY

TRANSLATED = [code for code in languages() if code != "en"]
DECLARED = Declaration(subject="s", created="2026-01-01")
NOTHING_ACCEPTED = POLICY.model_copy(update={"accept_conditions": ()})
SECRET = Questions(fprs=(0.01,), priors=(0.5, 0.1), secret_bits=(13.29,), guesses=(10,))


def kinds() -> dict[str, Certificate]:
    who = (WorstCase(), Relaxed(5), Mixed(0.5, 5), Membership())
    person = DPSGD(2.0, 0.25, 8, batch_size=5, records_per_user=3)
    return {
        "plan": certify(DPSGD(2.0, 0.25, 8, batch_size=5), DECLARED, adversaries=who, policy=POLICY),
        "person": certify(person, DECLARED, adversaries=who[:2]),
        "one record each": certify(DPSGD(2.0, 0.25, 8, records_per_user=1), DECLARED, questions=SECRET),
        "clients": certify(DPSGD(2.0, 0.25, 8, unit=Unit.CLIENT), DECLARED, adversaries=who[:3]),
        "several": certify(Ledger((Gaussian(2.0), Laplace(3.0))), DECLARED, adversaries=who[:1]),
        "selection": certify(Selection(Gaussian(3.0), Geometric(5)), DECLARED, adversaries=who[:1]),
        "final": certify(DPSGD(3.0, 1.0, 8), DECLARED, adversaries=(WorstCase(), FinalModel(0.9))),
        "a question without an answer": certify(Laplace(3.0, sample_rate=0.5), DECLARED),
        "shuffled": certify(DPSGD(3.0, 0.25, 8, sampler=Shuffled()), DECLARED, adversaries=who[:1]),
        "matrix": certify(MatrixMechanism(3.0, 4), DECLARED, adversaries=who[:1]),
        "guarantee": certify(Guarantee(1.0), DECLARED, adversaries=who[:1]),
        "randomised response": certify(RandomisedResponse(0.3), DECLARED, adversaries=who[:1]),
        "filtered": certify(FilteredGaussian(0.1), DECLARED, adversaries=who[:1]),
        "low enough, not checked": certify(person, DECLARED, adversaries=who[:1], policy=NOTHING_ACCEPTED),
        "nothing hidden": certify(Gaussian(0.01), DECLARED, adversaries=who[:1]),
        "watched": reticent.certify(poisson(), subject="s").certificate,
        "watched, secure": reticent.certify(secure_loop(), subject="s").certificate,
        "watched, shuffled": reticent.certify(shuffled(), subject="s").certificate,
    }


@pytest.fixture(scope="module")
def documents(certificate: Certificate) -> dict[str, Certificate]:
    return {**kinds(), "run": public(certificate), "complete": certificate}


class Visible(HTMLParser):
    """Text of a page that is not marked as English, code or data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self._open: list[bool] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "circle", "path", "line", "polyline", "br"}:
            apart = tag in {"code", "style", "template", "title"} or (tag != "html" and dict(attrs).get("lang") == "en")
            self._open.append(apart)

    def handle_endtag(self, tag: str) -> None:
        if self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and not any(self._open):
            self.text.append(data.strip())


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_sentence_is_translated_and_keeps_its_placeholders(code: str) -> None:
    known = catalogue(code).messages
    named = [(one.context, one.english) for one in known]
    assert len(set(named)) == len(named)
    assert listed() - set(named) == set()
    for one in known:
        assert faults_of(one) == [], one.english


def test_each_catalogue_has_the_same_messages() -> None:
    first, *others = ({replace(one, translations=()) for one in catalogue(code).messages} for code in TRANSLATED)
    for other in others:
        assert other ^ first == set()


def faults_of(one: Message) -> list[str]:
    """What is wrong with an entry."""
    if not one.translations:
        return ["missing"]
    wanted = {*PLACEHOLDER.findall(one.english + one.plural), "n"}
    if any({*PLACEHOLDER.findall(form), "n"} != wanted for form in one.translations):
        return ["placeholders"]
    return ["plural"] if one.plural and len(one.translations) < 2 else []


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('msgid "at most {share}"\nmsgstr ""', ["missing"]),
        ('#, fuzzy\nmsgid "at most {share}"\nmsgstr "bis {share}"', ["missing"]),
        ('msgid "at most {share}"\nmsgstr "bis {anteil}"', ["placeholders"]),
        ('msgid "one"\nmsgid_plural "{n}"\nmsgstr[0] "eins"', ["plural"]),
        ('msgid "at most "\n"{share}"\nmsgstr "bis {share}"', []),
    ],
)
def test_a_bad_entry_is_found(entry: str, fault: list[str]) -> None:
    (one,) = parse(f'msgid ""\nmsgstr ""\n\n{entry}\n', "xx", "xx.po").messages
    assert faults_of(one) == fault


def test_what_is_no_catalogue_is_one_line() -> None:
    with pytest.raises(ArtifactError, match="line 1"):
        parse("hello\n", "xx", "xx.po")
    with pytest.raises(ArtifactError, match="language must be"):
        language_of("xx")


def _texts() -> str:
    """Every text in the code; and the template of the page."""
    folder, found = Path(reticent.__file__).parent, []
    for file in folder.rglob("*.py"):
        found += texts_of(SourceFileLoader(file.stem, str(file)).get_code(file.stem))  # compiled already
    data = ("certificates/templates/certificate.html.j2", "facts/texts.json", "proofs/conditions.json")
    return "\n".join([*found, *((folder / name).read_text(encoding="utf-8") for name in data)])


def texts_of(constant: object) -> Iterator[str]:
    """Those of a module's code, of functions in it and of tuples."""
    if isinstance(constant, str):
        yield constant
    inner = constant.co_consts if isinstance(constant, CodeType) else constant
    if isinstance(inner, (tuple, frozenset)):
        for one in inner:
            yield from texts_of(one)


def test_no_message_is_stale() -> None:
    """Each word of a message is in some text of the code; what a sentence is made of may be in several."""
    words = set(re.findall(r"[A-Za-z]{3,}", _texts()))
    texts = [text for one in catalogue("de").messages for text in (one.english, one.plural)]
    stale = [text for text in texts if set(re.findall(r"[A-Za-z]{3,}", re.sub(r"\{\w+\}", "", text))) - words]
    assert stale == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_no_sentence_of_any_page_stays_english(documents: dict[str, Certificate], code: str) -> None:
    missed: list[str] = []
    for name, document in documents.items():
        page = render_html(document, Translation(catalogue(code), missed=missed.append))
        assert missed == [], name
        english = {text for text in Visible(render_html(document)).text if len(re.findall(r"[a-z]{2,}", text)) > 2}
        own = {document.declared.subject, *[a.label for a in document.assessments]}
        left = [text for text in english & set(Visible(page).text) if text not in own and not is_names(text)]
        assert left == [], name


def is_names(text: str) -> bool:
    """Names, versions and settings: the same in every language."""
    return re.fullmatch(r"(\(?[\w.+\-]+( [\d.+\-\w]+| \([\w\- ,.:]+\))?\)?[,;]? ?)+", text) is not None


@pytest.mark.parametrize("code", TRANSLATED)
def test_numbers_are_written_as_the_language_writes_them(documents: dict[str, Certificate], code: str) -> None:
    page = render_html(documents["run"], language_of(code))
    shown = " ".join(Visible(page).text)
    assert "55,8\N{NO-BREAK SPACE}%" in shown
    assert not re.search(r"\d\.\d+%", shown)
    assert f'<html lang="{code}">' in page


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("en", "2026-11-22; do not rely on it from 2030-01-01 on"),
        ("de", "22.11.2026; ab dem 01.01.2030 nicht mehr darauf verlassen"),
        ("fr", "22/11/2026\N{NO-BREAK SPACE}; ne plus s’y fier à partir du 01/01/2030"),
    ],
)
def test_dates_are_written_as_the_language_writes_them(
    documents: dict[str, Certificate], code: str, shown: str
) -> None:
    page = render_html(documents["run"], language_of(code))
    assert shown in page
    if code != "en":
        assert "2026-11-22" not in " ".join(Visible(page).text)


@pytest.mark.parametrize(("code", "told"), [("de", "Die Namen der Beweise"), ("fr", "Les noms des preuves")])
def test_theorems_stay_in_english_are_marked_so_and_the_page_says_it(
    documents: dict[str, Certificate], code: str, told: str
) -> None:
    page = render_html(documents["run"], language_of(code))
    grounds = page.partition('id="grounds"')[2].partition("</ul>")[0]
    assert told in grounds
    for key, one in documents["run"].theorems.items():
        assert f'<code lang="en">{key}</code>: <span lang="en">' in grounds
        assert one.says.split("'")[0].split('"')[0] in grounds
    assert told not in render_html(documents["run"])


class Parts(HTMLParser):
    """Names of elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {f"<{tag}>", *(name for name, _ in attrs)}


def test_a_sentence_in_german_and_in_french(documents: dict[str, Certificate]) -> None:
    german = render_html(documents["run"], language_of("de"))
    answer = (
        "Gefragt, ob ein bestimmter Datensatz verwendet wurde, hat ein Angreifer in höchstens 55,8\N{NO-BREAK SPACE}%"
    )
    assert answer in german
    french = render_html(documents["person"], language_of("fr"))
    assert "chaque personne a fourni au plus 3 enregistrements" in french
    assert "À la question de savoir si les enregistrements d’une personne donnée ont été utilisés" in french


def test_clients_are_clients_in_every_language(documents: dict[str, Certificate]) -> None:
    document = documents["clients"]
    assert "ob ein bestimmter Client verwendet wurde" in render_html(document, language_of("de"))
    assert "si un client donné a été utilisé" in render_html(document, language_of("fr"))


def test_what_the_issuer_wrote_is_not_translated() -> None:
    declared = Declaration(subject="yes", created="2026-01-01", issuer="found", purpose="noise")
    page = render_html(certify(Gaussian(2.0), declared, adversaries=(WorstCase(),)), language_of("de"))
    for text in ("yes", "found", "noise"):
        assert f"„{text}“" in page


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_false_sentence_in_a_translation_is_refused(documents: dict[str, Certificate], code: str) -> None:
    page = render_html(documents["run"], language_of(code))
    document = embedded(page, "page")
    assert page_language(page) == code
    assert first_difference(page, document) is None
    assert first_difference(page.replace("55,8", "50,1", 1), document) is not None
    title = re.search(r"<h2 id=.not-covered.>([^<]+)<", page)
    assert title is not None
    assert first_difference(page.replace(title[1], "x"), document) is not None
    english = render_html(documents["run"])
    assert first_difference(english.replace('lang="en"', f'lang="{code}"', 1), document) is not None
    unknown = first_difference(english.replace('lang="en"', 'lang="xx"', 1), document)
    assert unknown is not None
    assert "no catalogue" in unknown


def test_pages_are_written_beside_the_english_one_and_old_ones_go(
    documents: dict[str, Certificate], tmp_path: Path
) -> None:
    files = write_certificate(documents["plan"], tmp_path / "c", languages=("de", "fr"))
    for code in TRANSLATED:
        assert read_document(tmp_path / "c" / f"certificate.{code}.html")[1] == []
    assert page_language(files.page.read_text()) == "en"
    write_certificate(documents["person"], tmp_path / "c", overwrite=True, languages=("de",))
    assert sorted(path.name for path in (tmp_path / "c").glob("*.html")) == ["certificate.de.html", "certificate.html"]
    with pytest.raises(ArtifactError, match="language must be"):
        write_certificate(documents["plan"], tmp_path / "d", languages=("xx",))
    assert not (tmp_path / "d").exists()
