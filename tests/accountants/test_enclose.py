"""What was asked on the way to a curve is told; mixtures of any shifts; estimates keep to enclosures."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from reticent.accountants.transform import Transform, transform_of
from reticent.kernel.accountants import compose
from reticent.kernel.accountants.enclose import enclose
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.accountants.route import ROUTES, Route
from reticent.kernel.accountants.steps import Step
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import NumericalError, ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import CurvePair, Neighbouring
from reticent.kernel.pairs.gaussian_mixture import log_mixture
from reticent.kernel.risk import delta_at_epsilon, epsilon_at_delta
from reticent.mechanisms import Laplace

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE


def no_room(*_: object, **__: object) -> None:
    raise NumericalError("no room on the grid")


def test_every_route_is_told_with_its_width():
    bounds, transform = compose(DPSGD(2.0, 0.05, 500), ADD).trace
    assert (bounds.name, transform.name) == ("bounds", "transform")
    assert transform.width < 1e-6 < bounds.width
    assert transform.failure == bounds.failure == ""
    nearly_atomic = compose(DPSGD(0.2, 1e-3, 20), ADD).trace
    assert "too close to atomic" in nearly_atomic[1].failure
    assert nearly_atomic[1].width == math.inf
    assert "lattice of 65536 points" in [route.name for route in nearly_atomic]


@pytest.mark.parametrize(
    ("run", "delta", "width"), [(DPSGD(8.6, 0.047, 10), 1e-9, 3e-4), (DPSGD(2.5, 0.009, 11), 1e-10, 1e-2)], ids=str
)
def test_epsilon_has_digits_at_a_small_delta(run, delta, width):
    """The advantage of both is known from one transform to 1e-9, and its curve ends above such a delta."""
    found = WorstCase().assess(run, ADD).measure(epsilon_at_delta, delta)
    assert found.lower <= found.upper <= found.lower * (1.0 + width)


def test_a_route_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(Lattice, "answer", no_room)
    compose.cache_clear()
    bracket = compose(Laplace(2.0, 8), ADD)
    assert [route.failure for route in bracket.trace if route.name.startswith("lattice")] == ["no room on the grid"] * 2
    assert len(bracket.notes) == 1
    assert "no room on the grid" in bracket.notes[0]
    compose.cache_clear()


@pytest.mark.parametrize("bounds", [0.5, (0.5,), (-1.0, 0.5), (float("nan"), 0.5), (0.5, float("nan"))])
def test_bounds_of_a_curve_are_two(bounds) -> None:
    with pytest.raises(ParameterError, match="bounds must be two numbers >= 0"):
        CurvePair(GaussianTradeOff(0.3), bounds)


def test_routes_of_other_packages_are_asked_where_ours_are_wide(monkeypatch):
    class Narrow(Route):
        """Knows what a plain lattice knows."""

        name = "narrow"

        def answer(self, steps):
            return answer(Lattice(5e-8, 2**16, 1e-15), steps)

    answer = Lattice.answer
    steps = [Step(CurvePair(GaussianTradeOff(0.3)), 40)]
    monkeypatch.setattr(Transform, "answer", no_room)
    ROUTES.add(Narrow)
    try:
        assert "narrow" not in [attempt.name for attempt in enclose(steps).trace]
        monkeypatch.setattr(Lattice, "answer", no_room)
        assert enclose(steps).trace[-1].name == "narrow"
        assert enclose(steps).width < 1e-6
    finally:
        ROUTES.remove("narrow")
    assert enclose(steps).width > 1e-3


def test_a_contour_that_cannot_be_had_is_told_and_the_one_before_it_serves():
    """Next to the smallest loss, 50 log(1 - rate), losses are nearly atomic: no contour goes there."""
    run = DPSGD(1.0, 0.02, 50)
    routes = compose(run, ADD).trace
    assert [route.name for route in routes] == ["bounds", "transform"]
    assert routes[1].width < 1e-6
    assert "thresholds -0.7" in routes[1].failure
    spectral = transform_of(steps_of(run, ADD)[0])
    sides = spectral.polygons()
    for epsilon in (0.3, 0.65, 0.8):
        lower, upper = (float(curve.reversed.delta(epsilon)) for curve in (sides.below, sides.above))
        assert 0.0 <= upper - lower <= 1e-4 * upper + 1e-14


def test_a_question_of_one_delta_has_digits_in_both_directions():
    """The tail of the smaller direction was left out and claimed from cheap bounds: 7.2e-6 to 1.2e-5."""
    found = WorstCase().assess(DPSGD(1.9356048665302146, 0.0014447515912278162, 1494), Neighbouring.ZERO_OUT)
    known = found.measure(delta_at_epsilon, 0.1)
    assert known.lower <= 7.17557338e-6 <= known.upper <= known.lower * (1.0 + 2e-6)


def test_log_mixture_neither_cancels_nor_overflows():
    tiny = log_mixture([1e-12], [np.array([1e-8])])
    assert tiny == pytest.approx([1e-20], rel=1e-7, abs=0)
    large = log_mixture([0.25, 0.25], [np.array([5000.0, -50.0]), np.array([4000.0, -60.0])])
    assert large == pytest.approx([5000.0 + math.log(0.25), math.log(0.5)], rel=1e-12, abs=0)
    sure = log_mixture([1.0], [np.array([-80.0, 0.0, 80.0])])
    assert sure == pytest.approx([-80.0, 0.0, 80.0], rel=1e-12, abs=0)
    nearly = log_mixture([1.0 - 1e-12], [np.array([-60.0])])
    assert nearly == pytest.approx([math.log(1e-12)], rel=1e-5, abs=0)


ASKED = """
import numpy as np
from reticent.kernel.accountants import compose
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.pairs import Neighbouring
run = Ledger((DPSGD(2.046261779473025, 0.001283981145150976, 1), DPSGD(3.012227980900057, 0.0003053917115003211, 2)))
print(*compose(run, Neighbouring.REPLACE).pessimistic.power(np.geomspace(1e-5, 1.0, 81)).tolist())
"""


def test_numbers_do_not_depend_on_the_number_of_threads():
    """By BLAS the terms of a sum over frequencies had another order with four threads: off by 6e-10."""
    told = []
    for threads in "14":
        settings = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", ASKED], env=settings, check=True, capture_output=True, text=True)
        told.append([float(word) for word in done.stdout.split()])
    assert told[0] == pytest.approx(told[1], rel=1e-13, abs=0)
