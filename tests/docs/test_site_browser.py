"""The site in a real browser: every page by axe and on a phone, the gallery's filters, the search.

The site is built once; ``RETICENT_SITE=FOLDER`` takes one that is built already. See ``tests.browsing``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import MARKS, browser, keep, serious

__all__ = ["browser"]
ROOT = Path(__file__).parents[2]
pytestmark = MARKS
LOOKED_AT = ("index", "concepts/attackers", "theory/composition", "evidence/gallery", "reference/warnings")
CUT = """() => [...document.querySelectorAll('.content math')]
  .filter(e => !e.closest('.formula, .table-wrapper'))
  .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(e => e.textContent.slice(0, 60))"""
"""Formulas that leave the page."""
STUCK = """() => [...document.querySelectorAll('.content *')]
  .filter(e => e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
  .filter(e => e.tabIndex < 0 && e.matches(':not(body)'))
  .map(e => e.outerHTML.slice(0, 120))"""
"""What scrolls sideways and cannot be reached by keyboard."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if built := os.environ.get("RETICENT_SITE"):
        return Path(built)
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=600)
    return folder


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    contexts, asked = [], []

    def open_page(name: str, width: int = 1280, scheme: str = "light", script: bool = True) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{(site / 'index.html').as_uri().removesuffix('index.html')}{name}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert all(url.startswith(("file:", "data:")) for url in asked), "the site asks for nothing from outside"


def names(site: Path) -> list[str]:
    """Every page that somebody wrote or that describes the code; the sources in ``_modules`` are not among them."""
    found = (path.relative_to(site) for path in sorted(site.rglob("*.html")))
    return [
        path.as_posix() for path in found if path.parts[0] not in {"_modules", "_static"} and path.name != "verify.html"
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_serious_on_any_page(opened: Any, site: Path, width: int, scheme: str) -> None:
    page, found = opened("index.html", width, scheme), {}
    for name in names(site):
        page.goto((site / name).as_uri())
        found |= {(name, rule): where for rule, where in serious(page).items()}
    assert found == {}


def test_no_page_is_wider_than_a_phone_and_what_scrolls_is_reached_by_keyboard(opened: Any, site: Path) -> None:
    page, wide = opened("index.html", 360), {}
    for name in names(site):
        page.goto((site / name).as_uri())
        stuck = page.evaluate(STUCK) + page.evaluate(CUT)
        if page.evaluate("document.documentElement.scrollWidth") > 360 or stuck:
            wide[name] = stuck
    assert wide == {}


def test_a_wide_page_and_a_box_without_keyboard_are_seen(opened: Any) -> None:
    page = opened("index.html", 360)
    page.evaluate(
        "document.querySelector('.content').insertAdjacentHTML('beforeend', "
        '\'<div style="overflow-x:auto;width:9em"><p style="width:90em">x</p></div>\')'
    )
    assert len(page.evaluate(STUCK)) == 1


def test_the_filters_of_the_gallery_need_no_script(opened: Any) -> None:
    page = opened("evidence/gallery.html", script=False)
    entry = page.locator(".gallery .entry")
    everything = entry.count()
    assert everything > 30
    page.locator("#paper-glrt").focus()
    page.keyboard.press("Space")
    shown = [each for each in entry.all() if each.is_visible()]
    assert 0 < len(shown) < everything
    assert all(" glrt " in (each.get_attribute("class") or "") for each in shown)
    page.locator("#verdict-all").focus()
    page.keyboard.press("ArrowRight")  # the next button of the group
    both = [each.get_attribute("class") for each in entry.all() if each.is_visible()]
    assert both == [each for each in both if each == "entry glrt agrees"] != []


def test_the_number_of_the_first_page_moves_with_the_noise(opened: Any) -> None:
    page = opened("index.html")
    shown = {name: page.locator(f"#{name}") for name in ("worst", "relaxed", "multiplier", "epsilon")}
    before = {name: one.text_content() for name, one in shown.items()}
    page.locator("#noise").press("ArrowRight")
    after = {name: one.text_content() for name, one in shown.items()}
    assert float(after["multiplier"]) > float(before["multiplier"])
    for name in ("worst", "relaxed", "epsilon"):
        assert float(after[name].rstrip("%")) < float(before[name].rstrip("%"))
    without = opened("index.html", script=False)
    assert without.locator("#worst").text_content() == before["worst"]
    for name in ("certificate.html", "verify.html"):
        assert page.locator(f'.doors a[href="{name}"]').count() == 1


def test_a_search_shows_pages_before_names_in_python(opened: Any) -> None:
    page = opened("search.html?q=assess")
    page.locator("#search-results .group", has_text="Names in Python").wait_for(timeout=60_000)
    listed = (
        "[...document.querySelectorAll('#search-results ul.search > li')].map(e => e.querySelector('a')?.href || '')"
    )
    found = page.evaluate(listed)
    names = [place for place, link in enumerate(found) if "reference/api/" in link]
    assert len(found) > len(names) + 2 > 2
    assert names == list(range(len(found) - len(names), len(found)))


def test_the_gallery_is_short(opened: Any) -> None:
    height = "document.documentElement.scrollHeight"
    assert opened("evidence/gallery.html").evaluate(height) < 4_000
    assert opened("evidence/gallery.html", 360).evaluate(height) < 8_000


@pytest.mark.parametrize(
    ("word", "first"),
    [("epsilon", "concepts/glossary"), ("advantage", "concepts/glossary"), ("repeated-noise", "reference/warnings")],
)
def test_search_leads_to_the_page_that_says_what_a_word_means(opened: Any, word: str, first: str) -> None:
    page = opened(f"search.html?q={word}")
    link = page.locator("#search-results li a").first
    link.wait_for(timeout=60_000)
    assert first in (link.get_attribute("href") or "")


def test_the_reference_says_array_like(site: Path) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "reference/api").glob("*.html"))
    assert text.count("ArrayLike") > 25
    assert "_SupportsArray" not in text
    assert "_NestedSequence" not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_pictures_to_look_at(opened: Any, width: int, scheme: str) -> None:
    for name in LOOKED_AT:
        page = opened(f"{name}.html", width, scheme)
        assert page.locator("h1").first.is_visible()
        keep(page, f"site-{name.replace('/', '-')}-{width}-{scheme}")
