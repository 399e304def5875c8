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
from reticent.certificates.document.schema import Certificate, content_hash
from reticent.certificates.document.signature import signed
from reticent.certificates.page.browser_check import BROWSER_MARK, browser_checker
from reticent.certificates.page.language import language_of
from reticent.certificates.page.page import page_digest, render_html, said_of_signers
from reticent.certificates.store import write_certificate
from reticent.certificates.verify import verify
from reticent.io.strict import loads
from reticent.kernel.errors import ArtifactError
from reticent.languages import languages
from reticent.signing.curve25519 import why_not
from reticent.signing.keys import load_private_key, write_key_pair
from tests.certificates.test_browser import CHROMIUM, browser

__all__ = ["browser"]


@pytest.fixture(scope="module")
def written(certificate: Certificate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    for name in ("key", "other"):
        write_key_pair(folder / name, folder / f"{name}.pub")
    write_certificate(certificate, folder, key=load_private_key(folder / "key"), languages=("de", "fr"))
    write_certificate(certificate, folder / "unsigned")
    (folder / "verify.html").write_bytes(browser_checker())
    return folder


@pytest.fixture
def checked(browser: Any, written: Path) -> Iterator[Callable[..., tuple[str, list[str]]]]:
    context = browser.new_context()
    asked: list[str] = []

    def check(path: Path, key: Path | None = None, script: str = "") -> tuple[str, list[str]]:
        page = context.new_page()
        page.add_init_script(script)
        page.on("request", lambda request: asked.append(request.url))
        page.goto((written / "verify.html").as_uri())
        if key is not None:
            page.set_input_files("#key", key)
        page.set_input_files("#certificate", path)
        page.locator("#result").wait_for(state="visible")
        return page.inner_text("#verdict"), page.locator("#checks li").all_inner_texts()

    yield check
    context.close()
    assert all(url.startswith("file:") for url in asked)


needs_chromium = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]


def in_browser(test: Any) -> Any:
    for mark in needs_chromium:
        test = mark(test)
    return test


def test_the_page_is_shipped_and_lists_every_key_of_small_order() -> None:
    page = browser_checker().decode()
    assert BROWSER_MARK in page
    assert page == filled(page), "run docs/pages.py"
    assert TYPE in page
    lines = page.split("const WEAK = [")[1].split("];")[0]
    listed = re.findall(r'"([0-9a-f]{64})"', lines)
    small = [key for key in listed if "small order" in str(why_not(bytes.fromhex(key)))]
    assert len(small) == 8  # the group has eight such points
    assert all(why_not(bytes.fromhex(key)) is not None for key in listed)


TYPE = "application/vnd.reticent.certificate+json"


@in_browser
@pytest.mark.parametrize(
    "name",
    ["certificate.html", "certificate.de.html", "certificate.fr.html", "certificate.public.json", "certificate.json"],
)
def test_what_was_written_agrees_and_the_issuer_is_recognised(checked: Any, written: Path, name: str) -> None:
    verdict, lines = checked(written / name, written / "key.pub")
    assert verdict.startswith("It agrees with itself.")
    assert any("The issuer signed it" in line for line in lines)
    assert not [line for line in lines if line.startswith("FAILED")]


@in_browser
def test_another_key_and_a_missing_signature_are_said(checked: Any, written: Path) -> None:
    verdict, lines = checked(written / "certificate.html", written / "other.pub")
    assert verdict.startswith("Do not rely on it")
    assert any("The key that you gave did not sign" in line for line in lines)
    assert checked(written / "unsigned/certificate.html", written / "key.pub")[0].startswith("Do not rely on it")
    verdict, lines = checked(written / "unsigned/certificate.html")
    assert verdict.startswith("It agrees with itself.")
    assert any("not signed: nobody vouches" in line for line in lines)


