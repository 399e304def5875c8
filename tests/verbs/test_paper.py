"""What a paper takes from an answer: LaTeX with the digits of the text, and BibTeX of what the numbers follow from."""

from __future__ import annotations

import html
import math
import re
from functools import cache

import numpy as np
import pytest
import yaml

import reticent as rt
from reticent import verbs
from reticent.certificates.document.policy import Policy
from reticent.kernel.adversaries import ADVERSARIES
from reticent.kernel.proofs.references import PAPERS, THEOREMS
from reticent.verbs import Table
from reticent.verbs.bibtex import bibtex, program
from tests.docs.follow import ROOT

pytestmark = pytest.mark.usefixtures("quick_documents")

RUN = rt.dpsgd(noise_multiplier=2.0, batch_size=10, dataset_size=1000, epochs=1, num_parameters=100)
PLAIN = rt.Gaussian(2.0, 3)
SCORES = np.random.default_rng(1).normal(size=(2, 60))
SPECIAL = "\\ & % $ # _ { } ~ ^ < > |"


class Hostile(Table):
    """Cells that mean something else to LaTeX, or have no finite number."""

    _claim = 1

    def title(self):
        return "first line\n\\input{other}"

    def columns(self):
        return ("who_", "claim", "a", "b", "c", "d")

    def rows(self):
        return [
            (SPECIAL, "bound", 0.123449, 1.23449e-12, math.inf, -math.inf),
            ("[b]", "estimate", 0.123449, -0.5, math.nan, 1.0),
            ("*", "estimate", 12345678.0, 3, None, "10"),
        ]


def forged():
    """A certificate that states an advantage of its own."""
    honest = rt.certify(PLAIN, created="2026-01-01").certificate
    first = honest.assessments[0]
    wrong = first.model_copy(update={"advantage": first.advantage.model_copy(update={"value": 1e-9})})
    return rt.verify(honest.model_copy(update={"assessments": [wrong, *honest.assessments[1:]]}))


POLICY = Policy.model_validate({"schema": "reticent.policy/1", "limits": [{"measure": "mu", "at_most": 1.0}]})
ANSWERS = {
    "Assessments": lambda: rt.assess(RUN, "relaxed", secret_bits=20),
    "Calibrations": lambda: rt.compare(PLAIN, ["worst-case", "relaxed"], advantage=0.1),
    "Differences": lambda: rt.differences(PLAIN, rt.dpsgd(noise_multiplier=2, sample_rate=1, steps=10)),
    "Calibrated": lambda: rt.calibrate(PLAIN, "relaxed", advantage=0.1),
    "SamplerChoices": lambda: rt.calibrate_samplers(
        advantage=0.1, dataset_size=640, epochs=1, batch_size=64, sampler=["poisson", "shuffled"]
    ),
    "Grid": lambda: rt.assess_each([PLAIN, rt.Gaussian(0.0)], "relaxed"),
    "Certified": lambda: rt.certify(PLAIN, created="2026-01-01"),
    "Verified": forged,
    "Gated": lambda: rt.gate(rt.certify(PLAIN, created="2026-01-01"), POLICY),
    "Audited": lambda: rt.audit(SCORES[0] + 1.0, SCORES[1], claim=rt.Gaussian(1.0)),
    "Linted": lambda: rt.lint(RUN),
    "Hostile": Hostile,
}


def cells(latex: str) -> list[list[str]]:
    """The cells of the head and of the rows, as TeX splits them; braces must close in each."""
    head, body = latex.split("\\toprule\n")[1].split("\n\\bottomrule")[0].split("\n\\midrule")
    found = []
    for line in [head, *body.strip("\n").split("\n")] if body else [head]:
        assert line.endswith(" \\\\")
        row = re.split(r"(?<!\\)&", line.removesuffix(" \\\\"))
        for cell in row:
            plain = re.sub(r"\\[{}]", "", cell)
            assert plain.count("{") == plain.count("}")
            assert not re.search(r"(?<!\\)[%#_]|[~<>|]", cell)
            assert len(re.findall(r"(?<!\\)\$", cell)) % 2 == 0
        found.append([cell.strip() for cell in row])
    return found


def plain(cell: str) -> str:
    """What is printed of a cell."""
    cell = re.sub(r"(?<!\\)\$", "", cell).replace(r"\infty", "inf")
    cell = re.sub(r" \\times 10\^\{(-?\d+)\}", lambda power: f"e{int(power[1]):+03d}", cell)
    named = {"backslash": "\\", "asciitilde": "~", "asciicircum": "^", "less": "<", "greater": ">", "bar": "|"}
    cell = re.sub(r"\\text([a-z]+)\{\}", lambda word: named[word[1]], cell)
    return re.sub(r"\{([\[*])\}", r"\1", re.sub(r"\\([&%$#_{}])", r"\1", cell))


