"""What the library says, read at the points that the page shows, and kept for the next question."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent import risk
from reticent.adversaries import Adversary, Assessment, Method, WorstCase, assess_answerable
from reticent.adversaries.report import AssessmentRecord, Number, assessment_record
from reticent.adversaries.witness import Witness
from reticent.certificates.sentences import Protected, persons, sentence
from reticent.curves import TradeOff
from reticent.errors import UnsupportedError
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.mechanisms.codec import mechanism_record
from reticent.risk.questions import MEASURES, Questions
from reticent.stopping import checkpoint

FPRS = np.unique(np.concatenate([np.geomspace(1e-6, 0.1, 61), np.linspace(0.1, 1.0, 91)]))
EPSILONS = np.concatenate([np.linspace(0.0, 1.0, 33), np.linspace(1.0, 3.0, 25)[1:], np.linspace(3.0, 24.0, 64)[1:]])
PRIORS = np.linspace(0.01, 0.99, 99)
BLIND = np.maximum(PRIORS, 1.0 - PRIORS)
"""What a guess without the release gets right at these priors: it names what is likelier."""
QUESTIONS = Questions(priors=(0.5, 0.1))
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


@dataclass(frozen=True, slots=True)
class Answer:
    """Who could be answered, in order, and why the others could not."""

    assessments: tuple[Assessment, ...]
    skipped: dict[str, str]


_Case = tuple[Adversary, Mechanism, Neighbouring]
_assessed: OrderedDict[_Case, Assessment] = OrderedDict()
_composed: set[_Case] = set()
_mutex = threading.Lock()


def assessed(adversary: Adversary, mechanism: Mechanism, relation: Neighbouring) -> Assessment:
    """One attacker against one release; kept for the next question.

    Raises:
        UnsupportedError: nothing is proven for this combination.
        ParameterError: the attacker needs a number that the release does not state.
    """
    case = adversary, mechanism, relation
    if (known := _assessed.get(case)) is not None:
        return known
    result = adversary.assess(mechanism, relation, Method.EXACT)
    with _mutex:
        _assessed[case] = result
        while len(_assessed) > _KEPT:
            _composed.discard(_assessed.popitem(last=False)[0])
    return result


def composed(adversary: Adversary, mechanism: Mechanism, relation: Neighbouring) -> Assessment:
    """``assessed``, and its curve: some are composed only when they are read, which may be given up half way.

    Raises:
        UnsupportedError, ParameterError: as ``assessed``.
    """
    result, case = assessed(adversary, mechanism, relation), (adversary, mechanism, relation)
    if case not in _composed:
        _ = result.notes  # known once the curve is composed
        with _mutex:
            _composed.update({case} & _assessed.keys())
    return result


def worst_case(mechanism: Mechanism, relation: Neighbouring | None) -> Assessment:
    """The worst case, under its own relation where none is stated."""
    return assessed(WorstCase(), mechanism, relation or WorstCase.relation)


def is_known(adversary: Adversary, mechanism: Mechanism, relation: Neighbouring | None) -> bool:
    """Whether ``composed`` would answer without computing anything."""
    return (adversary, mechanism, relation or adversary.relation) in _composed


def answer(adversaries: tuple[Adversary, ...], mechanism: Mechanism, relation: Neighbouring | None) -> Answer:
    """Each attacker in turn, with the worst case of every relation used, of which none is above it.

    Raises:
        UnsupportedError: the worst case cannot be answered.
    """
    found, skipped = assess_answerable(mechanism, adversaries, relation, ask=_kept)
    for reason in (reason for name, reason in skipped.items() if name == WorstCase.name):
        raise UnsupportedError(reason)
    return Answer(found, skipped)


def _kept(
    adversary: Adversary, mechanism: Mechanism, relation: Neighbouring, method: Method, witness: Witness | None
) -> Assessment:
    checkpoint()
    return composed(adversary, mechanism, relation)


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
def record(assessment: Assessment) -> AssessmentRecord:
    """Every number of one attacker, as ``reticent risk`` prints them."""
    return assessment_record(assessment, QUESTIONS)


@lru_cache(maxsize=_KEPT)
def summary(assessment: Assessment) -> AssessmentRecord:
    """Only the advantage is read: enough for a sentence, and it costs a millisecond. The rest is empty."""
    measured = {
        "advantage": Number.of(assessment.measure(risk.advantage)),
        "bayes_security": _NOTHING,
        "mu": _NOTHING,
        **{name: {} for name in _BY_POINT},
    }
    return assessment_record(assessment, QUESTIONS, measured)


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
