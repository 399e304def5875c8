"""Attribute inference: formulas against vectors, mpmath and brute search; the attack never beats the bound.

Theorems: RETICENT:attribute-affinity, RETICENT:attribute-mask, RETICENT:attribute-clt, CHERUBIN2024:Corollary 10.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import erf, expit
from scipy.stats import binom

from reticent.adversaries.attribute.adversary import Attribute
from reticent.adversaries.attribute.bounds import (
    affinity_log_delta,
    gaussian_log_delta,
    revealed_mask_log_delta,
    tangent_envelope,
    total_square_log_delta,
)
from reticent.kernel.adversaries.base import Claim, Method
from reticent.kernel.adversaries.side_by_side import assess
from reticent.kernel.adversaries.worst_case import WorstCase
from reticent.kernel.curves import GaussianTradeOff, from_advantage
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.messages import said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import success
from reticent.kernel.samplers import INDEPENDENT
from reticent.mechanisms import Laplace
from reticent.mechanisms.mask_terms import log_affinity, mask_term, worst_mask_term
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord
from reticent.samplers import FixedSize, Shuffled
from tests.adversaries.attribute_simulation import PairTrace, published_advantage, simulate
from tests.adversaries.golden import golden

pytestmark = pytest.mark.usefixtures("coarse")

GOLDEN = golden("attribute")
GRID = [(3.5151, 1 / 102, 3060), (1.0, 0.01, 1000), (0.7, 1e-3, 3000), (2.0, 0.5, 50)]


def _advantage(change, noise, rate, steps, method=Method.PROVEN, **settings) -> float:
    mechanism = DPSGD(noise, rate, steps, **settings)
    return float(Attribute(change).assess(mechanism, method=method).curve.delta(0.0))


# --- formulas ------------------------------------------------------------------------------------


def test_mask_term_and_corollary_10_against_the_vectors():
    for entry in GOLDEN["mask_term"]:
        a, b, dot = (float(entry[k]) for k in ("norm_a", "norm_b", "dot"))
        value = float(entry["p"]) ** 2 * mask_term(a, b, math.sqrt(a * a + b * b - 2 * dot), float(entry["sigma"]))
        assert float(value) == pytest.approx(float(entry["value"]), rel=1e-12, abs=0)
    ten = GOLDEN["corollary_10"]
    beta = 1 - _advantage(ten["change"], ten["sigma"], ten["p"], ten["steps"], Method.PUBLISHED, max_grad_norm=ten["C"])
    assert beta == pytest.approx(float(ten["value"]), rel=1e-12, abs=0)
    assert _advantage(0.2, 1.8, 1 / 347, 10410, Method.PUBLISHED) == pytest.approx(0.01303, abs=5e-6)


@pytest.mark.parametrize("noise", [0.3, 1.0, 5.0, 200.0])
def test_mask_term_keeps_relative_accuracy(noise):
    with mpmath.workdps(60):
        for a, b, r in [(1, 1, 1e-9), (1, 1 - 1e-8, 1e-8), (0.3, 0.2, 0.4), (1, 1, 2), (0.5, 0, 0.5)]:
            s = 1 / mpmath.mpf(noise) ** 2
            a_, b_, r_ = (mpmath.mpf(float(v)) for v in (a, b, r))
            dot = (a_**2 + b_**2 - r_**2) / 2
            exact = mpmath.exp(s * a_**2) + mpmath.exp(s * b_**2) - 2 * mpmath.exp(s * dot)
            assert float(mask_term(a, b, r, noise)) == pytest.approx(float(exact), rel=1e-7, abs=0)


@pytest.mark.parametrize("noise", [0.4, 1.0, 3.5])
def test_worst_mask_term_is_the_largest(noise):
    rng = np.random.default_rng(1)
    g, h = (_in_the_ball(rng, 20_000) for _ in range(2))
    near = g + rng.uniform(0, 2, (len(g), 1)) ** 3 * h
    near /= np.maximum(1.0, np.linalg.norm(near, axis=1, keepdims=True))
    distance = np.linalg.norm(g - near, axis=1)
    terms = mask_term(np.linalg.norm(g, axis=1), np.linalg.norm(near, axis=1), distance, noise)
    ratio = terms / worst_mask_term(distance, noise)
    assert np.max(ratio) <= 1 + 1e-6
    assert np.max(ratio[distance < 0.1]) > 0.9
    assert np.max(ratio[distance > 1.5]) > 0.9
    assert worst_mask_term(2.0, noise) == pytest.approx(4 * math.sinh(noise**-2), rel=1e-12, abs=0)


def _in_the_ball(rng, count):
    g = rng.normal(size=(count, 2))
    return g / np.linalg.norm(g, axis=1, keepdims=True) * rng.random((count, 1)) ** 0.1


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (0.7, 0.1), (3.0, 0.4), (1.0, 1e-4)])
def test_log_affinity_is_below_the_integral(noise, rate):
    """int sqrt(PQ) in two dimensions, on a grid, for random pairs."""
    rng = np.random.default_rng(2)
    x = np.linspace(-1 - 9 * noise, 1 + 9 * noise, 301)
    xx, yy = np.meshgrid(x, x)
    cell = (x[1] - x[0]) ** 2 / (2 * math.pi * noise**2)

    def density(g):
        at = [np.exp(-((xx - m[0]) ** 2 + (yy - m[1]) ** 2) / (2 * noise**2)) for m in ((0, 0), g)]
        return (1 - rate) * at[0] + rate * at[1]

    for g, h in zip(_in_the_ball(rng, 2), _in_the_ball(rng, 2), strict=True):
        p, q = density(g), density(h)
        missing = 0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2) * cell
        f = float(mask_term(np.linalg.norm(g), np.linalg.norm(h), np.linalg.norm(g - h), noise))
        assert math.log1p(-missing) >= log_affinity(f, f, rate)
        if rate <= 0.01 and noise >= 1.0:
            assert missing == pytest.approx(-log_affinity(f, f, rate), rel=0.1, abs=0)
        # Several steps at once, known only by their sum and maximum, are never better.
        assert log_affinity(3.5 * f, f, rate) <= 3.5 * log_affinity(f, f, rate) * (1 - 1e-12)


# --- curves --------------------------------------------------------------------------------------


def affinity_delta(log_rho, epsilon):
    return float(np.exp(affinity_log_delta(log_rho)(np.array([epsilon])))[0])


def test_affinity_curve():
    assert affinity_delta(math.log(0.9), 0.0) == pytest.approx(math.sqrt(1 - 0.81), rel=1e-12, abs=0)
    fine = np.linspace(0, 0.81, 400_001)
    line = np.sin(math.asin(0.9) - np.arcsin(np.sqrt(fine))) ** 2
    for e in (0.02, 0.3, 2.0):
        most = float(np.max(1 - line - math.exp(e) * fine))
        assert affinity_delta(math.log(0.9), e) == pytest.approx(most, rel=1e-6, abs=0)
    assert affinity_delta(-1e-14, 0.0) == pytest.approx(math.sqrt(2e-14), rel=1e-6, abs=0)
    assert affinity_delta(-math.inf, 0.0) == 1.0
    assert affinity_delta(0.0, 0.0) == 0.0


def test_envelope_follows_the_best_bound():
    gauss, rho = GaussianTradeOff(0.3), 0.995
    curve = tangent_envelope([gauss.log_delta, affinity_log_delta(math.log(rho))])
    alpha = np.array([1e-12, 1e-8, 1e-4, 0.01, 0.1, 0.4, 0.8, 0.99])
    affinity = np.sin(np.maximum(math.asin(rho) - np.arcsin(np.sqrt(alpha)), 0.0)) ** 2
    best = np.maximum(gauss.beta(alpha), affinity)
    assert np.all(curve.beta(alpha) <= best * (1 + 1e-12))
    np.testing.assert_allclose(curve.beta(alpha), best, rtol=1e-3)
    power = np.minimum(gauss.power(alpha), 1.0 - affinity)
    assert np.all(curve.power(alpha) >= power * (1 - 1e-12))
    np.testing.assert_allclose(curve.power(alpha), power, rtol=1e-3)


@pytest.mark.parametrize(("steps", "rate", "unit"), [(50, 0.1, 0.3), (3000, 0.01, 0.05), (20_000, 0.2, 0.002)])
def test_revealed_mask_is_above_the_expectation_and_close(steps, rate, unit):
    counts = np.arange(steps + 1)
    exact = float(np.sum(binom.pmf(counts, steps, rate) * erf(unit * np.sqrt(counts) / (2 * math.sqrt(2)))))
    bound = math.exp(float(revealed_mask_log_delta(unit, steps, rate)(np.array([0.0]))[0]))
    assert exact * (1 - 1e-12) <= bound <= exact * 1.01


def test_quick_gaussian_delta_is_rounded_up():
    sizes = np.concatenate([[0.0], np.geomspace(1e-7, 600.0, 300)])
    for mu in (1e-6, 1e-3, 0.05, 1.0, 8.0, 30.0):
        exact, quick = GaussianTradeOff(mu).log_delta(sizes), gaussian_log_delta(mu)(sizes)
        seen = exact > -200.0
        assert np.all(quick[seen] >= exact[seen] - 1e-12 * (1.0 + np.abs(exact[seen])))
        near = sizes <= 6 * mu
        np.testing.assert_allclose(quick[near], exact[near], atol=1e-6)


def test_known_total_bounds_every_way_to_spread_it():
    rng = np.random.default_rng(4)
    sizes = np.array([0.0, 0.3, 1.0, 3.0])
    for spread in (np.full(40, 0.1), np.array([4.0]), rng.dirichlet(np.full(40, 0.1)) * 4.0):
        masks = rng.random((400, len(spread))) < 0.1
        mus = 0.7 * np.sqrt(masks @ spread)
        mean = np.mean([np.exp(gaussian_log_delta(m)(sizes)) for m in mus], axis=0)
        bound = np.exp(total_square_log_delta(0.7, 4.0, 0.1)(sizes))
        assert np.all(mean <= bound * 1.03 + 9e-3)


# --- the adversary -------------------------------------------------------------------------------


def test_full_change_is_membership_and_no_change_is_nothing():
    """At R = 2C the truth is the worst case: less may not be claimed, nor more stated."""
    for noise, rate, steps in GRID:
        worst = float(WorstCase().assess(DPSGD(noise, rate, steps), Neighbouring.REPLACE).curve.delta(0.0))
        for change, exact in ((2.0, worst), (7.0, worst), (0.0, 0.0)):
            assert _advantage(change, noise, rate, steps) == pytest.approx(exact, rel=1e-6, abs=0)
    # A change that is all but none is a number: its quantiles overflow.
    assert 0.0 <= _advantage(1e-320, 2.0, 0.1, 3) <= 1e-12
    assert not np.any(np.isnan(gaussian_log_delta(1e-320)(np.array([0.0, 1.0, 700.0]))))


def by_mu(mu: float) -> float:
    return float(erf(mu / (2 * math.sqrt(2))))


@pytest.mark.parametrize(
    ("mechanism", "change", "exact"),
    [
        (DPSGD(2.0, 1.0, 50), 0.1, by_mu(0.1 * math.sqrt(50) / 2.0)),  # full participation is Gaussian
        (Gaussian(2.0, releases=50), 0.1, by_mu(0.1 * math.sqrt(50) / 2.0)),
        (DPSGD(1.2, 1.0, 50, max_grad_norm=0.5), 0.15, by_mu(0.3 * math.sqrt(50) / 1.2)),  # in units of the clip norm
        (DPSGD(0.0, 0.01, 50), 0.2, 1 - 0.99**50),  # no noise shows everything that was sampled
        (DPSGD(1.5, 0.02, 500, sampler=Shuffled()), 0.2, by_mu(0.2 * math.sqrt(10) / 1.5)),
    ],
    ids=repr,
)
def test_closed_forms(mechanism, change, exact):
    assert float(Attribute(change).assess(mechanism).curve.delta(0.0)) == pytest.approx(exact, rel=1e-6, abs=0)


def test_batches_of_fixed_size_show_more_than_poisson_draws_and_less_than_epochs():
    samplers = (INDEPENDENT, FixedSize(), Shuffled())
    poisson, fixed, shuffled = (_advantage(0.2, 1.5, 0.02, 500, sampler=one) for one in samplers)
    assert poisson < fixed <= shuffled * 1.01


def test_ledgers_compose():
    one, two, half = DPSGD(1.5, 0.01, 300), DPSGD(1.0, 0.005, 200), DPSGD(1.5, 0.01, 150)
    both, halves = (
        float(Attribute(0.2).assess(Ledger(parts)).curve.delta(0.0)) for parts in ((one, two), (half, half))
    )
    alone, other = (_advantage(0.2, run.noise_multiplier, run.sample_rate, run.steps) for run in (one, two))
    assert both * (1.0 + 1e-9) >= max(alone, other)
    assert halves == pytest.approx(alone, rel=1e-6, abs=0)


def test_refusals():
    record = SensitivityRecord(10, Scope.AUDIT_SET, 0.1, 0.1, 0.02, None, 1.0)
    for who, mechanism, error, words in (
        (Attribute(), DPSGD(1.0, 0.1, 10), ParameterError, "gradient_change must be given"),
        (Attribute(0.1), Laplace(1.0), UnsupportedError, "Gaussian noise"),
        (Attribute(record), DPSGD(1.0, 0.1, 11), ParameterError, "steps"),
        (Attribute(record), DPSGD(1.1, 0.1, 10), ParameterError, "noise_multiplier"),
    ):
        with pytest.raises(error, match=words):
            who.assess(mechanism)
    with pytest.raises(UnsupportedError, match="not recorded"):
        Attribute(record).assess(DPSGD(1.0, 0.1, 10), method=Method.PUBLISHED)
    for wrong in (-0.1, float("nan")):
        with pytest.raises(ParameterError, match="gradient_change"):
            Attribute(wrong)
    with pytest.raises(ParameterError, match="budget"):
        SensitivityRecord(10, Scope.AUDIT_SET, 0.1, 0.1, 0.02, None, 1.0, budget=0.05)


def test_exact_answers_with_proven_and_says_so_only_where_somebody_asked():
    run = DPSGD(1.0, 0.01, 100)
    asked, _ = assess(run, [Attribute(0.3)], method=Method.EXACT)
    unasked, _ = assess(run, [Attribute(0.3)])
    assert asked.method is unasked.method is Method.PROVEN
    assert asked.notes == (said("Method exact is not known here: proven instead."), *unasked.notes)
    assert any("do not publish" in note for note in unasked.notes)


def test_constant_record_agrees_with_constant_change():
    """A record of the same pair in every step is never stronger than the constant bound says, and close."""
    noise, rate, steps, r = 1.2, 0.01, 500, 0.3
    f = float(worst_mask_term(r, noise))
    record = SensitivityRecord(steps, Scope.WHOLE_DATA, steps * r * r, steps * f, f, None, noise)
    value = float(Attribute(record).assess(DPSGD(noise, rate, steps)).curve.delta(0.0))
    assert value == pytest.approx(_advantage(r, noise, rate, steps), rel=1e-6, abs=0)
    filtered = SensitivityRecord(steps, Scope.WHOLE_DATA, steps * r * r, 0.9 * steps * f, f, None, noise, steps * f)
    guaranteed = Attribute(filtered).assess(DPSGD(noise, rate, steps))
    assert guaranteed.claim is Claim.BOUND
    assert value <= float(guaranteed.curve.delta(0.0)) <= value * 1.02


def test_success_at_a_prior():
    """At two equal values the paper's V = 1 - beta/2 (CHERUBIN2024:B17: .93 gives 53.5%)."""
    assert success(from_advantage(1.0 - 0.93), 0.5) == pytest.approx(0.535, rel=1e-12, abs=0)
    assert success(from_advantage(1.0 - 0.88), 0.5) == pytest.approx(0.56, rel=1e-12, abs=0)


