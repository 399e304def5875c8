"""The bound for who knows a pool and not the record: formulas by bisection, exact ratios of pools that react, attacks.

Theorems: RETICENT:spread-gradients.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import reticent as rt
from reticent.adversaries import Population
from reticent.adversaries.relaxed.reacting.spread import divergence
from reticent.adversaries.relaxed.reacting.step_information import Steps
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.samplers import Shuffled
from tests.adversaries.relaxed.reacting_attacks import divergence as nats_of
from tests.adversaries.relaxed.reacting_attacks import reaction

STEPS = 12


def advantage(run, *limits) -> float:
    return Population(*limits).assess(run).measure(rt.advantage).value


def most_square(second: float, nats: float) -> float:
    """The largest q with kl(q || second) <= nats."""

    def excess(q: float) -> float:
        rest = 0.0 if q == 1.0 else (1.0 - q) * math.log((1.0 - q) / (1.0 - second))
        return q * math.log(q / second) + rest - nats

    return 1.0 if excess(1.0) <= 0.0 else brentq(excess, second, 1.0)


def most_around(second: float, nats: float) -> float:
    """The least (I + log(1 + second (e^L - 1 - L))) / L, squared; at most 1."""

    def bound(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        return (nats + math.log1p(second * (math.expm1(tilt) - tilt))) / tilt

    return min(minimize_scalar(bound, bounds=(-15.0, 5.0), method="bounded").fun, 1.0) ** 2 if nats else 0.0


def least_concave(bound, second: float, nats: float) -> float:
    """Of the least concave function above ``bound``: the highest chord over ``nats``."""
    if nats == 0.0:
        return bound(second, 0.0)
    below = [0.0, *(nats * np.geomspace(1e-3, 1.0, 15))]
    beyond = nats + np.geomspace(1e-3 * nats, 20.0, 60)
    low, high = (np.array([bound(second, each) for each in side]) for side in (below, beyond))
    share = (nats - np.array(below)[:, None]) / (beyond - np.array(below)[:, None])
    return float(np.max((1.0 - share) * low[:, None] + share * high))


@pytest.mark.parametrize(
    ("noise", "rate", "mean", "second"), [(3.0, 0.05, 0.1, 0.05), (1.0, 0.3, 0.3, 0.2), (6.0, 0.2, 0.01, 0.01)]
)
def test_the_formula(noise: float, rate: float, mean: float, second: float) -> None:
    """Each step by itself. ``kappa`` by quadrature; the library may be a little above, never below."""
    kappa = nats_of(lambda z: rate * np.expm1(z / noise - 0.5 / noise**2))
    steep = ((1.0 - rate) * math.log1p(-rate) + rate) / rate**2
    around = sum(least_concave(most_around, second, t * kappa) for t in range(STEPS))
    square = sum(most_square(second, t * kappa) for t in range(STEPS))
    x = noise**-2
    ahead = x * (mean * math.sqrt(STEPS) + math.sqrt(around)) ** 2 + (math.expm1(x) - x) * square
    wanted = min(STEPS * kappa, steep * rate**2 * min(ahead, math.expm1(x) * square))
    assert wanted * (1.0 - 1e-6) <= divergence(Steps(noise, rate, STEPS), mean, second) <= wanted * 1.03


def places(logs: np.ndarray) -> np.ndarray:
    """Of all candidates from the least to the most likely one."""
    return logs.argsort(axis=1, kind="stable").argsort(axis=1)


def leaning(_: object, logs: np.ndarray) -> np.ndarray:
    """Half of the candidates push one way, the more likely ones, and half the other way: mean 0, second moment 1."""
    return np.where(places(logs) >= logs.shape[1] // 2, 1.0, -1.0)[:, :, None]


def outstanding(_: object, logs: np.ndarray) -> np.ndarray:
    """The most likely candidate pushes, the least likely one pushes back: mean 0, second moment 2 / candidates."""
    place = places(logs)
    return (1.0 * (place == logs.shape[1] - 1) - 1.0 * (place == 0))[:, :, None]


def turned(_: object, logs: np.ndarray) -> np.ndarray:
    """Directions at equal angles, the likely ones next to each other: mean 0, second moment 1/2."""
    angle = 2.0 * math.pi * places(logs) / logs.shape[1]
    return np.stack([np.cos(angle), np.sin(angle)], axis=2)


def together(_: object, logs: np.ndarray) -> np.ndarray:
    """All in one direction, so nothing is to be learnt: mean and second moment 1."""
    return np.ones((*logs.shape, 1))


def least(*asked) -> np.ndarray:
    """What a reaction shows, less two standard errors."""
    means, errors = reaction(*asked, 3000)
    return means - 2.0 * errors


@pytest.mark.parametrize(
    ("react", "mean", "second"),
    [(leaning, 1e-9, 1.0), (outstanding, 1e-9, 0.25), (turned, 1e-9, 0.5), (together, 1.0, 1.0)],
)
@pytest.mark.parametrize(("noise", "rate", "steps"), [(4.0, 1.0, 8), (1.0, 0.3, 6), (2.0, 1.0, 1)])
def test_no_pool_that_reacts_shows_more(react, mean, second, noise, rate, steps) -> None:
    nats, _, *tells = least(react, noise, rate, steps, 8)
    assert nats <= divergence(Steps(noise, rate, steps), mean, second)
    assert max(tells) <= advantage(DPSGD(noise, rate, steps), mean, second)


def test_what_is_learnt_counts() -> None:
    """Two opposite candidates have no mean; all that shows them is what earlier steps told."""
    nats, x = least(leaning, 3.0, 1.0, 20, 2)[0], 1.0 / 9.0
    assert nats > 2.0 * 20 * (math.expm1(x) - x)  # far more than terms of the second order alone
    assert nats <= divergence(Steps(3.0, 1.0, 20), 1e-9, 1.0)


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.7])
@pytest.mark.parametrize(("noise", "rate", "steps"), [(3.0, 0.05, 200), (6.0, 0.2, 100), (20.0, 1.0, 20)])
def test_who_projects_on_the_mean_reaches_no_more(mean: float, noise: float, rate: float, steps: int) -> None:
    """Candidates that are all alike: the record is known, and as long as the mean."""
    attack = rt.WorstCase().assess(DPSGD(noise / mean, rate, steps)).measure(rt.advantage).lower
    found = advantage(DPSGD(noise, rate, steps), mean, mean**2)
    assert attack <= found
    assert advantage(DPSGD(noise, rate, steps), mean, max(mean**2, 0.1)) >= found


def test_a_real_run_is_far_below_the_worst_case() -> None:
    """The limits of a network with 61,086 weights on Location-30: see docs/theory/relaxed/networks.md."""
    run = DPSGD(3.0, 0.05, 200)
    worst = rt.WorstCase().assess(run).measure(rt.advantage).value
    assert 5.0 * advantage(run, 0.075, 0.04) < worst
    assert advantage(run, 1.0, 1.0) == pytest.approx(worst, rel=1e-9, abs=0)


@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_more_is_never_less(rate: float) -> None:
    run = DPSGD(4.0, rate, 30)
    assert advantage(run, 0.1, 0.1) < advantage(run, 0.2, 0.1) < advantage(run, 0.2, 0.3)
    assert advantage(run, 0.1, 0.1) < advantage(DPSGD(4.0, rate, 5000), 0.1, 0.1)


def test_what_is_said_and_refused() -> None:
    found = Population(0.1, 0.1).assess(DPSGD(3.0, 0.05, 200))
    assert found.claim is Claim.CONDITIONAL
    assert {"spread-gradients", "one-of-the-pool"} <= {one.key for one in found.conditions if one.weakens}
    refused = (
        DPSGD(0.0, 0.1, 5),
        DPSGD(2.0, 0.1, 5, records_per_user=2),
        DPSGD(2.0, 0.1, 5, sampler=Shuffled()),
        Gaussian(2.0),
    )
    for release in refused:
        with pytest.raises(UnsupportedError, match="population is answered"):
            Population(0.1, 0.1).assess(release)
    with pytest.raises(UnsupportedError, match="one record"):
        Population(0.1, 0.1).assess(DPSGD(2.0, 0.1, 5), Neighbouring.REPLACE)
    for wrong in ({"mean_gradient": 0.0}, {"second_moment": 1.5}, {"mean_gradient": math.nan}):
        with pytest.raises(ParameterError):
            Population(**wrong)
