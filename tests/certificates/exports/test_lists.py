"""Lists that officers fill: every cell is of the document, what it does not say stays empty, all of it is escaped."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

import reticent as rt
from reticent.certificates.document.schema import Certificate
from reticent.certificates.exports import LISTS, lists
from reticent.certificates.exports.lists.answers import ANSWERS
from reticent.certificates.page.page import render_html
from reticent.kernel.risk.questions import MEASURES
from tests.cli.calling import run

STRANGE = "<script>alert(1)</script> | *a* `b`"
LOOP = rt.dpsgd(noise_multiplier=1.0, sample_rate=0.01, steps=10, records_per_user=2)


@pytest.fixture(scope="module")
def asked() -> Certificate:
    return rt.certify(LOOP, subject=STRANGE, created="2026-01-01", baseline=[0.01]).certificate


def cells(certificate: Certificate, name: str) -> dict[str, tuple[str, ...]]:
    return {row.where: row.found for row in lists.filled(certificate, name).rows}


def stated(name: str) -> list[dict[str, str]]:
    return tomllib.loads(files(lists).joinpath(f"{name}.toml").read_text("utf-8"))["row"]


def test_every_answer_is_asked_for_by_some_list() -> None:
    assert {answer for name in LISTS for row in stated(name) for answer in row.get("answers", ())} == set(ANSWERS)


@pytest.mark.parametrize("name", LISTS)
def test_a_row_leaves_something_or_says_something(asked: Certificate, name: str) -> None:
    for row in lists.filled(asked, name).rows:
        assert row.found or row.yours, row.where
        assert not row.yours or row.yours.endswith(".")


@pytest.mark.parametrize("name", LISTS)
def test_no_share_stands_in_a_list_that_is_not_on_the_page(asked: Certificate, name: str) -> None:
    page = set(re.findall(r"[\d.]+%", re.sub(r"<style>.*?</style>", "", render_html(asked), flags=re.DOTALL)))
    page |= {f"{100 * float(one):g}%" for one in re.findall(r">\s*(0?\.\d+|0|1)\s*<", render_html(asked))}
    said = [row for row in stated(name) if "found" not in row.get("answers", ())]
    lines = [line for row in said for answer in row.get("answers", ()) for line in ANSWERS[answer](asked)]
    assert {share for line in lines for share in re.findall(r"[\d.]+%", line)} <= page


def test_who_attacks_with_less_has_the_worst_case_beside(asked: Certificate) -> None:
    for name in LISTS:
        said = [line for found in cells(asked, name).values() for line in found]
        assert any("an attacker is right at most" in line or line.endswith("(worst-case)") for line in said), name
        assert not any(line.endswith("(membership)") for line in said), "who repeats another has no line"


def test_what_is_proven_stands_before_what_needs_a_condition(asked: Certificate) -> None:
    sure = [line.partition(":")[0] for line in cells(asked, "edpb")["recital 26 GDPR"] if line.startswith("proven")]
    assert sure == ["proven limit"] * 2 + ["proven if a condition holds"] * 2


@pytest.mark.parametrize("name", LISTS)
def test_no_word_of_the_code_and_a_place_to_sign(asked: Certificate, name: str) -> None:
    for text in (lists.markdown(asked, name), lists.page(asked, name)):
        assert not re.search(r"add-remove|content.{0,2}sha256", text)
        assert text.index("Answered by") < text.index("Function") < text.rindex("Date") < text.rindex("Signature")


def test_nothing_is_filled_in_that_nobody_asked(asked: Certificate) -> None:
    plain = rt.certify(LOOP, created="2026-01-01").certificate
    with_, without = (cells(one, "edpb") for one in (asked, plain))
    recovered = [line for line in with_["paragraph 43 (i)"] if "rebuild a record" in line]
    assert len(recovered) == 1, "of two questions, the smaller limit"
    measure = MEASURES["recovered"]
    reached = [measure.of(one, *at).value for one in asked.assessments for at in measure.stated(one)]
    assert len(reached) == 2
    stated = re.search(r"with the model at most ([\d.]+)%", recovered[0])
    assert stated is not None
    assert 0 <= float(stated[1]) - 100 * min(x for x in reached if x is not None) < 0.011
    assert all("without the model 1%" in line for line in recovered)
    assert any("counts as known" in line for line in with_["paragraph 43 (i)"]), "what it needs"
    assert any("on average over what the records could hold" in line for line in with_["paragraph 43 (i)"])
    assert any("accuses only a few" in line for line in without["paragraph 43 (i)"])
    assert not any("rebuild a record" in line or "counts as known" in line for line in without["paragraph 43 (i)"])
    assert without["Opinion 05/2014: linkability"] == ()
    assert not any(line.startswith("subject") for line in without["paragraph 34"]), "nobody gave one"
    found = with_["Opinion 05/2014: singling out"]
    assert found
    assert not any("which of two versions" in line for line in found), "under replacement everybody is a member"


def test_each_line_says_who_vouches_for_it(asked: Certificate) -> None:
    nist, edpb = cells(asked, "nist"), cells(asked, "edpb")
    assert len(nist["4.3 Mechanism implementation"]) == 2
    assert all("nobody checked it" in line for line in nist["4.3 Mechanism implementation"])
    assert edpb["paragraph 34"][-1].endswith("Nobody checked that.")
    assert any("nobody can check from here" in line for line in edpb["paragraph 134"])


def test_no_limit_is_called_no_limit() -> None:
    bare = rt.certify(rt.dpsgd(noise_multiplier=0.01, sample_rate=1.0, steps=1000), created="2026-01-01").certificate
    first = cells(bare, "edpb")["paragraph 43 (i)"][0]
    assert str(bare.headline).startswith(first)
    assert "at most" not in first


@pytest.mark.parametrize("name", LISTS)
def test_a_reader_learns_first_that_nobody_signed_and_foreign_text_is_escaped(asked: Certificate, name: str) -> None:
    text, page = lists.markdown(asked, name), lists.page(asked, name)
    for one, row in ((text, "\n## "), (page, '<th scope="row">')):
        assert "This is no legal advice" in one
        assert "<script>" not in one
        assert one.index("no ledger of a run supports it") < one.index("Nobody signed the certificate") < one.index(row)
    assert r"\| \*a\* \`b\`" in text
    assert "&lt;script&gt;" in page
    assert 'http-equiv="Content-Security-Policy"' in page


def test_the_command_line_fills_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting = ("dpsgd", "--noise-multiplier", "2", "--sample-rate", "0.01", "--steps", "10")
    code, out, _ = run(capsys, "certify", *setting, "--for", "edpb", "--for", "nist", "--out", tmp_path / "a")
    assert code == 0
    assert f"edpb: {tmp_path / 'a' / 'edpb.md'}, {tmp_path / 'a' / 'edpb.html'}" in out
    assert {one.name for one in (tmp_path / "a").glob("*.md")} == {"edpb.md", "nist.md"}
    code, _, err = run(capsys, "certify", *setting, "--for", "edbp", "--out", tmp_path / "b")
    assert (code, "--for must be" in err, "did you mean edpb" in err) == (2, True, True)
    assert not (tmp_path / "b").exists()
