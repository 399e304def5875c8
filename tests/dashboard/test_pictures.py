"""Pictures say who is who, in units that can be read, and explain what looks odd."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from reticent.adversaries import Mixed, Relaxed
from reticent.adversaries.screen import screen_assessment
from reticent.certificates.document.sentences import even_guess, percent
from reticent.dashboard.figures import empty, remarks, risk_figure
from reticent.dashboard.readings import assessed, protected, summary
from reticent.dashboard.sheet import as_html
from reticent.dashboard.words import accuracy, answer_line, cards, number_line
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger, Mechanism
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import success
from reticent.verbs import Assess
from tests.dashboard.conftest import asked

RUN = DPSGD(1.1, 0.01, 1000)
VIEWS = ("curves", "roc", "profile", "guesses")


def found(release: Mechanism, *who: Adversary) -> list:
    return [assessed(one, release, one.relation) for one in who]


@pytest.mark.parametrize("view", VIEWS)
def test_the_legend_names_every_line_with_its_claim_and_nothing_else(view: str) -> None:
    """Names beside lines were put on other lines; a legend hides none."""
    shown = [*found(RUN, WorstCase(), Relaxed(), Mixed()), assessed(WorstCase(), RUN, Neighbouring.REPLACE)]
    figure = risk_figure(shown, view, "light")
    names = [line["name"] for line in figure["data"] if line.get("showlegend", True)]
    claims = ("relaxed (conditional)", "mixed (conditional)", "worst-case, replace (bound)")
    assert names == ["guessing", "worst-case (bound)", *claims]
    assert "annotations" not in figure["layout"]
    assert figure["layout"]["legend"]["itemclick"] is False, "nobody hides the worst case"


@pytest.mark.parametrize("view", VIEWS)
def test_the_label_of_a_bound_is_one(view: str) -> None:
    """As shown, place and number are rounded: the curve keeps to what is read there (2.536% was shown as 2.54%)."""
    (bound,) = found(RUN, WorstCase())
    line = next(line for line in risk_figure([bound], view, "light")["data"] if "customdata" in line)
    at, read = np.array([[float(text.rstrip("%")) for text in row[:2]] for row in line["customdata"]]).T
    if view != "profile":
        assert all(text.endswith("%") for row in line["customdata"] for text in row)
        at, read = at / 100.0, read / 100.0
    truth = {"curves": bound.curve.beta, "roc": bound.curve.power, "profile": bound.curve.delta}.get(view)
    known = truth(at) if truth else np.array([success(bound.curve, float(p)) for p in at])
    assert np.all(read <= known * (1 + 1e-9) if view == "curves" else read >= known * (1 - 1e-9))
    assert np.allclose(read, known, rtol=0.2 if view == "profile" else 0.02, atol=0.0 if view == "roc" else 1.1e-3)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (RUN, "whether a given record was used"),
        (replace(RUN, records_per_user=1), "whether a given person's record was used"),
        (replace(RUN, records_per_user=5), "whether a given person's records were used"),
        (replace(RUN, unit=Unit.CLIENT), "whether a given client was used"),
        (Ledger((replace(RUN, records_per_user=5),) * 2), "whether a given person's records were used"),
    ],
)
def test_the_page_says_whom_its_numbers_protect(release: Mechanism, words: str) -> None:
    """With five records a person, the headline and the cards spoke of one record, and the number was of a person."""
    shown, records = Assess.of(release=release).answer(), protected(release)
    assert words in answer_line(shown, records)
    card = unescape(as_html(cards(shown, (), {}, records)))
    assert ("this record" in card) is (records is None)
    assert {None: "this record", Unit.CLIENT: "this client"}.get(records, "this person's") in card


def test_guesses_are_shown_as_what_they_gain() -> None:
    figure = risk_figure(found(Gaussian(2.0), WorstCase()), "guesses", "light")
    line = next(one for one in figure["data"] if one.get("meta") == "worst-case")
    gains = dict(zip(np.round(line["x"], 2), line["y"], strict=True))
    assert gains[0.5] == pytest.approx(0.0987063, rel=1e-5, abs=0), "half of 2 Phi(1/4) - 1"
    assert gains[0.01] < 1e-4
    assert figure["layout"]["yaxis"]["range"][1] == 0.2


def test_a_logarithmic_axis_names_every_decade() -> None:
    assert empty("profile", "light")["layout"]["yaxis"]["dtick"] == 1
    assert len(empty("roc", "light")["layout"]["xaxis"]["tickvals"]) == 6


def test_a_kink_of_the_proof_is_said_to_be_one() -> None:
    shown = found(RUN, WorstCase(), Relaxed())
    assert [line for line in remarks(shown, "profile") if "kink of relaxed near delta 5e-09" in line]
    assert remarks(shown[:1], "profile") == []
    assert remarks(shown, "curves") == []


def test_the_line_below_the_headline_rounds_as_the_table_does() -> None:
    said = accuracy(found(RUN, WorstCase()))
    assert "the advantage is at most 0.1404, known within " in said
    assert "the advantage is at most 0.1975." in accuracy(found(Gaussian(2.0), WorstCase()))


def test_headline_and_number_answer_each_question_that_somebody_asks() -> None:
    shown = [assessed(WorstCase(), RUN, one) for one in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)]
    line, text = answer_line(shown), as_html(number_line(shown))
    assert text.startswith('<span class="blind">50%<small>blind guessing</small></span>')
    assert text.count("at most, ") == 2
    for one in shown:
        share = percent(even_guess(summary(one)), up=True)
        assert f"right at most {share} of the time" in line
        assert f"<strong>{share}</strong>" in text
    estimate = screen_assessment(WorstCase(), RUN, Neighbouring.ADD_REMOVE)
    assert estimate is not None
    assert "about, add-remove" in as_html(number_line([estimate]))


def test_what_is_asked_besides_is_on_the_cards_and_in_the_table() -> None:
    settings = {"mechanism": "gaussian", "noise_multiplier": "2", "attackers": "relaxed"}
    more = {"fpr": "0.05", "secret_bits": "13.3", "guesses": "10"}
    plain, found = (str(asked("proof", **settings, **said)["parts"]["cards"]) for said in ({}, more))
    for title in ("tpr at fpr 0.05: ", "secret at secret bits 13.3, guesses 10: ", "ppv at prior 0.1, fpr 0.05: "):
        assert title in found
        assert title not in plain
    assert "tpr at fpr 0.001: " not in found
    table = str(asked("proof", **settings, **more, view="table")["parts"]["table"])
    assert "secret at secret bits 13.3, guesses 10" in table
    assert "tpr at fpr 0.001" not in table