@in_browser
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("at most 55.8% of the time", "at most 51.8% of the time"),
        (">at most 55.8%", ">at most 51.8%"),
        ("&quot;sampler&quot;: &quot;poisson&quot;", "&quot;sampler&quot;: &quot;shuffle&quot;"),
        ("<main>", "<main><script>1</script>"),
        ('id="size-treated-as-public"', ""),
        ("If the count could", "Even the count could never"),
    ],
)
def test_a_page_that_was_changed_is_found(checked: Any, written: Path, tmp_path: Path, old: str, new: str) -> None:
    page = (written / "certificate.html").read_text()
    visible, mark, data = page.partition("<template")
    assert old in page
    changed = visible.replace(old, new, 1) + mark + data if old in visible else page.replace(old, new, 1)
    if "size-treated" in old:
        changed = re.sub(r"<p class=.note. id=.size-treated.*?</p>", "", visible) + mark + data
    (tmp_path / "page.html").write_text(changed)
    assert checked(tmp_path / "page.html", written / "key.pub")[0].startswith("Do not rely on it")


def _in_a_fold(page: str) -> str:
    box = re.search(r'<p class="note" id="size-treated-as-public">.*?</p>\n', page, re.DOTALL)
    assert box is not None
    return page.replace(box[0], "", 1).replace("</dl></section>\n</main>", f"</dl>{box[0]}</section>\n</main>")


ROW = re.compile(r'<tr><th scope="row">.*?</tr>\n', re.DOTALL)
OTHER_TEXT = ".answer { font-size: 0; } .answer::after { content: 'Nothing can be learnt'; font-size: 1.4rem; }"


