"""What ``calibrate`` and ``compare`` share: targets and unknowns as types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reticent.calibration import BayesSecurity, MeanRuns, Unknown
from reticent.cli._options import mechanism_given
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.registry import parameters_of
from reticent.kernel.text import digits
from reticent.verbs.noise import unknown_called
from reticent.verbs.request import leave_out

_SEARCHED = ", as it is what is searched"
_STAND_IN = {"sample_rate": 0.5}

MEAN_RUNS = "mean-runs"


def unknown_of(known: Mapping[str, Unknown], text: str | None) -> str:
    """``--unknown``: one of these or the mean number of runs; by default the first."""
    return unknown_called(text, {**known, MEAN_RUNS: MeanRuns()})[0]


def release_of(kind: type[Mechanism], unknown: str, given: Mapping[str, Any]) -> Mechanism:
    """The release as far as it is known, with a placeholder for what is searched.

    Raises:
        ParameterError: what is searched is given too, or something else is missing.
    """
    if unknown == MEAN_RUNS:
        return mechanism_given(kind, runs_searched(given))
    field = unknown.replace("-", "_")
    batch = field == "batch_size"
    leave_out({name: given.get(name) for name in (field, *(["sample_rate"] if batch else []))}, _SEARCHED)
    searched = next(p for p in parameters_of(kind) if p.name == ("sample_rate" if batch else field))
    value = searched.search.high if searched.search else searched.kind(1)
    return mechanism_given(kind, given, {searched.name: _STAND_IN.get(searched.name, value)})


def runs_searched(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, with a placeholder for the mean number of runs, which is searched.

    Raises:
        ParameterError: it is given too, or there is no selection whose runs could be counted.
    """
    leave_out({"mean_runs": given.get("mean_runs")}, _SEARCHED)
    if given.get("selection") is None:
        raise ParameterError("selection", None, f"given with --unknown {MEAN_RUNS}", shown=False)
    return {**given, "mean_runs": 1.0}


def shown(value: float | None, target: str) -> str:
    """Six digits of an achieved risk, on the safe side; of Bayes security, of which more is better, downwards."""
    return "inf" if value is None else digits(value, 6, up=not target.startswith(BayesSecurity.name))
