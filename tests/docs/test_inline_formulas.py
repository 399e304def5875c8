"""Formulas within a sentence: each is read as it was meant, and none is lost."""

from __future__ import annotations

import re

import pytest

from tests.docs.follow import BLOCK, PAGES, ROOT

pytestmark = pytest.mark.docs
formulas = pytest.importorskip("inline_formulas", reason="docs/ is on the path, docutils comes with the site")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("s^2/T", "s^{2}"),
        ("e^(-epsilon/2)", r"e^{-\varepsilon /2}"),
        ("rho^2T", r"\rho ^{2T}"),
        ("P_{Ru}", "P_{Ru}"),
        ("y_{s−1}", "y_{s-1}"),
        ("Phi^-1(x)", r"\Phi ^{-1}"),
        ("sqrt(T (e^s - 1))", r"\sqrt{T (e^{s} - 1)}"),
        ("e^epsilon", r"e^{\varepsilon }"),
        ("F_chord", r"F_{\mathrm{chord}}"),
        ("g_S'", "g_{S'}"),
        ("g'_S'", "g'_{S'}"),
        ("G_mu's", r"G_{\mu }"),
        ("∂_i", r"\partial _{i}"),
        ("G_sqrt(v)", r"G_{\sqrt{v}}"),
        ("I^(6)", "I^{(6)}"),
        ("x^2/72", "x^{2}"),
        ("(a + b)^2", "{}^{2}"),
        ("e^{√λ ⟨u, y⟩}", r"e^{\sqrt{λ} \langle u, y\rangle }"),
    ],
)
def test_a_formula_is_read_as_it_was_meant(written: str, meant: str) -> None:
    found = formulas.FORMULA.search(written)
    assert formulas.latex(found.group()) == meant


@pytest.mark.parametrize("word", ["records_per_user", "rho_form", "test_accuracy", "a plain word", "[0, 1]", "2 to 3"])
def test_names_and_words_are_no_formulas(word: str) -> None:
    assert not formulas.FORMULA.search(word)


@pytest.mark.parametrize(
    "code", ["s = 1/sigma^2", "F_chord = 2 e^s", "R_t", "delta = tpr - e^epsilon fpr", "N(0, s^2)"]
)
def test_formulas_that_are_set_as_code_are_typeset_too(code: str) -> None:
    assert formulas.is_formula(code)
    assert formulas.drawable(formulas.latex(code))


@pytest.mark.parametrize("code", ["rho_form", "mu_above", "_log_delta_above", "test_a_second_layer", "rt.x_y", "--a_b"])
def test_names_of_the_library_stay_code(code: str) -> None:
    assert not formulas.is_formula(code)


def test_every_formula_of_the_theory_can_be_drawn() -> None:
    drawn = 0
    for page in PAGES:
        if page.is_relative_to(ROOT / "docs/theory"):
            text = re.sub(r"`[^`]*`|\$\$.*?\$\$", "", BLOCK.sub("", page.read_text(encoding="utf-8")), flags=re.DOTALL)
            for match in formulas.FORMULA.finditer(text):
                assert formulas.tex2mathml(formulas.latex(match.group()), as_block=False)
                drawn += 1
    assert drawn > 800