# --- errata --------------------------------------------------------------------------------------


def test_erratum_b4_batch_maxima_count_the_sampling_twice():
    """One record with R_t = 2C, others 0 (p .01, T 2000, sigma 3.5): printed .0101, right .1017."""
    noise, rate, steps = 3.5, 0.01, 2000
    mechanism = DPSGD(noise, rate, steps)
    printed = SensitivityRecord(
        steps, Scope.SAMPLED_BATCH, 4 * rate * steps, 0.0, 0.0, 4 * rate * steps, noise
    )  # the batch maximum is 2C only in the 20 steps that drew it
    stated = float(Attribute(printed).assess(mechanism, method=Method.PUBLISHED).curve.delta(0.0))
    assert stated == pytest.approx(0.0101, abs=1e-4)
    f = float(worst_mask_term(2.0, noise))
    right = SensitivityRecord(steps, Scope.WHOLE_DATA, 4.0 * steps, f * steps, f, 4 * rate * steps, noise)
    theorem_6 = float(erf(rate * 2 * math.sqrt(steps) / (2 * math.sqrt(2) * noise)))
    assert theorem_6 == pytest.approx(0.1017, abs=5e-5)
    attack, error = simulate(PairTrace.constant(steps, 1.0, 1.0, 2.0), noise, rate, 1000, np.random.default_rng(0))
    bound = float(Attribute(right).assess(mechanism).curve.delta(0.0))
    assert attack - 5 * error > 5 * stated
    assert attack == pytest.approx(theorem_6, abs=5 * error + 1e-3)
    assert attack <= bound + 3 * error


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "change", "printed", "right", "runs"),
    [pytest.param(1.8, 1 / 347, 10410, 0.2, 0.01303, 0.01648, 700, marks=pytest.mark.slow),
     (0.8, 0.02, 300, 0.2, None, None, 4000),],
)  # fmt: skip
def test_erratum_b5_the_shared_component_shows_the_sampling(noise, rate, steps, change, printed, right, runs):
    """Radial pair: the attack exceeds Corollary 10, and stays below the proven bound."""
    trace = PairTrace.constant(steps, 1.0, 1.0 - change, change)
    stated = _advantage(change, noise, rate, steps, Method.PUBLISHED)
    assert stated == pytest.approx(published_advantage(trace, noise, rate), rel=1e-12, abs=0)
    if printed is not None:
        assert stated == pytest.approx(printed, abs=5e-6)
    attack, error = simulate(trace, noise, rate, runs, np.random.default_rng(1))
    if right is not None:
        assert attack == pytest.approx(right, abs=4 * error)
    assert attack - 4 * error > stated
    assert attack <= _advantage(change, noise, rate, steps) + 3 * error
    limit = _advantage(change, noise, rate, steps, Method.CLT)
    if rate * math.exp(2 / noise**2) < 0.1:
        assert attack == pytest.approx(limit, rel=0.08, abs=4 * error)


