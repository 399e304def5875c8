"""The common-sign adversary on the lattice: kept masses, brute force over two steps, the Fourier route, Monte Carlo."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import Part, lattice, unknown_sign
from reticent.adversaries.relaxed.sign.noise import GaussianSign
from reticent.adversaries.relaxed.sign.rough import rough_delta
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.curves import Subsampled
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD

addition = partial(unknown_sign, part=Part.ADDITION)
GROUPS = json.loads((Path(__file__).parents[2] / "golden" / "relaxed_composition.json").read_text())["groups"]
FEW = [DPSGD(1.0, 0.3, 2), DPSGD(4.0, 64 / 455, 30), DPSGD(0.3, 0.01, 10), DPSGD(2.0, 0.5, 3)]
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0])


@pytest.mark.parametrize("run", [*FEW[:2], *(pytest.param(run, marks=pytest.mark.slow) for run in FEW[2:])], ids=str)
@pytest.mark.parametrize("side", ["connected", "labelled"])
def test_one_step_keeps_all_three_masses(run: DPSGD, side: str) -> None:
    """Absent, present with + and (by symmetry) present with -: else the lattice experiment proves nothing."""
    plan = lattice.plan_of([(GaussianSign(run.sample_rate, 1.0 / run.noise_multiplier), run.steps)], 2**16)
    kind = plan.kinds[0]
    law = lattice.connected(plan, kind) if side == "connected" else lattice.labelled(plan, kind)[0]
    a, b = plan.a.pitch * law.i, kind.centre + plan.b.pitch * law.j
    assert law.absent.sum() == pytest.approx(1.0, rel=1e-13, abs=0)
    assert law.present.sum() == pytest.approx(1.0, rel=1e-12, abs=0)
    if side == "connected":
        for sign in (1.0, -1.0):
            assert float(law.absent @ np.exp(b + sign * a)) == pytest.approx(1.0, rel=1e-12, abs=0)


@pytest.mark.parametrize("entry", [e for e in GROUPS["L_two_fold"] if "common" in e["quantity"]], ids=lambda e: e["id"])
def test_two_steps_are_tight(entry: dict) -> None:
    epsilon, truth = float(entry["params"]["eps"]), float(entry["value"])
    bracket = addition(DPSGD(1.0 / float(entry["params"]["mu"]), float(entry["params"]["p"]), 2))
    ends = bracket.optimistic, bracket.pessimistic
    if "rem" in entry["quantity"].split("(")[0]:
        ends = ends[0].reversed, ends[1].reversed
    lower, upper = (float(curve.delta(epsilon)) for curve in ends)
    assert lower <= truth <= upper
    assert upper / lower - 1.0 <= 2e-3


def test_many_rare_steps_fit_a_lattice_with_room_for_their_own_walk() -> None:
    """A step that moves by a small share of a cell needs less room than one that may move by half of it."""
    kinds = [(GaussianSign(3e-4, 1.0 / 0.4072), 10_000)]
    sides = lattice.bounds(kinds, points=2**18).sides()
    assert float(sides.above.delta(0.0) / sides.below.delta(0.0)) <= 1.7  # none before
    assert lattice.Sketch.of(*kinds[0]).walk((0.05, 0.02))[0] <= 1000  # of variance; 10,000 before


@pytest.mark.parametrize("run", FEW[:1], ids=str)
def test_the_claim_of_a_search_is_no_less_than_the_whole_curve(run: DPSGD) -> None:
    """And the rough estimate that steers it lies near both ends."""
    bound, whole = unknown_sign(run, part=Part.CLAIM).pessimistic, unknown_sign(run)
    assert np.all(bound.delta(EPSILONS) >= whole.pessimistic.delta(EPSILONS) * (1.0 - 1e-12))
    assert bound.delta(EPSILONS) == pytest.approx(whole.pessimistic.delta(EPSILONS), rel=1e-6, abs=0)
    rough = rough_delta([(GaussianSign(run.sample_rate, 1.0 / run.noise_multiplier), run.steps)])
    assert rough(EPSILONS) == pytest.approx(addition(run).optimistic.delta(EPSILONS), rel=2e-3, abs=1e-9)


def test_the_claim_of_a_search_is_no_less_where_one_direction_ends_and_the_other_leads() -> None:
    run = DPSGD(2.0, 0.1, 100)
    bound, whole, epsilons = (
        unknown_sign(run, part=Part.CLAIM).pessimistic,
        unknown_sign(run),
        np.linspace(0.0, 4.0, 2001),
    )
    assert np.all(bound.delta(epsilons) >= whole.pessimistic.delta(epsilons) * (1.0 - 1e-12))


@pytest.mark.parametrize("run", [DPSGD(1.0, 0.3, 1), DPSGD(1.0, 1.0, 3)], ids=["one step", "all data"])
def test_a_search_reads_the_curve_where_that_is_a_formula(run: DPSGD) -> None:
    claimed, whole = unknown_sign(run, part=Part.CLAIM), unknown_sign(run)
    assert claimed.pessimistic.delta(0.1) == whole.pessimistic.delta(0.1) == claimed.optimistic.delta(0.1)


def test_a_forgotten_count_is_caught() -> None:
    """What one step of the closed form tells lies below all that two steps are enclosed in."""
    once = float(Subsampled(RelaxedGaussianTradeOff(1.0, 1), 0.3).delta(0.1))
    assert once < 0.9 * float(addition(FEW[0]).optimistic.delta(0.1))


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(NumericalError, match="points would be needed"):
        lattice.bounds([(GaussianSign(1e-5, 1.0), 10**6)], 100)
