"""The risk of the steps so far, while a loop runs, and a loop that stops at a risk.

A number for the screen costs milliseconds: it is one proven number, or an estimate where the proof takes longer, and it
is kept per number of steps. Where a loop stops follows, before its second step, from its noise, its draws and the
target alone. No output of the training takes part in it.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erf

from reticent.accountants.profile import WorstCaseProfile
from reticent.accountants.step_losses import QUICK
from reticent.calibration.spelling import target_of
from reticent.calibration.targets import Target
from reticent.facts.planned_steps import PLANNED_STEPS, PlannedSteps, planned, unplanned
from reticent.facts.steps import MOST_STEPS
from reticent.kernel import checks
from reticent.kernel.accountants.compose import Composed
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ParameterError, ReticentError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import advantage
from reticent.kernel.samplers import INDEPENDENT
from reticent.kernel.text import digits

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_OFTEN = 4.0  # draws of one record: below, a law may be too close to atomic for one look
_LEAST_NOISE = 0.05  # for the fast transform
_HALF = 0.5 / math.sqrt(2.0)
_MOST_PARTS = 4  # that are composed in time
_MOST_CHANGES = 32  # of noise or rate, each of which moves the stop
_FIRST_GUESS = 64  # steps: fewer cost more to compose


class BudgetSpent(ReticentError):  # noqa: N818  (it ends a loop, and nothing went wrong)
    """The step that was about to be taken would exceed the risk at which the loop is to stop.

    It leaves the loop before anything of that step is released. The ``with`` block of the watch takes it as its end.
    """


class NotKept(BudgetSpent, ParameterError):  # noqa: N818
    """The risk at which the loop is to stop was exceeded before the loop could be stopped."""


@dataclass(frozen=True)
class LiveRisk:
    """What the worst case can have learnt from the steps so far.

    Nothing in it depends on the records, as far as the faults of the watch allow: it may be printed and logged.

    Attributes:
        steps: noisy steps so far.
        advantage: of an attacker who knows this record and all others, not the noise and the draws, in [0, 1].
        claim: ``bound``: at most; ``estimate``: about, where the proof takes longer than a look may.
        planned_steps: how many there are to be at most; None where nothing is planned.
        planned_advantage: of all of them, which is what a certificate states; None where nothing is planned, or known
            of its noise, or more steps than planned were taken.
        stop_at: the risk at which the loop stops; empty where it does not.
        should_stop: whether no further step fits.
    """

    steps: int
    advantage: float
    claim: Claim
    planned_steps: int | None = None
    planned_advantage: float | None = None
    stop_at: str = ""
    should_stop: bool = False

    @property
    def guess(self) -> float:
        """What a coin flip about one record becomes, in [0.5, 1]."""
        return 0.5 + 0.5 * self.advantage

    def metrics(self) -> dict[str, float]:
        """Numbers by name, for loggers."""
        found = {"privacy/advantage": self.advantage, "privacy/steps": float(self.steps)}
        if self.planned_advantage is not None and self.planned_steps is not None:
            found |= {"privacy/planned_advantage": self.planned_advantage}
            found |= {"privacy/planned_steps": float(self.planned_steps)}
        return found

    def __str__(self) -> str:
        about = "at most" if self.claim.proven else "about"
        text = f"step {self.steps}: advantage {about} {digits(self.advantage, up=self.claim.proven or None)}"
        if self.planned_advantage is not None:
            text += f"; {digits(self.planned_advantage, up=True)} at the planned {self.planned_steps} steps"
        elif self.planned_steps is not None and self.steps > self.planned_steps:
            text += f"; more steps than the {self.planned_steps} that were planned"
        return text + (f"; stop: {self.stop_at}" if self.should_stop else "")


Log = Callable[[LiveRisk], Any]
"""What is called with the risk now and then."""


class Live:
    """The plan of a loop, its risk so far, and who wants to hear about it.

    Args:
        seen: the ledger as it would be if the loop ended now; None where nothing was released yet.
        planned_steps: steps there are to be at most, as somebody says.
        stop_at: a target such as ``advantage=0.1``.
        log: called with the risk once in ``every`` steps and at the end.
        every: see ``log``.

    Raises:
        ParameterError: one of them is malformed.
    """

    def __init__(
        self,
        seen: Callable[[], RunLedger | None],
        planned_steps: int | None,
        stop_at: str | None,
        log: Log | Sequence[Log] | None,
        every: int,
    ) -> None:
        self._seen, self._every = seen, checks.count(log_every=every)
        self._said = None if planned_steps is None else checks.count(planned_steps=planned_steps)
        if self._said is not None and self._said > MOST_STEPS:
            raise ParameterError("planned_steps", planned_steps, f"at most {MOST_STEPS}")
        self._target = None if stop_at is None else _target(stop_at)
        self._told = 0
        self._logs = () if log is None else tuple(log) if isinstance(log, Sequence) else (log,)
        if not all(callable(one) for one in self._logs):
            raise ParameterError("log", type(log).__name__, "a function of the risk, or a list of such functions")
        self.listens = self._target is not None or bool(self._logs)
        """Whether each step must be told at once."""
        self._steps, self._changes = 0, 0
        self._stop: int | None = None
        self._kind: Hashable = None
        self._unused = 0
        self._known: dict[Mechanism, tuple[float, Claim]] = {}

    @property
    def planned(self) -> PlannedSteps | None:
        """What the ledger says about the plan."""
        steps = [n for n in (self._said, self._stop) if n is not None]
        if not steps:
            return None
        stops = self._stop is not None and self._stop == min(steps)
        return PlannedSteps(steps=min(steps), stop_at=str(self._target) if stops else None)

    @property
    def stated(self) -> dict[str, PlannedSteps]:
        """The plan as a fact of a ledger."""
        return {} if self.planned is None else {PLANNED_STEPS.key: self.planned}

    @property
    def should_stop(self) -> bool:
        """Whether a further step would exceed the target; False without one."""
        return self._stop is not None and self._steps >= self._stop

    def before_step(self) -> None:
        """A step is about to be taken.

        Raises:
            BudgetSpent: it would exceed the target.
        """
        if self.should_stop:
            raise BudgetSpent(f"stopped at {self._target}: step {self._steps + 1} would exceed it")

    def after_step(self, kind: Hashable, unused: int) -> None:
        """A step was taken.

        Args:
            kind: on what the plan depends: its noise, its rate, and how it was drawn.
            unused: batches of the passes so far that no step used: of a pass that is broken off they never come.

        Raises:
            NotKept: the target was exceeded already, as noise, rate or draws are not what they were.
        """
        self._steps += 1
        if self._target is not None and (kind != self._kind or unused > self._unused):
            self._changes += kind != self._kind
            if self._changes > _MOST_CHANGES:
                raise NotKept(
                    "stop_at", str(self._target), "left out where noise or rate change all the time", shown=False
                )
            run = self._seen()
            most = 0 if run is None else steps_within(self._target, run)
            if most < self._steps:
                hint = "a risk that 1 step keeps to" if self._steps == 1 else f"a risk that {self._steps} steps keep to"
                hint += " with this noise, these batches and all that ran before"
                raise NotKept("stop_at", str(self._target), hint)
            self._kind, self._unused, self._stop = kind, unused, most
        if self._logs and (self._steps % self._every == 0 or self.should_stop):
            self.tell()

    def tell(self) -> None:
        """Call who wants to hear."""
        if self._logs and self._steps > self._told:
            risk, self._told = self.risk(), self._steps
            for log in self._logs:
                try:
                    log(risk)
                except Exception:  # a line is lost, and training goes on
                    traceback.print_exc()

    def risk(self) -> LiveRisk:
        """The risk of the steps so far: at most 1 where nobody can say more."""
        value, claim, after = 1.0, Claim.BOUND, None
        try:
            run = self._seen()
            value, claim = (0.0, Claim.BOUND) if run is None else self._read(unplanned(run))
            plan = None if run is None else planned(run)
            if run is not None and plan is not None and self._steps <= plan.steps:
                after = self._read(run)[0]
        except ReticentError:
            pass
        except Exception:  # training goes on
            traceback.print_exc()
        return LiveRisk(
            steps=self._steps,
            advantage=value,
            claim=claim,
            planned_steps=None if self.planned is None else self.planned.steps,
            planned_advantage=after,
            stop_at="" if self._target is None else str(self._target),
            should_stop=self.should_stop,
        )

    def _read(self, run: RunLedger) -> tuple[float, Claim]:
        mechanism = _in_whole_epochs(run.mechanism())
        if mechanism not in self._known:
            self._known[mechanism] = quick_advantage(mechanism)
        return self._known[mechanism]


def _in_whole_epochs(mechanism: Mechanism) -> Mechanism:
    """Under random allocation an epoch that was started counts in full, so what it reveals is computed once."""
    if not mechanism.sampler.allocated:
        return mechanism
    batches = mechanism.sampler.batches_of(mechanism.sample_rate)
    return mechanism.changed("steps", -(-mechanism.steps // batches) * batches)


def quick_advantage(mechanism: Mechanism) -> tuple[float, Claim]:
    """The worst case's advantage under add/remove in milliseconds, never below the truth where it is a bound.

    Args:
        mechanism: what a ledger reads itself as.

    Returns:
        The upper end of the proven enclosure, or of a simpler run that is at least as risky; an estimate where even
        that takes longer.
    """
    runs = mechanism.trainings
    if any(run.records > 1 for run in runs) or len(runs) > _MOST_PARTS:
        runs = (_riskier(runs),)
    release = together(runs) if runs else mechanism
    closed = all(run.sample_rate == 1.0 or run.sampler.in_passes or not run.noise_multiplier for run in runs)
    if closed or any(run.sampler.allocated for run in runs):  # which is computed once per epoch
        return WorstCase().assess(release).measure(advantage).value, Claim.BOUND
    composed = Composed(release, Neighbouring.ADD_REMOVE)
    drawn_often = sum(run.steps * run.sample_rate for run in runs) >= _OFTEN
    several = len(runs) > 1 or runs[0].sampler.displaces
    ends = composed.at_once() if several and drawn_often else composed.certified
    return (ends[1], Claim.BOUND) if ends is not None else _roughly(_riskier(runs))


def _roughly(run: DPSGD) -> tuple[float, Claim]:
    """An estimate by the fast transform; where that does not apply, a proven bound that is far from tight.

    Of T steps the advantage is at most T times that of one, and at most that of T steps with every record.
    """
    run = _as_poisson(run)
    noise, rate, steps = run.noise_multiplier, run.sample_rate, run.steps
    if not noise:
        return WorstCase().assess(run).measure(advantage).value, Claim.BOUND
    if noise > _LEAST_NOISE:
        with np.errstate(all="ignore"):
            profile = WorstCaseProfile(noise, rate, steps, Neighbouring.ADD_REMOVE, 0.0, QUICK)
        if profile.reliable:
            return min(max(float(profile.advantage()), 0.0), 1.0), Claim.ESTIMATE
    one, whole = rate * erf(_HALF / noise), erf(_HALF * math.sqrt(steps) / noise)
    return float(min(steps * one, whole, 1.0)), Claim.BOUND


def steps_within(target: Target, run: RunLedger) -> int:
    """The most steps, as many as ran among them, whose worst case keeps to the target if all go on like the last.

    Args:
        target: of the risk.
        run: what ran so far, at least one step.
    """
    bare = unplanned(run)
    *before, last = bare.segments

    def keeps(steps: int) -> bool:
        rest = steps - run.steps
        passes = last.passes
        batches = run.sampler.batches_per_epoch
        if passes is not None and rest > 0:
            passes = None if batches is None else passes + -(-rest * last.batches // batches)
        longer = last.model_copy(update={"steps": last.steps + rest, "passes": passes})
        whole = bare.model_copy(update={"segments": (*before, longer)})
        return target.met_by(target.of(WorstCase().assess(whole.mechanism())).value)

    low, high = run.steps - 1, max(_FIRST_GUESS, 2 * run.steps)
    while high < MOST_STEPS and keeps(high):
        low, high = high, min(4 * high, MOST_STEPS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _riskier(runs: Sequence[DPSGD]) -> DPSGD:
    """One run of equal steps, at least as risky as all of these: least noise, largest rate, all steps.

    Of several records of a person it is one record that moves the sum as far as all of them, drawn as soon as one is.
    """
    first, records = runs[0], max(run.records for run in runs)
    rate = max(run.sample_rate for run in runs)
    mixed = len({type(run.sampler) for run in runs}) > 1
    runs = [_as_poisson(run) for run in runs] if mixed else runs
    return replace(
        first,
        noise_multiplier=min(run.noise_multiplier for run in runs) / records,
        sample_rate=1.0 if mixed else 1.0 - (1.0 - rate) ** records,
        steps=sum(run.steps for run in runs),
        sampler=INDEPENDENT if mixed else first.sampler.in_batches(None),
        records_per_user=None,
    )


def _as_poisson(run: DPSGD) -> DPSGD:
    """A batch of fixed size displaces another record: a shift of 2, which half the noise is as well."""
    if not run.sampler.displaces:
        return run
    return replace(run, sampler=INDEPENDENT, noise_multiplier=0.5 * run.noise_multiplier)


def _target(text: str) -> Target:
    try:
        return target_of(text)
    except ParameterError as error:
        raise ParameterError("stop_at", text, error.allowed) from None