def shown(found: Table) -> list[list[str]]:
    """The cells of the same table in a notebook."""
    rows = re.findall(r"<tr>(.*?)</tr>", found._repr_html_(), re.DOTALL)
    return [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


@cache
def answer(name: str) -> Table:
    return ANSWERS[name]()


def test_every_table_is_here():
    public = {name: getattr(verbs, name) for name in dir(verbs)}
    tables = {name for name, kind in public.items() if isinstance(kind, type) and issubclass(kind, Table)}
    assert tables - {"Table"} == set(ANSWERS) - {"Hostile"}
    assert all(type(answer(name)).__name__ == name for name in ANSWERS)


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != "Differences"])  # its text is no table
def test_latex_has_the_cells_of_the_text(name):
    found = answer(name)
    latex = found.to_latex()
    rows = cells(latex)
    assert len(rows) == 1 + len(found.rows()) > 1
    columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", latex)[1]
    assert {len(row) for row in rows} == {len(columns)} == {len(found.columns())}
    assert [[plain(cell) for cell in row] for row in rows] == shown(found)
    above = latex.split("\\begin{tabular}")[0].splitlines()
    assert len(above) == 1 + len(found.notes())
    assert all(line.startswith("% ") for line in above)


def test_a_certificate_that_agrees_has_no_row():
    found = rt.verify(rt.certify(PLAIN, created="2026-01-01"))
    assert cells(found.to_latex()) == [list(found.columns())]


def test_bounds_are_rounded_up_and_numbers_look_like_those_of_a_paper():
    rows = cells(Hostile().to_latex())
    assert rows[1][2:] == ["0.1235", r"$1.235 \times 10^{-12}$", r"$\infty$", r"$-\infty$"]
    assert rows[2][:4] == ["{[}b]", "estimate", "0.1234", "$-0.5$"]
    assert rows[3] == ["{*}", "estimate", r"$1.235 \times 10^{7}$", "3", "", "10"]
    assert Hostile().to_latex().splitlines()[:2] == [r"% first line\n\input{other}", r"\begin{tabular}{llrrrr}"]


def test_an_interval_is_rounded_outwards_and_left_out_where_nothing_is_proven():
    found = rt.assess(RUN, ["relaxed", "norm-only"])
    rows = cells(found.to_latex(interval=True))
    grid, alone = (cells(one.to_latex(interval=True)) for one in (answer("Grid"), rt.assess(PLAIN, "relaxed")))
    assert [row[-3:] for row in grid[:3]] == [row[-3:] for row in alone]
    for one, row, alone in zip(found, rows[1:], cells(found.to_latex())[1:], strict=True):
        exact = [one.measure(rt.advantage), one.measure(rt.tpr_at_fpr, 0.001), one.measure(rt.epsilon_at_delta, 1e-5)]
        for number, cell, value in zip(exact, row[3:], alone[3:], strict=True):
            first, low, high = re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", plain(cell)).groups()
            assert first == value
            assert 0.998 * number.lower < float(low) <= number.lower
            assert number.upper <= float(high) < 1.002 * number.upper
    assert [row[-1] for row in cells(rt.assess(rt.Gaussian(0.0)).to_latex(interval=True))][1:] == [r"$\infty$"]


ENTRY = re.compile(r"^@misc\{(\w+),\n((?:  \w+ = \{.*\},\n)+)\}$", re.MULTILINE)


def entries(text: str) -> dict[str, dict[str, str]]:
    """The fields by key; there is nothing else but comments, and braces close."""
    assert not re.sub(r"^% .*$", "", ENTRY.sub("", text), flags=re.MULTILINE).strip()
    assert text.count("{") == text.count("}")
    return {key: dict(re.findall(r"  (\w+) = \{(.*)\},\n", body)) for key, body in ENTRY.findall(text)}


@pytest.mark.parametrize("key", THEOREMS)
def test_every_theorem_has_an_entry_and_its_place_above(key):
    paper, _, place = key.partition(":")
    text = bibtex([key, key])
    assert f"% {paper}: {place}\n@misc{{{paper},\n" in text
    found = entries(text)
    assert found.keys() == {"RETICENT", paper}
    assert {"author", "title", "year", "note"} <= found[paper].keys()
    assert found[paper]["year"] == str(PAPERS[paper].year)
    number = re.search(r"arXiv (\d+\.\d+\S*)", PAPERS[paper].version)
    assert found[paper].get("url") == (f"https://arxiv.org/abs/{number[1]}" if number else None)


KNOWING = {"attribute": {"gradient_change": 0.1}, "final-model": {"contraction": 0.9}}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_every_attacker_brings_its_papers_and_no_other(name):
    release = rt.DPSGD(2.0, 1.0, 10) if name == "final-model" else RUN
    found = rt.assess(release, ADVERSARIES[name](**KNOWING.get(name, {})))
    used = {key.partition(":")[0] for one in found for key in one.theorems}
    assert entries(found.to_bibtex()).keys() == used | {"RETICENT"}


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in ("Hostile", "Verified", "Linted")])
def test_every_answer_with_numbers_says_what_they_follow_from(name):
    found = answer(name)
    assert set(found.theorems()) <= THEOREMS.keys()
    assert found.theorems()
    assert entries(found.to_bibtex()).keys() > {"RETICENT"}


def test_a_number_that_needs_one_more_theorem_brings_it():
    assert "RETICENT:secret" in rt.assess(PLAIN, secret_bits=20).theorems()
    assert "RETICENT:secret" not in rt.assess(PLAIN).theorems()


def test_names_of_several_words_stay_together():
    assert "Kaissis and Ziller and {Kolek Martinez de Azagra} and Rueckert" in bibtex(["KAISSIS2022:x"])


def test_the_program_is_cited_as_its_file_says():
    stated = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert program().title == stated["title"]
    assert [program().authors] == [author["name"] for author in stated["authors"]]
    assert program().version.endswith(f" {stated['version']}")
    assert entries(rt.lint(RUN).to_bibtex()).keys() == {"RETICENT"}
