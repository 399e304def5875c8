"""Chosen gradients, canaries through a whole run, and the mechanics of an implementation."""

from __future__ import annotations

import json
import resource
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks import more_bugs, planted_bugs
from benchmarks._rows import Row, main, spread
from reticent.attacks.canaries import CanaryAudit, canary_scores
from reticent.attacks.mechanics import audit_mechanics, judge
from reticent.attacks.own_trainer import OwnTrainer
from reticent.attacks.white_box import Probe, dirac_records, release, spread_records, square_layers, usable
from reticent.auditing import Design, Finding, audit_claim, audit_mu
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.adversaries.base import Method
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.samplers import Shuffled
from tests.sensitivity.cases import gradients_of

SMALL = DPSGD(noise_multiplier=1.0, sample_rate=0.2, steps=10, batch_size=24, dataset_size=120)
LITTLE = replace(SMALL, steps=4, batch_size=12, dataset_size=60)
MIDDLE = DPSGD(noise_multiplier=1.0, sample_rate=0.05, steps=64, batch_size=25, dataset_size=500)
FULL = DPSGD(noise_multiplier=1.0, sample_rate=1.0, steps=2, batch_size=1100, dataset_size=1100)


NOBODY = torch.zeros(9, dtype=torch.int64)


def probe(layers) -> Probe:
    model = Probe(layers)
    for p in model.parameters():
        torch.nn.init.normal_(p)
    return model


@pytest.mark.parametrize(
    ("layers", "coordinates"),
    [(((2, 3), (3, 1), (1, 4)), [0, 5, 6, 8, 9, 12, 5]), (((2, 3), (3, 0)), [4, 9, 11])],
    ids=["matrices", "a bias"],
)
def test_a_probe_record_has_exactly_the_gradient_that_was_asked_for_whatever_the_weights(layers, coordinates):
    coordinates, norms = np.array(coordinates), np.array([1.0, -2.0, 3.0, 100.0, 5.0, 6.0, 0.5])[: len(coordinates)]
    features = dirac_records(layers, coordinates, norms, 9)
    expected = np.zeros((9, Probe(layers).dimension))
    expected[np.arange(len(norms)), coordinates] = norms
    for model in (Probe(layers), probe(layers)):
        assert np.array_equal(gradients_of(model, features, NOBODY).numpy(), expected)


def test_spread_records_share_one_gradient_over_every_coordinate():
    for layers, at in ((((2, 3), (3, 1)), list(range(9))), (((2, 3), (3, 0)), [0, 1, 2, 3, 4, 5, 9, 10, 11])):
        features, direction = spread_records(layers, 7.0, 4, seed=2)
        assert list(usable(layers)) == np.flatnonzero(direction).tolist() == at
        assert np.abs(direction[at]) == pytest.approx(np.full(9, 1 / 3), rel=1e-12, abs=0)
        found = gradients_of(probe(layers), features, NOBODY[:4]).numpy()
        assert found == pytest.approx(np.tile(7.0 * direction, (4, 1)), rel=1e-6, abs=1e-12)
        assert not np.array_equal(spread_records(layers, 7.0, 4, seed=3)[1], direction)
    for canaries in (1, 7, 1000):
        assert sum(o * i for o, i in square_layers(canaries)) >= canaries


def test_the_released_sum_of_our_own_trainer_is_the_clipped_count():
    claim = replace(FULL, noise_multiplier=1e-9, max_grad_norm=0.25)
    layers = ((2, 3),)
    features = dirac_records(layers, np.array([0, 0, 4]), np.array([100.0, 7.0, -0.125]), claim.dataset_size)
    sums = release(OwnTrainer(), layers, features, claim).sums
    assert sums.dtype == np.float64  # many squares need more digits than releases have
    assert sums == pytest.approx(np.tile([2.0, 0, 0, 0, -0.5, 0], (claim.steps, 1)), abs=1e-4)


