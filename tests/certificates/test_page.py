"""The page: a function of its document, inert whoever wrote the names; and what it says of each kind of document."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import reticent as rt
from reticent.adversaries import Membership, Mixed, Relaxed
from reticent.certificates.build import certify, certify_run, public
from reticent.certificates.check import check
from reticent.certificates.document.derive import PRIVATE
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import OF_PARAMETERS, OWN_WORDS, Certificate, CitedRelease, Declaration
from reticent.certificates.document.sentences import even_guess, percent
from reticent.certificates.document.signature import signed
from reticent.certificates.page.answers import groups, place
from reticent.certificates.page.facts import facts, unsupported
from reticent.certificates.page.page import embedded, first_difference, is_page, render_html
from reticent.certificates.page.words import EVERYWHERE, glossary
from reticent.certificates.verify import verify
from reticent.facts import SCHEMA_FROM_RECORDS, SIZE_PUBLIC
from reticent.kernel.adversaries import WorstCase, everybody
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import DPSGD, MECHANISMS, Gaussian, Ledger
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import Message, said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import Questions
from reticent.kernel.text import printable
from reticent.mechanisms import FilteredGaussian, Guarantee, Laplace, MatrixMechanism, RandomisedResponse, Selection
from reticent.mechanisms.gradients import Gradients
from reticent.pairs import Geometric
from reticent.samplers import RandomAllocation
from tests.certificates.conftest import make_ledger, make_sensitivity
from tests.certificates.ledgers import poisson, secure_loop
from tests.certificates.making import BOTH, DECLARED, RUN, of, of_ledger, page_of, policy

HOSTILE = "<script>alert(1)</script></title></template>'&{{ 7*7 }}"
NAMED = Declaration(subject="s", created="2026-01-01", weights_sha256="ab" * 32)
SAMPLED = Laplace(3.0, sample_rate=0.5)


@pytest.fixture(scope="module")
def page(certificate: Certificate) -> str:
    return render_html(public(certificate))


class Reader(HTMLParser):
    """Tags and visible text; and the text that nobody has to unfold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.first: list[str] = []
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("style", "title", "nav", "details", "summary"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if not self._open or self._open == ["details", "summary"]:
            self.first.append(data)


def test_it_holds_the_document_and_renders_to_itself(certificate: Certificate, page: str) -> None:
    document = embedded(page, "page")
    assert document == public(certificate)
    assert is_page(page)
    assert first_difference(page, document) is None
    for one, name in ((certificate, "certificate.json"), (document, "certificate.public.json")):
        shown = re.search(r"SHA-256 of the file <code>(.*?)</code>: <code>(.*?)</code>", render_html(one))
        assert shown is not None
        assert shown.groups() == (name, hashlib.sha256(one.to_json().encode()).hexdigest())


def test_a_page_with_one_changed_character_is_refused(page: str) -> None:
    document = embedded(page, "page")
    visible = [i for i, c in enumerate(page[: page.index("<template")]) if c.isalnum()]
    places = random.Random(3).sample(visible, 6)  # noqa: S311
    changed = [page[:at] + ("x" if page[at] != "x" else "y") + page[at + 1 :] for at in places]
    number = re.search(r"\d\d\.\d%", page)
    assert number is not None
    for other in (*changed, page.replace(number.group(), "01.0%"), page + "<p>Audited.</p>", page[:-2]):
        assert first_difference(other, document) is not None
    forged = page.replace("&quot;claim&quot;: &quot;bound&quot;", "&quot;claim&quot;: &quot;estimate&quot;", 1)
    assert forged != page
    assert first_difference(forged, embedded(forged, "page")) is not None


@pytest.mark.parametrize("text", ["<html></html>", '<template id="certificate">{}', '<template id="certificate">' * 2])
def test_a_page_without_one_document_is_one_line(text: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        embedded(text, "page")
    assert "\n" not in str(caught.value)


def test_hostile_text_is_inert_and_nothing_is_fetched() -> None:
    declared = Declaration(created="2026-11-22", **dict.fromkeys(OWN_WORDS, HOSTILE))
    document = of(Gaussian(2.0), declared=declared)
    page = render_html(document)
    reader = Reader(page)
    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "base"})
    for tag, attributes in reader.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"], tag
        assert (attributes.get("href") or "#").startswith("#"), tag
    assert "{{ 7*7 }}" in page[: page.index("<template")]
    assert [tag for tag, _ in reader.tags].count("template") == 1
    assert embedded(page, "page") == document
    assert len(printable("W" * 1_000_000, 300)) < 400
    assert printable("a\nb\x00\u2028\ud800") == r"a\nb\x00\u2028\ud800"


