"""All records of a person together: the pair of Gaussian mixtures, its dominance, and what is built on it.

Theorems: RETICENT:whole-user-dominance, RETICENT:whole-user-sign.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, MixtureGaussianPrivacyLoss
from scipy.stats import binom, norm

from reticent.accountants import compose, mu_limits
from reticent.accountants.compose import Composed
from reticent.adversaries import Membership, MembershipGame, Method, Relaxed, WorstCase
from reticent.adversaries.relaxed.sign import Part, unknown_sign
from reticent.calibration import Advantage, NoiseMultiplier
from reticent.calibration.solve import calibrate
from reticent.curves import GaussianTradeOff, RelaxedGaussianTradeOff, Subsampled, symmetrised
from reticent.errors import ParameterError, UnsupportedError
from reticent.interop.dp_events import to_dp_event
from reticent.mechanisms import DPSGD, Gaussian, Ledger, Neighbouring
from reticent.pairs import AntipodalGaussianPair, WholeUserGaussianPair
from reticent.risk import advantage
from reticent.samplers import FixedSize, Shuffled

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 2.5])


def masses(noise: float, rate: float, records: int, x: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """The density of sum_k Binomial(k) N(sign k, noise^2), by the definition."""
    k = np.arange(records + 1)
    return norm.pdf(x[:, None], sign * k, noise) @ binom.pmf(k, records, rate)


@pytest.mark.parametrize(("noise", "rate", "records"), [(1.3, 0.2, 4), (0.4, 0.01, 7), (5.0, 0.5, 20), (1.0, 1e-4, 3)])
def test_one_step_is_the_loss_of_dp_accounting(noise: float, rate: float, records: int) -> None:
    k = list(range(records + 1))
    curve = WholeUserGaussianPair(noise, rate, records)
    for kind, one in ((AdjacencyType.REMOVE, curve), (AdjacencyType.ADD, curve.reversed)):
        oracle = MixtureGaussianPrivacyLoss(noise, k, binom.pmf(k, records, rate), adjacency_type=kind)
        expected = oracle.get_delta_for_epsilon(EPSILONS)
        assert one.delta(EPSILONS) == pytest.approx(expected, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("antipodal", [False, True])
def test_one_step_by_quadrature(antipodal: bool) -> None:
    x = np.linspace(-20.0, 25.0, 200_001)
    absent = masses(1.5, 0.3, 5, x, -1.0) if antipodal else norm.pdf(x, 0.0, 1.5)
    present = masses(1.5, 0.3, 5, x)
    curve = WholeUserGaussianPair(1.5, 0.3, 5, antipodal)
    for one, p, q in ((curve, absent, present), (curve.reversed, present, absent)):
        expected = [np.trapezoid(np.maximum(q - np.exp(e) * p, 0.0), x) for e in EPSILONS]
        assert one.delta(EPSILONS) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("case", [(1.0, 0.01, 2), (3.0, 1e-4, 2), (0.4, 0.3, 7), (10.0, 0.02, 60)], ids=str)
def test_thresholds_of_replacement_are_found_in_a_few_rounds(
    case: tuple[float, float, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding in a flat likelihood ratio kept bisecting: 40 rounds for all thresholds, where a few are enough."""
    pair, asked = WholeUserGaussianPair(*case, True), []
    lines = WholeUserGaussianPair.lines

    def counted(self: WholeUserGaussianPair, z: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        asked.append(len(z))
        return lines(self, z, first)

    sizes = np.geomspace(1e-12, 100.0, 2000)
    ratio = np.concatenate([-sizes[::-1], [0.0], sizes])
    assert pair._table  # once for all that is asked
    monkeypatch.setattr(WholeUserGaussianPair, "lines", counted)
    z = pair._antipodal_threshold(ratio)
    assert sum(asked) <= 2 * 5 * len(ratio)
    again = lines(pair, z, 0)[0] - lines(pair, -z, 0)[0]
    assert again == pytest.approx(ratio, rel=4e-14, abs=4e-15)
    assert np.all(np.diff(z) >= 0.0)


def test_two_steps_by_quadrature() -> None:
    x = np.linspace(-8.0, 11.0, 1001)
    absent, present = norm.pdf(x), masses(1.0, 0.3, 3, x)
    p, q = np.multiply.outer(absent, absent), np.multiply.outer(present, present)
    enclosed = compose(DPSGD(1.0, 0.3, 2, records_per_user=3), ADD)
    cell = (x[1] - x[0]) ** 2
    for epsilon in (0.0, 0.5, 2.0):
        both = [cell * np.maximum(a - np.exp(epsilon) * b, 0.0).sum() for a, b in ((q, p), (p, q))]
        assert enclosed.optimistic.delta(epsilon) <= max(both) + 1e-6
        assert enclosed.pessimistic.delta(epsilon) >= max(both) - 1e-6
        assert enclosed.pessimistic.delta(epsilon) == pytest.approx(enclosed.optimistic.delta(epsilon), abs=1e-6)


@pytest.mark.slow
def test_many_steps_by_dp_accounting() -> None:
    noise, rate, steps, records = 2.0, 0.05, 100, 4
    enclosed = compose(DPSGD(noise, rate, steps, records_per_user=records), ADD)
    k = list(range(records + 1))
    oracle = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        noise, k, binom.pmf(k, records, rate).tolist(), value_discretization_interval=1e-4
    ).self_compose(steps)
    for epsilon in (0.0, 1.0, 2.0):
        assert oracle.get_delta_for_epsilon(epsilon) == pytest.approx(enclosed.pessimistic.delta(epsilon), abs=1e-6)
        assert oracle.get_delta_for_epsilon(epsilon) >= enclosed.optimistic.delta(epsilon)