def test_canary_scores_are_the_likelihood_ratio_of_the_run():
    """Against scipy's normal densities."""
    sums = np.random.default_rng(0).normal(size=(3, 4))
    absent = stats.norm.pdf(sums, 0.0, 0.8)
    present = 0.7 * absent + 0.3 * stats.norm.pdf(sums, 1.0, 0.8)
    claim = DPSGD(noise_multiplier=0.8, sample_rate=0.3, steps=3)
    assert canary_scores(sums, claim) == pytest.approx(np.log(present / absent).sum(axis=0), rel=1e-12, abs=0)


def test_canaries_of_a_correct_gaussian_mechanism_give_a_tight_bound_on_mu():
    """Lower bound at least 80% of the truth at 95%, and not above it, in the median of five audits.

    Bounds are .90 of it with a deviation of .045: the test fails by chance once in many thousand runs.
    """
    truth, bounds = np.sqrt(FULL.steps) / FULL.noise_multiplier, []
    for seed in range(5):
        scores = CanaryAudit(1000, seed).scores(OwnTrainer(), FULL)
        assert scores.design is Design.INDEPENDENT
        assert 400 < len(scores.member) < 600
        bounds.append(audit_mu(scores, confidence=0.95).value)
    assert 0.8 * truth <= np.median(bounds) <= truth


def test_a_correct_subsampled_run_is_consistent_with_its_worst_case_and_inconsistent_with_less():
    claim = replace(SMALL, noise_multiplier=0.7, dataset_size=1000, batch_size=200)
    scores = CanaryAudit(1000, seed=1).scores(OwnTrainer(), claim)
    curve = WorstCase().assess(claim, Neighbouring.ADD_REMOVE, Method.EXACT).curve
    assert audit_claim(scores, curve, confidence=1 - 1e-6).finding is not Finding.INCONSISTENT
    assert audit_claim(scores, GaussianTradeOff(0.02), confidence=0.99).finding is Finding.INCONSISTENT
    unclipped = CanaryAudit(100, 2).scores(planted_bugs.NoClipping(), claim)
    assert audit_claim(unclipped, curve, confidence=0.99).finding is Finding.INCONSISTENT


@pytest.mark.slow
def test_a_hundred_thousand_canaries_in_one_run():
    """Seconds of processor time and less than two gigabytes; and they are canaries: the bound is near the truth."""
    claim = DPSGD(noise_multiplier=1.0, sample_rate=0.002, steps=4, batch_size=200, dataset_size=100_000)
    steps, start = [], time.process_time()
    scores = CanaryAudit(100_000, seed=1).scores(OwnTrainer(lambda *now: steps.append(now)), claim)
    assert time.process_time() - start < 60.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4_000_000  # kilobytes, of the whole test process
    assert steps == [(n, 4) for n in range(1, 5)]
    assert len(scores) == 100_000
    assert np.isfinite(audit_mu(scores).value)