@pytest.mark.parametrize("subject", ["'; } </style><script>x</script>", "a} </style>\\"])
def test_the_foot_of_a_sheet_is_inert_whatever_the_subject(subject: str) -> None:
    page = render_html(of(Gaussian(2.0), declared=NAMED.model_copy(update={"subject": subject})))
    style = page.partition("<style>")[2].partition("</style>")[0]
    (foot,) = re.findall(r'@bottom-left \{ content: "([^"]*)"; \}', style)
    assert re.fullmatch(r"([0-9A-Za-z]|\\[0-9a-f]{6})+", foot)
    shown = re.sub(r"\\([0-9a-f]{6})", lambda one: chr(int(one[1], 16)), foot)
    assert shown == f"{subject} · fingerprint of the model {'ab' * 8}…"
    assert page.count("<script") == 0


def test_it_names_every_attacker_and_every_reason(certificate: Certificate, page: str) -> None:
    text = " ".join(" ".join(Reader(page).text).split())
    named = [str(kind.title) for kind in everybody().values()]
    named += [theorem.conditions for theorem in public(certificate).theorems.values()]
    named += [
        *map(str, dict(certificate.headline_.values)["says"]),
        "EDPB Opinion 28/2024",
        "NIST SP 800-226",
        "GDPR Article 35",
        "rest on private data",
    ]
    assert [one for one in named if one not in text] == []
    assert len(EVERYWHERE) <= 12
    about = re.findall(r"<dt>[^<]* \(which of two versions\)</dt><dd>(.*?)</dd>", page)
    assert len(about) >= 2
    assert any("Wants to know which of two possible records was used." in one for one in about)
    assert not any("Wants to know whether this record was used" in one for one in about)


def test_an_attacker_has_one_name_in_every_table_picture_and_note(certificate: Certificate, page: str) -> None:
    names = {record.adversary for record in certificate.assessments}
    heads = re.findall(r'<th scope="row">([^<]+)</th>|<th scope="row">[^<]+<small>([^<]+)</small>', page)
    heads = [one or other for one, other in heads]
    legend = re.findall(r"</svg> ([^<]+)</li>", page)[:-1]
    about = re.findall(r'<span class="small">\(([^)]+)\)</span></li>', page.partition('id="appendix"')[2])
    assert all((heads, legend, about))
    for found in (*heads, *legend, *about):
        each = re.split("[,;] ", re.sub(r" \((used or not|which of two versions)\)", "", found))
        assert set(each) <= names | {"all attackers", "blind guess"}, found


def without_a_field(certificate: Certificate) -> Certificate:
    return certificate.model_copy(update={"skipped": {"attribute": PRIVATE}})


def read_off() -> Certificate:
    """Of a run whose schema was read off its records."""
    kept = make_ledger()
    data = {"name": "own", "split_seed": 0, "table": {"derived": ["age"]}}
    return public(certify_run(kept.model_copy(update={"config": {**kept.config, "data": data}}).sealed()))


def demo() -> Certificate:
    run = rt.dpsgd(noise_multiplier=4.0, batch_size=64, dataset_size=455, epochs=40)
    return of(run, *BOTH, declared=Declaration(subject="the demo", created="2026-01-01"))


def allowing(most: float) -> Policy:
    accepted = ["public-divisor", "poisson-draws", "clipped", "planned-steps", "start-weights", "records-per-person"]
    limit = {"measure": "advantage", "at_most": most, "neighbouring": "add-remove"}
    return policy(limit, per="record", accept_conditions=accepted)


