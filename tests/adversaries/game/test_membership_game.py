"""The membership game: what is claimed where, never beyond the worst case, and the paper's unsound steps.

Theorem: LEEMANN2023:Theorem 4.2.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from reticent import compare
from reticent.adversaries import Attribute, Relaxed
from reticent.adversaries.game import gmip
from reticent.adversaries.game.adversary import MembershipGame
from reticent.adversaries.game.spectrum import GradientSpectrum
from reticent.adversaries.game.stochastic import SusceptibilityLaw
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.kernel.adversaries import assess, assess_answerable
from reticent.kernel.adversaries.base import Claim, Method
from reticent.kernel.adversaries.worst_case import WorstCase
from reticent.kernel.curves import GaussianTradeOff, Subsampled, symmetrised
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage
from reticent.kernel.samplers import INDEPENDENT, Poisson
from reticent.samplers import FixedSize, RandomAllocation, Shuffled
from tests.accountants.one_kind import latticed

pytestmark = pytest.mark.usefixtures("coarse")

EPSILON = np.array([-3.0, -0.5, 0.0, 0.2, 1.0, 3.0, 8.0])


def run(noise=1.0, rate=1.0, steps=1, sampler=INDEPENDENT, **more) -> DPSGD:
    return DPSGD(noise, rate, steps, sampler=sampler, **{"num_parameters": 650, "batch_size": 400, **more})


SAMPLERS = (Poisson(), FixedSize(), Shuffled(), RandomAllocation())


@pytest.mark.parametrize(
    ("who", "one", "k"),
    [
        (MembershipGame(), run(), 650),
        (MembershipGame(50.0), DPSGD(1.0, 1.0, 1, batch_size=400), 50),  # needs no dimension
        (MembershipGame(), run(batch_size=None, dataset_size=400), 650),
        (MembershipGame(), run(noise=0.0), 650),
        (MembershipGame(1e12), run(), 1e12),  # next to the worst case
    ],
)
def test_one_step_is_the_harmonic_rule(who: MembershipGame, one: DPSGD, k: float) -> None:
    result = who.assess(one, Neighbouring.REPLACE)
    mu = (400 / k + one.noise_multiplier**2 / 4.0) ** -0.5
    assert result.claim is Claim.ESTIMATE
    assert np.allclose(result.curve.delta(EPSILON), GaussianTradeOff(mu).delta(EPSILON), rtol=1e-10)
    assert "RETICENT:harmonic-rule" in result.theorems
    assert any(f"batch size n = 400: mu of one step is {mu:.6g}" in n for n in result.notes)
    worst = WorstCase().assess(run(), Neighbouring.REPLACE).curve.delta(0.0)
    assert k < 1e12 or result.curve.delta(0.0) == pytest.approx(worst, rel=1e-6, abs=0)


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("steps", [1, 50])
def test_every_output_says_that_k_is_typical(method, steps):
    result = MembershipGame().assess(run(steps=steps), Neighbouring.REPLACE, method)
    assert "typical record, not the worst" in " ".join(map(str, result.notes))


@pytest.mark.parametrize(
    "mechanism",
    [
        *(run(rate=rate, steps=2, sampler=sampler) for rate in (0.6, 1.0) for sampler in SAMPLERS),
        Gaussian(2.0, 3),
        Ledger((Gaussian(2.0), run(steps=2))),
    ],
    ids=repr,
)
def test_reused_data_are_the_worst_case(mechanism):
    """LEEMANN2023:G1: over re-used data only the injected noise counts."""
    result, worst = MembershipGame().assess(mechanism), WorstCase().assess(mechanism, Neighbouring.REPLACE)
    assert result.claim is Claim.BOUND
    assert ("use the same records again" in result.notes[0]) == isinstance(mechanism, DPSGD)
    assert np.allclose(result.curve.delta(EPSILON), worst.curve.delta(EPSILON), rtol=1e-9)


def test_published_composes_what_exact_refuses():
    with pytest.raises(UnsupportedError, match="published"):
        MembershipGame().assess(run(noise=0.0, steps=5), Neighbouring.REPLACE)
    step = min(gmip.one_step_mu(650, 650, 400 + 9.0), 2.0 / 3.0)
    for one, mu in (
        (run(noise=0.0, steps=5), math.sqrt(5) * gmip.one_step_mu(650, 650, 400)),
        # Eq. (10) with the minimum rule.
        (run(noise=3.0, rate=400 / 48000, steps=1200), gmip.sampled_mu(step, 400 / 48000, 1200)),
    ):
        published = MembershipGame().assess(one, Neighbouring.REPLACE, Method.PUBLISHED)
        assert published.curve.delta(0.0) == pytest.approx(float(GaussianTradeOff(mu).delta(0.0)), rel=1e-12, abs=0)
        assert published.claim is Claim.ESTIMATE
        assert "LEEMANN2023:Lemma 5.1" in published.theorems


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


@pytest.mark.parametrize("bad", [0.0, math.nan, "3"])
def test_bad_arguments_are_named(bad):
    for what, name in (
        (MembershipGame, "susceptibility"),
        (lambda x: gmip.harmonic_mu(x, 10, 1.0), "batch_size"),
        (lambda x: gmip.sampled_mu(x, 0.1, 10), "mu_step"),
    ):
        with pytest.raises(ParameterError, match=name):
            what(bad)


class TestRelation:
    """The game keeps the size of the data: it is answered under replacement, and refused elsewhere."""

    CASE = DPSGD(0.42426, 1.0, 2, num_parameters=100, batch_size=1)

    def simulated_advantage(self, rng: np.random.Generator, games: int) -> tuple[float, float]:
        """Definition 3.1 of LEEMANN2023 with one record, drawn from 100 orthonormal gradients; and its standard error.

        The attacker sees both noisy releases, or their mean, and plays the likelihood ratio of "x' was drawn, then
        used" against "anybody was used".
        """
        noise = self.CASE.noise_multiplier / math.sqrt(self.CASE.steps)
        correct = []
        for member in (True, False):
            seen = noise * rng.standard_normal((games, 100))
            used = np.zeros(games, dtype=int) if member else rng.integers(0, 100, games)
            seen[np.arange(games), used] += 1.0
            scores = seen / noise**2  # the target is record 0; all gradients have length 1
            correct.append((scores[:, 0] > np.logaddexp.reduce(scores, axis=1) - math.log(100.0)) == member)
        hits, rejections = (float(np.mean(side)) for side in correct)
        return hits + rejections - 1.0, math.sqrt((hits * (1 - hits) + rejections * (1 - rejections)) / games)

    def test_case_of_the_referee_beats_add_remove_and_not_replacement(self) -> None:
        """The "bound" .9044 of add/remove, against a simulation of .9254."""
        found, error = self.simulated_advantage(np.random.default_rng(19), 20_000)
        assert found == pytest.approx(0.9254, abs=4 * error + 4e-4)
        added = WorstCase().assess(self.CASE, Neighbouring.ADD_REMOVE).measure(advantage).value
        assert found - 4 * error > added > 0.90
        result = MembershipGame().assess(self.CASE)
        assert result.neighbouring is Neighbouring.REPLACE
        assert found + 4 * error < result.measure(advantage).value == pytest.approx(0.99914, abs=1e-5)

    @pytest.mark.parametrize("relation", [Neighbouring.ADD_REMOVE, Neighbouring.ZERO_OUT])
    @pytest.mark.parametrize("mechanism", [CASE, Gaussian(1.0)])
    def test_other_relations_are_refused_by_name(self, mechanism, relation) -> None:
        for method in (Method.EXACT, Method.PUBLISHED):
            with pytest.raises(UnsupportedError, match=f"replace only, not {relation.value}$"):
                MembershipGame().assess(mechanism, relation, method)
        results, skipped = assess_answerable(mechanism, [WorstCase(), MembershipGame()], relation)
        assert [r.adversary.name for r in results] == ["worst-case"]
        assert "replace only" in skipped["membership-game"]

    def test_what_is_not_stated_is_left_to_each_adversary(self) -> None:
        results = assess(self.CASE, [WorstCase(), Relaxed(), MembershipGame(), Attribute(gradient_change=0.1)])
        assert {(r.adversary.name, r.neighbouring.value) for r in results} == {
            *((name, "add-remove") for name in ("worst-case", "relaxed")),
            *((name, "replace") for name in ("worst-case", "membership-game", "attribute")),
        }
        release = DPSGD(1.0, 0.5, 2, num_parameters=9, batch_size=5)
        found = compare(release, ["worst-case", "membership", "membership-game"], "advantage=0.3")
        rows = {row["adversary"]: row for row in json.loads(found.to_json())["rows"]}
        assert rows["membership"]["noise_ratio"] == pytest.approx(1.0, rel=1e-3, abs=0)
        assert rows["membership-game"]["neighbouring"] == "replace"
        assert rows["membership-game"]["noise_ratio"] is None

    def test_calibration_and_the_worst_case_beside_it_use_replacement(self) -> None:
        release = DPSGD(1.0, 0.1, 5, num_parameters=100, batch_size=10)
        answer = calibrate(release, NoiseMultiplier(), Advantage(0.2), MembershipGame())
        worst = WorstCase().assess(answer.mechanism, Neighbouring.REPLACE).measure(advantage)
        assert answer.neighbouring is Neighbouring.REPLACE
        assert answer.worst_case().value == pytest.approx(worst.value, rel=1e-9, abs=0)
