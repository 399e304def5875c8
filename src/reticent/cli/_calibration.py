"""What ``calibrate`` and ``compare`` share: targets and unknowns as types, and the search with its status line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from reticent._registry import parameters_of
from reticent.calibrate import (
    Advantage,
    BayesSecurity,
    Calibration,
    EpsilonAtDelta,
    Mu,
    Reconstruction,
    Success,
    Target,
    TprAtFpr,
    Unknown,
    unknowns_of,
)
from reticent.calibrate import calibrate as solve
from reticent.cli._options import is_terminal, mechanism_given, option
from reticent.errors import ParameterError
from reticent.mechanism import Mechanism, Neighbouring
from reticent.threat import Adversary, Method

_STAND_IN = {"sample_rate": 0.5}
_PLACES = {"success": "0.5", "tpr": "0.01", "epsilon": "1e-5", "reconstruction": "0.1"}
"""Where the risk of a target is read, in examples."""

TARGET = option(
    "target",
    str,
    "advantage=V, bayes-security=V, success=V@PRIOR, tpr=V@FPR, epsilon=V@DELTA, mu=V or reconstruction=V@BASELINE.",
)


def target_of(text: str | None) -> Target:
    """``--target`` as a type.

    Raises:
        ParameterError: the text is not ``NAME=VALUE`` or ``NAME=VALUE@PLACE`` with a known name.
    """
    plain: dict[str, type[Target]] = {"advantage": Advantage, "bayes-security": BayesSecurity, "mu": Mu}
    placed: dict[str, type[Target]] = {
        "success": Success,
        "tpr": TprAtFpr,
        "epsilon": EpsilonAtDelta,
        "reconstruction": Reconstruction,
    }
    name, _, rest = (text or "").partition("=")
    numbers = rest.split("@")
    if name in placed and len(numbers) == 1 and rest:
        raise ParameterError("target", text, f"told where it is read: write {name}={rest}@{_PLACES[name]}")
    wanted = 1 if name in plain else 2
    if (name not in plain and name not in placed) or len(numbers) != wanted or not rest:
        allowed = ", ".join([f"{n}=V" for n in plain] + [f"{n}=V@W" for n in placed])
        raise ParameterError("target", text, f"one of {allowed}")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ParameterError("target", text, "a name and decimal numbers") from None
    kind: Any = (plain | placed)[name]
    try:
        target: Target = kind(*values)
    except ParameterError as error:
        raise ParameterError("target", text, f"given with {error.name} as {error.allowed}") from None
    return target


def unknown_of(kind: type[Mechanism], text: str | None) -> tuple[str, Unknown]:
    """``--unknown`` as a type, and its name as typed; the first of the mechanism where nothing was typed."""
    kinds = unknowns_of(kind)
    name = next(iter(kinds)) if text is None else text
    if name not in kinds:
        raise ParameterError("unknown", name, "one of " + ", ".join(kinds))
    return name, kinds[name]


def release_of(kind: type[Mechanism], unknown: str, given: Mapping[str, Any]) -> Mechanism:
    """The release as far as it is known, with a stand-in for what is searched.

    Raises:
        ParameterError: what is searched is given too, or something else is missing.
    """
    field = unknown.replace("-", "_")
    batch = field == "batch_size"
    for name in (field, "sample_rate") if batch else (field,):
        if given.get(name) is not None:
            raise ParameterError(name, given[name], "left out, as it is what is searched")
    searched = next(p for p in parameters_of(kind) if p.name == ("sample_rate" if batch else field))
    value = searched.search.high if searched.search else searched.kind(1)
    return mechanism_given(kind, given, {searched.name: _STAND_IN.get(searched.name, value)})


def with_status(
    mechanism: Mechanism,
    unknown: Unknown,
    target: Target,
    who: Adversary,
    relation: Neighbouring | None,
    method: Method | None,
    json: bool,
) -> Calibration:
    """Calibrate, with a line that moves where somebody is watching."""
    how = method or Method.EXACT
    if json or not is_terminal():
        return solve(mechanism, unknown, target, who, relation, how)
    from rich.console import Console

    with Console(stderr=True).status(f"{who.name}: searching") as status:
        return solve(
            mechanism,
            unknown,
            target,
            who,
            relation,
            how,
            progress=lambda n: status.update(f"{who.name}: {n} evaluations"),
        )


def shown(value: float | None) -> str:
    return "inf" if value is None else f"{value:.6g}"


def strict(value: float) -> float | None:
    return value if math.isfinite(value) else None
