"""The final model only: the least shifts by a solver, exact quadratic attacks from below, and where it is refused.

Theorems: RETICENT:hidden-steps, BOK2024:Section 4.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

import reticent as rt
from reticent.adversaries import FinalModel
from reticent.adversaries.final_model import final_mu
from reticent.calibration import EpsilonAtDelta
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status
from reticent.samplers import Cyclic, Shuffled

EPSILON = EpsilonAtDelta(1.0, 1e-5).measure
ADD, ZERO, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.ZERO_OUT, Neighbouring.REPLACE


def whole(steps: int, noise: float = 10.0) -> DPSGD:
    return DPSGD(noise, 1.0, steps)


def cyclic(batches: int, epochs: int, noise: float = 1.5, extra: int = 0) -> DPSGD:
    return DPSGD(noise, 1.0 / batches, batches * epochs + extra, sampler=Cyclic(batches))


def shown(run: DPSGD, contraction: float, relation: Neighbouring = ADD) -> float:
    return FinalModel(contraction).assess(run, relation).measure(rt.mu).value


def least_shifts(uses: list[int], contraction: float) -> float:
    """mu at a/s = 1 by a solver: ``uses`` holds 1 where a step uses the target, 0 elsewhere; no closed form here."""
    t = len(uses)
    back = contraction ** np.subtract.outer(np.arange(t), np.arange(t)).clip(0) * np.tri(t)
    ahead = back @ np.array(uses, float)
    limits = [
        {"type": "eq", "fun": lambda b: ahead[-1] - back[-1] @ b, "jac": lambda b: -back[-1]},
        {"type": "ineq", "fun": lambda b: (ahead - back @ b)[:-1], "jac": lambda b: -back[:-1]},
    ]
    found = minimize(
        lambda b: b @ b, uses, jac=lambda b: 2 * b, bounds=[(0, None)] * t, constraints=limits, options={"maxiter": 999}
    )
    return math.sqrt(found.fun)


@pytest.mark.parametrize(
    ("run", "contraction", "number", "published"),
    [
        *((whole(steps), 0.99, rt.mu, mu) for steps, mu in ((10, 0.316), (100, 0.961), (1000, 1.411))),
        *((cyclic(40, epochs), 0.9999, EPSILON, e) for epochs, e in ((50, 4.34), (100, 5.60), (200, 7.58))),
    ],
)
def test_the_published_values(run: DPSGD, contraction: float, number, published: float) -> None:
    found = FinalModel(contraction).assess(run).measure(number).value
    assert found == pytest.approx(published, abs=5e-4 if number is rt.mu else 5e-3)


@pytest.mark.parametrize("contraction", [1.0, 0.97, 0.6])
@pytest.mark.parametrize(("batches", "epochs"), [(1, 6), (3, 4), (5, 2), (4, 1)])
def test_shifts_are_the_least_ones(batches: int, epochs: int, contraction: float) -> None:
    """The last record is used in the last batch: its first use comes after batches - 1 steps, which show nothing."""
    uses = [int(k % batches == 0) for k in range(batches * (epochs - 1) + 1)]
    run = whole(epochs, 1.0) if batches == 1 else cyclic(batches, epochs, 1.0)
    assert final_mu(run, ADD, contraction) == pytest.approx(least_shifts(uses, contraction), rel=2e-5, abs=0)


@pytest.mark.parametrize("contraction", [0.999, 0.9, 0.3])
def test_a_quadratic_loss_attains_whole_batches_and_stays_below_cyclic_ones(contraction: float) -> None:
    """The weights of a quadratic loss are Gaussian: their mean moves by the uses, shrunk by the steps that follow."""
    for batches, epochs in itertools.product([1, 2, 7], [1, 2, 9]):
        steps = batches * (epochs - 1) + 1
        left = contraction ** np.arange(steps)
        exact = left[::batches].sum() / math.sqrt((left**2).sum()) / 2.0
        run = whole(epochs, 2.0) if batches == 1 else cyclic(batches, epochs, 2.0)
        claimed = shown(run, contraction)
        assert claimed >= exact * (1 - 1e-12)
        if batches == 1 or epochs == 1:
            assert claimed == pytest.approx(exact, rel=1e-9, abs=0)


@pytest.mark.parametrize("contraction", [1.0, 0.99, 1e-3])
def test_hidden_steps_never_cost_and_replacement_moves_twice_as_far(contraction: float) -> None:
    for run in (whole(30), cyclic(7, 5), cyclic(7, 5, extra=3)):
        worst = WorstCase().assess(run).measure(rt.mu).value
        assert shown(run, contraction) <= worst * (1 + 1e-9)
        assert shown(run, contraction, REPLACE) == pytest.approx(2.0 * shown(run, contraction, ZERO), rel=1e-9, abs=0)
    assert shown(cyclic(7, 5, extra=1), contraction) == pytest.approx(shown(cyclic(7, 6), contraction), rel=1e-9, abs=0)
    assert shown(whole(30), 1.0) == pytest.approx(math.sqrt(30) / 10, rel=1e-9, abs=0)


def test_the_factor_follows_from_step_size_and_curvature() -> None:
    for stated, factor in (((0.5, 0.02, 2.0), 0.99), ((0.9, 1.0, 2.0), 0.8)):
        curved = dict(zip(("step_size", "strong_convexity", "smoothness"), stated, strict=True))
        assert FinalModel(**curved).factor == pytest.approx(factor, rel=1e-12, abs=0)
    for wrong in (
        {},
        {"contraction": 0.9, "step_size": 0.1},
        {"contraction": 1.1},
        {"contraction": 0.0},
        {"step_size": 0.1},
        {"step_size": 0.1, "smoothness": 1.0, "strong_convexity": 2.0},
        {"step_size": 2.1, "smoothness": 1.0},
    ):
        with pytest.raises(ParameterError):
            FinalModel(**wrong)


@pytest.mark.parametrize("other", [DPSGD(0.0, 1.0, 10), DPSGD(2.0, 0.1, 10, sampler=Shuffled())], ids=repr)
def test_what_is_not_proven_is_refused(other) -> None:
    with pytest.raises(UnsupportedError, match="hidden steps"):
        FinalModel(0.9).assess(other)


def test_softmax_with_three_classes_moves_weights_apart() -> None:
    """Its clipped gradient along one record: a step of .05, features of norm 8, clip norm 5.

    docs/theory/final-model.md.
    """
    most = {2: 0.0, 3: 0.0}
    for classes in most:
        grid = np.linspace(-4.0, 4.0, 41)
        for logits in itertools.product(grid, repeat=classes - 1):
            p = np.exp([0.0, *logits])
            p /= p.sum()
            slope = p - np.eye(classes)[0]
            length = float(np.linalg.norm(slope))
            if 8.0 * length < 5.0:
                continue
            along = np.eye(classes) - np.outer(slope, slope) / length**2
            turned = np.eye(classes) - 0.05 * 8.0 * 5.0 * along @ (np.diag(p) - np.outer(p, p)) / length
            most[classes] = max(most[classes], float(np.linalg.norm(turned, 2)))
    assert most[3] > 1.016
    assert most[2] <= 1.0 + 1e-12


def shown_by_a_line(uses: list[int], factors: list[float], sizes: list[float]) -> float:
    """mu of the last weights of x -> factor x - size (use + noise), which are Gaussian: by hand, at a/s = 1."""
    shift = variance = 0.0
    for use, factor, size in zip(uses, factors, sizes, strict=True):
        shift, variance = factor * shift + size * use, factor**2 * variance + size**2
    return shift / math.sqrt(variance)


def test_updates_that_differ_show_more_and_the_condition_says_so() -> None:
    """Each training contracts by the stated factor; the first falls in its learning rate, the others in their uses."""
    back = math.sqrt(2.0) - 1.0
    broken = DPSGD(1.0, 1.0 / 3.0, 4, sampler=Cyclic(3))
    for run, contraction, training in (
        (whole(2, 1.0), 0.5, ([1, 1], [0.0, 0.5], [2.0, 1.0])),
        (broken, 1.0, ([0, 1, 0, 1], [1.0, back, 1.0, back], [1.0] * 4)),
        (whole(4, 1.0), 0.5, ([2], [0.5], [1.0])),
    ):
        assert shown_by_a_line(*training) > 1.04 * shown(run, contraction)
        statuses = {one.key: one.status for one in FinalModel(contraction).assess(run).conditions}
        assert statuses["equal-updates"] is Status.DECLARED
