"""The page in other languages: nothing is missing, nothing is stale, nothing false passes for a translation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import reticent
from reticent.adversaries import FinalModel, Mixed, Relaxed
from reticent.certificates.build import public
from reticent.certificates.check import read_document
from reticent.certificates.document.schema import OWN_WORDS, Certificate, Declaration
from reticent.certificates.document.sentences import RESTING
from reticent.certificates.page import facts, words
from reticent.certificates.page.language import Speaker, language_of
from reticent.certificates.page.page import embedded, first_difference, page_language, render_html
from reticent.certificates.store import write_certificate
from reticent.facts import Fact, all_facts
from reticent.facts.clipping import Mixing
from reticent.facts.steps import Drawn, Generator, Randomness, Source
from reticent.kernel.adversaries import ADVERSARIES, WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import DPSGD, MECHANISMS, Gaussian, Ledger
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import Figure, Message, from_json, said, to_json
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS, Claim, Status
from reticent.kernel.registry import parameters_of
from reticent.kernel.risk.questions import MEASURES, Questions
from reticent.languages import PLACE, Language, language, languages, parse
from reticent.mechanisms import (
    RDP,
    ZCDP,
    FilteredGaussian,
    Guarantee,
    Laplace,
    MatrixMechanism,
    PrivacyProfile,
    RandomisedResponse,
    Selection,
)
from reticent.mechanisms.gradients import Obstacle
from reticent.pairs import Geometric
from reticent.samplers import Shuffled
from tests.certificates.ledgers import shuffled
from tests.certificates.making import MOST, of, of_ledger, page_of, policy
from tests.certificates.test_page import DOCUMENTS, document

TRANSLATED = [code for code in languages() if code != "en"]
ENGLISH, WHOM = language("en"), ("client", "person")
SECRET = Questions(fprs=(0.01,), priors=(0.5, 0.1), secret_bits=(13.29,), guesses=(10,))
PERSON = DPSGD(2.0, 0.25, 8, batch_size=5, records_per_user=3)
LIMITS = (MOST, {"measure": "tpr", "at": 0.01, "at_most": 0.011})
MORE: dict[str, Callable[[], Certificate]] = {
    "judged": lambda: of(PERSON, WorstCase(), Relaxed(5), policy=policy(*LIMITS, accept_conditions=[*CONDITIONS])),
    "low enough, not checked": lambda: of(PERSON, policy=policy(*LIMITS)),
    "one record each": lambda: of(Gaussian(2.0), questions=SECRET),
    "clients": lambda: of(DPSGD(2.0, 1.0, 8, unit=Unit.CLIENT), WorstCase(), Relaxed(5), Mixed()),
    "several": lambda: of(Ledger((Gaussian(2.0), Laplace(3.0)))),
    "selection": lambda: of(Selection(Gaussian(3.0), Geometric(5))),
    "final": lambda: of(DPSGD(3.0, 1.0, 8), WorstCase(), FinalModel(0.9)),
    "shuffled": lambda: of(DPSGD(3.0, 0.25, 8, sampler=Shuffled())),
    "matrix": lambda: of(MatrixMechanism(3.0, 4)),
    "guarantee": lambda: of(Guarantee(1.0)),
    "zcdp": lambda: of(ZCDP(0.1)),
    "rdp": lambda: of(RDP([2, 8], [0.1, 0.4])),
    "profile": lambda: of(PrivacyProfile([0.5, 1.0], [1e-3, 1e-6])),
    "randomised response": lambda: of(RandomisedResponse(0.3)),
    "filtered": lambda: of(FilteredGaussian(0.1)),
    "shuffled loop": lambda: of_ledger(shuffled()),
}
"""Documents of kinds that no test of the English page has."""


@pytest.fixture(scope="module")
def documents(certificate: Certificate) -> dict[str, Certificate]:
    english = {kind: document(kind) for kind in DOCUMENTS}
    more = {kind: make() for kind, make in MORE.items()}
    return {**english, **more, "run": public(certificate), "complete": certificate}


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


@pytest.mark.parametrize("code", languages())
def test_each_message_keeps_its_values_and_each_word_has_all_its_forms(code: str) -> None:
    words = language(code)
    assert words.words.keys() ^ ENGLISH.words.keys() == set()
    assert [key for key in words.words if faults_of(key, words)] == []
    places = {place for forms in words.words.values() for form in forms for place in PLACE.findall(form)}
    for place in {word for _, word in words.forms}:
        assert place in places, f"nobody says {place}"
        known = {whom for whom, word in words.forms if word == place}
        assert known in ({"client"}, {"person", "persons", "client"}), place


def faults_of(key: str, words: Language) -> list[str]:
    """What is wrong with an entry, beside the English one."""
    if key not in words.words:
        return ["missing"]
    values = [_values(forms, one) for one in (words, ENGLISH) for forms in one.words.get(key, ())]
    found = ["values"] if any({*one, "n"} != {*values[-1], "n"} for one in values) else []
    return found + (["plural"] if len(words.words[key]) != len(ENGLISH.words[key]) else [])


def _values(form: str, words: Language) -> set[str]:
    """What stands in braces and is no word with forms."""
    return set(PLACE.findall(form)) - {word for _, word in words.forms}


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('msgid "share.at-most"\nmsgstr ""', ["missing"]),
        ('#, fuzzy\nmsgid "share.at-most"\nmsgstr "bis {share}"', ["missing"]),
        ('msgid "share.at-most"\nmsgstr "bis {anteil}"', ["values"]),
        ('msgid "share.at-most"\nmsgstr "bis {share} {diesen Datensatz}"', ["values"]),
        ('msgctxt "client"\nmsgid "Wort"\nmsgstr "x"\n\nmsgid "share.at-most"\nmsgstr "bis {share} {Wort}"', []),
        ('msgid "share.at-most"\nmsgid_plural "share.at-most"\nmsgstr[0] "{share}"\nmsgstr[1] "{share}"', ["plural"]),
        ('msgid "share.at-most"\nmsgstr "bis "\n"{share}"', []),
    ],
)
def test_a_bad_entry_is_found(entry: str, fault: list[str]) -> None:
    assert faults_of("share.at-most", parse(f'msgid ""\nmsgstr ""\n\n{entry}\n', "xx")) == fault


def test_what_is_no_catalogue_is_one_line() -> None:
    with pytest.raises(ValueError, match="line 1"):
        parse("hello\n", "xx")
    with pytest.raises(ArtifactError, match="language must be"):
        language_of("xx")


def _texts() -> str:
    """The code, and what is made of its data."""
    folder = Path(reticent.__file__).parent
    found = [file.read_text(encoding="utf-8") for file in folder.rglob("*.py")]
    found += [file.read_text(encoding="utf-8") for file in folder.rglob("*.j2")]
    found += [f'"condition.{key}"' for key in CONDITIONS]
    return "\n".join(found)


def made() -> Iterator[str]:
    """Keys that the code puts together."""
    told = (one for fact in all_facts().values() for one in (fact, fact.of_ours()) if one.said)
    yield from (words.key for one in (*told, Fact("of another version")) for words in (one.reason, one.remedy))
    yield from (f"obstacle.{kind.value}" for kind in Obstacle)
    for relation in Neighbouring:
        yield from (f"{start}.{relation.value}" for start in ("asked", "relation", "short"))
        yield from (f"{key}.{relation.value}" for key in ENGLISH.words)
    yield from (f"{start}.{one}" for start, several in _PUT_TOGETHER.items() for one in several)


_PUT_TOGETHER: dict[str, Iterable[str]] = {
    "claim": [*Claim, "bound.average"],
    "status": Status,
    "trust": Status,
    "place": MEASURES,
    "table": MEASURES,
    "column": [
        *MEASURES,
        "bits",
        "guesses",
        "without",
        "with",
        *(f"{x}{y}" for x in ("accused", "found") for y in ("", ".means")),
    ],
    "resting": RESTING,
    "declared": OWN_WORDS,
    "name": ADVERSARIES,
    "source": Source,
    "drawn": Drawn,
    "randomness": [one.name.lower().replace("_", "-") for one in (*Randomness, *Generator)],
    "required": [f"{one}{end}" for one in ("ledger", "stated", "person", "computed") for end in ("", ".not")],
    "reached": ("low-enough", "too-high", "high-enough", "too-low"),
    "limit": [f"at-{end}{place}" for end in ("most", "least") for place in ("", ".at")],
    "lacks": ["draws", "noise", "draws-noise", *(f"own-{one}" for one in ("draws", "noise", "draws-noise"))],
    "fact": [p.name for kind in MECHANISMS.values() for p in parameters_of(kind)] + [*facts.FIRST, "at-most.stops"],
    "not-covered": words.NOT_COVERED,
    "word": [f"{one}{end}" for one in (*words.EVERYWHERE, *Unit, "estimate", "clip-norm") for end in ("", ".means")],
    "pointer": [f"{one}{end}" for one in words.POINTERS for end in ("", ".means")],
    "page": (
        "run",
        "planned",
        "secret",
        "recovered",
        *(f"{one}.{whom}" for one in ("learn", "secret", "recovered") for whom in ("record", *WHOM)),
    ),
    "page.hold-for": ("run", "planned"),
    "check": ("missing", "missing-with", "rests.value", "ledger", "stated", "person"),
    "share": ("measured",),
    "sentence": ("lacking",),
    "number": ("%",),
    "refused": [f"{key.removeprefix('refused.')}.page" for key in ENGLISH.words],
    "fault.mixes-records": [f"{what}.{where}" for what in ("reason", "remedy") for where in Mixing],
    "condition": ("public-preparation.denied", "unpredictable-noise.trained", "unpredictable-noise.watched"),
}
"""Ends of keys that the code puts together, by their beginning."""


def test_no_message_is_stale() -> None:
    texts, known = _texts(), set(made())
    assert [key for key in ENGLISH.words if f'"{key}"' not in texts and key not in known] == []


def test_every_key_of_the_code_is_in_the_catalogues() -> None:
    named = re.findall(r'(?:Message|_)\(\s*"([a-z0-9][a-z0-9.-]*)"[,)]', _texts())
    assert len(named) > 200
    assert {key for key in [*named, *(f"name.{one}" for one in ADVERSARIES)] if key not in ENGLISH.words} == set()


@pytest.mark.parametrize(
    ("whom", "shown"),
    [
        ("record", "dieser Datensatz verwendet wurde"),
        ("person", "der Datensatz dieser Person verwendet wurde"),
        ("persons", "die Datensätze dieser Person verwendet wurden"),
        ("client", "dieser Client verwendet wurde"),
    ],
)
def test_a_message_is_about_whom_it_says(whom: str, shown: str) -> None:
    inner = Message("infers.used")
    assert "".join(language("de").pieces(inner.about(whom))) == f"ob {shown}"
    around = Message("page.wants-know", wanted=inner).about(whom)
    assert shown in "".join(language("de").pieces(around)), "what is inside is about the same"


def test_the_words_of_a_condition_stand_in_the_catalogues_alone() -> None:
    assert all(kind.says == Message(f"condition.{key}") for key, kind in CONDITIONS.items())


def test_a_message_of_a_document_is_read_back_and_nothing_else_is() -> None:
    message = Message(
        "answer.at-most", question=Message("asked.replace"), share=Figure("55.8", "%"), blind=Figure("50")
    )
    assert from_json(to_json(message.about("client"))) == message.about("client")
    assert to_json(message, english=True)["en"] == str(message)
    for wrong in (
        "text", None, 1, [], {}, {"values": {}}, {"key": 1}, {"key": "a", "value": {}}, {"key": "a" * 101},
        {"key": "a", "values": []}, {"key": "a", "values": {"b": None}}, {"key": "a", "values": {"b": 1.5}},
        {"key": "a", "values": {"b": {"number": 1}}}, {"key": "a", "values": {"b": {"number": "1", "unit": "m"}}},
        {"key": "a", "values": {"b": ["c"]}},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="must be a message"):
            from_json(wrong)


@pytest.mark.parametrize(
    ("digits", "shown"),
    [
        ("3.29e-05", {"en": "3.29e-05", "de": "3,29 · 10⁻⁵", "fr": "3,29 · 10⁻⁵"}),
        ("1e+20", {"en": "1e+20", "de": "1 · 10²⁰", "fr": "1 · 10²⁰"}),
        ("0.5", {"en": "0.5", "de": "0,5", "fr": "0,5"}),
        ("inf", {"en": "inf", "de": "inf", "fr": "inf"}),
    ],
)
def test_a_small_number_is_written_as_people_write_it(digits: str, shown: dict[str, str]) -> None:
    assert {code: str(Speaker(language(code)).say(Figure(digits))) for code in languages()} == shown


ENGLISH_WORDS = "worst-case", "add-remove", "fresh", " relaxed", "Batches", "membership"


def test_what_no_catalogue_has_is_shown_and_acts_on_nothing() -> None:
    hostile = from_json({"key": "key", "values": {"key": "<b>\x1b", "self": "x", "n": "9" * 5000}})
    assert Speaker(language("de")).say(hostile) == '<span lang="en">key</span>'
    assert Speaker(ENGLISH).say(said("<b>\x1b")) == "&lt;b&gt;\\x1b"
    many = from_json({"key": "people.declared", "values": {"n": {"number": "9" * 5000}}})
    assert "records" in str(many)


@pytest.fixture(scope="module")
def sentences(documents: dict[str, Certificate]) -> dict[str, set[str]]:
    """What the English page of each document says in more than two words."""
    shown = {name: Visible(render_html(found)).text for name, found in documents.items()}
    return {name: {text for text in texts if len(re.findall(r"[a-z]{2,}", text)) > 2} for name, texts in shown.items()}


@pytest.mark.parametrize("code", TRANSLATED)
def test_no_word_and_no_sentence_of_any_page_stays_english(
    documents: dict[str, Certificate], sentences: dict[str, set[str]], code: str
) -> None:
    missed: list[str] = []
    for name, found in documents.items():
        shown = Visible(render_html(found, replace(language(code), missed=missed.append))).text
        assert missed == [], name
        own = {found.declared.subject, *[a.label for a in found.assessments]}
        left = [text for text in sentences[name] & set(shown) if text not in own and not is_names(text)]
        assert left == [], name
        whole = " ".join(shown).replace("fresh(model)", "")  # a function's name
        assert [word for word in ENGLISH_WORDS if word in whole] == [], name
        assert name == "profile" or not re.search(r"\de[+-]\d", whole), "it shows the lists that were stated"


def is_names(text: str) -> bool:
    """Names, versions and settings: the same in every language."""
    return re.fullmatch(r"(\(?[\w.+\-]+( [\d.+\-\w]+| \([\w\- ,.:]+\))?\)?[,;]? ?)+", text) is not None


@pytest.mark.parametrize(
    ("code", "dates"),
    [
        ("en", "2026-11-22; do not rely on it from 2030-01-01 on"),
        ("de", "22.11.2026; ab dem 01.01.2030 nicht mehr verwenden"),
        ("fr", "22/11/2026\N{NO-BREAK SPACE}; à ne plus utiliser à partir du 01/01/2030"),
    ],
)
def test_numbers_and_dates_are_written_as_the_language_writes_them(
    documents: dict[str, Certificate], code: str, dates: str
) -> None:
    page = render_html(documents["run"], language_of(code))
    assert dates in page
    assert f'<html lang="{code}">' in page
    if code != "en":
        shown = " ".join(Visible(page).text)
        assert "55,8\N{NO-BREAK SPACE}%" in shown
        assert not re.search(r"\d\.\d+%|2026-11-22", shown)


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


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        (
            "run",
            "de",
            "Auf die Frage, ob ein bestimmter Datensatz verwendet wurde, antwortet ein Angreifer in höchstens 55,8 %",
        ),
        ("judged", "fr", "chaque personne a fourni au plus 3 enregistrements"),
        ("judged", "fr", "Lorsqu’on lui demande si les enregistrements d’une personne donnée ont été utilisés"),
        (
            "judged",
            "en",
            "Every number here holds for them, if they come from this model and chance alone: nobody looked",
        ),
        (
            "clients",
            "de",
            "Jede Zahl hier gilt auch für sie, wenn sie allein aus diesem Modell und dem Zufall entstanden",
        ),
        ("run", "fr", "Chaque chiffre vaut aussi pour elles, si elles viennent de ce modèle et du hasard seuls"),
        ("clients", "de", "ob ein bestimmter Client verwendet wurde"),
        ("clients", "fr", "si un client donné a été utilisé"),
    ],
)
def test_sentences_of_other_languages(documents: dict[str, Certificate], kind: str, code: str, said: str) -> None:
    assert said in page_of(documents[kind], code)


def test_what_the_issuer_wrote_is_not_translated() -> None:
    declared = Declaration(subject="yes", created="2026-01-01", issuer="found", purpose="noise")
    page = page_of(of(Gaussian(2.0), declared=declared), "de")
    assert [text for text in ("yes", "found", "noise") if f"„{text}“" not in page] == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_false_sentence_in_a_translation_is_refused(documents: dict[str, Certificate], code: str) -> None:
    page, english = (render_html(documents["run"], language_of(one)) for one in (code, "en"))
    shown = embedded(page, "page")
    assert page_language(page) == code
    assert first_difference(page, shown) is None
    title = re.search(r"<h2 id=.not-covered.>([^<]+)<", page)
    assert title is not None
    for false in (
        page.replace("55,8", "50,1", 1),
        page.replace(title[1], "x"),
        english.replace('lang="en"', f'lang="{code}"', 1),
    ):
        assert first_difference(false, shown) is not None
    assert "no catalogue" in str(first_difference(english.replace('lang="en"', 'lang="xx"', 1), shown))


def test_pages_are_written_beside_the_english_one_and_old_ones_go(
    documents: dict[str, Certificate], tmp_path: Path
) -> None:
    files = write_certificate(documents["guarantee"], tmp_path / "c", languages=("de", "fr"))
    for code in TRANSLATED:
        assert read_document(tmp_path / "c" / f"certificate.{code}.html")[1] == []
    assert page_language(files.page.read_text()) == "en"
    write_certificate(documents["matrix"], tmp_path / "c", overwrite=True, languages=("de",))
    assert sorted(path.name for path in (tmp_path / "c").glob("*.html")) == ["certificate.de.html", "certificate.html"]
    with pytest.raises(ArtifactError, match="language must be"):
        write_certificate(documents["matrix"], tmp_path / "d", languages=("xx",))
    assert not (tmp_path / "d").exists()
