"""What an audit can bound from below, and the list that ``reticent audit`` goes through."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from reticent.auditing.lower_bounds import (
    LowerBound,
    audit_advantage,
    audit_epsilon,
    audit_epsilon_if_gaussian,
    audit_mu,
)
from reticent.auditing.one_run import Guesses, audit_epsilon_one_run, audit_mu_one_run
from reticent.auditing.scores import Design, Scores
from reticent.auditing.sequential import sequential_epsilon, sequential_mu
from reticent.auditing.thresholds import ThresholdRule
from reticent.kernel.registry import Registry


@dataclass(frozen=True, slots=True)
class Asked:
    """What an audit fixed before it looked at its scores.

    Attributes:
        delta: for epsilon, strictly between 0 and 1.
        rule: how thresholds are chosen; None is the default of the statistic.
        guesses: for one run; None is the default of the statistic.
        confidence: of each statement, in (0, 1).
    """

    delta: float = 1e-5
    rule: ThresholdRule | None = None
    guesses: Guesses | None = None
    confidence: float = 0.95


class Statistic(ABC):
    """One lower bound on what a release gives away.

    Attributes:
        name: of the statistic.
        design: the only design of scores that it can read; None where each will do.
        sequential: whether it holds at every number of scores, so that who looked may stop.
    """

    name: ClassVar[str]
    design: ClassVar[Design | None] = None
    sequential: ClassVar[bool] = False

    @abstractmethod
    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        """The bound, which holds with probability ``asked.confidence`` over repetitions of the audit.

        Raises:
            ParameterError: what was asked is outside its domain.
        """


STATISTICS: Registry[Statistic] = Registry("statistic", "reticent.statistics", Statistic)
"""In the order in which a report shows them."""


@STATISTICS.add
class Epsilon(Statistic):
    """Epsilon at ``delta``, by error rates at thresholds."""

    name = "epsilon"

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return audit_epsilon(scores, asked.delta, asked.rule, asked.confidence)


@STATISTICS.add
class Mu(Statistic):
    """mu of GDP, by error rates at thresholds."""

    name = "mu"

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return audit_mu(scores, asked.rule, asked.confidence)


@STATISTICS.add
class Advantage(Statistic):
    """The advantage, by error rates at thresholds."""

    name = "advantage"

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return audit_advantage(scores, asked.rule, asked.confidence)


@STATISTICS.add
class EpsilonIfGaussian(Statistic):
    """Epsilon of the least Gaussian curve that the scores do not refute."""

    name = "epsilon-if-gaussian"

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return audit_epsilon_if_gaussian(scores, asked.delta, asked.rule, asked.confidence)


@STATISTICS.add
class EpsilonOneRun(Statistic):
    """Epsilon by guesses in one run, whatever the dependence between scores: the larger of two bounds."""

    name = "epsilon-one-run"
    design = Design.ONE_RUN

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return audit_epsilon_one_run(scores, asked.delta, asked.guesses, asked.confidence)


@STATISTICS.add
class MuOneRun(Statistic):
    """mu by guesses in one run."""

    name = "mu-one-run"
    design = Design.ONE_RUN

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return audit_mu_one_run(scores, asked.guesses, asked.confidence)


@STATISTICS.add
class EpsilonSequential(Statistic):
    """Epsilon at every number of pairs of scores."""

    name = "epsilon-sequential"
    sequential = True

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return sequential_epsilon(scores, asked.delta, asked.rule, asked.confidence)


@STATISTICS.add
class MuSequential(Statistic):
    """mu at every number of pairs of scores."""

    name = "mu-sequential"
    sequential = True

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return sequential_mu(scores, asked.rule, asked.confidence)