@pytest.mark.parametrize("seed", range(3))
def test_no_contributions_of_norm_one_tell_more(seed: int) -> None:
    """Random vectors in the plane, both relations, both orders, against the pair; parallel ones attain it."""
    rng = np.random.default_rng(seed)
    noise, rate, records = float(rng.uniform(0.7, 2.0)), float(rng.uniform(0.1, 0.9)), 3
    side = np.linspace(-6.0 * noise - 3.0, 6.0 * noise + 3.0, 241)
    x, y = np.meshgrid(side, side, indexing="ij")
    cell = (side[1] - side[0]) ** 2

    def law(vectors: np.ndarray) -> np.ndarray:
        total = np.zeros_like(x)
        for mask in range(2**records):
            drawn = [j for j in range(records) if mask >> j & 1]
            mean = vectors[drawn].sum(axis=0)
            weight = rate ** len(drawn) * (1.0 - rate) ** (records - len(drawn))
            total += weight * norm.pdf(x, mean[0], noise) * norm.pdf(y, mean[1], noise)
        return total

    angles, sizes = rng.uniform(0.0, 2.0 * np.pi, (2, records)), rng.uniform(0.3, 1.0, (2, records))
    one, other = (s[:, None] * np.stack([np.cos(a), np.sin(a)], axis=1) for s, a in zip(sizes, angles, strict=True))
    aligned = np.tile([1.0, 0.0], (records, 1))
    for pair, cases in (
        (WholeUserGaussianPair(noise, rate, records), [(0.0 * one, one), (0.0 * one, aligned)]),
        (WholeUserGaussianPair(noise, rate, records, True), [(other, one), (-aligned, aligned)]),
    ):
        for vectors in cases:
            p, q = map(law, vectors)
            for one_way, absent, present in ((pair, p, q), (pair.reversed, q, p)):
                for epsilon in (0.0, 0.4, 1.5):
                    seen = cell * np.maximum(present - np.exp(epsilon) * absent, 0.0).sum()
                    most = float(one_way.delta(epsilon))
                    assert seen <= most + 3e-4
                    assert vectors[1] is not aligned or seen >= most - 3e-4