def judged_run() -> Certificate:
    until = Declaration(subject="a run", created="2026-11-22", expires="2030-01-01")
    return public(certify_run(make_ledger(), make_sensitivity(), until, policy=allowing(0.001)))


DOCUMENTS: dict[str, Callable[[], Certificate]] = {
    "plan": lambda: of(RUN, *BOTH),
    "worst case": lambda: of(RUN),
    "used or not": lambda: without_a_field(of(RUN, neighbouring=Neighbouring.ADD_REMOVE)),
    "two versions": lambda: of(RUN, neighbouring=Neighbouring.REPLACE),
    "noise": lambda: of(Gaussian(2.0)),
    "named": lambda: of(Gaussian(2.0), declared=NAMED),
    "hardly any noise": lambda: of(Gaussian(0.01)),
    "a number of records": lambda: of(DPSGD(2.0, 0.25, 10, batch_size=5, dataset_size=20)),
    "two uses": lambda: of(
        DPSGD(2.0, 0.05, 40, batch_size=5, dataset_size=100, sampler=RandomAllocation(uses_per_epoch=2))
    ),
    "no size of batches": lambda: of(DPSGD(2.0, 0.25, 8), *BOTH),
    "relaxed": lambda: of(RUN, WorstCase(), Relaxed(5), Mixed(0.5, 5), Membership()),
    "linear head": lambda: of(RUN, WorstCase(), Relaxed(5, gradients=Gradients.LINEAR_HEAD)),
    "no answer": lambda: certify(SAMPLED, DECLARED),
    "demo": demo,
    "run with a policy": judged_run,
    "signed": lambda: signed(of(RUN, policy=allowing(0.9)), Ed25519PrivateKey.from_private_bytes(b"k" * 32)),
    "clients": lambda: of(DPSGD(2.0, 1.0, 8, unit=Unit.CLIENT)),
    "run": lambda: public(certify_run(make_ledger())),
    "schema read off records": read_off,
    "secure loop": lambda: of_ledger(secure_loop()),
    "loop": lambda: rt.certify(poisson(), subject="s").certificate,
    "planned loop": lambda: of_ledger(poisson(facts={"planned-steps": {"steps": 14}})),
    "loop with a stop": lambda: of_ledger(poisson(facts={"planned-steps": {"steps": 12, "stop_at": "mu=9"}})),
}
SOURCE = "Nobody can predict or repeat the noise; its seed would reveal it. Looked at: the source only."
PUBLIC, DENIED = "scaled does not depend on these records.", "It does here: bounds or categories of some columns were"
ASSESSMENT = "Sentences for an impact assessment"
VERSIONS = "Which of two possible records was used, say with and without a diagnosis?"
SAYS: dict[str, tuple[str, ...]] = {
    "plan": (
        "Plan: nobody saw a run.",
        "Nobody: the document is not signed",
        "Declared: each person contributed one record. Nobody checked that.",
        "if 1 in 10 is in the data",
        "Found: the share of those in the data who are found.",
        "Here, read “has the diagnosis” for “is in the data”.",
        "Right guess<small>without the model 50%",
        "Right answers of an attacker who is asked whether",
        "No limit of its own is proven; that of worst-case, who knows more, holds: at most",
        "Knows both versions of this person's record and all others, but not which records",
        ASSESSMENT,
        "“Plan only: no training has been seen. Asked whether",
        "Asked which of two versions",
        "as long as nobody learns which records each step drew.",
        "each person contributed one record.",
        "7 points on trust, 5 only declared by the issuer or the settings, 0 checked by the issuer’s own program.",
        "Nobody signed it.<!--/signed-->”",
    ),
    "two uses": ("<dd>0.1</dd>", "<dd>10</dd>"),
    "worst case": ("<strong>Not asked: Which of two versions",),
    "used or not": ("This page says nothing about that risk.",),
    "two versions": ("if 1 in 10 has the diagnosis", "Found: the share of those with the diagnosis who are found."),
    "noise": (
        "No policy is part of this certificate",
        "<dt>Model</dt><dd>not named</dd>",
        "Other certificates of the same model may exist",
        "Stop: can one person have several records?",
        "no date of expiry was set",
    ),
    "named": (
        f"<dt>Model</dt><dd>fingerprint <code>{'ab' * 8}…</code>, as stated</dd>",
        "is of the same model: if so, risks do not add up",
        "go by the higher one until you know why. The lower one holds too, if what it rests on holds.",
    ),
    "hardly any noise": ("no limit",),
    "a number of records": (
        "it is treated as public, and so is a sample rate that follows from it. This page prints it: 20",
    ),
    "no size of batches": ("not stated: the (expected) records per batch.",),
    "relaxed": (
        "proven if a condition holds",
        "relaxed d=5",
        "More must hold for weaker attackers (relaxed d=5, mixed d=5): 1 point, of which nobody checked 1.",
    ),
    "linear head": ("proven limit on average", "relaxed d=5 head"),
    "no answer": (
        f"<strong>Not answered: {VERSIONS}</strong> no dominating pair is proven for sampled Laplace releases under "
        "replace.",
    ),
    "demo": (
        "Accused, 0.1% false alarms<small>without the model 10%",
        ">at most 42.2%<",
        "accusations that are right, if 1 in 10 is in the data. Found: the share of those in the data who are found. "
        "Both hold where people are in the data independently of each other, and nobody is known to be likelier.",
    ),
    "run with a policy": (
        "The issuer’s policy says: no",
        "Nobody: the document is not signed",
        "Stop: can one person have several records?",
        "Checked in the run",
        "Recorded by",
        "do not rely on it from",
    ),
    "signed": (
        "The issuer’s policy says: yes",
        "The owner of this key",
        "people who contributed more than 1 record",
        "several people together, such as a family",
        "Declared: each person contributed",
    ),
    "clients": ("No policy is part of this certificate", "people with several clients", "Plan: nobody saw a run."),
    "run": (
        "The noise came from the secure generator of the operating system, and no seed of it was kept.",
        SOURCE,
        PUBLIC,
    ),
    "schema read off records": (f"{PUBLIC} {DENIED}",),
    "secure loop": ("When the loop ended, its optimizer took noise from a secure generator.", SOURCE),
    "loop": ("Nobody can predict or repeat the noise",),
    "planned loop": ("planned steps", "at most 14"),
    "loop with a stop": ("at most 12, where the watch stops at mu=9",),
}
NEVER: dict[str, tuple[str, ...]] = {
    "plan": (
        "Not asked:",
        "Stop:",
        "This page prints it",
        "Coin flip",
        "policy says",
        "Not answered:",
        "Checked in the run",
    ),
    "two versions": ("Here, read",),
    "noise": ("policy says", "with this fingerprint", "Nobody checked that.", 'id="secret"'),
    "hardly any noise": (ASSESSMENT, "at most 100%</td>"),
    "run with a policy": ("Plan:", "policy says: yes", "No policy is part"),
    "signed": ("Stop:", "Nobody: the document", "policy says: no"),
    "clients": ("Stop:", "policy says", "such as a family"),
    "run": ("Plan:", DENIED),
    "loop": ("Looked at",),
}


