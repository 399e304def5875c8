"""A mechanism in one line says what was chosen, whatever it is."""

from __future__ import annotations

import pytest

import reticent as rt
from reticent.kernel.mechanisms import Mechanism
from reticent.mechanisms import OneOf
from reticent.mechanisms.short import in_short

RUN = rt.DPSGD(1.1, 0.01, 1000)


@pytest.mark.parametrize(
    ("release", "line"),
    [
        (RUN, "DPSGD: noise multiplier 1.1, sample rate 0.01 (poisson), 1000 steps"),
        (rt.Laplace(2.0, 3), "Laplace: noise multiplier 2, 3 releases"),
        (rt.RandomisedResponse(0.1), "RandomisedResponse: flip probability 0.1, 1 release"),
        (rt.Guarantee(1.0, 1e-5), "Guarantee: stated epsilon 1, stated delta 1e-05, 1 release"),
        (rt.FilteredGaussian(2.0), "FilteredGaussian: budget 2"),
        (
            rt.Selection(rt.Gaussian(2.0), rt.Geometric(10)),
            "the best of several runs (geometric, 10 on average) of Gaussian: noise multiplier 2, 1 release",
        ),
        (OneOf((RUN, rt.Gaussian(2.0)), (1, 3)), "one of 2 settings, drawn by chance"),
    ],
)
def test_what_was_chosen_is_said(release: Mechanism, line: str) -> None:
    assert in_short(release) == line


def test_the_fourth_part_is_counted() -> None:
    line = in_short(rt.Ledger((RUN, rt.Gaussian(2.0), RUN, rt.Gaussian(3.0))))
    assert line.count("; then ") == 3
    assert line.endswith("1 more")
