"""The magnitude test against its theory, and the one-sided test that beats it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes

from reticent.auditing import Scores, audit_claim, empirical_trade_off
from reticent.auditing.verdict import Finding
from reticent.curves import LaplaceTradeOff, RelaxedGaussianTradeOff, RelaxedLaplaceTradeOff
from reticent.kernel.curves import GaussianTradeOff, Subsampled
from reticent.kernel.mechanisms import Gaussian
from reticent.mechanisms import Laplace
from tests.attacks.release_game import ReleaseGame, magnitude_scores, one_sided_scores
from tests.auditing.games import contains

RUNS = 1024
CONFIDENCE = 0.99


def scalar_game(mechanism, rate=1.0):
    return ReleaseGame(mechanism, np.array([3.25]), np.array([1.0]), rate)


def diabetes_game(noise_multiplier: float) -> ReleaseGame:
    """Clipped gradients of the last layer of a linear network with a 50-dimensional latent space."""
    features, targets = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(5)
    latent = (features / features.std(axis=0)) @ rng.standard_normal((10, 50)) / np.sqrt(10)
    head = 0.1 * rng.standard_normal(50)
    residual = latent @ head - (targets - targets.mean()) / targets.std()
    gradients = residual[:, None] * latent
    norms = np.linalg.norm(gradients, axis=1)
    target = int(np.argmax(norms))
    clip = np.median(norms)
    clipped = gradients / np.maximum(norms / clip, 1.0)[:, None] / clip
    return ReleaseGame(Gaussian(noise_multiplier, dimension=50), clipped.sum(axis=0) - clipped[target], clipped[target])


def swapped(scores: Scores) -> Scores:
    """The other direction: is the target absent?"""
    return Scores(-scores.non_member, -scores.member, scores.meta, scores.design)


CASES = {
    "gaussian": (lambda: scalar_game(Gaussian(1.0)), RelaxedGaussianTradeOff(1.0, 1)),
    "gaussian, 70 releases": (lambda: scalar_game(Gaussian(6.0, releases=70)), RelaxedGaussianTradeOff(70 / 36, 1)),
    "laplace": (lambda: scalar_game(Laplace(1.0)), RelaxedLaplaceTradeOff(1.0)),
    "subsampled": (lambda: scalar_game(Gaussian(0.5), 0.3), Subsampled(RelaxedGaussianTradeOff(4.0, 1), 0.3)),
    "diabetes": (lambda: diabetes_game(0.5), RelaxedGaussianTradeOff(4.0, 50)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_empirical_curve_lies_in_the_band_around_j_and_its_inverse(name):
    make, curve = CASES[name]
    scores = make().magnitude(RUNS, np.random.default_rng(11))
    assert contains(empirical_trade_off(scores, CONFIDENCE), curve)
    assert contains(empirical_trade_off(swapped(scores), CONFIDENCE), curve.reversed)


@pytest.mark.parametrize("name", CASES)
def test_the_band_is_narrow_enough_to_refuse_the_worst_case_curve(name):
    """The same scores do not fit the curve of an attacker who knows the direction: the test above has teeth."""
    worst = {
        "gaussian": GaussianTradeOff(1.0),
        "gaussian, 70 releases": GaussianTradeOff(np.sqrt(70 / 36)),
        "laplace": LaplaceTradeOff(1.0),
        "subsampled": Subsampled(GaussianTradeOff(2.0), 0.6),
        "diabetes": GaussianTradeOff(2.0),
    }[name]
    scores = CASES[name][0]().magnitude(4 * RUNS, np.random.default_rng(11))
    assert not contains(empirical_trade_off(scores, CONFIDENCE), worst)


@pytest.mark.parametrize(
    ("game", "relaxed", "worst"),
    [
        (scalar_game(Gaussian(0.5)), RelaxedGaussianTradeOff(4.0, 1), GaussianTradeOff(2.0)),
        (scalar_game(Laplace(0.5)), RelaxedLaplaceTradeOff(2.0), LaplaceTradeOff(2.0)),
        (diabetes_game(0.5), RelaxedGaussianTradeOff(4.0, 50), GaussianTradeOff(2.0)),
    ],
    ids=["gaussian", "laplace", "diabetes"],
)
def test_a_guessed_direction_beats_the_relaxed_curve_but_not_the_worst_case(game, relaxed, worst):
    """KAISSIS2023:R2, KAISSIS2023:R3: the relaxed curve is no bound for an attacker who can guess the sign."""
    scores = game.one_sided(2 * RUNS, np.random.default_rng(7), game.contribution)
    assert audit_claim(scores, relaxed, confidence=0.99).finding is Finding.INCONSISTENT
    assert audit_claim(scores, worst, confidence=0.99).finding is not Finding.INCONSISTENT


def test_magnitude_never_refutes_the_relaxed_curve():
    for name, (make, curve) in CASES.items():
        verdict = audit_claim(make().magnitude(RUNS, np.random.default_rng(3)), curve, confidence=0.999)
        assert verdict.finding is not Finding.INCONSISTENT, name


def test_who_knows_the_latent_layer_faces_the_dimensions_of_the_data():
    """KAISSIS2023:R15: the 50 latent features are made of 10, so every gradient lies in a space of 10 dimensions."""
    game, rng, runs = diabetes_game(0.5), np.random.default_rng(11), 40_000
    features, _ = load_diabetes(return_X_y=True)
    latent = np.random.default_rng(5).standard_normal((10, 50))  # drawn as in the game
    span = np.linalg.qr(latent.T)[0]
    assert np.linalg.norm(game.contribution @ span) == pytest.approx(np.linalg.norm(game.contribution), rel=1e-9, abs=0)
    noise = 0.5 * rng.standard_normal((2, runs, 50))
    absent, present = (np.linalg.norm(x @ span, axis=1) for x in (noise[0], noise[1] + game.contribution))
    found = np.mean(present > np.quantile(absent, 0.99))
    right, printed = (float(RelaxedGaussianTradeOff(4.0, d).power(0.01)) for d in (features.shape[1], 50))
    assert right == pytest.approx(stats.ncx2.sf(stats.chi2.isf(0.01, 10), 10, 4.0), rel=1e-9, abs=0)
    assert (round(right, 3), round(printed, 3)) == (0.077, 0.029)
    assert found == pytest.approx(right, rel=0.1, abs=0)


def test_optimal_weights_beat_the_unweighted_mean_of_lemma_8():
    """KAISSIS2023:R1: sensitivities 1, 1 and noise 1, 10; printed noncentrality .0396, right 1.0100."""
    rng = np.random.default_rng(0)
    deviations, runs = np.array([1.0, 10.0]), 200_000
    noise = rng.standard_normal((2, runs, 2, 3)) * deviations[:, None]
    direction = np.array([1.0, 0.0, 0.0])
    powers = {}
    for name, weights in {"optimal": deviations**-2, "printed": np.ones(2)}.items():
        absent, present = (magnitude_scores(x, np.zeros(3), weights) for x in (noise[0], noise[1] + direction))
        powers[name] = np.mean(present > np.quantile(absent, 0.99))
    exact = stats.ncx2.sf(stats.chi2.isf(0.01, 3), 3, 1.01)
    assert powers["optimal"] == pytest.approx(exact, rel=0.05, abs=0)
    assert powers["printed"] == pytest.approx(stats.ncx2.sf(stats.chi2.isf(0.01, 3), 3, 4 / 101), rel=0.1, abs=0)
    assert exact == pytest.approx(0.033, rel=0.03, abs=0)


def test_scores_do_not_depend_on_the_centre_or_on_the_length_of_the_direction():
    observed = np.random.default_rng(0).standard_normal((5, 2, 3))
    centre = np.array([1.0, -2.0, 7.0])
    assert magnitude_scores(observed + centre, centre) == pytest.approx(
        magnitude_scores(observed, np.zeros(3)), rel=1e-12, abs=0
    )
    a, b = (one_sided_scores(observed, np.zeros(3), scale * np.array([1.0, 2.0, 0.0])) for scale in (1.0, 9.0))
    assert a == pytest.approx(b, rel=1e-12, abs=0)