ON_EVERY_PAGE = (
    "What each attacker can learn",
    "How sure",
    "Taken on trust: nobody checked this",
    "Who vouches",
    "fingerprint of the model",
    "What is not covered",
    "other uses of the same data, and other models trained on it: risks add up",
    "Not on this page",
    "How to check it",
    "verify.html",
)


@cache
def document(kind: str) -> Certificate:
    return DOCUMENTS[kind]()


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_each_kind_of_document_has_its_words(kind: str) -> None:
    page = page_of(document(kind))
    words = " ".join(" ".join(Reader(page).text).split())
    assert [text for text in ON_EVERY_PAGE if text not in words] == []
    assert [text for text in SAYS[kind] if text not in page and text not in words] == []
    assert [text for text in NEVER.get(kind, ()) if text in page] == []


def test_the_guide_quotes_what_the_pages_say() -> None:
    """The ten questions of docs/officers/reading.md: each answer is on the page."""
    page = (Path(__file__).parents[2] / "docs/officers/reading.md").read_text()
    guide = page.partition("## Ten questions that the page answers\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\| \d+\. ", guide, re.MULTILINE)) == 10
    quoted = set(re.findall(r"(?<!\*)\*([^*|]+)\*(?!\*)", " ".join(guide.split())))
    assert len(quoted) > 15
    assert quoted - {*ON_EVERY_PAGE, *(text for texts in SAYS.values() for text in texts)} == set()


