"""Risk numbers of whatever one has at hand: a curve, an assessment, a table of them, a mechanism, a run or its file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from reticent.kernel import risk
from reticent.kernel.adversaries import Assessment, WorstCase
from reticent.kernel.adversaries.base import refuse_one_sided
from reticent.kernel.curves import TradeOff
from reticent.kernel.errors import ParameterError
from reticent.kernel.risk.questions import MEASURES
from reticent.verbs.releases import mechanism_of
from reticent.verbs.risks import Assessments


def _of_anything(number: Callable[..., float]) -> Callable[..., float]:
    """``number``, which also takes what curves are read off.

    A mechanism, a ledger, a run or the path of one is answered by the worst case under add/remove, a table of one
    release if it has one row. The number is on the safe side, as in the table.
    """
    places = list(inspect.signature(number).parameters)

    @wraps(number)
    def read(what: Any, *args: float, **kwargs: float) -> float:
        if isinstance(what, TradeOff):
            return number(what, *args, **kwargs)
        at = inspect.signature(number).bind(what, *args, **kwargs).arguments
        return _read(number, _assessment(what), [at[name] for name in places[1:] if name in at])

    first = inspect.Parameter("what", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = list(inspect.signature(number).parameters.values())[1:]
    read.__signature__ = inspect.Signature([first, *rest], return_annotation=float)  # type: ignore[attr-defined]
    return read


def _read(number: Callable[..., float], assessment: Assessment, at: list[float]) -> float:
    if any(one.one_sided for one in MEASURES.values() if one.read is number):
        refuse_one_sided(assessment.adversary)
    return assessment.mu().value if number is risk.mu else assessment.measure(number, *at).value


def _assessment(what: Any) -> Assessment:
    if isinstance(what, Assessment):
        return what
    if not isinstance(what, Assessments):
        return WorstCase().assess(mechanism_of(what))
    if len(what) > 1:
        names = ", ".join(f"found[{one.adversary.name!r}]" for one in what)
        raise ParameterError("what", f"{len(what)} assessments", f"one assessment, such as {names}")
    return what[0]


advantage = _of_anything(risk.advantage)
bayes_security = _of_anything(risk.bayes_security)
delta_at_epsilon = _of_anything(risk.delta_at_epsilon)
epsilon_at_delta = _of_anything(risk.epsilon_at_delta)
mu = _of_anything(risk.mu)
ppv = _of_anything(risk.ppv)
recovered = _of_anything(risk.recovered)
secret_success = _of_anything(risk.secret_success)
success = _of_anything(risk.success)
tpr_at_fpr = _of_anything(risk.tpr_at_fpr)