@in_browser
@pytest.mark.parametrize(
    "change",
    {
        "script in an attribute": lambda page: page.replace("<body>", "<body onload=\"document.title = 'x'\">"),
        "script in an element of its own": lambda page: page.replace("<main>", "<main><details ontoggle='f()' open>"),
        "a warning that a telephone folds away": _in_a_fold,
        "a fold before the warnings": lambda page: page.replace(
            '<p class="note"',
            '<h2 id="who"></h2><details class="fold"><summary>x</summary></details><p class="note"',
            1,
        ),
        "a fold that holds something": lambda page: page.replace("</summary>", "</summary><p>x</p>", 1),
        "a fold of what is not covered": lambda page: page.replace(
            "<ul><li>other", '<details class="fold"><summary>x</summary></details><ul><li>other'
        ),
        "script in a link": lambda page: page.replace('href="#who"', 'href="javascript:f()"'),
        "link to elsewhere": lambda page: page.replace('href="#who"', 'href="https://example.org"'),
        "another page": lambda page: page.replace(
            "<title>", '<meta http-equiv="refresh" content="0;url=https://example.org"><title>'
        ),
        "no policy for content": lambda page: re.sub(r"<meta http-equiv.*?>", "", page),
        "another policy for content": lambda page: page.replace("default-src 'none'", "default-src *"),
        "a second style": lambda page: page.replace("<main>", f"<main><style>{OTHER_TEXT}</style>"),
        "another foot": lambda page: re.sub(r'(content: ")[^"]*', r"\1The\\000020policy\\000020says\\000020yes", page),
        "the foot of another model": lambda page: re.sub(r'[0-9a-f]{16}(?=\\002026")', "0" * 16, page),
        "a longer foot": lambda page: page.replace('"; } }\n</style>', '\\000020yes\\00002081"; } }\n</style>'),
        "another style": lambda page: page.replace("</style>", f"{OTHER_TEXT}</style>"),
        "style of one element": lambda page: page.replace(
            '<p class="answer">', '<p class="answer" style="display: none">'
        ),
        "hidden": lambda page: page.replace('<p class="answer">', '<p class="answer" hidden>'),
        "hidden below": lambda page: page.replace('<p class="answer">', '<dialog><p class="answer">'),
        "a drawing that moves": lambda page: page.replace('aria-hidden="true">', 'aria-hidden="true"><animate />', 1),
        "a form": lambda page: page.replace("<main>", "<main><input>"),
        "no rows": lambda page: ROW.sub("", page),
        "no first row": lambda page: ROW.sub("", page, count=1),
        "one row twice": lambda page: ROW.sub(lambda row: 2 * row[0], page, count=1),
        "more in a cell": lambda page: page.replace(">at most 55.8%", ">at most 55.8%, in truth 50.2%"),
        "another class": lambda page: page.replace('<p class="answer">', '<p class="answer fold">', 1),
        "a class of a warning": lambda page: page.replace('<p class="note"', '<p class="note fold"', 1),
        "another headline, and a class that hides the first": lambda page: page.replace(
            '<p class="answer">', '<h2>Nothing can be learnt.</h2><p class="answer fold">', 1
        ),
        "a fold that is open": lambda page: page.replace('<details class="fold">', '<details class="fold" open>', 1),
        "the words of a drawing": lambda page: page.replace("false alarms</text>", "false friends</text>", 1),
        "a drawn curve": lambda page: page.replace('points="', 'points="0,0 ', 1),
        "a name for the blind": lambda page: page.replace('<p class="answer">', '<p class="answer" title="safe">', 1),
        "what is read aloud": lambda page: page.replace('<p class="answer">', '<p aria-label="x" class="answer">', 1),
        "a label of a telephone": lambda page: page.replace('data-label="How sure"', 'data-label="Proven"', 1),
        "turned writing": lambda page: page.replace("an attacker", "an \u202eattacker", 1),
        "a comment": lambda page: page.replace("<main>", "<main><!-- --!><p>Nothing can be learnt.</p>"),
        "a comment around the first answer": lambda page: page.replace(
            '<p class="answer">', '<!--<p class="answer">', 1
        ).replace("</p>", "</p>-->", 1),
        "another base": lambda page: page.replace("<title>", '<base href="https://example.org"><title>'),
        "a number among those for specialists": lambda page: re.sub(r"0\.\d{3}(?=[\d ]*</td>)", "0.001", page, count=1),
        "after the end": lambda page: page + "<p>Nothing can be learnt.</p>",
        "a second document": lambda page: page.replace("</body>", '<template id="certificate">{}</template></body>'),
        "no language": lambda page: page.replace(' lang="en"', "", 1),
        "one blank more": lambda page: page.replace("<main>", "<main> ", 1),
        "a mark twice": lambda page: page.replace("<!--signed-->", "<!--signed--><p>Safe.</p><!--signed-->", 1),
        "nobody signed": lambda page: re.sub(r"(<dd><!--signed-->).*?(<!--/)", r"\1Anybody\2", page),
        "another digest of its file": lambda page: re.sub(
            r"(?<=\(SHA-256 )[0-9a-f]{16}(?=…)|(?<=<code>)[0-9a-f]{64}(?=</code></p></section>)",
            lambda found: "ab" * (len(found[0]) // 2),
            page,
        ),
        "another writing of the document": lambda page: page.replace("{\n &quot;", "{&quot;", 1),
        "two headlines": lambda page: page.replace("</h1>", "</h1><main><p>Nothing can be learnt.</p></main>"),
    }.items(),
    ids=lambda change: change[0],
)
def test_a_page_that_shows_more_than_a_certificate_can(
    checked: Any, written: Path, tmp_path: Path, change: Any
) -> None:
    page = (written / "certificate.html").read_text()
    changed = change[1](page)
    assert changed != page
    (tmp_path / "page.html").write_text(changed)
    assert checked(tmp_path / "page.html", written / "key.pub")[0].startswith("Do not rely on it")


@in_browser
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("55,8\N{NO-BREAK SPACE}% der Fälle", "51,8\N{NO-BREAK SPACE}% der Fälle"),
        (">höchstens 55,8", ">höchstens 51,8"),
        ("hat ein Angreifer", "hat kaum ein Angreifer"),
        ("Was nicht abgedeckt ist", "Was abgedeckt ist"),
        ('<html lang="de">', '<html lang="en">'),
        ('<html lang="de">', '<html lang="fr">'),
        ('<html lang="de">', '<html lang="toString">'),
    ],
)
def test_a_translated_page_that_was_changed_is_found(
    checked: Any, written: Path, tmp_path: Path, old: str, new: str
) -> None:
    page = (written / "certificate.de.html").read_text()
    assert old in page
    (tmp_path / "page.html").write_text(page.replace(old, new, 1))
    assert checked(tmp_path / "page.html", written / "key.pub")[0].startswith("Do not rely on it")