def test_erratum_b17_and_b11():
    """V = 1 - beta/2 and TPR = FPR + 1 - beta for every prior: .93 gives 17% at 10%, not 16%."""
    log_rho = 0.5 * math.log1p(-(0.07**2))
    assert affinity_delta(log_rho, 0.0) == pytest.approx(0.07, rel=1e-12, abs=0)
    assert float(tangent_envelope([affinity_log_delta(log_rho)]).power(0.1)) <= 0.17 + 1e-12


# --- closed loop ---------------------------------------------------------------------------------


def test_attack_on_real_adaptive_runs_never_beats_the_bound():
    """2,000 complete DP-SGD runs of logistic regression for each value, weights moving by the noisy sums.

    The attacker gets the other records and their masks, both completions, every released sum. Nothing of
    the library is used but the bound.
    """
    rng = np.random.default_rng(9)
    runs, steps, noise, rate, clip = 2000, 60, 0.8, 0.1, 0.5
    x, y = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    target, label = np.array([1.5, 0.4, -0.3, 1.0]), 1.0
    values = (0.0, 0.8)

    def gradients(w, row, truth):
        g = (expit(w @ row) - truth)[:, None] * row
        return g / np.maximum(1.0, np.linalg.norm(g, axis=1, keepdims=True) / clip)

    scores, largest, batch_square = [], 0.0, []
    for truth in (0, 1):
        w, score, square = np.zeros((runs, 4)), np.zeros(runs), np.zeros(runs)
        for _ in range(steps):
            pair = []
            for value in values:
                row = target.copy()
                row[1] = value
                pair.append(gradients(w, row, label))
            change = np.linalg.norm(pair[0] - pair[1], axis=1)
            largest = max(largest, float(change.max()))
            others = sum(np.where(rng.random((runs, 1)) < rate, gradients(w, x[i], y[i]), 0.0) for i in range(len(x)))
            mask = rng.random((runs, 1)) < rate
            square += np.where(mask[:, 0], change, 0.0) ** 2
            released = others + np.where(mask, pair[truth], 0.0) + noise * clip * rng.normal(size=(runs, 4))
            residual = released - others
            logs = [
                np.log1p(rate * np.expm1(((residual * g).sum(1) - 0.5 * (g * g).sum(1)) / (noise * clip) ** 2))
                for g in pair
            ]
            score += logs[1] - logs[0]
            w = w - 0.2 * released
        scores.append(score)
        batch_square.append(square)
    from_a, from_b = -np.expm1(np.minimum(scores[0], 0)), -np.expm1(np.minimum(-scores[1], 0))
    attack = float(from_a.mean() + from_b.mean()) / 2
    error = math.sqrt(from_a.var() / runs + from_b.var() / runs) / 2
    bound = _advantage(largest, noise, rate, steps, max_grad_norm=clip)
    published = float(np.mean(erf(rate * np.sqrt(np.concatenate(batch_square)) / (2 * math.sqrt(2) * noise * clip))))
    assert published + 4 * error < attack <= bound + 3 * error
