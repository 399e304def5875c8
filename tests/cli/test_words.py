"""What a reader is told beside the numbers: sampling, noise in floating point, directions, epochs, mu."""

from __future__ import annotations

import pytest

from reticent.adversaries import Membership, Mixed, Relaxed
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Declaration
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from tests.cli.calling import run

pytestmark = pytest.mark.usefixtures("coarse_signs")

POISSON = "Each record is included in each batch independently"
REAL_NUMBERS = "The noise is taken as real numbers"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    return " ".join(out.split())


def dpsgd(capsys: pytest.CaptureFixture[str], *more: str, rate: str = "0.01") -> str:
    words = ("--noise-multiplier", "2", "--sample-rate", rate, "--steps", "40", "--full")
    return said(capsys, "risk", "dpsgd", *words, *more)


def test_the_table_says_that_poisson_sampling_was_assumed(capsys) -> None:
    assert POISSON in dpsgd(capsys)
    assert POISSON in said(capsys, "risk", "laplace", "--noise-multiplier", "2", "--sample-rate", "0.1", "--full")
    assert POISSON in said(
        capsys, "calibrate", "dpsgd", "--target", "advantage=0.1", "--sample-rate", "0.01", "--steps", "1000"
    )


@pytest.mark.parametrize("more", [("--sampler", "shuffled"), ("--sampler", "fixed-size"), ()])
def test_and_only_where_it_was(capsys, more) -> None:
    rate = "0.01" if more else "1"
    assert POISSON not in dpsgd(capsys, *more, rate=rate)


def test_every_verb_says_what_floating_point_noise_leaves_open(capsys) -> None:
    assert REAL_NUMBERS in dpsgd(capsys)
    assert REAL_NUMBERS in said(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--full")
    assert REAL_NUMBERS in said(capsys, "calibrate", "gaussian", "--target", "advantage=0.3")
    assert REAL_NUMBERS not in said(capsys, "risk", "gaussian", "--noise-multiplier", "0", "--full")


def test_certificates_say_both() -> None:
    certificate = certify(
        DPSGD(2.0, 0.1, 9), Declaration(subject="s", created="2026-01-01"), adversaries=(WorstCase(), Membership())
    )
    for assessment in certificate.assessments:
        told = " ".join(str(certificate.conditions[one.key].says) for one in assessment.conditions)
        assert POISSON in told
        assert REAL_NUMBERS in told


def test_notes_about_everybody_are_printed_once_without_names(capsys) -> None:
    out = said(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--adversary", "relaxed", "--full")
    assert out.count(REAL_NUMBERS) == 1
    assert f"assumed: {REAL_NUMBERS}" in out
    assert "relaxed: The attacker does not know in which direction" in out


def test_shuffled_prints_the_epochs_that_it_counted(capsys) -> None:
    out = dpsgd(capsys, "--sampler", "shuffled", rate="0.3")
    assert "14 counted (40 steps, 3 per epoch, as the loader may drop an incomplete batch)" in out


@pytest.mark.parametrize("relation", [Neighbouring.ADD_REMOVE, Neighbouring.REPLACE])
def test_the_relaxed_sentence_says_that_it_averages_over_directions(relation) -> None:
    certificate = certify(
        Gaussian(4.0),
        Declaration(subject="s", created="2026-01-01"),
        adversaries=(Relaxed(), Mixed()),
        neighbouring=relation,
    )
    sentences = {a.adversary: str(a.sentence) for a in certificate.assessments}
    assert ", on average over all directions, to at most " in sentences["relaxed"]
    assert ", on average over that direction, to at most " in sentences["mixed"]
    assert "average" not in sentences["worst-case"]
    question = (
        "whether this record was used" if relation is Neighbouring.ADD_REMOVE else "which of two possible records was"
    )
    assert question in sentences["relaxed"]


def test_the_table_names_the_estimate_of_mu_for_what_it_is(capsys) -> None:
    words = ("risk", "dpsgd", "--noise-multiplier", "0.8", "--sample-rate", "0.01", "--steps", "1000")
    assert "39.53" not in said(capsys, *words)
    out = said(capsys, *words, "--full")
    assert "39.53" in out
    assert "every rate" in out
    assert "mu at error rates above 1e-09 only, an estimate (add-remove): worst-case 0.839" in out
    assert "estimate" not in said(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--full")