@in_browser
def test_what_is_no_certificate_is_one_line(checked: Any, written: Path, tmp_path: Path) -> None:
    for text in ("", "{", "[]", "<html></html>", '{"schema": "reticent.certificate/2"}'):
        (tmp_path / "file.json").write_text(text)
        verdict, lines = checked(tmp_path / "file.json")
        assert verdict == "Do not rely on it: 1 check failed."
        assert len(lines) == 1


def _first(text: str, **fields: Any) -> str:
    """The document with fields of its first signature changed."""
    document = json.loads(text)
    document["signatures"][0] |= fields
    return json.dumps(document)


FORGED = {
    "a key twice": lambda text, _: text.replace("{", '{"schema": "<h1>at most 50.1%</h1>",', 1),
    "a key twice, spelt otherwise": lambda text, _: text.replace("{", '{"\\u0073chema" : "<h1>50.1%</h1>",', 1),
    "a key twice further in": lambda text, _: text.replace('"value": ', '"value": "<h1>at most 50.1%</h1>", "value": '),
    "a number that is none": lambda text, _: text.replace(": null", ": 1e999", 1),
    "more in a signature": lambda text, _: _first(text, note="<h1>at most 50.1%</h1>"),
    "no algorithm": lambda text, _: _first(text, algorithm="none"),
    "a key in capitals": lambda text, key: _first(text, public_key=key.upper()),
    "a key in a list": lambda text, key: _first(text, public_key=[key]),
    "a name that is no digest": lambda text, _: _first(text, keyid="x</code><h1>at most 50.1%</h1><code>"),
    "one key twice": lambda text, _: json.dumps(
        (document := json.loads(text)) | {"signatures": document["signatures"] * 2}
    ),
}


@in_browser
@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_document_holds_nothing_beside_what_is_signed(
    checked: Any, written: Path, tmp_path: Path, change: Any
) -> None:
    """What no digest covers can be chosen by anybody, and a browser shows it; ``verify`` refuses the same."""
    text = (written / "certificate.public.json").read_text()
    changed = change(text, json.loads(text)["signatures"][0]["public_key"])
    assert changed != text
    with pytest.raises((ArtifactError, AssertionError)):
        assert verify(Certificate.parse(loads(changed, "it"), "it")).accepted
    for name in ("forged.json", "forged.html"):
        (tmp_path / name).write_text(changed)
        assert checked(tmp_path / name, written / "key.pub")[0].startswith("Do not rely on it")
        assert checked(tmp_path / name)[0].startswith("Do not rely on it")