RECORDED = {**make_ledger().config, "records_per_user": 1}


def of_persons() -> Certificate:
    """What a usual page is about: a recorded run, in which each person has one record."""
    ledger = make_ledger().model_copy(update={"config": RECORDED, "records_per_user": 1}).sealed()
    declared = Declaration(subject="Tumour model 3", created="2026-11-22", issuer="Clinic North", purpose="triage")
    return public(certify_run(ledger, None, declared))


@pytest.mark.parametrize(
    ("made", "most"),
    [
        (of_persons, 620),
        (lambda: document("run"), 600),
        (lambda: document("relaxed"), 600),
        (lambda: document("demo"), 640),
        (lambda: document("loop"), 710),
    ],
)
def test_a_page_says_what_counts_in_few_words(made: Callable[[], Certificate], most: int) -> None:
    """Before the curves: a plan has nothing that was checked and could be folded, a loop of unknown persons a stop."""
    page = render_html(made())
    before = Reader(page.partition('id="curves"')[0])
    assert 300 < len(" ".join(before.first).split()) <= most
    unfolded = " ".join(" ".join(Reader(page.partition('id="appendix"')[0]).first).split())
    for jargon in ("slope of the loss", "squared length", "rt.s", "sampler:", "worst-case (replace)", "add-remove"):
        assert jargon not in unfolded


@pytest.mark.parametrize("kind", ["plan", "run with a policy", "relaxed", "hardly any noise"])
def test_headings_are_in_order_and_tables_have_heads(kind: str) -> None:
    reader = Reader(render_html(document(kind)))
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all("scope" in attributes for tag, attributes in reader.tags if tag == "th")


def test_the_worst_case_is_large_beside_a_guess() -> None:
    shown = page_of(document("demo"))
    large = re.findall(r'<p class="share"><span>at most <strong>([\d.]+%)</strong><small>with the model</small>', shown)
    worst = [one for one in document("demo").assessments if one.adversary == "worst-case"]
    assert large == [str(percent(even_guess(one), up=True)) for one in worst]
    assert shown.count('<span class="blind"><strong>50%</strong><small>without the model</small>') == len(large)
    assert "<strong>no limit</strong>" in page_of(document("hardly any noise")).partition("<table")[0]


OWN = {"recipients": "other clinics", "controls": "a contract", "means": "a registry of tumours"}


def test_what_an_issuer_declares_besides_is_shown_as_theirs_and_covered() -> None:
    declared = Declaration(subject="s", created="2026-01-01", **OWN)
    made = public(of(Gaussian(2.0), declared=declared))
    shown = page_of(made)
    for code, label in (("en", "recital 26"), ("de", "Erwägungsgrund 26 DSGVO"), ("fr", "RGPD, considérant 26")):
        assert f"({label}" in page_of(made, code) or f"{label})" in page_of(made, code)
    assert [text for text in OWN.values() if f"<dd>“{text}”</dd>" not in shown] == []
    assert "In quotation marks: the issuer’s own words" in shown
    assert verify(made).accepted
    other = made.model_copy(update={"declared": declared.model_copy(update={"recipients": "nobody"})})
    assert not verify(other).accepted, "the digest covers it"
    unsaid = of(Gaussian(2.0), declared=Declaration(subject=OF_PARAMETERS, created="2026-01-01"))
    assert "In quotation marks" not in page_of(unsaid)
    assert "<dd>angegebene Parameter</dd>" in page_of(unsaid, "de")
    assert not {"recipients", "controls", "means"} & unsaid.model_dump(mode="json")["declared"].keys()


