"""The common-sign adversary on the lattice: kept masses, brute force over two steps, the Fourier route, Monte Carlo."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import Part, lattice, unknown_sign
from reticent.adversaries.relaxed.sign.noise import GaussianSign, LaplaceSign, SignNoise
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD

addition = partial(unknown_sign, part=Part.ADDITION)
GROUPS = json.loads((Path(__file__).parents[2] / "golden" / "relaxed_composition.json").read_text())["groups"]
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0])


@pytest.mark.parametrize(
    ("noise", "steps"),
    [(GaussianSign(0.3, 1.0), 2), (GaussianSign(64 / 455, 0.25), 30), (LaplaceSign(0.3, 1.2), 5)],
    ids=repr,
)
@pytest.mark.parametrize("side", ["connected", "labelled"])
def test_one_step_keeps_all_three_masses(noise: SignNoise, steps: int, side: str) -> None:
    """Absent, present with + and (by symmetry) present with -: else the lattice experiment proves nothing."""
    plan = lattice.plan_of([(noise, steps)], 2**15)
    kind = plan.kinds[0]
    law = lattice.connected(plan, kind) if side == "connected" else lattice.labelled(plan, kind)[0]
    a, b = plan.a.pitch * law.i, kind.centre + plan.b.pitch * law.j
    assert law.absent.sum() == pytest.approx(1.0, rel=1e-13, abs=0)
    assert law.present.sum() == pytest.approx(1.0, rel=1e-12, abs=0)
    for sign in (1.0, -1.0):
        found = float(law.absent @ np.exp(b + sign * a))
        assert side == "labelled" or found == pytest.approx(1.0, rel=1e-12, abs=0)


@pytest.mark.usefixtures("small_lattice")
@pytest.mark.parametrize("entry", [e for e in GROUPS["L_two_fold"] if "common" in e["quantity"]], ids=lambda e: e["id"])
def test_two_steps_are_tight(entry: dict) -> None:
    epsilon, truth = float(entry["params"]["eps"]), float(entry["value"])
    bracket = addition(DPSGD(1.0 / float(entry["params"]["mu"]), float(entry["params"]["p"]), 2))
    ends = bracket.optimistic, bracket.pessimistic
    if "rem" in entry["quantity"].split("(")[0]:
        ends = ends[0].reversed, ends[1].reversed
    lower, upper = (float(curve.delta(epsilon)) for curve in ends)
    assert lower <= truth <= upper
    assert upper / lower - 1.0 <= 8e-3


def test_many_rare_steps_fit_a_lattice_with_room_for_their_own_walk() -> None:
    """A step that moves by a small share of a cell needs less room than one that may move by half of it."""
    kinds = [(GaussianSign(3e-4, 1.0 / 0.4072), 10_000)]
    sides = lattice.bounds(kinds, points=2**18).sides()
    assert float(sides.above.delta(0.0) / sides.below.delta(0.0)) <= 1.7  # none before
    assert lattice.Sketch.of(*kinds[0]).walk((0.05, 0.02))[0] <= 1000  # of variance; 10,000 before


@pytest.mark.usefixtures("small_lattice")
@pytest.mark.parametrize("run", [DPSGD(1.0, 0.3, 2), DPSGD(2.0, 0.1, 100)], ids=str)
def test_the_claim_of_a_search_is_no_less_than_the_whole_curve(run: DPSGD) -> None:
    """Also where one direction ends and the other leads."""
    bound, whole, epsilons = unknown_sign(run, part=Part.CLAIM), unknown_sign(run), np.linspace(0.0, 4.0, 2001)
    claimed, known = (one.pessimistic.delta(epsilons) for one in (bound, whole))
    assert np.all(claimed >= known * (1.0 - 1e-12))
    assert claimed[:501] == pytest.approx(known[:501], rel=1e-3, abs=0)


def test_a_search_reads_the_curve_where_that_is_a_formula() -> None:
    for run in (DPSGD(1.0, 0.3, 1), DPSGD(1.0, 1.0, 3)):
        claimed, whole = unknown_sign(run, part=Part.CLAIM), unknown_sign(run)
        assert claimed.pessimistic.delta(0.1) == whole.pessimistic.delta(0.1) == claimed.optimistic.delta(0.1)


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(NumericalError, match="points would be needed"):
        lattice.bounds([(GaussianSign(1e-5, 1.0), 10**6)], 100)