@in_browser
def test_only_a_page_is_called_like_one(checked: Any, written: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes((written / "certificate.public.json").read_bytes())
    assert checked(tmp_path / "page.html", written / "key.pub")[0].startswith("Do not rely on it")


@in_browser
def test_seventeen_keys_are_more_than_a_certificate_can_have(checked: Any, written: Path, tmp_path: Path) -> None:
    shown = Certificate.load(written / "certificate.public.json")
    for keys in (16, 17):
        made = signed(shown.model_copy(update={"signatures": ()}), *(Ed25519PrivateKey.generate() for _ in range(keys)))
        (tmp_path / "many.json").write_text(made.to_json())
        assert checked(tmp_path / "many.json")[0].startswith("It agrees" if keys == 16 else "Do not rely on it")


@in_browser
def test_a_signature_that_cannot_be_checked_vouches_for_no_page(checked: Any, written: Path, tmp_path: Path) -> None:
    unable = "crypto.subtle.importKey = () => Promise.reject(new DOMException('Ed25519', 'NotSupportedError'))"
    verdict, lines = checked(written / "certificate.html", script=unable)
    assert verdict.startswith("It agrees with itself.")
    assert any(line.startswith("Note") and "cannot check Ed25519" in line for line in lines)
    assert not [line for line in lines if line.startswith("Passed") and "page" in line]
    assert checked(written / "certificate.html", written / "key.pub", unable)[0].startswith("Do not rely on it")
    page, evil = (written / "unsigned/certificate.html").read_text(), "x</code><h1>at most 50.1%</h1><code>"
    garbage = html.escape(json.dumps({"algorithm": "Ed25519", "keyid": evil, "public_key": "", "value": "00"}))
    page = page.replace("&quot;signatures&quot;: []", f"&quot;signatures&quot;: [{garbage}]")
    keys = Markup(f"<code>{evil[:16]}…</code>"), Markup(f"<code>{evil}</code>")  # noqa: S704
    unsigned, claimed = (said_of_signers(language_of("en"), count, *keys) for count in (0, 1))
    for old, new in zip(unsigned, claimed, strict=True):
        assert old in page
        page = page.replace(old, new)
    (tmp_path / "page.html").write_text(page)
    for script in ("", unable):
        assert checked(tmp_path / "page.html", script=script)[0].startswith("Do not rely on it")


@in_browser
@pytest.mark.parametrize("mark", ["<!--signed-->", '<template id="certificate">', "<!--signed--><!--/signed-->"])
def test_a_page_is_read_in_time_that_grows_with_its_length(
    checked: Any, written: Path, tmp_path: Path, mark: str
) -> None:
    page = (written / "certificate.html").read_text()
    (tmp_path / "page.html").write_text(page.replace("</main>", mark * 100_000 + "</main>"))
    assert checked(tmp_path / "page.html")[0].startswith("Do not rely on it")  # within 30 s; once it took minutes


def test_a_page_holds_the_file_of_its_document(written: Path) -> None:
    """So whoever has the page can compute the digest of the file that it shows."""
    page, name = (written / "certificate.html").read_text(), "certificate.public.json"
    held = html.unescape(page.partition('<template id="certificate">')[2].partition("</template>")[0]).encode()
    assert held == (written / name).read_bytes()
    assert f"{name}</code>: <code>{hashlib.sha256(held).hexdigest()}" in page


EDITS = (
    lambda page: page.replace("<main>", "", 1),
    lambda page: page.replace(' class="note"', ' class="note fold"', 1),
    lambda page: page + "<!-- -->",
    lambda page: page.replace("</style>", " </style>", 1),
)


@pytest.mark.parametrize("code", languages())
def test_a_document_names_its_pages_whoever_signs_it(certificate: Certificate, tmp_path: Path, code: str) -> None:
    """What the checker compares: everything but the data, and what a page says of its file and its signatures."""
    shown = public(certificate)
    write_key_pair(tmp_path / "key", tmp_path / "key.pub")
    both = (shown, signed(shown, load_private_key(tmp_path / "key")))
    for document in both:
        page = render_html(document, language_of(code))
        assert page_digest(page) == shown.pages[code]
        for edit in EDITS:
            assert edit(page) != page
            assert page_digest(edit(page)) != shown.pages[code]
    one, other = (render_html(document, language_of(code)) for document in both)
    assert one != other
    for words in said_of_signers(language_of(code), 0, Markup(""), Markup("")):
        assert words in one
        assert words not in other


@pytest.mark.parametrize("pages", [{"en": "ab" * 32}, {"xx": "ab" * 32}])
def test_pages_that_were_not_made_from_a_document_are_refused(certificate: Certificate, pages: dict[str, str]) -> None:
    shown = public(certificate)
    assert verify(shown).accepted
    forged = shown.model_copy(update={"pages": shown.pages | pages})
    forged = forged.model_copy(update={"content_sha256": content_hash(forged)})
    assert [one.leaf for one in verify(forged).differences] == [f"pages.{code}" for code in pages]