def test_a_question_that_nobody_can_answer_is_checked() -> None:
    sampled, asked = document("no answer"), "worst-case (replace)"
    assert {one.neighbouring for one in sampled.assessments} == {"add-remove"}
    assert verify(sampled).accepted
    assert verify(public(sampled)).accepted
    without = {name: why for name, why in sampled.skipped.items() if name != asked}
    for skipped in (without, sampled.skipped | {asked: said("nobody asked")}):
        forged = verify(sampled.model_copy(update={"skipped": skipped}))
        assert any(one.leaf.startswith(f"skipped.{asked}") for one in forged.differences)
    assert asked not in certify(Laplace(3.0), DECLARED).skipped


def test_the_stop_sign_and_the_private_numbers_are_marked(certificate: Certificate, page: str) -> None:
    alone = page_of(document("noise"))
    assert alone.index("Stop: can one person have several records?") < alone.index("<table")
    complete = render_html(certificate)
    for words in ("Do not publish", "gradients were clipped"):
        assert words in complete
        assert words not in page


def test_points_are_grouped_by_who_vouches() -> None:
    page = page_of(document("relaxed"))
    trust, declared = (page.index(head) for head in ("Taken on trust: nobody checked this", "Declared: the issuer or"))
    assert trust < declared
    for record in document("relaxed").assessments:
        assert [
            str(one.known.says) for one in record.conditions if str(one.known.says).split("person")[0] not in page
        ] == []


def test_who_repeats_another_has_no_row_and_keeps_an_entry() -> None:
    (group,) = groups(document("relaxed"))
    assert [row.record.adversary for row in group.rows] == ["worst-case", "relaxed"]
    repeated = ["Lies between relaxed and worst-case", "Has the same numbers as worst-case"]
    assert [str(row.like) for row in group.apart] == repeated
    page = render_html(document("relaxed"))
    for row in group.apart:
        assert f"<dt>{row.record.label}</dt>" in page
    assert place(0.5) < place(0.618) < place(1.0)
    assert [float(x) for x in re.findall(r'class="full" cx="([\d.]+)"', page)] == [group.rows[0].dot]
    assert page.count('class="open" d="M') == 1  # the relaxed attacker: a condition that nobody checked


def test_a_proof_that_ends_at_certainty_is_no_limit() -> None:
    (row,), (limited,) = (groups(of(Gaussian(noise)))[0].rows for noise in (0.05, 2.0))
    assert [str(one) for one in (*row.guesses, row.sure)] == ["no limit"] * 4
    assert (str(limited.guesses[0]), str(limited.sure)) == ("at most 59.9%", "proven limit")


def test_beside_the_headline_is_how_sure_somebody_can_be_who_accuses_few() -> None:
    """At prior p, p tpr / (p tpr + (1 - p) fpr) of accusations are right: at even odds, and at that of the table."""
    shown, worst = document("demo"), [one for one in document("demo").assessments if one.adversary == "worst-case"]
    found = [one.tpr_at_fpr["0.001"].value for one in worst]
    expected = [100 * p * tpr / (p * tpr + (1 - p) * 0.001) for tpr in found for p in (0.5, 0.1)]
    top = page_of(shown).partition("<table")[0]
    stated = re.search(
        r"can be surer, and the fewer, the surer: with 0\.1% false alarms, "
        r"at most ([\d.]+)% of the accusations are right where half would be "
        r"without the model, at most ([\d.]+)% where 1 in 10 would be\. "
        r"Asked which of two versions: at most ([\d.]+)%, at most ([\d.]+)% where 1 in 10 would be\.",
        top,
    )
    assert stated is not None
    assert all(0 <= float(one) - share < 0.11 for one, share in zip(stated.groups(), expected, strict=True))
    assert f">at most {stated[2]}%<" in page_of(shown), "the table has the second prior that the words name"
    for code, words in (("en", "1 in 10 would"), ("de", "wo es 1 von 10 wäre"), ("fr", "là où ce serait 1 sur 10")):
        assert words in page_of(shown, code).partition("<table")[0]
    for asked in (Questions(fprs=(0.1,)), Questions(priors=(0.1,))):
        assert "can be surer" not in page_of(of(Gaussian(2.0), questions=asked))


