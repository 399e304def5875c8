"""What Coq checks: no file takes anything for granted, and the pages say what the files state."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from proofs import check
from reticent.kernel.proofs.references import THEOREMS
from tests.docs.follow import BLOCK, ROOT, pages

KNOWN = check.files()
TEXTS = {one.name: (check.HERE / f"{one.name}.v").read_text(encoding="utf-8") for one in KNOWN}
BACKED = {
    "DONG2022:Theorem 3.2",
    "ZHU2022:Theorem 11",
    "ZHU2022:Proposition 30",
    "RETICENT:reacting-second-moment",
    "RETICENT:reacting-information",
    "RETICENT:worst-order",
}
"""Keys on which defaults rest."""

pytestmark = pytest.mark.docs
needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason=check.MISSING)


def test_every_file_is_read_after_those_that_it_builds_on() -> None:
    assert {f"{one.name}.v" for one in KNOWN} == {path.name for path in check.HERE.glob("*.v")}
    names = [one.name for one in KNOWN]
    assert all(names.index(need) < names.index(one.name) for one in KNOWN for need in one.needs)


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_taken_for_granted(name: str) -> None:
    assert check.granted(TEXTS[name]) == []


@pytest.mark.parametrize(
    "planted",
    [
        "Proof. Admitted.",
        "by admit.",
        "Axiom cheap : False.",
        "Parameter cheap : False.",
        "Hypothesis cheap : False.",
        "Variable cheap : False.",
        "Variables (R : realFieldType) (cheap : False).",
        "Context (cheap : False).",
        "Unset Guard Checking.",
        "From mathcomp.classical Require Import boolp.",
    ],
)
def test_what_would_take_something_for_granted_is_seen(planted: str) -> None:
    assert check.granted(f"{TEXTS['laws']}\n{planted}\n")


def test_the_keys_that_defaults_rest_on_lead_to_their_statements() -> None:
    backed = {key: one for one in KNOWN for key in one.keys}
    assert backed.keys() == BACKED <= THEOREMS.keys()
    rows = {line.split("`")[1]: line for line in pages.theorems().splitlines() if line.startswith("| `")}
    for key, one in backed.items():
        assert one.theorems
        assert all(f"`{name}`" in rows[key] for name in one.theorems)
    assert not any("machine-proofs" in row for key, row in rows.items() if key not in backed)


def test_the_page_has_each_statement_as_its_file_has_it_and_few_words() -> None:
    page = pages.machine_proofs()
    shown = re.findall(r"`proofs/(\w+)\.v`.*?```coq\n(.*?)\n```", page, re.DOTALL)
    assert [name for name, _ in shown] == [one.name for one in KNOWN]
    for name, statements in shown:
        assert all(one in TEXTS[name] for one in statements.split("\n\n"))
    for one in KNOWN:
        stated = re.findall(r"^(?:Theorem|Corollary) (\w+)", TEXTS[one.name], re.MULTILINE)
        assert list(one.theorems) == stated
        assert all(re.search(rf"^(?:Theorem|Corollary) {name} ", page, re.MULTILINE) for name in stated)
    assert len(re.findall(r"[^\s`]*\w[^\s`]*", BLOCK.sub("", page))) <= 500


def test_pages_of_theory_lead_to_the_statements() -> None:
    texts = [
        path.read_text(encoding="utf-8") for path in (ROOT / "docs/theory").rglob("*.md") if not pages.is_made(path)
    ]
    linked = {anchor for text in texts for anchor in re.findall(r"machine-proofs\.md#([\w-]+)", text)}
    assert linked == set(re.findall(r"machine-proofs\.md#([\w-]+)", pages.theorems()))


@needs_coq
def test_coq_accepts_every_proof_and_no_theorem_rests_on_an_axiom(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{one.name}.{name}: {check.CLOSED}" for one in KNOWN for name in one.theorems]


@needs_coq
def test_a_statement_that_is_stronger_than_its_proof_is_refused(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.v").write_text(text, encoding="utf-8")
    weaker = TEXTS["composition"].replace("law (P n) /\\ law (Q n)", "law (P n) /\\ law (P n)")
    assert weaker != TEXTS["composition"]
    (tmp_path / "composition.v").write_text(weaker, encoding="utf-8")
    with pytest.raises(SystemExit, match=r"composition\.v is not proven"):
        check.main(tmp_path)


@needs_coq
def test_an_axiom_that_no_word_gives_away_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.v").write_text(text, encoding="utf-8")
    borrowed = "From Coq Require FunctionalExtensionality.\nTheorem same (f g : nat -> nat) : f =1 g -> f = g.\n"
    proof = "Proof. exact: FunctionalExtensionality.functional_extensionality. Qed.\n"
    (tmp_path / "composition.v").write_text(TEXTS["composition"] + borrowed + proof, encoding="utf-8")
    assert check.main(tmp_path) == 1
    assert "functional_extensionality_dep" in capsys.readouterr().out