def test_one_record_is_what_it_was() -> None:
    for relation in Neighbouring:
        plain, stated = DPSGD(1.1, 0.05, 30), DPSGD(1.1, 0.05, 30, records_per_user=1)
        assert stated.parts_under(relation) == plain.parts_under(relation)
    several = DPSGD(1.1, 0.05, 30, records_per_user=4)
    assert several.parts_under(ZERO) == several.parts_under(ADD)
    ratio = np.array([-3.0, -0.1, 0.0, 0.1, 1.0, 9.0])
    for one, known in (
        (WholeUserGaussianPair(1.3, 0.2, 1), Subsampled(GaussianTradeOff(1.0 / 1.3), 0.2)),
        (WholeUserGaussianPair(1.3, 0.2, 1, True), AntipodalGaussianPair(1.3, 0.2)),
    ):
        for mine, theirs in zip(one.errors(ratio), known.errors(ratio), strict=True):
            assert mine == pytest.approx(theirs, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("relation", [ADD, pytest.param(REPLACE, marks=pytest.mark.slow)])
def test_risk_grows_with_the_records_and_ends_at_a_shift(relation: Neighbouring) -> None:
    runs = [DPSGD(4.0, 0.1, 3, records_per_user=records) for records in (1, 2, 4)]
    seen = [compose(run, relation) for run in runs]
    for fewer, more in pairwise(seen):
        assert advantage(fewer.pessimistic) < advantage(more.optimistic)
    whole = compose(DPSGD(4.0, 1.0, 20, records_per_user=3), relation).pessimistic
    expected = GaussianTradeOff(3.0 * relation.sensitivity * np.sqrt(20.0) / 4.0)
    assert whole.delta(EPSILONS) == pytest.approx(expected.delta(EPSILONS), rel=1e-9, abs=0)


def test_the_relaxed_attacker_without_sampling_has_one_shift() -> None:
    curve = Relaxed(dimension=9).assess(DPSGD(8.0, 1.0, 4, records_per_user=3), ADD).curve
    expected = symmetrised(RelaxedGaussianTradeOff(4.0 * (3.0 / 8.0) ** 2, 9))
    assert curve.delta(EPSILONS) == pytest.approx(expected.delta(EPSILONS), rel=1e-9, abs=0)


def test_mu_is_that_of_every_record_in_every_step() -> None:
    assert mu_limits(DPSGD(4.0, 0.1, 25, records_per_user=3), ADD) == pytest.approx((3.75, 3.75))
    low, high = mu_limits(DPSGD(4.0, 0.1, 25, records_per_user=3), REPLACE)
    assert (low, high) == pytest.approx((3.75, 7.5))


def test_no_noise_shows_whoever_takes_part() -> None:
    seen = compose(DPSGD(0.0, 0.1, 1, records_per_user=3), ADD).pessimistic
    assert advantage(seen) == pytest.approx(1.0 - 0.9**3, rel=1e-9, abs=0)


def test_shuffled_epochs_count_every_record() -> None:
    run = DPSGD(5.0, 0.1, 20, sampler=Shuffled(), records_per_user=4)
    assert compose(run, ADD).pessimistic.delta(0.0) == pytest.approx(
        float(GaussianTradeOff(4.0 * np.sqrt(2.0) / 5.0).delta(0.0)), rel=1e-9
    )


def test_what_is_not_proven_is_refused_in_one_line() -> None:
    with pytest.raises(UnsupportedError, match="fixed size"):
        compose(DPSGD(1.0, 0.1, 5, sampler=FixedSize(), records_per_user=2), ADD)
    with pytest.raises(UnsupportedError, match="one record per person"):
        MembershipGame().assess(DPSGD(1.0, 0.1, 1, batch_size=10, num_parameters=5, records_per_user=2))
    with pytest.raises(ParameterError, match="records_per_user"):
        DPSGD(1.0, 0.1, 1, records_per_user=0)
    with pytest.raises(ParameterError, match="the same in all parts"):
        Ledger((DPSGD(1.0, 0.1, 1, records_per_user=2), Gaussian(1.0)))


@pytest.mark.parametrize("steps", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_common_sign_by_quadrature(steps: int) -> None:
    x = np.linspace(-12.0, 12.0, 1201 if steps == 2 else 40_001)
    absent, up, down = norm.pdf(x, 0.0, 1.2), masses(1.2, 0.3, 3, x), masses(1.2, 0.3, 3, x, -1.0)
    if steps == 2:
        absent, up, down = (np.multiply.outer(law, law) for law in (absent, up, down))
    enclosed = unknown_sign(DPSGD(1.2, 0.3, steps, records_per_user=3), part=Part.ADDITION)
    cell = (x[1] - x[0]) ** steps
    for epsilon in (0.0, 0.5):
        true = cell * np.maximum(0.5 * (up + down) - np.exp(epsilon) * absent, 0.0).sum()
        assert enclosed.optimistic.delta(epsilon) - 1e-6 <= true <= enclosed.pessimistic.delta(epsilon) + 1e-6
        assert enclosed.pessimistic.delta(epsilon) == pytest.approx(true, rel=2e-3, abs=0)


@pytest.mark.slow
def test_the_relaxed_attacker_is_below_the_worst_case() -> None:
    run = DPSGD(4.0, 0.1, 3, records_per_user=3)
    relaxed, worst = (who.assess(run, ADD) for who in (Relaxed(), WorstCase()))
    assert relaxed.measure(advantage).value < worst.measure(advantage).lower
    stated = Relaxed(dimension=50).assess(run, ADD)
    assert 0.0 < stated.measure(advantage).lower < stated.measure(advantage).value < relaxed.measure(advantage).value
    assert any("one and the same direction" in note for note in relaxed.notes)
    assert any("may differ" in note for note in stated.notes)


def test_single_numbers_know_the_records() -> None:
    run = DPSGD(3.0, 0.1, 8, records_per_user=3)
    lower, upper = Composed(run, ADD).advantage()
    bracket = compose(run, ADD)
    assert (lower, upper) == pytest.approx(
        (advantage(bracket.optimistic), advantage(bracket.pessimistic)), rel=1e-6, abs=0
    )
    assert lower > 2.0 * Composed(DPSGD(3.0, 0.1, 8), ADD).advantage()[1]


@pytest.mark.slow
def test_calibration_knows_the_records() -> None:
    run = DPSGD(3.0, 0.1, 30, records_per_user=3)
    found = calibrate(run, NoiseMultiplier(), Advantage(0.1))
    assert 0.0999 < advantage(compose(found.mechanism, ADD).pessimistic) <= 0.1


def test_the_event_is_that_of_dp_accounting() -> None:
    event = to_dp_event(DPSGD(2.0, 0.25, 7, records_per_user=2))
    assert event.count == 7
    assert list(event.event.sensitivities) == [0.0, 1.0, 2.0]
    assert list(event.event.sampling_probs) == pytest.approx([0.5625, 0.375, 0.0625])


def test_a_ledger_protects_as_many_records_as_its_parts() -> None:
    """Against an unknown direction: shuffled parts of a ledger are one run of all their epochs, for all records."""
    epochs = {"sampler": Shuffled(10), "records_per_user": 3}
    parts = Ledger((DPSGD(5.0, 0.1, 10, **epochs), DPSGD(5.0, 0.1, 20, **epochs)))
    together, whole = (Relaxed().assess(run).curve for run in (parts, DPSGD(5.0, 0.1, 30, **epochs)))
    assert advantage(together) == pytest.approx(advantage(whole), rel=1e-12, abs=0)


@pytest.mark.parametrize("method", [Method.PROVEN, Method.CLT, Method.CLOSED_FORM])
def test_closed_forms_refuse_ledgers_of_several_records_of_a_person(method: Method) -> None:
    parts = Ledger((DPSGD(2.0, 0.1, 1, records_per_user=3), DPSGD(3.0, 0.1, 1, records_per_user=3)))
    with pytest.raises(UnsupportedError, match="one record per person"):
        Membership().assess(parts, Neighbouring.ADD_REMOVE, method)
