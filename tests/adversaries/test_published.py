"""What papers print, under ``Method.PUBLISHED``: the numbers of their figures and sentences.

Theorems: CHERUBIN2024:Proposition 9, KAISSIS2022:Theorem 3.
"""

from __future__ import annotations

import math

import mpmath
import pytest

from reticent.adversaries import Membership, MembershipGame, Relaxed
from reticent.calibration import Advantage, Mu, NoiseMultiplier, TprAtFpr, calibrate
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import advantage, mu, tpr_at_fpr
from reticent.samplers import Shuffled

FIGURE_7 = DPSGD(2.0, 1e-4, 500_000)
"""Of CHERUBIN2024, section 4.2."""


@pytest.mark.parametrize(("fpr", "printed"), [(0.1, 0.128), (0.01, 0.038)])
def test_the_line_of_proposition_9(fpr: float, printed: float) -> None:
    found = Membership().assess(FIGURE_7, Neighbouring.REPLACE, Method.PUBLISHED)
    own = fpr + float(mpmath.erf(1e-4 * mpmath.sqrt(250_000) / 2))  # 1 - erfc(p sqrt(T)/(sqrt(2) noise))
    assert found.measure(lambda curve: tpr_at_fpr(curve, fpr)).value == pytest.approx(own, rel=1e-9, abs=0)
    assert round(own, 3) == printed
    assert found.claim is Claim.ESTIMATE


def test_calibrations_follow_what_is_published() -> None:
    """The line, and Eq. (37): 4/noise^2/sqrt(100) = .1."""
    how = Membership(), Neighbouring.REPLACE, Method.PUBLISHED
    answer = calibrate(FIGURE_7, NoiseMultiplier(), TprAtFpr(0.128, 0.1), *how)
    exact = 1e-4 * math.sqrt(250_000) / float(mpmath.erfinv(0.028))
    assert exact <= answer.value <= exact * (1 + 1e-4)
    answer = calibrate(Gaussian(1.0, 4, dimension=50), NoiseMultiplier(), Mu(0.1), Relaxed(), method=Method.PUBLISHED)
    assert answer.value == pytest.approx(2.0, rel=1e-4, abs=0)


@pytest.mark.parametrize(
    ("release", "dimension", "exact"),
    [
        (Gaussian(4.0, 8, dimension=50), None, 8 / 16 / math.sqrt(100)),
        (Gaussian(4.0, 8, dimension=50), 2, 8 / 16 / 2),
        (DPSGD(3.0, 1.0, 10, num_parameters=300), None, 10 / 9 / math.sqrt(600)),
        (DPSGD(3.0, 1.0, 10), None, 10 / 9 / math.sqrt(2)),
    ],
)
def test_equation_37(release: Gaussian | DPSGD, dimension: int | None, exact: float) -> None:
    """KAISSIS2022:G8: the published limit is not the answer, and no bound; it used to be the exact curve in silence."""
    who = Relaxed(dimension=dimension)
    found = who.assess(release, Neighbouring.ADD_REMOVE, Method.PUBLISHED)
    assert found.measure(mu).value == pytest.approx(exact, rel=1e-9, abs=0)
    assert (found.claim, found.method) == (Claim.ESTIMATE, Method.PUBLISHED)
    assert who.assess(release).measure(advantage).value != pytest.approx(
        found.measure(advantage).value, rel=1e-3, abs=0
    )


@pytest.mark.parametrize("release", [DPSGD(1.0, 0.1, 10), DPSGD(0.0, 1.0, 10), Gaussian(0.0)])
def test_equation_37_says_nothing_of_sampling_or_of_no_noise(release: Gaussian | DPSGD) -> None:
    with pytest.raises((UnsupportedError, ParameterError), match=r"Eq|noise"):
        Relaxed().assess(release, Neighbouring.ADD_REMOVE, Method.PUBLISHED)
    with pytest.raises(UnsupportedError):
        Relaxed().assess(Gaussian(1.0), Neighbouring.REPLACE, Method.PUBLISHED)


TABLE_5 = {
    "CIFAR-10": (48000, 650, 400, 1200, 0.7866),
    "Purchase": (54855, 2580, 795, 207, 1.4470),
    "Adult": (43000, 1026, 1000, 860, 1.1922),
}
"""Records, parameters, batch, steps, and the mu without noise by Eq. (10)."""


@pytest.mark.parametrize("name", TABLE_5)
def test_no_noise_is_needed_where_table_5_has_none(name: str) -> None:
    """Above the threshold the answer is none, with what the attacker reaches without; below it is noise."""
    size, d, batch, steps, free = TABLE_5[name]
    run = DPSGD(1.0, batch / size, steps, num_parameters=d, batch_size=batch)
    who = MembershipGame(), Neighbouring.REPLACE, Method.PUBLISHED
    for target in (1.01 * free, 2.37, 50.0):
        answer = calibrate(run, NoiseMultiplier(), Mu(target), *who)
        assert answer.value == answer.mechanism.noise_multiplier == 0.0
        assert answer.achieved.value == pytest.approx(free, abs=5e-5)
        assert "noise multiplier none for" in repr(answer)
        assert answer.worst_case().value == math.inf
    assert calibrate(run, NoiseMultiplier(), Mu(0.99 * free), *who).value > 0.1
    limited = calibrate(run, NoiseMultiplier(low=0.5), Mu(2 * free), *who)
    assert limited.value == pytest.approx(0.5, rel=1e-9, abs=0)


def test_one_pass_over_many_records_needs_no_noise_in_the_game() -> None:
    run = DPSGD(1.0, 1 / 26, 26, sampler=Shuffled(), num_parameters=1026, batch_size=1000)
    answer = calibrate(run, NoiseMultiplier(), Advantage(0.5), MembershipGame())
    assert answer.value == 0.0
    assert answer.achieved.value == pytest.approx(math.erf(math.sqrt(1.026 / 8)), rel=1e-4, abs=0)
    assert calibrate(run, NoiseMultiplier(), Advantage(0.5), WorstCase()).value > 0.7
