"""The page in a real browser (``tests.browsing``): every panel, by hand and by keyboard, on screens and on paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from reticent.certificates.page.page import embedded
from reticent.dashboard.requests import as_text, assess_of
from reticent.dashboard.server import Server
from reticent.dashboard.state import State
from reticent.io.files import read_text
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.risk import advantage
from reticent.kernel.text import digits
from tests.browsing import MARKS, browser, keep, serious

__all__ = ["browser"]
pytestmark = MARKS
Opened = Callable[..., Any]
WAIT = 60_000
SETTLED = {"explore": "#figure", "calibrate": "#calibrate-figure", "compare": "#map", "open": "#upload"}
FILLED = {"explore": "#headline", "calibrate": "#calibrated", "compare": "#compared"}
PLAIN = "mechanism=gaussian&noise_multiplier=2&attackers=membership"
POLICY = """schema: reticent.policy/1
per: record
limits: [{measure: advantage, at_most: 0.1, neighbouring: add-remove}]
accept_conditions: [clipped, public-divisor, planned-steps, start-weights]
"""
IN_ADDRESS = quote('{"schema":"reticent.policy/1","limits":[{"measure":"advantage","at_most":0.1}]}')
PANELS = {
    "explore": "panel=explore&attackers=relaxed",
    "log-log": "panel=explore&view=roc&" + PLAIN,
    "profile": "panel=explore&view=profile&" + PLAIN,
    "guesses": "panel=explore&view=guesses&" + PLAIN,
    "table": "panel=explore&view=table&" + PLAIN,
    "estimate": "panel=explore&attackers=membership-game,attribute&sampler=shuffled&by=data&epochs=1&dimension=1000",
    "wrong": "panel=explore&noise_multiplier=1e-300",
    "calibrate": "panel=calibrate&attackers=relaxed",
    "compare": "panel=compare&pinned=noise_multiplier%3D2%26sample_rate%3D0.02%26steps%3D1000",
    "open": "panel=open",
    "policy": f"panel=explore&attackers=relaxed&policy={IN_ADDRESS}&mechanism=gaussian",
    "matrix": "panel=explore&attackers=&mechanism=matrix&strategy=square-root&bands=4&steps=64&noise_multiplier=5",
    "everybody": "panel=explore&attackers=relaxed,mixed,membership,attribute",
    "file": "mechanism=ledger&attackers=membership&ledger="
    + quote(as_text(Ledger((DPSGD(3.0, 0.05, 20), Gaussian(8.0))))),
}
BY_AXE = ("explore", "calibrate", "compare", "open", "table", "policy", "matrix")
TOO_WIDE = """() => [...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .filter(e => !e.closest('.scroll, svg, .js-plotly-plot') && getComputedStyle(e).clipPath === 'none')
  .map(e => e.tagName + ': ' + e.className + ' ' + e.textContent.slice(0, 60))"""
CUT = """() => [...document.querySelectorAll('input[type=text]')].filter(e => e.offsetParent)
  .filter(e => getComputedStyle(e.parentElement).overflowY !== 'visible')
  .filter(e => e.getBoundingClientRect().height > e.parentElement.getBoundingClientRect().height).map(e => e.id)"""
BROKEN = """() => [...document.querySelectorAll('td button')].filter(e => {
  const text = document.createRange(); text.selectNodeContents(e); return text.getClientRects().length > 1;
}).map(e => e.textContent)"""
PROVEN = "() => document.querySelector('#accuracy').innerText.startsWith('Certificate accuracy')"
SMALL = """() => [...document.querySelectorAll('button, input[type=range], input[type=text], fieldset label')]
  .filter(e => e.offsetParent && e.getBoundingClientRect().height < 43.5).map(e => e.outerHTML.slice(0, 90))"""


@pytest.fixture
def opened(browser: Any, served: Server) -> Iterator[Opened]:
    contexts, asked, complaints = [], [], []

    def open_page(query: str = "", width: int = 1440, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda told: complaints.append(told.text) if told.type == "error" else None)
        page.goto(f"{served.address}&{query}" if query else served.address)
        settle(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    hosts = {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))}
    assert hosts <= {urlsplit(served.address).netloc}, "no request to any other host"
    assert complaints == []


def settle(page: Any) -> None:
    """Wait until the answer of the panel is there."""
    page.wait_for_selector("body[data-panel]")
    panel = page.get_attribute("body", "data-panel")
    table = panel == "explore" and page.get_attribute("body", "data-view") == "table"
    if panel in FILLED:
        page.wait_for_selector(f"{FILLED[panel]}:not(:empty)")
    if table and not page.inner_text("#message"):
        page.wait_for_selector("#table table")
    page.wait_for_selector(".waiting, #calibrate-table td[colspan]", state="detached")
    if not table:
        page.wait_for_selector(f"{SETTLED[panel]}{'' if panel == 'open' else ' .main-svg'}")
    page.wait_for_timeout(250)


def typed(page: Any, name: str, text: str) -> None:
    page.fill(f"#{name}", text)
    page.press(f"#{name}", "Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_every_panel_fits_and_reads(opened: Opened, width: int, scheme: str) -> None:
    for name, query in PANELS.items():
        page = opened(query, width, scheme)
        keep(page, f"dashboard-{name}-{width}-{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert [page.evaluate(looked) for looked in (TOO_WIDE, CUT, BROKEN)] == [[], [], []], name
        if name in BY_AXE:
            assert serious(page) == {}, name
        page.context.close()


def test_sliders_fields_address_and_undo_say_the_same(opened: Opened) -> None:
    page = opened(PLAIN)
    assert page.input_value("#noise_multiplier") == "2"
    before = page.input_value("#noise_multiplier-slider")
    typed(page, "noise_multiplier", "4")
    page.wait_for_url("**noise_multiplier=4**")
    assert int(page.input_value("#noise_multiplier-slider")) > int(before)
    page.focus("#noise_multiplier-slider")
    page.keyboard.press("End")
    page.wait_for_url("**noise_multiplier=30**")
    assert page.input_value("#noise_multiplier") == "30"
    assert page.get_attribute("#noise_multiplier-slider", "aria-valuetext") == "30"
    page.click("#undo")
    page.wait_for_url("**noise_multiplier=4**")
    page.keyboard.press("Control+z")
    page.wait_for_url("**noise_multiplier=2**")
    assert page.input_value("#noise_multiplier") == "2"
    page.wait_for_timeout(1000)
    page.click("#panel label:has(input[value=compare])")
    page.wait_for_selector("body[data-panel=compare]")
    page.go_back()
    page.wait_for_selector("body[data-panel=explore]")


def test_what_is_shown_is_what_the_library_says_and_the_worst_case_stays(opened: Opened) -> None:
    page = opened(PLAIN + "&view=table")
    wanted = WorstCase().assess(assess_of(State.of_address(PLAIN)).mechanism).measure(advantage).value
    assert page.inner_text("#table tbody tr:first-child td").split()[0] == digits(wanted, up=True)
    assert page.inner_text("#headline").startswith("Asked whether")
    assert page.is_disabled("#attackers input[value=worst-case]")
    page.click("#attackers label:has(input[value=membership])")
    page.wait_for_url(lambda url: "attackers=&" in url or url.endswith("attackers="))
    settle(page)
    assert page.inner_text("#cards .card h2").split("\n") == ["worst-case", "Strongest attacker (worst case)"]


def test_the_keyboard_is_enough(opened: Opened) -> None:
    page = opened(PLAIN)
    page.focus("#view input[value=curves]")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("body[data-view=roc]")
    page.focus("#panel input[value=explore]")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("body[data-panel=calibrate]")
    page.focus("#attackers input[value=mixed]")
    page.keyboard.press("Space")
    page.wait_for_selector("body[data-attackers~=mixed]")
    page = opened("panel=open")
    with page.expect_file_chooser():
        page.focus("#upload input[type=file]")
        page.keyboard.press("Enter")
    ring = page.evaluate("getComputedStyle(document.querySelector('#upload .drop')).outlineStyle")
    assert ring == "solid", "what has the focus is seen"


def test_a_wrong_field_is_one_line_and_mending_it_brings_the_answer_back(opened: Opened) -> None:
    page = opened(PLAIN)
    place = page.input_value("#noise_multiplier-slider")
    for text in ("1e-300", "2x", ""):
        typed(page, "noise_multiplier", text)
        page.wait_for_selector("#message:not(:empty)")
        assert page.inner_text("#message").startswith("Noise multiplier must be")
        page.wait_for_selector("#noise_multiplier[aria-invalid]")
        assert page.locator(".take-away button:enabled").count() == 0
        assert text != "2x" or page.input_value("#noise_multiplier-slider") == place
        typed(page, "noise_multiplier", "2")
        page.wait_for_selector("#message:empty", state="attached")
        page.wait_for_selector("#noise_multiplier:not([aria-invalid])")
        assert page.locator(".take-away button:disabled").count() == 0
        assert page.inner_text("#headline").startswith("Asked whether")
    page = opened("panel=calibrate&attackers=&goal=-1")
    page.wait_for_selector("#goal[aria-invalid]")
    page = opened("dimension=x")
    assert page.get_attribute("#more", "open") is not None, "a folded field that is wrong is seen"


def test_copies_and_downloads(opened: Opened) -> None:
    page = opened(PLAIN)
    page.click("#copy-command")
    page.wait_for_selector("#told:not(:empty)")
    assert page.evaluate("navigator.clipboard.readText()").startswith("reticent risk gaussian --noise-multiplier 2.0")
    page.click("#copy-python")
    page.wait_for_timeout(200)
    assert "rt.assess(" in page.evaluate("navigator.clipboard.readText()")
    for button, ending in (("#csv", ".csv"), ("#png", ".png"), ("#svg", ".svg")):
        with page.expect_download() as caught:
            page.click(button)
        assert caught.value.suggested_filename.endswith(ending)


def test_the_certificate_of_a_search_is_that_of_its_answer(opened: Opened) -> None:
    page = opened("panel=calibrate&" + PLAIN)
    with page.expect_download() as caught:
        page.click("#certificate")
    certified = embedded(read_text(Path(caught.value.path()), 1 << 26), "page")
    answer = float(page.inner_text("#calibrate-table tbody tr:first-child td:nth-child(2)"))
    assert certified.mechanism["noise_multiplier"] == pytest.approx(answer, rel=1e-5, abs=0)
    page.click("#calibrate-table tbody tr:first-child button")
    page.wait_for_selector("body[data-panel=explore]")
    assert float(page.input_value("#noise_multiplier")) == certified.mechanism["noise_multiplier"]


def test_a_file_becomes_the_mechanism_and_undo_takes_it_back(opened: Opened, tmp_path: Path) -> None:
    page = opened(PLAIN)
    before = page.inner_text("#headline")
    page.click("#mechanism label:has(input[value=ledger])")
    page.wait_for_selector("#message:has-text('choose a ledger')")
    chosen, other = tmp_path / "release.json", tmp_path / "other.json"
    chosen.write_text(as_text(Ledger((Gaussian(3.0), Gaussian(4.0)))))
    other.write_text("{}")
    page.set_input_files("#ledger-file input[type=file]", chosen)
    page.wait_for_selector("#derived:has-text('Gaussian: noise multiplier 3')")
    page.wait_for_selector("#message:empty", state="attached")
    assert "ledger=" in page.url
    page.set_input_files("#ledger-file input[type=file]", other)
    page.wait_for_selector("#ledger-said:not(:empty)")
    page.click("#undo")
    page.click("#undo")
    page.wait_for_selector(f"#headline:has-text('{before[-40:]}')")


def test_a_policy_lies_over_the_numbers(opened: Opened, tmp_path: Path) -> None:
    page = opened(PLAIN)
    (tmp_path / "policy.yaml").write_text(POLICY)
    page.set_input_files("#policy-file input[type=file]", tmp_path / "policy.yaml")
    page.wait_for_selector("#verdict:has-text('1 of 2 requirements is not met')")
    assert "advantage at most 0.1 (add-remove): is 0.197413" in page.inner_text("#cards .card:first-child .bad")
    assert page.locator("#verdict").bounding_box()["y"] < page.locator("#picture").bounding_box()["y"]
    typed(page, "noise_multiplier", "20")
    page.wait_for_selector("#verdict:has-text('all is met')")
    page.click("#no-policy")
    page.wait_for_selector("#verdict:empty", state="attached")
    assert page.locator("#cards .verdicts").count() == 0
    assert "policy" not in urlsplit(page.url).query
    (tmp_path / "wrong.yaml").write_text("limits: 1")
    page.set_input_files("#policy-file input[type=file]", tmp_path / "wrong.yaml")
    page.wait_for_selector("#policy-said:not(:empty)")
    page.click("#panel label:has(input[value=open])")
    page.wait_for_selector("body[data-panel=open]")
    assert not page.is_visible("#settings")
    page.click("#panel label:has(input[value=compare])")
    page.wait_for_selector("#policy-said:empty", state="attached")


def test_a_number_is_explained_where_it_stands(opened: Opened) -> None:
    page = opened(PLAIN)
    page.click("#cards .card:first-child .why a")
    page.wait_for_selector("#why[open] h3:has-text('worst-case')")
    assert "#why" not in page.url
    assert "DONG2022" in page.inner_text("#conditions")


def test_settings_lie_on_a_shelf(opened: Opened) -> None:
    page = opened(PLAIN)
    typed(page, "shelf-name", "<b>noisy</b>")
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


def test_dragging_the_target_moves_the_answer(opened: Opened) -> None:
    page = opened("panel=calibrate&" + PLAIN)
    box = page.locator("#calibrate-figure .shapelayer path").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y + 40, steps=5)
    page.mouse.up()
    page.wait_for_url("**goal=**")
    settle(page)
    assert float(page.input_value("#goal")) > 0.1


def test_comparing_keeps_a_and_swaps(opened: Opened) -> None:
    page = opened("panel=compare&" + PLAIN)
    page.click("#swap")
    page.wait_for_selector("#told:has-text('Keep settings as A first')")
    page.click("#pin")
    page.wait_for_url("**pinned=**")
    typed(page, "noise_multiplier", "1")
    page.wait_for_selector("#compared:has-text('B reveals more than A')")
    page.click("#swap")
    page.wait_for_selector("#compared:has-text('A reveals more than B')")
    assert page.input_value("#noise_multiplier") == "2"


def test_a_click_on_the_map_sets_noise_and_rate(opened: Opened) -> None:
    page = opened("panel=compare&attackers=&goal=0.2")
    assert "target 0.2" in page.inner_text("#map")
    box = page.locator("#map .nsewdrag").bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.2 * box["height"])
    page.wait_for_url("**noise_multiplier=**")
    assert float(page.input_value("#noise_multiplier")) > 1.1
    assert float(page.input_value("#sample_rate")) > 0.01
    page.click("#undo")
    page.wait_for_url(lambda url: "noise_multiplier" not in url)


def test_a_dragged_slider_ends_where_it_rests(opened: Opened) -> None:
    page = opened("attackers=relaxed")
    page.focus("#noise_multiplier-slider")
    for _ in range(25):
        page.keyboard.press("ArrowRight")
    shown = page.input_value("#noise_multiplier")
    assert float(shown) > 1.1
    page.wait_for_url(f"**noise_multiplier={shown}**")
    page.wait_for_function(PROVEN)
    settle(page)
    release = assess_of(State.of_address(f"noise_multiplier={shown}")).mechanism
    errors = page.evaluate("""() => {
        const line = document.getElementById("figure").data.find((one) => one.meta === "worst-case");
        return line.x.map((x, k) => x + line.y[k]);
    }""")
    wanted = WorstCase().assess(release).measure(advantage).value
    assert 1.0 - min(errors) == pytest.approx(wanted, abs=1e-3), "the last place of the slider is drawn"
    page.click("#undo")
    page.wait_for_url(lambda url: "noise_multiplier" not in url)
    page.wait_for_timeout(900)
    assert page.input_value("#noise_multiplier") == "1.1", "what the slider wrote does not come back"


def test_a_jump_is_asked_at_once_and_a_drag_where_it_ends(opened: Opened) -> None:
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


def shown(page: Any, element: str, part: str = "::before") -> str:
    """What the style sheet writes there."""
    return str(page.evaluate(f"getComputedStyle(document.querySelector('{element}'), '{part}').content"))


@pytest.mark.parametrize("panel", ["explore", "calibrate"])
def test_an_answer_to_earlier_settings_looks_so(opened: Opened, panel: str) -> None:
    page = opened(f"panel={panel}&attackers=&mechanism=gaussian")
    number = FILLED[panel]
    page.route("**/answer", lambda route: None)  # an answer that never comes
    page.focus("#releases-slider")
    page.keyboard.press("End")
    page.wait_for_selector("body.asking")
    assert float(page.evaluate(f"getComputedStyle(document.querySelector('{number}')).opacity")) < 0.5
    assert "computing" in shown(page, number, "::after")
    other = "calibrate" if panel == "explore" else "explore"
    page.click(f"#panel label:has(input[value={other}])")
    page.wait_for_selector(f"body[data-panel={other}]")
    assert "computing" in shown(page, FILLED[other]), "while nothing is there the page says so"
    page.unroute("**/answer")
    page.reload()
    settle(page)
    page.wait_for_selector("body:not(.asking)")


def test_nothing_old_is_called_proven_when_the_server_is_gone(opened: Opened, browser: Any, served: Server) -> None:
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
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page = context.new_page()
    page.goto(f"{served.address}&panel=calibrate&attackers=&mechanism=gaussian")
    page.wait_for_selector("#calibrated:not(:empty)")
    page.click("#to-settings")
    context.set_offline(True)
    page.focus("#releases-slider")
    page.keyboard.press("End")
    page.wait_for_selector("body.gone.asking")
    assert "does not answer" in shown(page, "body")
    context.set_offline(False)
    page.keyboard.press("Home")
    page.wait_for_selector("body:not(.gone):not(.asking)")
    context.close()


def test_the_first_headline_waits_for_nothing_that_draws(browser: Any, served: Server) -> None:
    context = browser.new_context()
    page, asked = context.new_page(), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/plotly.min.js", lambda route: None)  # megabytes that never come
    page.goto(f"{served.address}&{PLAIN}")
    page.wait_for_selector("#headline:not(:empty)")
    assert "59.9%" in page.inner_text("#headline")
    order = [next(k for k, url in enumerate(asked) if name in url) for name in ("/answer", "/_dash-layout")]
    assert order == sorted(order), "the question is asked before the page is built"
    context.close()


def test_on_a_phone_the_settings_are_a_drawer_below_number_and_picture(opened: Opened) -> None:
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
    assert page.evaluate(SMALL) == []
    page.click("#close-settings")
    assert not page.is_visible("#settings")


@pytest.mark.parametrize("view", ["curves", "roc", "profile", "guesses"])
def test_what_a_point_says_is_not_cut_on_a_phone(opened: Opened, view: str) -> None:
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
                assert 0 <= at["x"] <= at["x"] + at["width"] <= 360
                seen += 1
    assert seen > 0


def test_a_page_to_send_opens_without_a_server(opened: Opened, browser: Any, tmp_path: Path) -> None:
    page = opened("attackers=relaxed")
    with page.expect_download() as caught:
        page.click("#sheet")
    path = tmp_path / "plan.html"
    caught.value.save_as(path)
    for width, scheme in ((360, "light"), (1280, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        alone = context.new_page()
        alone.goto(path.as_uri())
        keep(alone, f"dashboard-sent-{width}-{scheme}")
        assert page.inner_text("#headline") == alone.inner_text("h1")
        assert alone.evaluate("document.documentElement.scrollWidth") <= width
        assert alone.evaluate(TOO_WIDE) == []
        assert serious(alone) == {}
        context.close()


@pytest.mark.parametrize("panel", ["explore", "calibrate", "compare"])
def test_every_panel_is_printed_whole(opened: Opened, tmp_path: Path, panel: str) -> None:
    reader = pytest.importorskip("pypdf", reason="needs pypdf: pip install 'reticent[browser]'")
    page = opened(f"panel={panel}&attackers=&pinned=noise_multiplier%3D2")
    if panel == "calibrate":
        page.wait_for_selector("#planned:not(:empty)")
        page.wait_for_selector("#plan-figure .scatterlayer .trace")
    width = f"document.querySelector('{SETTLED[panel]} .main-svg').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.wait_for_timeout(400)
    keep(page, f"dashboard-printed-{panel}")
    boxes = page.evaluate("[...document.querySelectorAll('.main-svg')].map(e => e.getBoundingClientRect())")
    assert all(box["right"] <= 700 for box in boxes), "a sheet has room for one picture beside none"
    controls = "[...document.querySelectorAll('button, input')].filter(e => e.offsetParent).map(e => e.outerHTML)"
    assert page.evaluate(controls) == [], "nobody types on paper"
    swatches = "[...document.querySelectorAll('.swatch')].map(e => getComputedStyle(e).printColorAdjust)"
    assert set(page.evaluate(swatches)) == {"exact"}, "a sample of a line is printed too"
    path = tmp_path / "printed.pdf"
    page.pdf(path=path, format="A4")
    text = "".join(sheet.extract_text() for sheet in reader.PdfReader(path).pages)
    assert "advantage" in text or panel == "explore"
    assert "Released: DPSGD: noise multiplier 1.1" in text, "the sheet says what was asked"
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.wait_for_timeout(300)
    assert page.evaluate(width) == pytest.approx(before, abs=2.0)


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
LEFT = """(figure) => [...document.querySelectorAll(figure + ' .legendtext')].filter(e => {
    const a = e.getBoundingClientRect(), b = e.closest('svg').getBoundingClientRect();
    return a.left < b.left || a.right > b.right; }).map(e => e.textContent)"""
VIEWS = ("curves", "roc", "guesses", "profile")
TARGETS = ("advantage", "epsilon&goal=2&place=1e-5", "success&goal=0.6&place=0.5", "tpr&goal=0.02&place=0.01")
LEGENDS = [
    *((f"attackers=relaxed,mixed&view={v}", "figure", 4 - (v == "profile"), "worst-case (bound)") for v in VIEWS),
    (PANELS["everybody"], "figure", 7, "worst-case (bound)"),
    *(
        (f"panel=calibrate&target={t}", "calibrate-figure", 3 + (t[:3] != "eps"), "the target: drag it")
        for t in TARGETS
    ),
    ("panel=calibrate", "plan-figure", 4, "target"),
    *(
        (f"panel=compare&view={v}&pinned=steps%3D9", "compare-figure", 3 - (v == "profile"), "A: worst case (bound)")
        for v in VIEWS
    ),
]
"""Pages, with so many names in the legend of a picture, one of which is this."""


@pytest.mark.parametrize("width", [360, 1280])
def test_every_line_is_named_where_no_line_is(opened: Opened, width: int) -> None:
    """Above the picture, and beside each other."""
    for query, figure, lines, name in LEGENDS:
        page = opened(query, width)
        page.wait_for_function(
            "([figure, lines]) => document.querySelectorAll(figure + ' .legendtext').length === lines",
            arg=[f"#{figure}", lines],
        )
        assert page.evaluate(ABOVE, f"#{figure}"), "a name on a line hides it"
        assert apart(page, f"#{figure} .legendtext, #{figure} .xtick text, #{figure} .ytick text") == [], query
        assert page.evaluate(LEFT, f"#{figure}") == [], query
        assert name in page.locator(f"#{figure} .legendtext").all_text_contents(), query
        if "compare" in query:
            assert apart(page, "#map .textpoint, #map .xtick text, #map .ytick text") == []
        page.context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_the_picture_stays_where_it_is_when_the_number_is_proven(opened: Opened, width: int) -> None:
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
