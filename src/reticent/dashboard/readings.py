"""What the library says, read at the points that the page shows, and kept for the next question."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.adversaries.report import AssessmentRecord, Number, assessment_record
from reticent.certificates.document.sentences import Protected, persons, sentence
from reticent.kernel import risk
from reticent.kernel.adversaries import Adversary, Assessment, Method, WorstCase
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.adversaries.witness import Witness
from reticent.kernel.curves import TradeOff
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import MEASURES, Questions
from reticent.kernel.stopping import checkpoint
from reticent.mechanisms.codec import mechanism_record
from reticent.verbs import Assess, Assessments

FPRS = np.unique(np.concatenate([np.geomspace(1e-6, 0.1, 61), np.linspace(0.1, 1.0, 91)]))
EPSILONS = np.concatenate([np.linspace(0.0, 1.0, 33), np.linspace(1.0, 3.0, 25)[1:], np.linspace(3.0, 24.0, 64)[1:]])
PRIORS = np.linspace(0.01, 0.99, 99)
BLIND = np.maximum(PRIORS, 1.0 - PRIORS)
"""What a guess without the release gets right at these priors: it names what is likelier."""
_KEPT = 96
_BY_POINT = (*(one.field for one in MEASURES.values() if one.places), "mu_at_rates_above")
_NOTHING = Number(lower=None, value=None, upper=None)


@dataclass(frozen=True, slots=True)
class Points:
    """One curve in one view: what is claimed, and both ends of what is enclosed (None where nothing is)."""

    x: np.ndarray
    claimed: np.ndarray
    least: np.ndarray | None
    most: np.ndarray | None


_Case = tuple[Adversary, Mechanism, Neighbouring, Method]
_known: OrderedDict[_Case, Assessment] = OrderedDict()
_mutex = threading.Lock()


def assessed(
    adversary: Adversary,
    mechanism: Mechanism,
    relation: Neighbouring,
    method: Method = Method.EXACT,
    witness: Witness | None = None,
) -> Assessment:
    """One attacker against one release, with its curve; kept for the next question, unless it is given up half way.

    What a ledger saw of the run is not part of what is kept: with a ``witness`` each question is answered anew.

    Raises:
        UnsupportedError: nothing is proven for this combination.
        ParameterError: the attacker needs a number that the release does not state.
    """
    checkpoint()
    case = adversary, mechanism, relation, method
    if witness is not None:
        return assess_seen(*case, witness)
    if (known := _known.get(case)) is not None:
        return known
    found = assess_seen(*case, None)
    _ = found.notes  # known once the curve is composed
    with _mutex:
        _known[case] = found
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return found


def worst_case(mechanism: Mechanism, relation: Neighbouring | None) -> Assessment:
    """The worst case, under its own relation where none is stated."""
    return assessed(WorstCase(), mechanism, relation or WorstCase.relation)


def is_known(adversary: Adversary, mechanism: Mechanism, relation: Neighbouring, method: Method = Method.EXACT) -> bool:
    """Whether ``assessed`` would answer without computing anything."""
    return (adversary, mechanism, relation, method) in _known


def answer(request: Assess) -> Assessments:
    """Each attacker in turn, with the worst case of every relation used, of which none is above it.

    Raises:
        UnsupportedError: the worst case cannot be answered.
    """
    found = request.answerable(assessed)
    for reason in (reason for name, reason in found.skipped.items() if name == WorstCase.name):
        raise UnsupportedError(reason)
    return found


@lru_cache(maxsize=2 * _KEPT)
def points(assessment: Assessment, view: str) -> Points:
    """The curve at the points of a view: ``curves``, ``roc``, ``profile`` or ``guesses``."""
    truth, read = assessment.truth, _READERS[view]
    claimed = read(assessment.curve)
    if truth is None or (truth.optimistic is assessment.curve and truth.pessimistic is assessment.curve):
        return Points(_GRIDS[view], claimed, None, None)
    one = read(truth.optimistic)
    other = claimed if truth.pessimistic is assessment.curve else read(truth.pessimistic)
    return Points(_GRIDS[view], claimed, np.minimum(one, other), np.maximum(one, other))


@lru_cache(maxsize=_KEPT)
def record(assessment: Assessment, questions: Questions) -> AssessmentRecord:
    """Every number of one attacker, as ``reticent risk`` prints them."""
    return assessment_record(assessment, questions)


@lru_cache(maxsize=_KEPT)
def summary(assessment: Assessment) -> AssessmentRecord:
    """Only the advantage is read: enough for a sentence, and it costs a millisecond. The rest is empty."""
    measured = {
        "advantage": Number.of(assessment.measure(risk.advantage)),
        "bayes_security": _NOTHING,
        "mu": _NOTHING,
        **{name: {} for name in _BY_POINT},
    }
    return assessment_record(assessment, Questions(), measured)


def told(assessment: Assessment, records: Protected = None) -> str:
    """The sentence for people; ``records`` as ``protected`` says."""
    return str(sentence(summary(assessment), records))


def protected(mechanism: Mechanism) -> Protected:
    """Whom the numbers about a release protect: one record, a client, or so many records of a person."""
    return persons(mechanism_record(mechanism))


_GRIDS = {"curves": np.append(0.0, FPRS), "roc": FPRS, "profile": EPSILONS, "guesses": PRIORS}
_READERS: dict[str, Callable[[TradeOff], np.ndarray]] = {
    "curves": lambda curve: curve.beta(np.append(0.0, FPRS)),
    "roc": lambda curve: curve.power(FPRS),
    "profile": lambda curve: curve.delta(EPSILONS),
    "guesses": lambda curve: np.array([risk.success(curve, float(p)) for p in PRIORS]),
}
