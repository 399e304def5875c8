"""What people do every day, in a real browser; ``pytest -m browser`` (see ``test_browser``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.test_browser import CHROMIUM, PANELS, PLAIN, TOO_WIDE, browser, keep, opened
from tests.dashboard.test_browser_broken import typed

__all__ = ["browser", "opened"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]
POLICY = """schema: reticent.policy/1
per: record
limits: [{measure: advantage, at_most: 0.1, neighbouring: add-remove}]
accept_conditions: [clipped, public-divisor, planned-steps, start-weights]
"""


def test_a_number_is_explained_where_it_stands(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN)
    page.click("#cards .card:first-child .why a")
    page.wait_for_selector("#why[open] h3:has-text('worst-case')")
    assert "#why" not in page.url
    assert "DONG2022" in page.inner_text("#conditions")
    assert "reticent/kernel/risk/measures.py:" in page.inner_text("#conditions")


def test_settings_lie_on_a_shelf(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN)
    page.fill("#shelf-name", "<b>noisy</b>")
    page.press("#shelf-name", "Enter")
    page.wait_for_selector("#shelf li")
    typed(page, "noise_multiplier", "7")
    page.wait_for_url("**noise_multiplier=7**")
    page.reload()
    page.wait_for_selector("#shelf li")
    assert page.inner_text("#shelf li button >> nth=0") == "<b>noisy</b>"
    page.click("#shelf li button >> nth=0")
    page.wait_for_url("**noise_multiplier=2**")
    assert page.input_value("#noise_multiplier") == "2"
    page.click("#shelf li button >> nth=1")
    page.wait_for_selector("#shelf li", state="detached")


def test_a_policy_lies_over_the_numbers(opened: Callable[..., Any], tmp_path: Path) -> None:
    page = opened(PLAIN)
    (tmp_path / "policy.yaml").write_text(POLICY)
    page.set_input_files("#policy-file input[type=file]", tmp_path / "policy.yaml")
    page.wait_for_selector("#verdict:has-text('1 of 2 requirements is not met')")
    assert "advantage at most 0.1 (add-remove): is 0.197413" in page.inner_text("#cards .card:first-child .bad")
    assert page.locator("#verdict").bounding_box()["y"] < page.locator("#picture").bounding_box()["y"]
    typed(page, "noise_multiplier", "20")
    page.wait_for_selector("#verdict:has-text('all is met')")
    keep(page, "policy")
    page.click("#no-policy")
    page.wait_for_selector("#verdict:empty", state="attached")
    assert page.locator("#cards .verdicts").count() == 0
    assert page.evaluate("location.search.includes('policy')") is False


def test_a_click_on_the_map_sets_noise_and_rate(opened: Callable[..., Any]) -> None:
    page = opened("panel=compare&attackers=&goal=0.2")
    assert "target 0.2" in page.inner_text("#map")
    box = page.locator("#map .nsewdrag").bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.2 * box["height"])
    page.wait_for_url("**noise_multiplier=**")
    assert float(page.input_value("#noise_multiplier")) > 1.1
    assert float(page.input_value("#sample_rate")) > 0.01
    page.click("#undo")
    page.wait_for_url(lambda url: "noise_multiplier" not in url)


def test_the_budget_says_how_many_epochs_are_left(opened: Callable[..., Any]) -> None:
    page = opened("panel=calibrate&attackers=&steps=100")
    page.wait_for_selector("#planned:has-text('4 more epochs (406 steps)')")
    page.wait_for_selector("#plan-figure .main-svg")
    keep(page, "budget")


def test_a_page_to_send_opens_without_a_server(opened: Callable[..., Any], browser: Any, tmp_path: Path) -> None:
    page = opened("attackers=relaxed")
    with page.expect_download() as caught:
        page.click("#sheet")
    path = tmp_path / "plan.html"
    caught.value.save_as(path)
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    for width, scheme in ((360, "light"), (1280, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        alone = context.new_page()
        alone.goto(path.as_uri())
        keep(alone, f"sent-{width}-{scheme}")
        assert page.inner_text("#headline") == alone.inner_text("h1")
        assert alone.evaluate("document.documentElement.scrollWidth") <= width
        assert alone.evaluate(TOO_WIDE) == []
        found = axe.Axe().run(alone).response["violations"]
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
        context.close()


@pytest.mark.parametrize("panel", ["explore", "calibrate", "compare"])
def test_every_panel_is_printed_whole(opened: Callable[..., Any], tmp_path: Path, panel: str) -> None:
    reader = pytest.importorskip("pypdf", reason="needs pypdf: pip install 'reticent[browser]'")
    page = opened(f"panel={panel}&attackers=&pinned=noise_multiplier%3D2")
    if panel == "calibrate":
        page.wait_for_selector("#planned:not(:empty)")
        page.wait_for_selector("#plan-figure .scatterlayer .trace")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.wait_for_timeout(400)
    keep(page, f"printed-{panel}")
    boxes = page.evaluate("[...document.querySelectorAll('.main-svg')].map(e => e.getBoundingClientRect())")
    assert all(box["right"] <= 700 for box in boxes), "a sheet has room for one picture beside none"
    shown = "[...document.querySelectorAll('button, input')].filter(e => e.offsetParent).map(e => e.outerHTML)"
    assert page.evaluate(shown) == [], "nobody types on paper"
    swatches = "[...document.querySelectorAll('.swatch')].map(e => getComputedStyle(e).printColorAdjust)"
    assert set(page.evaluate(swatches)) == {"exact"}, "a sample of a line is printed too"
    path = tmp_path / "printed.pdf"
    page.pdf(path=path, format="A4")
    text = "".join(sheet.extract_text() for sheet in reader.PdfReader(path).pages)
    assert "advantage" in text or panel == "explore"
    assert "Released: DPSGD: noise multiplier 1.1" in text, "the sheet says what was asked"


def apart(page: Any, places: str) -> list[Any]:
    """Names and marks of axes that lie on each other."""
    boxes = page.evaluate(
        """(places) => [...document.querySelectorAll(places)].filter(e => e.textContent)
        .map(e => [e.textContent, e.getBoundingClientRect()])
        .map(([text, b]) => [text, b.left, b.top, b.right, b.bottom])""",
        places,
    )
    return [
        (a[0], b[0])
        for k, a in enumerate(boxes)
        for b in boxes[:k]
        if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]
    ]


ABOVE = """(figure) => document.querySelector(figure + " .legend").getBoundingClientRect().bottom
    <= document.querySelector(figure + " .nsewdrag").getBoundingClientRect().top + 1"""


def named(page: Any, figure: str, lines: int) -> list[str]:
    """What the legend says, once it has so many lines: above the picture, and beside each other."""
    page.wait_for_function(
        "([figure, lines]) => document.querySelectorAll(figure + ' .legendtext').length === lines", arg=[figure, lines]
    )
    assert page.evaluate(ABOVE, figure), "a name on a line hides it"
    assert apart(page, f"{figure} .legendtext, {figure} .xtick text, {figure} .ytick text") == []
    cut = """(figure) => [...document.querySelectorAll(figure + ' .legendtext')].filter(e => {
        const a = e.getBoundingClientRect(), b = e.closest('svg').getBoundingClientRect();
        return a.left < b.left || a.right > b.right; }).map(e => e.textContent)"""
    assert page.evaluate(cut, figure) == []
    found: list[str] = page.locator(f"{figure} .legendtext").all_text_contents()
    return found


@pytest.mark.parametrize("width", [360, 1280])
def test_every_line_is_named_where_no_line_is(opened: Callable[..., Any], width: int) -> None:
    asked = [(f"attackers=relaxed,mixed&view={view}", 4) for view in ("curves", "roc", "guesses")]
    asked += [("attackers=relaxed,mixed&view=profile", 3), (PANELS["everybody"], 7)]
    for query, lines in asked:
        page = opened(query, width)
        assert "worst-case (bound)" in named(page, "#figure", lines), query
        page.context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_lines_of_a_search_are_named(opened: Callable[..., Any], width: int) -> None:
    for target in ("advantage", "epsilon&goal=2&place=1e-5", "success&goal=0.6&place=0.5", "tpr&goal=0.02&place=0.01"):
        page = opened(f"panel=calibrate&attackers=relaxed&target={target}", width)
        shown = named(page, "#calibrate-figure", 3 + (target[:3] != "eps"))
        assert "the target: drag it" in shown
        assert "worst case where relaxed is content (bound)" in shown
        assert {"target"} < set(named(page, "#plan-figure", 4))
        page.context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_lines_of_a_comparison_are_named(opened: Callable[..., Any], width: int) -> None:
    for view in ("curves", "roc", "profile", "guesses"):
        page = opened(f"panel=compare&view={view}&pinned=noise_multiplier%3D2", width)
        shown = named(page, "#compare-figure", 3 - (view == "profile"))
        assert {"A: worst case (bound)", "B: worst case (bound)"} <= set(shown)
        assert apart(page, "#map .textpoint, #map .xtick text, #map .ytick text") == []
        page.context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_the_picture_stays_where_it_is_when_the_number_is_proven(opened: Callable[..., Any], width: int) -> None:
    page = opened("attackers=relaxed,mixed", width)
    page.evaluate("""() => { window.tops = new Set();
        const look = () => { if (document.getElementById("headline").dataset.follows)
            window.tops.add(Math.round(document.getElementById("picture").getBoundingClientRect().top));
          requestAnimationFrame(look); };
        look(); }""")
    page.evaluate(
        """(width) => { const range = document.getElementById("noise_multiplier-slider");
          range.value = 150 + width / 40;
          range.dispatchEvent(new Event("input", { bubbles: true })); }""",
        width,
    )
    page.wait_for_selector("#headline[data-follows=proof], #headline[data-follows=attackers]")
    page.wait_for_selector("#headline[data-follows=nothing]")
    page.wait_for_timeout(200)
    assert len(page.evaluate("[...window.tops]")) == 1


def test_a_wrong_field_is_marked_and_nothing_can_be_taken_away(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN)
    typed(page, "noise_multiplier", "x")
    page.wait_for_selector("#noise_multiplier[aria-invalid]")
    assert page.locator(".take-away button:enabled").count() == 0
    typed(page, "noise_multiplier", "3")
    page.wait_for_selector("#noise_multiplier:not([aria-invalid])")
    assert page.locator(".take-away button:disabled").count() == 0
    page = opened("panel=calibrate&attackers=&goal=-1")
    page.wait_for_selector("#goal[aria-invalid]")
    page = opened("dimension=x")
    assert page.get_attribute("#more", "open") is not None, "a folded field that is wrong is seen"


def test_open_needs_no_settings_and_messages_stay_with_their_panel(opened: Callable[..., Any], tmp_path: Path) -> None:
    page = opened(PLAIN)
    (tmp_path / "policy.yaml").write_text("limits: 1")
    page.set_input_files("#policy-file input[type=file]", tmp_path / "policy.yaml")
    page.wait_for_selector("#policy-said:not(:empty)")
    page.click("#panel label:has(input[value=open])")
    page.wait_for_selector("body[data-panel=open]")
    assert not page.is_visible("#settings")
    page.click("#panel label:has(input[value=compare])")
    page.wait_for_selector("#policy-said:empty", state="attached")