def slow_but(names, first) -> list:
    return [pytest.param(name, marks=() if name in first else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("fault", slow_but(planted_bugs.FAULTS, {"each layer clipped by itself"}))
def test_each_planted_bug_is_found(fault):
    report = audit_mechanics(planted_bugs.FAULTS[fault](), SMALL)
    assert report.accused, [(c.name, c.p_value) for c in report.checks]
    assert all(0.0 <= c.p_value <= 1.0 for c in report.checks)


@pytest.mark.slow  # test_replay and test_noise_checks find each by its own test
@pytest.mark.parametrize("fault", more_bugs.FAULTS)
def test_each_further_bug_is_found(fault):
    report = audit_mechanics(more_bugs.FAULTS[fault](), MIDDLE)
    assert report.accused, [(c.name, c.p_value) for c in report.checks]


CORRECT = {name: (make, SMALL) for name, make in planted_bugs.CORRECT.items()}
CORRECT |= {name: (make, MIDDLE) for name, make in more_bugs.CORRECT.items()}
CORRECT["one step"] = planted_bugs.Loop, replace(SMALL, steps=1)
CORRECT["reticent.training"] = OwnTrainer, LITTLE


@pytest.mark.filterwarnings("ignore:Full backward hook", "ignore:Secure RNG turned off")
@pytest.mark.parametrize("name", slow_but(CORRECT, {"reticent.training", "one step"}))
def test_a_correct_loop_is_not_accused(name):
    """At significance 1e-6, so that the test fails by chance once in a million runs."""
    make, claim = CORRECT[name]
    report = audit_mechanics(make(), claim, significance=1e-6)
    assert not report.accused, [(c.name, c.p_value, c.finding) for c in report.failed]


@pytest.mark.parametrize("repeats", [25, pytest.param(300, marks=pytest.mark.slow)])
def test_a_correct_mechanism_is_accused_no_more_often_than_promised(repeats):
    """Null test by simulation at 5%, and each p-value is uniform or larger."""
    rng = np.random.default_rng(8)
    reports = [judge(*planted_bugs.simulate_correct(rng, SMALL), significance=0.05) for _ in range(repeats)]
    assert sum(r.accused for r in reports) <= stats.binom.ppf(0.995, repeats, 0.05)
    for place, check in enumerate(reports[0].checks):
        p = np.array([r.checks[place].p_value for r in reports])
        for level in (0.01, 0.05, 0.2, 0.5):
            assert (p <= level).sum() <= stats.binom.ppf(0.9995, repeats, level), check.name


@pytest.mark.slow
def test_an_error_of_ten_percent_in_the_noise_is_found():
    class TenPercentLess(planted_bugs.Loop):
        def noise(self, step, like):
            return [0.9 * n for n in super().noise(step, like)]

    assert {c.name for c in audit_mechanics(TenPercentLess(), planted_bugs.CLAIM).failed} >= {"noise scale"}


def test_stronger_clipping_is_named_and_not_accused():
    report = audit_mechanics(more_bugs.StrongerClippingByLayer(), LITTLE, significance=1e-4)
    assert not report.accused, report.failed
    assert "stronger than claimed, which is safe: a record counts 0.4" in report.checks[-1].finding


FEATURES = dirac_records(((2, 3),), np.array([0]), np.ones(1), 5)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (DPSGD(1.0, 0.1, 5), "batch_size"),
        (replace(SMALL, noise_multiplier=0.0), "noise_multiplier"),
        (replace(SMALL, sampler=Shuffled()), "Poisson"),
    ],
)
def test_claims_that_cannot_be_tested_are_refused(claim, words):
    with pytest.raises((ParameterError, UnsupportedError), match=words):
        audit_mechanics(OwnTrainer(), claim)


@pytest.mark.parametrize(("shape", "words"), [((2, 2), "shape"), ((10, 6), "diverged")])
def test_releases_that_make_no_sense_are_refused(shape, words):
    with pytest.raises(ParameterError, match=words):
        release(lambda *_: torch.full(shape, torch.nan), ((2, 3),), FEATURES, SMALL)
    with pytest.raises(UnsupportedError, match="Poisson"):
        canary_scores(np.zeros((1, 1)), replace(SMALL, sampler=Shuffled()))
    with pytest.raises(ParameterError, match="canaries"):
        dirac_records(((2, 3),), np.arange(6), np.ones(6), 5)


def test_rows_of_a_benchmark_are_printed_as_they_finish(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["bench", "--json"])
    printed = []

    def rows():
        for number in range(3):
            printed.append(capsys.readouterr().out)
            yield Row(f"work {number}", "peer", spread([1.0]), 0.5, "goal", True)

    main(rows, "A benchmark.")
    assert [f"work {n - 1}" in text for n, text in enumerate(printed)] == [False, True, True]
    whole = "".join(printed) + capsys.readouterr().out
    assert [row["work"] for row in json.loads(whole)] == ["work 0", "work 1", "work 2"]
