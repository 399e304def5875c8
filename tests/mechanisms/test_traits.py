"""What others ask of a mechanism: each answer against one that follows from the mechanism alone."""

from __future__ import annotations

import math

import pytest

import reticent as rt
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Ledger, Mechanism
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import MatrixMechanism, OneOf
from reticent.mechanisms.short import in_short
from reticent.samplers import AllocatedOnce, Shuffled

RUN, QUERY = rt.DPSGD(1.5, 0.01, 300, num_parameters=7), rt.Gaussian(2.0, 3, 5)
OTHERS = (rt.Laplace(2.0, 4, 0.5), rt.RandomisedResponse(0.2, 3), rt.Guarantee(1.0), rt.FilteredGaussian(0.5))
MATRIX = MatrixMechanism(2.0, 8, "prefix", bands=2, separation=4)
BEST, LISTED = rt.Selection(RUN, rt.Geometric(10)), OneOf((RUN, QUERY), (1, 3))
SEVERAL = rt.Ledger((RUN, QUERY, *OTHERS))
EVERY = (RUN, QUERY, *OTHERS, MATRIX, BEST, LISTED, SEVERAL)


@pytest.mark.parametrize("relation", Neighbouring)
def test_gaussian_sums_as_a_run_have_the_pairs_that_they_had(relation) -> None:
    for one in (RUN, QUERY, rt.Gaussian(0.0, 2)):
        pairs = [(part.pair, part.count) for part in one.sums.parts_under(relation)]
        assert pairs == [(part.pair, part.count) for part in one.parts_under(relation)]
        assert one.sums.num_parameters == one.coordinates


def test_nothing_else_is_a_run_or_a_sum() -> None:
    assert {type(one) for one in EVERY if one.training} == {rt.DPSGD}
    assert {type(one) for one in EVERY if one.sums} == {rt.DPSGD, rt.Gaussian}
    assert rt.Ledger((RUN, RUN)).trainings == (RUN, RUN)
    assert SEVERAL.trainings == rt.Ledger((RUN, QUERY)).trainings == BEST.trainings == LISTED.trainings == ()


def test_a_score_with_noise_is_no_step_of_the_training() -> None:
    """Its number lies in no direction of the gradients: what is proven of one sign does not cover it."""
    whole = rt.Ledger((RUN, rt.Gaussian(2.0)))
    found, worst = (who.assess(whole).measure(rt.advantage).value for who in (rt.Relaxed(), rt.WorstCase()))
    assert found == pytest.approx(worst, rel=1e-9, abs=0)


def test_what_something_is_made_of_is_asked_and_not_its_class() -> None:
    assert (SEVERAL.parts, BEST.base, LISTED.settings, LISTED.weights) == (SEVERAL.inner, RUN, (RUN, QUERY), (1, 3))
    for one in (RUN, QUERY, *OTHERS, MATRIX):
        assert one.parts == one.settings == (one,)
        assert one.base is one
        assert one.runs is None
    assert together([RUN]) is RUN
    assert together([RUN, QUERY]) == rt.Ledger((RUN, QUERY))
    assert SEVERAL.steps == 300 + 3 + 4 + 3 + 1 + 1


def test_noise_that_is_scaled_divides_mu_by_the_factor() -> None:
    """mu of Gaussian releases is the root of the sum of 1 / noise^2."""
    noises, factor = (0.7, 2.0, 31.0), 1.7
    ledger = rt.Ledger(tuple(rt.Gaussian(noise) for noise in noises))
    mu = math.sqrt(sum(noise**-2 for noise in noises)) / factor
    assert rt.mu(ledger.scaled(factor)) == pytest.approx(mu, rel=1e-9, abs=0)
    assert rt.Selection(ledger, rt.Fixed(3)).scaled(factor).base == ledger.scaled(factor)
    for silent in (rt.Gaussian(0.0), rt.Ledger((rt.Gaussian(1.0), rt.Gaussian(0.0))), LISTED, *OTHERS[1:]):
        with pytest.raises(UnsupportedError):
            silent.scaled(factor)


@pytest.mark.parametrize(
    ("release", "name"),
    [
        (OTHERS[0], "sample_rate"),
        (MATRIX, "sample_rate"),
        (QUERY, "batch_size"),
        (SEVERAL, "noise_multiplier"),
        (LISTED, "steps"),
        (OTHERS[2], "noise_multiplier"),
        (QUERY, "dimension"),
        (QUERY, "mean_runs"),
    ],
)
def test_only_what_risk_is_known_to_move_with_may_be_changed(release: Mechanism, name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{type(release).__name__} has no {name}"):
        release.changed(name, 0.5)


def test_a_parameter_is_changed_where_it_lies() -> None:
    assert QUERY.changed("steps", 9) == rt.Gaussian(2.0, 9, 5)
    assert BEST.changed("steps", 9).base.steps == 9
    assert BEST.changed("mean_runs", 4).runs.mean == 4.0
    shuffled = rt.DPSGD(1.0, 0.1, 40, dataset_size=500, sampler=Shuffled(10))
    assert shuffled.changed("batch_size", 25) == rt.DPSGD(
        1.0, 0.05, 40, batch_size=25, dataset_size=500, sampler=Shuffled()
    )
    with pytest.raises(ParameterError, match="dataset_size"):
        RUN.changed("batch_size", 25)


def test_a_ledger_in_a_ledger_is_its_parts() -> None:
    """Hidden: draws that are kept counted as drawn anew there."""
    run = DPSGD(1.0, 0.1, 20, sampler=AllocatedOnce(10))
    nested, flat = Ledger((Ledger((run,)), run)), Ledger((run, run))
    assert nested == flat
    assert nested.conditions == flat.conditions


SHOWN = rt.DPSGD(1.1, 0.01, 1000)


@pytest.mark.parametrize(
    ("release", "line"),
    [
        (SHOWN, "DPSGD: noise multiplier 1.1, sample rate 0.01 (poisson), 1000 steps"),
        (rt.Laplace(2.0, 3), "Laplace: noise multiplier 2, 3 releases"),
        (rt.RandomisedResponse(0.1), "RandomisedResponse: flip probability 0.1, 1 release"),
        (rt.Guarantee(1.0, 1e-5), "Guarantee: stated epsilon 1, stated delta 1e-05, 1 release"),
        (rt.FilteredGaussian(2.0), "FilteredGaussian: budget 2"),
        (
            rt.Selection(rt.Gaussian(2.0), rt.Geometric(10)),
            "the best of several runs (geometric, 10 on average) of Gaussian: noise multiplier 2, 1 release",
        ),
        (OneOf((SHOWN, rt.Gaussian(2.0)), (1, 3)), "one of 2 settings, drawn by chance"),
    ],
)
def test_what_was_chosen_is_said(release: Mechanism, line: str) -> None:
    assert in_short(release) == line


def test_the_fourth_part_is_counted() -> None:
    line = in_short(rt.Ledger((SHOWN, rt.Gaussian(2.0), SHOWN, rt.Gaussian(3.0))))
    assert line.count("; then ") == 3
    assert line.endswith("1 more")
