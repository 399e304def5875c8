"""The page in a real browser: nothing cut, nothing to scroll sideways, readable by everybody, two sheets of A4.

Run by name with ``pytest -m browser``. Chromium is looked for as ``$RETICENT_CHROMIUM`` or on the path; with
``RETICENT_SCREENSHOTS=FOLDER`` the pictures are kept there to look at.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest

from reticent.auditing import Scores, audit
from reticent.certificates.build import certify, certify_run, public
from reticent.certificates.document.requirements import judged
from reticent.certificates.document.schema import Certificate, Declaration, RequirementRecord
from reticent.certificates.document.signature import signed
from reticent.certificates.page.audit_page import render_audit
from reticent.certificates.page.figures import audit_figure, svg
from reticent.certificates.page.language import Speaker, language_of
from reticent.certificates.page.page import render_html
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.languages import languages
from tests.certificates.conftest import make_ledger
from tests.certificates.making import DECLARED, key_in, of, policy

CHROMIUM = os.environ.get("RETICENT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LONG = "W" * 150 + " <script>document.title='owned'</script>" + "\U0001f512" * 40
TURNED = LONG + "\u202e"  # whoever declares it is refused; names of claims and attacks may hold it
TOO_WIDE = """() => [...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .filter(e => getComputedStyle(e).clipPath === 'none' && !e.closest('thead'))
  .map(e => e.tagName + ': ' + e.textContent.slice(0, 60))"""

TEXTS = """() => [...document.querySelectorAll('body *:not(title):not(desc)')].filter(e => !e.closest('nav, details'))
  .flatMap(e => [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'reticent[browser]'")
    with playwright.sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=False)
        yield running
        running.close()


CLINIC = Declaration(
    subject="Tumour model 3",
    created="2026-11-22",
    issuer="Clinic North, data office",
    purpose="triage of tumours",
    expires="2027-11-01",
)
LIMITS = (
    {"measure": "success", "at": 0.5, "at_most": 0.65},
    {"measure": "epsilon", "at": 1e-5, "at_most": 3},
    {"measure": "tpr", "at": 0.01, "at_most": 0.05},
)
LONGEST = ("persons", "judged")
"""Of one record each; and with a policy that is not met, and a signature: the longest pages that are usual."""


@pytest.fixture(scope="module")
def pages(certificate: Certificate, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    said = Declaration(subject=LONG, created="2026-11-22", issuer=LONG, purpose=LONG)
    rng = np.random.default_rng(1)
    claims = {"mu 1": GaussianTradeOff(1.0), TURNED: GaussianTradeOff(2.0)}
    report = audit(Scores(rng.normal(1, 1, 300), rng.normal(0, 1, 300), {"attack": TURNED, "seed": 1}), claims)
    run, shown = make_ledger(), public(certificate)
    one_each = {"config": {**run.config, "records_per_user": 1}, "records_per_user": 1}
    asked = [{**limit, "neighbouring": relation} for relation in ("add-remove", "replace") for limit in LIMITS]
    wanted = policy(*asked, per="record", ledger=True)
    met = [RequirementRecord(name=one.name, passed=one.passed, detail=one.detail) for one in judged(shown, wanted)]
    refused = shown.model_copy(update={"policy": wanted, "requirements": tuple(met)})
    longest = {
        "persons": public(certify_run(run.model_copy(update=one_each).sealed(), None, CLINIC)),
        "judged": signed(refused, key_in(tmp_path_factory.mktemp("keys"))),
    }
    plan = certify(DPSGD(1.1, 0.01, 1000, batch_size=64, dataset_size=6400), DECLARED)
    return {
        "audit": render_audit(report, svg(audit_figure(report, claims)), private=True),
        "public": render_html(shown),
        "complete": render_html(certificate),
        "hostile": render_html(of(Gaussian(0.7), declared=said)),
        "german": render_html(shown, language_of("de")),
        "french": render_html(shown, language_of("fr")),
        "plan": render_html(public(plan)),
        **{f"{kind}-{code}": render_html(longest[kind], language_of(code)) for kind in LONGEST for code in languages()},
    }


@pytest.fixture
def opened(browser: Any, pages: dict[str, str], tmp_path: Path) -> Iterator[Any]:
    contexts = []

    def open_page(name: str, width: int = 1280, scheme: str = "light") -> Any:
        path = tmp_path / f"{name}.html"
        path.write_text(pages[name])
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: seen.append(request.url))
        page.goto(path.as_uri())
        return page

    seen: list[str] = []
    yield open_page
    for context in contexts:
        context.close()
    assert all(url.startswith("file:") for url in seen), "the page asks for nothing from outside"


def keep(page: Any, name: str) -> None:
    if folder := os.environ.get("RETICENT_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
@pytest.mark.parametrize("name", ["public", "complete", "hostile", "german", "french", "audit"])
def test_nothing_is_wider_than_the_page(opened: Any, name: str, width: int, scheme: str) -> None:
    page = opened(name, width, scheme)
    keep(page, f"{name}-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(TOO_WIDE) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["complete", "german", "audit"])
def test_axe_finds_nothing_serious(opened: Any, name: str, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    found = axe.Axe().run(opened(name, width, scheme)).response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize(
    "name",
    ["public", "plan", *(f"{kind}-{code}" for kind in LONGEST for code in languages())],
)
def test_it_prints_on_a_few_sheets_with_a_foot_and_nothing_cut(opened: Any, tmp_path: Path, name: str) -> None:
    reader = pytest.importorskip("pypdf", reason="needs pypdf: pip install 'reticent[browser]'")
    page = opened(name)
    path = Path(os.environ.get("RETICENT_SCREENSHOTS", tmp_path)) / f"{name}.pdf"
    page.pdf(path=path, prefer_css_page_size=True)
    language = language_of(page.get_attribute("html", "lang"))
    model = "".join(unescape(Speaker(language).text("page.fingerprint")).split())
    sheets = reader.PdfReader(path).pages
    appendix = unescape(Speaker(language).text("page.appendix"))
    (before,) = [place for place, sheet in enumerate(sheets) if appendix in sheet.extract_text() and place]
    assert before <= 4, "what officers read"
    assert len(sheets) <= 7
    for number, sheet in enumerate(sheets, 1):
        foot = normalize("NFKC", "".join(sheet.extract_text().split()))
        assert f"{number}/{len(sheets)}" in foot
        assert f"·{model}" in foot
    printed = normalize("NFKC", "".join("".join(sheet.extract_text() for sheet in sheets).split()))
    words = " ".join(page.evaluate(TEXTS)).split()
    assert len(words) > 800
    assert [word for word in words if normalize("NFKC", word) not in printed] == []


def test_the_appendix_is_folded_until_asked_for_and_open_on_paper(opened: Any) -> None:
    shown = "e => e.checkVisibility({contentVisibilityAuto: true})"
    for width in (360, 1280):
        page = opened("public", width)
        for name in ("checked", "who", "numbers", "grounds"):
            rest = page.locator(f"details:has(> summary#{name}) > :not(summary)")
            assert rest.count()
            assert not any(one.evaluate(shown) for one in rest.all()), name
            page.locator(f"summary#{name}").click()
            assert all(one.evaluate(shown) for one in rest.all()), name
            page.locator(f"summary#{name}").click()


def test_hostile_text_stays_text(opened: Any) -> None:
    page = opened("hostile")
    assert page.title() == "Privacy certificate"
    assert page.evaluate("document.scripts.length") == 0
    assert LONG in page.inner_text("dl.vouch")
    audited = opened("audit")
    assert r"\u202e" in audited.inner_text("body")
    assert "\u202e" not in audited.inner_text("body")


def test_the_language_and_the_pictures_are_named(opened: Any) -> None:
    page = opened("public")
    assert page.get_attribute("html", "lang") == "en"
    assert page.evaluate("[...document.querySelectorAll('svg[role=img]')].every(s => s.querySelector('title, desc'))")
