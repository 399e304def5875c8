"""What the papers have besides their bounds: the mixture's error, equation 5, the estimator of 4.2.1, norms only."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm

from experiments.gallery.mixture_as_gaussian import mixture_error, published_order
from reticent.adversaries import NormOnly, Relaxed
from reticent.kernel.accountants import compose
from reticent.kernel.adversaries import ADVERSARIES
from reticent.kernel.adversaries.base import standard_adversaries
from reticent.kernel.curves import GaussianTradeOff, PiecewiseLinearTradeOff
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import advantage, advantage_bound, least_epsilon
from reticent.mechanisms import Laplace
from tests.cli.calling import run


@pytest.mark.parametrize(("noise", "rate"), [(0.3, 0.2), (4.0, 1e-4), (0.05, 0.5)])
def test_the_mixture_error_is_the_integral(noise: float, rate: float) -> None:
    x = np.linspace(-9.0 * noise, 1.0 + 9.0 * noise, 200_001)
    mixture = (1.0 - rate) * norm.pdf(x, 0.0, noise) + rate * norm.pdf(x, 1.0, noise)
    expected = 0.5 * np.abs(mixture - norm.pdf(x, rate, noise)).sum() * (x[1] - x[0])
    lower, upper = mixture_error(noise, rate)
    assert lower == upper == pytest.approx(expected, rel=1e-6, abs=0)


def test_the_mixture_error_of_two_steps_lies_between() -> None:
    x = np.linspace(-8.0, 9.0, 1201)
    mixture, gaussian = 0.7 * norm.pdf(x) + 0.3 * norm.pdf(x, 1.0), norm.pdf(x, 0.3)
    gap = np.multiply.outer(mixture, mixture) - np.multiply.outer(gaussian, gaussian)
    seen = 0.5 * np.abs(gap).sum() * (x[1] - x[0]) ** 2
    lower, upper = mixture_error(1.0, 0.3, 2)
    assert lower < seen < upper
    assert upper < published_order(1.0, 0.3, 2)
    assert mixture_error(1.0, 1.0, 100) == (0.0, 0.0)
    assert mixture_error(1.0, 0.3, 10**6)[1] == 1.0


def test_equation_5_is_attained_and_least_at_zero() -> None:
    epsilon, delta = 0.8, 0.03
    corner = (1.0 - delta) / (1.0 + np.exp(epsilon))
    curve = PiecewiseLinearTradeOff([0.0, corner, 1.0 - delta, 1.0], [1.0 - delta, corner, 0.0, 0.0])
    assert advantage_bound(epsilon, delta) == pytest.approx(advantage(curve), rel=1e-12, abs=0)
    gaussian = GaussianTradeOff(1.3)
    along = np.linspace(0.0, 4.0, 60)
    bounds = advantage_bound(along, gaussian.delta(along))
    assert bounds[0] == pytest.approx(advantage(gaussian), rel=1e-12, abs=0)
    assert np.all(np.diff(bounds) > 0.0)
    assert advantage_bound(1000.0, 0.0) == 1.0
    assert advantage_bound(0.0, 1.0) == 1.0


def test_the_estimator_is_a_lower_bound_and_no_upper_one() -> None:
    for mu in (0.1, 1.0, 3.0):
        curve = GaussianTradeOff(mu)
        for epsilon in (0.0, 0.5, 2.0, 6.0):
            assert least_epsilon(advantage(curve), float(curve.delta(epsilon))) <= epsilon + 1e-9
    assert least_epsilon(float(advantage_bound(0.7, 0.01)), 0.01) == pytest.approx(0.7, rel=1e-12, abs=0)
    assert least_epsilon(0.1, 0.2) == 0.0
    assert least_epsilon(1.0, 0.2) == np.inf
    printed = np.log(-(2.0 * 0.01 + 0.9 - 2.0) / 0.9)
    assert least_epsilon(0.1, 0.01) == pytest.approx(printed, rel=1e-12, abs=0)


def test_norms_only_by_its_name_is_no_default_and_knows_its_limits(capsys: pytest.CaptureFixture[str]) -> None:
    command = "risk dpsgd --noise-multiplier 6 --sample-rate 0.2 --steps 100 --json --adversary norm-only"
    code, out, _ = run(capsys, *command.split(), "--dimension", "30")
    assert code == 0
    by_name = {record["adversary"]: record for record in json.loads(out)["assessments"]}
    assert by_name["norm-only"]["advantage"]["value"] == pytest.approx(0.00286, rel=1e-2, abs=0)
    assert by_name["norm-only"]["claim"] == "estimate"
    assert "worst-case" in by_name
    assert "norm-only" in ADVERSARIES
    assert "norm-only" not in [who.name for who in standard_adversaries()]
    mechanism = DPSGD(6.0, 0.2, 100)
    assessment = NormOnly().assess(mechanism)
    assert assessment.claim is Claim.ESTIMATE
    assert any("no bound" in note for note in assessment.notes)
    assert assessment.measure(advantage).value < Relaxed().assess(mechanism).measure(advantage).value
    for wrong, relation in ((Laplace(1.0), Neighbouring.ADD_REMOVE), (mechanism, Neighbouring.REPLACE)):
        with pytest.raises(UnsupportedError):
            NormOnly().assess(wrong, relation)


@pytest.mark.slow
def test_norms_of_unequal_dimensions_and_schedules() -> None:
    """Each release keeps its own noise, rate and dimension: two of them by quadrature of their curves."""
    parts = (Gaussian(1.0, dimension=3), Gaussian(2.0, dimension=50), DPSGD(1.5, 0.3, 2, num_parameters=7))
    together = NormOnly().assess(Ledger(parts)).truth
    alone = [NormOnly().assess(part).truth for part in parts]
    for one in alone:
        assert advantage(one.optimistic) < advantage(together.pessimistic)
    assert advantage(together.pessimistic) < sum(advantage(one.pessimistic) for one in alone)
    backwards = NormOnly().assess(Ledger(parts[::-1])).truth
    assert advantage(backwards.pessimistic) == pytest.approx(advantage(together.pessimistic), rel=1e-6, abs=0)
    worst = compose(Ledger(parts), Neighbouring.ADD_REMOVE)
    assert advantage(together.pessimistic) < advantage(worst.optimistic)
    same = NormOnly().assess(Ledger((Gaussian(1.0, dimension=3), Gaussian(1.0, dimension=3)))).truth
    assert advantage(same.pessimistic) == pytest.approx(
        advantage(NormOnly().assess(Gaussian(1.0, 2, 3)).truth.pessimistic), rel=1e-5
    )
