"""What was broken once, in a real browser: one test for each; ``pytest -m browser`` (see ``test_browser``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reticent.certificates.page.page import embedded
from reticent.dashboard.server import Server
from reticent.io.files import read_text
from tests.dashboard.test_browser import CHROMIUM, PLAIN, browser, opened, settle

__all__ = ["browser", "opened"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]


def typed(page: Any, name: str, text: str) -> None:
    page.fill(f"#{name}", text)
    page.press(f"#{name}", "Enter")


@pytest.mark.parametrize("noise", ["0.8", "0.9", "0.95"])
def test_settings_that_differ_little_are_compared(opened: Callable[..., Any], noise: str) -> None:
    page = opened(f"panel=compare&noise_multiplier={noise}&pinned=noise_multiplier%3D{noise}")
    assert page.inner_text("#compared") == "A and B are alike for the worst case."
    assert page.inner_text("#message") == ""


def test_the_certificate_of_a_search_is_that_of_its_answer(opened: Callable[..., Any]) -> None:
    page = opened("panel=calibrate&" + PLAIN)
    with page.expect_download() as caught:
        page.click("#certificate")
    certified = embedded(read_text(Path(caught.value.path()), 1 << 26), "page")
    answer = float(page.inner_text("#calibrate-table tbody tr:first-child td:nth-child(2)"))
    assert certified.mechanism["noise_multiplier"] == pytest.approx(answer, rel=1e-5, abs=0)
    page.click("#calibrate-table tbody tr:first-child button")
    page.wait_for_selector("body[data-panel=explore]")
    assert float(page.input_value("#noise_multiplier")) == certified.mechanism["noise_multiplier"]


def test_nothing_old_is_called_proven_when_the_server_is_gone(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN)
    page.route("**/answer", lambda route: route.fulfill(status=204, body=""))  # an answer that is none
    typed(page, "noise_multiplier", "3")
    page.wait_for_selector("body.stale")
    assert "does not answer" in page.inner_text("#message")
    assert "proven" not in page.inner_text("#accuracy")
    assert not page.is_visible("#cards .claim")
    page.unroute("**/answer")
    typed(page, "noise_multiplier", "4")
    page.wait_for_selector("body:not(.stale)")
    assert page.is_visible("#cards .claim")


def test_back_goes_through_the_settings(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN)
    typed(page, "noise_multiplier", "3")
    page.wait_for_url("**noise_multiplier=3**")
    page.wait_for_timeout(1000)
    page.click("#panel label:has(input[value=compare])")
    page.wait_for_selector("body[data-panel=compare]")
    page.go_back()
    page.wait_for_selector("body[data-panel=explore]")
    page.go_back()
    page.wait_for_url("**noise_multiplier=2**")
    assert page.input_value("#noise_multiplier") == "2"


def test_a_number_that_is_typed_wrong_leaves_the_slider(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN)
    before = page.input_value("#noise_multiplier-slider")
    typed(page, "noise_multiplier", "2x")
    page.wait_for_selector("#message:not(:empty)")
    assert page.input_value("#noise_multiplier-slider") == before


@pytest.mark.parametrize(("text", "value"), [("2,5", "2.5"), ("250%", "2.5"), ("5/2", "2.5")])
def test_numbers_as_people_type_them(opened: Callable[..., Any], text: str, value: str) -> None:
    page = opened(PLAIN.replace("noise_multiplier=2", f"noise_multiplier={value}"))
    wanted, slider = page.inner_text("#headline"), page.input_value("#noise_multiplier-slider")
    typed(page, "noise_multiplier", "9")
    page.wait_for_selector(f"#headline:not(:has-text('{wanted[:75]}'))")
    typed(page, "noise_multiplier", text)
    page.wait_for_selector(f"#headline:has-text('{wanted[:75]}')")
    assert page.input_value("#noise_multiplier-slider") == slider


def test_a_button_that_cannot_act_says_why(opened: Callable[..., Any]) -> None:
    page = opened("panel=compare&" + PLAIN)
    page.click("#swap")
    page.wait_for_selector("#told:has-text('Keep settings as A first')")


def test_the_chart_fits_the_printed_sheet(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.wait_for_timeout(300)
    assert page.evaluate("document.querySelector('#figure .main-svg').getBoundingClientRect().width") <= 660
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.wait_for_timeout(300)
    assert page.evaluate("document.querySelector('#figure .main-svg').getBoundingClientRect().width") > 660


def test_on_a_phone_the_settings_are_a_drawer_below_number_and_picture(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN, 360)
    assert not page.is_visible("#settings")
    place = "e => { const box = document.querySelector(e).getBoundingClientRect(); return [box.top, box.bottom]; }"
    assert page.evaluate(f"({place})('#picture')")[1] < 900, "the picture is seen without scrolling"
    page.click("#to-settings")
    assert page.get_attribute("#to-settings", "aria-expanded") == "true"
    page.wait_for_timeout(200)
    drawer, picture, number = (page.evaluate(f"({place})('{name}')") for name in ("#settings", "#picture", "#number"))
    assert 0 <= number[0] < number[1] <= picture[0] + 1
    assert picture[0] + 0.8 * (picture[1] - picture[0]) < drawer[0]
    page.click("#more summary")
    small = """() => [...document.querySelectorAll('button, input[type=range], input[type=text], fieldset label')]
      .filter(e => e.offsetParent && e.getBoundingClientRect().height < 43.5).map(e => e.outerHTML.slice(0, 90))"""
    assert page.evaluate(small) == []
    page.click("#close-settings")
    assert not page.is_visible("#settings")


def test_a_line_that_lies_on_another_is_named_too(opened: Callable[..., Any]) -> None:
    page = opened(PLAIN)
    settle(page)
    assert "membership (bound)" in page.locator("#figure .legendtext").all_text_contents()


@pytest.mark.parametrize("view", ["curves", "roc", "profile", "guesses"])
def test_what_a_point_says_is_not_cut_on_a_phone(opened: Callable[..., Any], view: str) -> None:
    page = opened(f"{PLAIN}&view={view}", 360)
    page.wait_for_selector("#figure .nsewdrag")
    page.locator("#figure").scroll_into_view_if_needed()
    box = page.locator("#figure .nsewdrag").bounding_box()
    seen = 0
    for share in (0.05, 0.3, 0.6, 0.95):
        for height in (0.1, 0.3, 0.5, 0.7, 0.9):
            page.mouse.move(box["x"] + share * box["width"], box["y"] + height * box["height"])
            page.wait_for_timeout(80)
            for label in page.query_selector_all("#figure .hoverlayer .hovertext"):
                at = label.bounding_box()
                assert at["x"] >= 0
                assert at["x"] + at["width"] <= 360
                seen += 1
    assert seen > 0


def test_while_nothing_is_there_the_page_says_so(opened: Callable[..., Any]) -> None:
    page = opened("panel=calibrate&" + PLAIN)
    page.route("**/answer", lambda route: None)  # an answer that never comes
    page.click("#panel label:has(input[value=explore])")
    page.wait_for_selector("body[data-panel=explore]")
    shown = page.evaluate("getComputedStyle(document.getElementById('headline'), '::before').content")
    assert "computing" in shown


def test_the_first_headline_waits_for_nothing_that_draws(browser: Any, served: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/plotly.min.js", lambda route: None)  # megabytes that never come
    page.goto(f"{served.address}&{PLAIN}")
    page.wait_for_selector("#headline:not(:empty)")
    assert "59.9%" in page.inner_text("#headline")
    order = [next(k for k, url in enumerate(asked) if name in url) for name in ("/answer", "/_dash-layout")]
    assert order == sorted(order), "the question is asked before the page is built"
    context.close()


def test_a_jump_is_asked_at_once_and_a_drag_where_it_ends(opened: Callable[..., Any]) -> None:
    page = opened("panel=calibrate&attackers=")
    page.wait_for_selector("#planned:not(:empty)")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    page.evaluate("""async () => {
        const range = document.getElementById("sample_rate-slider");
        for (let k = 0; k < 20; k++) {
            range.value = Number(range.value) + 1;
            range.dispatchEvent(new Event("input"));
            await new Promise((next) => setTimeout(next, 20));
        }
    }""")
    page.wait_for_function("() => location.search.includes('sample_rate')")
    page.wait_for_timeout(1500)
    questions = [one for one in asked if '"stage":"calibrate"' in one]
    assert 2 <= len(questions) <= 6, "the first place of the drag, and the last; a busy machine may rest between"
    assert page.input_value("#sample_rate") in questions[-1]


@pytest.mark.parametrize("panel", ["explore", "calibrate"])
def test_an_answer_to_earlier_settings_looks_so(opened: Callable[..., Any], panel: str) -> None:
    page = opened(f"panel={panel}&attackers=&mechanism=gaussian")
    number = "#headline" if panel == "explore" else "#calibrated"
    page.route("**/answer", lambda route: None)  # an answer that never comes
    page.focus("#releases-slider")
    page.keyboard.press("End")
    page.wait_for_selector("body.asking")
    assert float(page.evaluate(f"getComputedStyle(document.querySelector('{number}')).opacity")) < 0.5
    assert "computing" in page.evaluate(f"getComputedStyle(document.querySelector('{number}'), '::after').content")
    page.unroute("**/answer")
    page.reload()
    settle(page)
    page.wait_for_selector("body:not(.asking)")


def test_every_panel_says_that_the_server_is_gone(browser: Any, served: Server) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page = context.new_page()
    page.goto(f"{served.address}&panel=calibrate&attackers=&mechanism=gaussian")
    page.wait_for_selector("#calibrated:not(:empty)")
    page.click("#to-settings")
    context.set_offline(True)
    page.focus("#releases-slider")
    page.keyboard.press("End")
    page.wait_for_selector("body.gone.asking")
    shown = page.evaluate("getComputedStyle(document.body, '::before').content")
    assert "does not answer" in shown
    context.set_offline(False)
    page.keyboard.press("Home")
    page.wait_for_selector("body:not(.gone):not(.asking)")
    context.close()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("goal=-1", "The target must be"),
        ("goal=abc", "The target must be"),
        ("target=success&goal=0.2&place=0.5", "The target must be a number above 0.5"),
        ("records_per_user=1,5", "Records per person must be"),
    ],
)
def test_a_wrong_number_is_called_what_its_field_is_called(opened: Callable[..., Any], query: str, said: str) -> None:
    page = opened(f"panel=calibrate&attackers=&{query}")
    assert page.inner_text("#message").startswith(said)
