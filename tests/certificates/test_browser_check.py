"""The page that checks certificates without Python, in a real browser; ``pytest -m browser`` (see ``test_browser``)."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from markupsafe import Markup

from docs.browser_page import filled
from reticent.certificates.build import public
from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.signature import signed
from reticent.certificates.page.browser_check import BROWSER_MARK, browser_checker
from reticent.certificates.page.language import language_of
from reticent.certificates.page.page import page_digest, render_html, said_of_signers
from reticent.certificates.store import write_certificate
from reticent.certificates.verify import verify
from reticent.io.strict import loads
from reticent.kernel.errors import ArtifactError
from reticent.languages import languages
from reticent.signing.envelope import CERTIFICATE
from tests.certificates.making import key_in
from tests.certificates.test_browser import CHROMIUM, browser

__all__ = ["browser"]
Change = Callable[[str], str]


@pytest.fixture(scope="module")
def written(certificate: Certificate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    key, _ = (key_in(folder, name) for name in ("key", "other"))
    write_certificate(certificate, folder, key=key, languages=("de", "fr"))
    write_certificate(certificate, folder / "unsigned")
    (folder / "verify.html").write_bytes(browser_checker())
    return folder


@pytest.fixture
def checked(browser: Any, written: Path, tmp_path: Path) -> Iterator[Callable[..., tuple[str, list[str]]]]:
    """The verdict on a file or a text, and the lines below it."""
    context = browser.new_context()
    asked: list[str] = []

    def check(what: Path | str, key: Path | None = written / "key.pub", script: str = "") -> tuple[str, list[str]]:
        if isinstance(what, str):
            (tmp_path / "text").write_text(what)
            what = tmp_path / "text"
        page = context.new_page()
        page.add_init_script(script)
        page.on("request", lambda request: asked.append(request.url))
        page.goto((written / "verify.html").as_uri())
        if key is not None:
            page.set_input_files("#key", key)
        page.set_input_files("#certificate", what)
        page.locator("#result").wait_for(state="visible")
        return page.inner_text("#verdict"), page.locator("#checks li").all_inner_texts()

    yield check
    context.close()
    assert all(url.startswith("file:") for url in asked)


AGREES, REFUSED = "It agrees with itself.", "Do not rely on it"


def in_browser(test: Any) -> Any:
    here = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
    return pytest.mark.browser(here(test))


def test_the_page_is_shipped_with_its_words_and_style() -> None:
    page = browser_checker().decode()
    assert BROWSER_MARK in page
    assert page == filled(page), "run docs/pages.py"
    assert CERTIFICATE in page


@in_browser
@pytest.mark.parametrize(
    "name",
    ["certificate.html", "certificate.de.html", "certificate.fr.html", "certificate.public.json", "certificate.json"],
)
def test_what_was_written_agrees_and_the_issuer_is_recognised(checked: Any, written: Path, name: str) -> None:
    verdict, lines = checked(written / name)
    assert verdict.startswith(AGREES)
    assert any("The issuer signed it" in line for line in lines)
    assert not [line for line in lines if line.startswith("FAILED")]


@in_browser
def test_another_key_and_a_missing_signature_are_said(checked: Any, written: Path) -> None:
    verdict, lines = checked(written / "certificate.html", written / "other.pub")
    assert verdict.startswith(REFUSED)
    assert any("The key that you gave did not sign" in line for line in lines)
    assert checked(written / "unsigned/certificate.html")[0].startswith(REFUSED)
    verdict, lines = checked(written / "unsigned/certificate.html", None)
    assert verdict.startswith(AGREES)
    assert any("not signed: nobody vouches" in line for line in lines)


def put(old: str, new: str) -> Change:
    return lambda page: page.replace(old, new, 1)


ROW = re.compile(r'<tr><th scope="row">.*?</tr>\n', re.DOTALL)
OWN_DIGESTS = re.compile(r"(?<=\(SHA-256 )[0-9a-f]{16}(?=…)|(?<=<code>)[0-9a-f]{64}(?=</code></p></section>)")
GERMAN = "certificate.de.html"
CHANGES: dict[str, tuple[str, Change]] = {
    "a number": ("certificate.html", put(">at most 55.8%", ">at most 51.8%")),
    "a fact of the document": ("certificate.html", put("&quot;poisson&quot;", "&quot;shuffle&quot;")),
    "a script": ("certificate.html", put("<main>", "<main><script>1</script>")),
    "script in an attribute": ("certificate.html", put("<body>", "<body onload=\"document.title = 'x'\">")),
    "no policy for content": ("certificate.html", lambda page: re.sub(r"<meta http-equiv.*?>", "", page)),
    "style of one element": ("certificate.html", put('<p class="share">', '<p class="share" style="opacity: 0">')),
    "no first row": ("certificate.html", lambda page: ROW.sub("", page, count=1)),
    "another class": ("certificate.html", put('<p class="share">', '<p class="share blind">')),
    "the foot of another model": (
        "certificate.html",
        lambda page: re.sub(r'[0-9a-f]{16}(?=\\002026")', "0" * 16, page),
    ),
    "a comment": ("certificate.html", put("<main>", "<main><!-- --!><p>Nothing can be learnt.</p>")),
    "after the end": ("certificate.html", lambda page: page + "<p>Nothing can be learnt.</p>"),
    "a second document": ("certificate.html", put("</body>", '<template id="certificate">{}</template></body>')),
    "no language": ("certificate.html", put(' lang="en"', "")),
    "one blank more": ("certificate.html", put("<main>", "<main> ")),
    "a mark twice": ("certificate.html", put("<!--signed-->", "<!--signed--><p>Safe.</p><!--signed-->")),
    "nobody signed": (
        "certificate.html",
        lambda page: re.sub(r"(<dd><!--signed-->).*?(<!--/)", r"\1Anybody\2", page),
    ),
    "another digest of its file": (
        "certificate.html",
        lambda page: OWN_DIGESTS.sub(lambda found: "ab" * (len(found[0]) // 2), page),
    ),
    "another writing of the document": ("certificate.html", put("{\n &quot;", "{&quot;")),
    "a German number": (GERMAN, put("55,8\N{NO-BREAK SPACE}%", "51,8\N{NO-BREAK SPACE}%")),
    "a German word": (GERMAN, put("Was nicht abgedeckt ist", "Was abgedeckt ist")),
    "German that is called English": (GERMAN, put('<html lang="de">', '<html lang="en">')),
    "German that is called French": (GERMAN, put('<html lang="de">', '<html lang="fr">')),
    "a language that is none": (GERMAN, put('<html lang="de">', '<html lang="toString">')),
}


@in_browser
@pytest.mark.parametrize("name", CHANGES)
def test_a_page_that_was_changed_is_found(checked: Any, written: Path, name: str) -> None:
    file, change = CHANGES[name]
    page = (written / file).read_text()
    assert change(page) != page
    assert checked(change(page))[0].startswith(REFUSED)


@in_browser
def test_what_is_no_certificate_is_one_line(checked: Any) -> None:
    for text in ("", "{", "[]", "<html></html>", '{"schema": "reticent.certificate/2"}'):
        verdict, lines = checked(text, None)
        assert verdict == "Do not rely on it: 1 check failed."
        assert len(lines) == 1


def _first(**fields: Any) -> Callable[[Any], Any]:
    """The document with fields of its first signature changed."""
    return lambda document: document | {"signatures": [document["signatures"][0] | fields]}


EVIL = "<h1>at most 50.1%</h1>"
FORGED: dict[str, Change | Callable[[Any], Any]] = {
    "a key twice": put("{", f'{{"schema": "{EVIL}",'),
    "a key twice, spelt otherwise": put("{", f'{{"\\u0073chema" : "{EVIL}",'),
    "a key twice further in": put('"value": ', f'"value": "{EVIL}", "value": '),
    "a number that is none": put(": null", ": 1e999"),
    "more in a signature": _first(note=EVIL),
    "no algorithm": _first(algorithm="none"),
    "a key in capitals": lambda document: _first(public_key=document["signatures"][0]["public_key"].upper())(document),
    "a key in a list": lambda document: _first(public_key=[document["signatures"][0]["public_key"]])(document),
    "a name that is no digest": _first(keyid=f"x</code>{EVIL}<code>"),
    "one key twice": lambda document: document | {"signatures": document["signatures"] * 2},
}


@in_browser
@pytest.mark.parametrize("name", FORGED)
def test_a_document_holds_nothing_beside_what_is_signed(checked: Any, written: Path, name: str) -> None:
    """What no digest covers can be chosen by anybody, and a browser shows it; ``verify`` refuses the same."""
    text, change = (written / "certificate.public.json").read_text(), FORGED[name]
    changed = change(text) if name in list(FORGED)[:4] else json.dumps(change(json.loads(text)))
    assert changed != text
    with pytest.raises((ArtifactError, AssertionError)):
        assert verify(Certificate.parse(loads(changed, "it"), "it")).accepted
    assert checked(changed)[0].startswith(REFUSED)
    assert checked(changed, None)[0].startswith(REFUSED)


@in_browser
def test_only_a_page_is_called_like_one(checked: Any, written: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes((written / "certificate.public.json").read_bytes())
    assert checked(tmp_path / "page.html")[0].startswith(REFUSED)


@in_browser
def test_seventeen_keys_are_more_than_a_certificate_can_have(checked: Any, written: Path, tmp_path: Path) -> None:
    shown = Certificate.load(written / "certificate.public.json").model_copy(update={"signatures": ()})
    for keys in (16, 17):
        made = signed(shown, *(Ed25519PrivateKey.generate() for _ in range(keys)))
        (tmp_path / "signed.json").write_text(made.to_json())
        verdict, lines = checked(tmp_path / "signed.json", None)
        assert verdict.startswith(AGREES if keys == 16 else REFUSED), lines


@in_browser
def test_a_signature_that_cannot_be_checked_vouches_for_no_page(checked: Any, written: Path) -> None:
    unable = "crypto.subtle.importKey = () => Promise.reject(new DOMException('Ed25519', 'NotSupportedError'))"
    verdict, lines = checked(written / "certificate.html", None, unable)
    assert verdict.startswith(AGREES)
    assert any(line.startswith("Note") and "cannot check Ed25519" in line for line in lines)
    assert not [line for line in lines if line.startswith("Passed") and "page" in line]
    assert checked(written / "certificate.html", written / "key.pub", unable)[0].startswith(REFUSED)
    page, evil = (written / "unsigned/certificate.html").read_text(), f"x</code>{EVIL}<code>"
    garbage = html.escape(json.dumps({"algorithm": "Ed25519", "keyid": evil, "public_key": "", "value": "00"}))
    page = page.replace("&quot;signatures&quot;: []", f"&quot;signatures&quot;: [{garbage}]")
    keys = Markup(f"<code>{evil[:16]}…</code>"), Markup(f"<code>{evil}</code>")  # noqa: S704
    unsigned, claimed = (said_of_signers(language_of("en"), count, *keys) for count in (0, 1))
    for old, new in zip(unsigned, claimed, strict=True):
        assert old in page
        page = page.replace(old, new)
    for script in ("", unable):
        assert checked(page, None, script)[0].startswith(REFUSED)


@in_browser
@pytest.mark.parametrize("mark", ["<!--signed-->", '<template id="certificate">'])
def test_a_page_is_read_in_time_that_grows_with_its_length(checked: Any, written: Path, mark: str) -> None:
    page = (written / "certificate.html").read_text().replace("</main>", mark * 100_000 + "</main>")
    assert checked(page, None)[0].startswith(REFUSED)  # within 30 s; once it took minutes


def test_a_page_holds_the_file_of_its_document(written: Path) -> None:
    """So whoever has the page can compute the digest of the file that it shows."""
    page, name = (written / "certificate.html").read_text(), "certificate.public.json"
    held = html.unescape(page.partition('<template id="certificate">')[2].partition("</template>")[0]).encode()
    assert held == (written / name).read_bytes()
    assert f"{name}</code>: <code>{hashlib.sha256(held).hexdigest()}" in page


EDITS = (put("<main>", ""), put(' class="share"', ' class="share blind"'), lambda page: page + "<!-- -->")


@pytest.mark.parametrize("code", languages())
def test_a_document_names_its_pages_whoever_signs_it(certificate: Certificate, tmp_path: Path, code: str) -> None:
    """What the checker compares: everything but the data, and what a page says of its file and its signatures."""
    shown = public(certificate)
    one, other = (render_html(each, language_of(code)) for each in (shown, signed(shown, key_in(tmp_path))))
    for page in (one, other):
        assert page_digest(page) == shown.pages[code]
        assert shown.pages[code] not in {page_digest(edit(page)) for edit in EDITS}
    assert one != other
    for words in said_of_signers(language_of(code), 0, Markup(""), Markup("")):
        assert words in one
        assert words not in other
