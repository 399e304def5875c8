"""How many runs a target leaves room for: the answer is assessed anew, and the ends are those of one run."""

from __future__ import annotations

import numpy as np
import pytest

import reticent as rt
from reticent.calibration import Advantage, MeanRuns, UnreachableError, calibrate
from reticent.kernel.accountants import compose
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.pairs import Neighbouring
from tests.cli.calling import run

pytestmark = pytest.mark.usefixtures("coarse")

RUN = rt.Gaussian(4.0)


@pytest.mark.parametrize("law", [rt.Geometric(1), rt.Poisson(1), rt.Fixed(1)], ids=lambda law: law.name)
def test_the_answer_meets_the_target_and_a_little_more_does_not(law) -> None:
    target = Advantage(0.15)
    found = calibrate(rt.Selection(RUN, law), MeanRuns(), target)
    assert type(found.mechanism.runs) is type(law)
    assert found.mechanism.runs.mean == found.value > 1.0
    risk = rt.WorstCase().assess(found.mechanism).measure(rt.advantage).value
    assert risk <= 0.15
    assert found.achieved.value == pytest.approx(risk, rel=1e-9, abs=0)
    more = found.value + 1.0 if isinstance(law, rt.Fixed) else 1.001 * found.value
    over = rt.Selection(RUN, type(law)(more))
    assert rt.WorstCase().assess(over).measure(rt.advantage).value > 0.15
    assert not found.unknown.proven_edge


def test_a_target_that_one_run_misses_is_out_of_reach() -> None:
    with pytest.raises(UnreachableError, match="the closest is mean runs 1"):
        calibrate(rt.Selection(RUN, rt.Geometric(5)), MeanRuns(), Advantage(0.05))


def test_only_a_selection_has_runs() -> None:
    with pytest.raises(UnsupportedError, match="selects no best run"):
        calibrate(RUN, MeanRuns(), Advantage(0.15))
    with pytest.raises(ParameterError):
        rt.calibrate(RUN, unknown="mean_run", advantage=0.1)


def test_more_runs_of_a_poisson_law_never_show_less() -> None:
    """docs/theory/selection.md has the proof for this law; for geometric ones it is seen here, not proven."""
    epsilons = np.array([0.0, 0.3, 0.8])
    for law in (rt.Poisson, rt.Geometric):
        deltas = [
            compose(rt.Selection(RUN, law(mean)), Neighbouring.ADD_REMOVE).pessimistic.delta(epsilons)
            for mean in (1.0, 2.0, 5.0, 20.0)
        ]
        assert np.all(np.diff(deltas, axis=0) > 0.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--unknown", "mean-runs", "--selection", "fixed"), "a value beyond it is not ruled out"),
        (("--unknown", "mean-runs"), "--selection must be given with --unknown mean-runs"),
        (("--unknown", "mean-runs", "--selection", "fixed", "--mean-runs", "3"), "it is what is searched"),
    ],
)
def test_on_the_command_line(words, said, capsys) -> None:
    code, out, err = run(capsys, "calibrate", "gaussian", "--noise-multiplier", 4, "--target", "advantage=0.2", *words)
    assert said in " ".join((out + err).split())
    assert (code == 0) == out.startswith("mean runs:") == ("ruled" in said)
