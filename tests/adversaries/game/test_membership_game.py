"""The membership game: what is claimed where, never beyond the worst case, and the paper's unsound steps.

Theorem: LEEMANN2023:Theorem 4.2.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reticent.adversaries.game import gmip
from reticent.adversaries.game.adversary import MembershipGame
from reticent.adversaries.game.spectrum import GradientSpectrum
from reticent.adversaries.game.stochastic import SusceptibilityLaw
from reticent.kernel.adversaries.base import Claim, Method
from reticent.kernel.adversaries.worst_case import WorstCase
from reticent.kernel.curves import GaussianTradeOff, Subsampled, symmetrised
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.samplers import INDEPENDENT, Poisson
from reticent.samplers import FixedSize, RandomAllocation, Shuffled
from tests.accountants.one_kind import latticed

pytestmark = pytest.mark.usefixtures("coarse")

EPSILON = np.array([-3.0, -0.5, 0.0, 0.2, 1.0, 3.0, 8.0])


def run(noise=1.0, rate=1.0, steps=1, sampler=INDEPENDENT, **more) -> DPSGD:
    return DPSGD(noise, rate, steps, sampler=sampler, **{"num_parameters": 650, "batch_size": 400, **more})


def test_one_step_is_the_harmonic_rule():
    result = MembershipGame().assess(run(), Neighbouring.REPLACE)
    mu = (400 / 650 + 1 / 2.0**2) ** -0.5
    assert result.claim is Claim.ESTIMATE
    assert np.allclose(result.curve.delta(EPSILON), GaussianTradeOff(mu).delta(EPSILON), rtol=1e-12)
    assert mu == pytest.approx(gmip.harmonic_mu(400, 650, 1.0), rel=1e-12, abs=0)
    assert "RETICENT:harmonic-rule" in result.theorems
    assert any("1/mu^2 = n/K + 1/mu_DP^2, batch size n = 400: mu of one step is 1.07497" in n for n in result.notes)


def test_one_step_without_noise_is_answered():
    result = MembershipGame().assess(run(noise=0.0), Neighbouring.REPLACE)
    expected = GaussianTradeOff(math.sqrt(650 / 400)).delta(0.0)
    assert result.curve.delta(0.0) == pytest.approx(float(expected), rel=1e-10, abs=0)


def test_given_susceptibility_needs_no_dimension():
    result = MembershipGame(50.0).assess(DPSGD(1.0, 1.0, 1, batch_size=400), Neighbouring.REPLACE)
    mu = gmip.harmonic_mu(400, 50.0, 1.0)
    assert result.curve.delta(0.0) == pytest.approx(float(GaussianTradeOff(mu).delta(0.0)), rel=1e-12, abs=0)


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("steps", [1, 50])
def test_every_output_says_that_k_is_typical(method, steps):
    result = MembershipGame().assess(run(steps=steps), Neighbouring.REPLACE, method)
    assert "typical record, not the worst" in " ".join(map(str, result.notes))


@pytest.mark.parametrize("sampler", [Poisson(), FixedSize(), Shuffled(), RandomAllocation()])
@pytest.mark.parametrize(
    ("rate", "steps"),
    [*(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.1, 50), (0.6, 3))), (0.6, 2), (1.0, 2)],
)
def test_reused_data_are_the_worst_case(sampler, rate, steps):
    """LEEMANN2023:G1: over re-used data only the injected noise counts."""
    mechanism = run(rate=rate, steps=steps, sampler=sampler)
    worst = WorstCase().assess(mechanism, Neighbouring.REPLACE)
    result = MembershipGame().assess(mechanism)
    assert result.claim is Claim.BOUND
    assert "use the same records again" in result.notes[0]
    assert np.allclose(result.curve.delta(EPSILON), worst.curve.delta(EPSILON), rtol=1e-9)


def test_noise_free_composition_over_reused_data_is_refused():
    with pytest.raises(UnsupportedError, match="published"):
        MembershipGame().assess(run(noise=0.0, steps=5), Neighbouring.REPLACE)
    published = MembershipGame().assess(run(noise=0.0, steps=5), Neighbouring.REPLACE, Method.PUBLISHED)
    mu = math.sqrt(5) * gmip.one_step_mu(650, 650, 400)
    assert published.curve.delta(0.0) == pytest.approx(float(GaussianTradeOff(mu).delta(0.0)), rel=1e-12, abs=0)
    assert published.claim is Claim.ESTIMATE
    assert "LEEMANN2023:Lemma 5.1" in published.theorems


def test_published_is_eq_10_with_the_minimum_rule():
    mechanism = run(noise=3.0, rate=400 / 48000, steps=1200)
    result = MembershipGame().assess(mechanism, Neighbouring.REPLACE, Method.PUBLISHED)
    step = min(gmip.one_step_mu(650, 650, 400 + 9.0), 2.0 / 3.0)
    mu = gmip.sampled_mu(step, 400 / 48000, 1200)
    assert result.curve.delta(0.0) == pytest.approx(float(GaussianTradeOff(mu).delta(0.0)), rel=1e-12, abs=0)


def test_single_pass_counts_each_record_once():
    """Shuffled batches, at most one epoch: used in one step with probability steps * rate."""
    half = MembershipGame().assess(run(rate=0.01, steps=50, sampler=Shuffled()), Neighbouring.REPLACE)
    full = MembershipGame().assess(run(rate=0.01, steps=100, sampler=Shuffled()), Neighbouring.REPLACE)
    over = MembershipGame().assess(run(rate=0.01, steps=101, sampler=Shuffled()), Neighbouring.REPLACE)
    step = GaussianTradeOff(gmip.harmonic_mu(400, 650, 1.0))
    assert np.allclose(full.curve.delta(EPSILON), step.delta(EPSILON), rtol=1e-10)
    positive = EPSILON[EPSILON >= 0]
    assert np.allclose(half.curve.delta(positive), 0.5 * step.delta(positive), rtol=1e-10)
    assert half.claim is full.claim is Claim.ESTIMATE
    assert over.claim is Claim.BOUND


def test_large_susceptibility_approaches_the_worst_case():
    worst = WorstCase().assess(run(), Neighbouring.REPLACE).curve.delta(0.0)
    assert MembershipGame(1e12).assess(run(), Neighbouring.REPLACE).curve.delta(0.0) == pytest.approx(
        worst, rel=1e-6, abs=0
    )


def test_law_of_susceptibility_is_composed_with_equal_slopes():
    law = SusceptibilityLaw(np.array([100.0, 2000.0]), np.array([0.7, 0.3]))
    result = MembershipGame(law).assess(run(), Neighbouring.REPLACE)
    parts = [GaussianTradeOff(gmip.harmonic_mu(400, k, 1.0)).delta(EPSILON) for k in law.values]
    assert np.allclose(result.curve.delta(EPSILON), 0.7 * parts[0] + 0.3 * parts[1], rtol=1e-9)
    assert "LEEMANN2023:Definition 4.1" in result.theorems
    assert result.data_dependent


def test_spectrum_is_tighter_than_the_harmonic_rule():
    values = np.geomspace(1e-6, 0.3, 30)
    spectrum = GradientSpectrum(values)
    exact = MembershipGame(spectrum).assess(run(num_parameters=30), Neighbouring.REPLACE)
    rule = MembershipGame().assess(run(num_parameters=30), Neighbouring.REPLACE)
    assert exact.curve.delta(0.0) < 0.9 * rule.curve.delta(0.0)


@pytest.mark.parametrize(("missing", "name"), [("num_parameters", "dimension"), ("batch_size", "batch_size")])
@pytest.mark.parametrize("steps", [1, 50])
def test_what_is_missing_is_named(missing, name, steps):
    with pytest.raises(ParameterError, match=name) as caught:
        MembershipGame().assess(run(steps=steps, **{missing: None}), Neighbouring.REPLACE)
    assert caught.value.name == name


def test_batch_size_from_the_size_of_the_data():
    direct = MembershipGame().assess(run(), Neighbouring.REPLACE)
    derived = MembershipGame().assess(run(batch_size=None, dataset_size=400), Neighbouring.REPLACE)
    assert derived.curve.delta(0.0) == pytest.approx(direct.curve.delta(0.0), rel=1e-9, abs=0)


def test_other_mechanisms_are_the_worst_case():
    for mechanism in (Gaussian(2.0, 3), Ledger((Gaussian(2.0), run(steps=2)))):
        result = MembershipGame().assess(mechanism)
        assert result.claim is Claim.BOUND
        worst = WorstCase().assess(mechanism, Neighbouring.REPLACE)
        assert np.allclose(result.curve.delta(EPSILON), worst.curve.delta(EPSILON), rtol=1e-9)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "3"])
def test_bad_susceptibility_is_named(bad):
    with pytest.raises(ParameterError, match="susceptibility"):
        MembershipGame(bad)


def test_counterexample_to_composition_over_reused_data():
    """LEEMANN2023:G1: eight noise-free power sums of eight scalars reveal them all.

    Lemma 5.1 composes eight steps of n = 8, d = 1 to mu = sqrt(8) * sqrt(2/17) = 0.970, which allows TPR 0.088 at
    FPR 0.01. The attack decides membership without error: Newton's identities turn power sums into
    the polynomial whose roots are the records.
    """
    composed = math.sqrt(8) * gmip.one_step_mu(1, 1, 8)
    assert composed == pytest.approx(0.970, abs=5e-4)
    assert GaussianTradeOff(composed).power(0.01) <= 0.088
    rng = np.random.default_rng(8)
    hits = false_alarms = 0
    for _ in range(200):
        records, outsider = rng.uniform(-1, 1, 8), rng.uniform(-1, 1)
        sums = [np.mean(records**t) * 8 for t in range(1, 9)]
        hits += _is_root(sums, records[0])
        false_alarms += _is_root(sums, outsider)
    assert hits == 200
    assert false_alarms <= 3


def _is_root(power_sums: list[float], x: float) -> bool:
    elementary = [1.0]
    for k in range(1, len(power_sums) + 1):
        terms = [(-1) ** (i - 1) * elementary[k - i] * power_sums[i - 1] for i in range(1, k + 1)]
        elementary.append(sum(terms) / k)
    coefficients = [(-1) ** k * e for k, e in enumerate(elementary)]
    return bool(abs(np.polyval(coefficients, x)) < 1e-10)


def test_sparse_gradients_break_the_central_limit():
    """LEEMANN2023:G19: Bernoulli(0.001) gradients, n = 100: TPR 1 at FPR .095 where the Gaussian curve says .967."""
    q, n = 0.001, 100
    fpr = 1.0 - (1.0 - q) ** n
    k = (1.0 - q) ** 2 / (q * (1.0 - q))
    claimed = GaussianTradeOff(gmip.one_step_mu(1, k, n)).power(fpr)
    assert fpr == pytest.approx(0.0952, abs=1e-4)
    assert claimed == pytest.approx(0.967, abs=1e-3)
    # A member makes the mean at least 1/n; a non-member batch has no positive gradient with probability 1 - fpr.
    assert stats.binom.sf(0, n, q) == pytest.approx(fpr, rel=1e-12, abs=0)
    result = MembershipGame(k).assess(DPSGD(0.0, 1.0, 1, batch_size=n), Neighbouring.REPLACE)
    assert any("sparse or lattice" in note for note in result.notes)


def test_eq_10_is_no_bound():
    """LEEMANN2023:G3: Eq. (10) against the exact composition of symmetrised uniform sampling, finitely many steps."""
    step, rate, steps = gmip.one_step_mu(650, 650, 400), 400 / 48000, 1200
    claimed = GaussianTradeOff(gmip.sampled_mu(step, rate, steps))
    above, below = latticed(symmetrised(Subsampled(GaussianTradeOff(step), rate)), steps)
    assert below.power(1e-6) == pytest.approx(4.24e-5, rel=0.02, abs=0)
    assert below.power(1e-6) > 1.1 * float(claimed.power(1e-6))
    assert above.delta(0.0) < float(claimed.delta(0.0))