def test_a_secret_is_on_the_page_where_it_was_asked_for_with_what_it_needs() -> None:
    asked = of(Gaussian(2.0), questions=Questions(priors=(0.5,), secret_bits=(math.log2(10_000),), guesses=(10,)))
    shown = page_of(asked)
    table, rest = shown.partition('id="secret"')[2].split('id="conditions"')
    for words in ('<td class="n">0.1%</td>', "at most 0.48%", "no value is likelier"):
        assert words in table
    assert "no value is likelier" not in rest
    assert verify(asked).accepted


def test_what_a_warning_denies_is_not_said_to_be_taken_on_trust() -> None:
    for kind, known in (("run", False), ("schema read off records", True)):
        denied = f"{PUBLIC} {DENIED}"
        assert any(denied in line for line in check(document(kind)).reservations()) is known, "as gate and verify print"
        page = page_of(document(kind))
        assert (denied in page) is known
        quoted = page.partition('id="assessment"')[2].partition("</p>")[0]
        assert (str(SCHEMA_FROM_RECORDS.of_ours().reason) in quoted) is known
        assert str(SCHEMA_FROM_RECORDS.of_ours().remedy) not in page.partition('id="mend"')[0], (
            "no advice for engineers"
        )
        assert (str(SCHEMA_FROM_RECORDS.of_ours().remedy) in page) is known
        assert str(SIZE_PUBLIC.reason) not in quoted


def test_advice_for_engineers_stands_in_the_appendix() -> None:
    loop = document("loop")
    before, appendix, after = page_of(loop).partition('id="appendix"')
    assert appendix
    for warning in loop.warnings:
        said = dict(warning.text.values)
        if warning.name != SIZE_PUBLIC.key:
            assert str(said["reason"]) in before
        assert str(said["remedy"]) not in before
        assert str(said["remedy"]) in after


def test_a_field_of_two_values_has_the_limit_of_replacement() -> None:
    worst = {one.neighbouring: one for one in document("plan").assessments if one.adversary == "worst-case"}
    share = percent(even_guess(worst["replace"]), up=True)
    assert f"two equally likely values the limit is {share}." in page_of(without_a_field(document("plan")))


def explained(certificate: Certificate) -> set[str]:
    return {str(word) for word, _ in glossary(certificate)}


def test_words_are_explained_where_they_occur() -> None:
    plain, trained = explained(document("noise")), explained(document("plan"))
    assert {"clip norm, noise multiplier", "dpsgd", "poisson"} <= trained
    assert not {"estimate", "dpsgd", "poisson"} & plain
    best = Selection(Gaussian(3.0), Geometric(5))
    for release in (Guarantee(1.0), MatrixMechanism(3.0, 4), RandomisedResponse(0.3), FilteredGaussian(0.1), best):
        assert release.name in explained(of(release))
        assert release.name not in plain | trained
    assert "selection" in explained(of(Ledger((Gaussian(2.0), best))))
    clients = explained(of(DPSGD(2.0, 1.0, 8, unit=Unit.CLIENT)))
    assert clients & {"client", "record"} == {"client"}
    assert all(kind.sentence == Message(f"mechanism.{name}") for name, kind in MECHANISMS.items())


def test_a_release_that_is_named_has_its_warnings_beside_it() -> None:
    cited = [CitedRelease(ledger="ab" * 32, warnings=("reproducible-noise",)), None]
    declared = Declaration(subject="two", created="2026-11-22", releases=cited)
    two = of(Ledger((Gaussian(2.0), Gaussian(3.0))), declared=declared)
    shown = {str(label): str(value) for _, (label, value) in facts(two)}
    assert shown["release 1"].endswith(f"digest {'ab' * 32}; warnings: reproducible-noise")
    assert unsupported(two).startswith("Several releases, and not all are of recorded runs")
    runs = declared.model_copy(update={"releases": (cited[0], CitedRelease(ledger="cd" * 32))})
    assert unsupported(two.model_copy(update={"declared": runs})).startswith("Several recorded runs")
