"""``calibrate``: the parameter at which an attacker gains at most what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from reticent.calibration.claims import Attack
from reticent.calibration.search import Edge
from reticent.calibration.steer import start_of, steering
from reticent.calibration.targets import Target
from reticent.calibration.unknowns import Unknown, of_release
from reticent.kernel.adversaries import Adversary, Assessment, Method, WorstCase
from reticent.kernel.adversaries.base import refuse_one_sided
from reticent.kernel.curves.enclosure import Interval
from reticent.kernel.errors import NumericalError, ReticentError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status, condition
from reticent.kernel.text import Brief, digits

_OFFSET = 0.2  # of the slack: how far on the safe side of an estimated root the claim is tried
_FAR_OFF = 0.02  # of how far what is claimed lies from the estimate: no answer need be closer to the edge
_UNSURE, _MOST_OFFSET = 0.02, 0.6  # of a step: by how much more it is made safer; and of the slack, the most of both
_STEERING = 2e-6
_MAX_CLAIMS = 30
_HURRIED = 4  # claims after which a search that did not settle halves
_FURTHEST = 3.0  # step of the log of a whole number
_UNMET = 1e-15  # least gap of a claim that misses the target
_FAR = 4.0  # a gap that is as good as infinite
_CERTAIN = 1.0 - 1e-15  # squared advantage that is inverted, at most
_STEERED = 1e-3  # gap of an estimate at its root: a larger one is a step between two estimates
_STEEPEST = 10.0  # slope of an estimate that is believed: a steeper one may be such a step
_DIGITS = 6  # that are shown


class UnreachableError(ReticentError):
    """No allowed value of ``unknown``, a parameter, meets ``target``.

    Attributes:
        closest: the value that comes closest.
        achieved: the risk there.
    """

    def __init__(self, unknown: Unknown, target: Target, closest: float, achieved: float) -> None:
        self.closest, self.achieved = closest, achieved
        super().__init__(
            f"{target} is out of reach: the closest is {unknown.name.replace('_', ' ')} {closest:.6g}, the end of its "
            f"range, where it is still {achieved:.6g}; allow another range, or change another parameter"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Calibration(Brief):
    """A value of one parameter that meets a target, and how close to the edge it is.

    Attributes:
        unknown: what was searched.
        target: what had to be reached.
        adversary: who attacks.
        neighbouring: between which data sets.
        method: how the adversary's curve was evaluated; the worst case is exact whatever was asked for.
        mechanism: the release at the answer.
        value: the answer: the least noise, or the largest rate, steps or batch size, up to ``slack``; 0 where no noise
            is needed, and ``achieved`` is what the attacker reaches without.
        achieved: the claimed risk at ``value``, which meets the target, and around the truth ``lower`` and
            ``upper``; a closed form has no enclosure and is repeated.
        slack: relative distance of ``value`` from the edge, estimated from the slope there; 0 if the end of
            the range meets the target, at most one unit for whole numbers. Of an edge that is not proven to be the
            only one (``Unknown.proven_edge``), it says how close this one is.
        evaluations: how often a curve or a profile was evaluated.
    """

    unknown: Unknown
    target: Target
    adversary: Adversary
    neighbouring: Neighbouring
    method: Method
    mechanism: Mechanism
    value: float
    achieved: Interval
    slack: float
    evaluations: int

    def _lines(self) -> list[str]:
        what = f"{self.unknown.name.replace('_', ' ')} {self.unknown.words(self.value, _DIGITS)}"
        who = f"{self.adversary.name} ({self.neighbouring}, {self.method})"
        achieved = digits(self.achieved.value, _DIGITS, up=self.target.grows_with_risk)
        return [f"{what} for {self.target} against {who}: {achieved} is achieved"]

    def assessment(self) -> Assessment:
        """The attacker at the answer, whose claim and conditions are those of what was achieved.

        A target may need conditions of its own, which the person who asks declares.
        """
        method = self.method if self.method in self.adversary.methods else self.adversary.methods[0]
        found = self.adversary.assess(self.mechanism, self.neighbouring, method)
        return found.under(*(condition(key, Status.DECLARED) for key in self.target.needs))

    def worst_case(self) -> Interval:
        """The same risk under the worst case at the answer: what was achieved, where the worst case was asked for."""
        if isinstance(self.adversary, WorstCase):
            return self.achieved
        return self.target.of(WorstCase().assess(self.mechanism, self.neighbouring, Method.EXACT))


def calibrate(
    mechanism: Mechanism,
    unknown: Unknown,
    target: Target,
    adversary: Adversary | None = None,
    neighbouring: Neighbouring | None = None,
    method: Method = Method.EXACT,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Find the least noise (or the largest sample rate, steps or batch size) that meets ``target``.

    The risk is monotone in each unknown, with a direction known by type, so the edge between safe and unsafe
    values is bracketed and closed in on by a secant in log(value) and log(equivalent mu). What is returned
    has been re-evaluated, by ``adversary.assess`` or by a bound that its curve keeps, and met the target;
    estimates only steer.

    Args:
        mechanism: the release; its value of the unknown does not matter.
        adversary: who attacks; None means the worst case.
        neighbouring: None means the adversary's own ``relation``.
        progress: called with the number of evaluations after each claim.

    Raises:
        UnreachableError: no allowed value meets the target; it says which comes closest.
        UnsupportedError: nothing is proven for this combination.
    """
    adversary = WorstCase() if adversary is None else adversary
    if target.one_sided:
        refuse_one_sided(adversary)
    unknown = of_release(unknown, mechanism)
    attack = Attack(adversary, neighbouring or adversary.relation, method)
    search = _Search(mechanism, unknown, target, attack, progress)
    value, achieved, slack = search.answer()
    if slack == 0.0 and unknown.may_be_none and search.met_without():
        value, achieved = 0.0, search.claim(0.0)
    found = Calibration(
        unknown=unknown,
        target=target,
        adversary=adversary,
        neighbouring=attack.neighbouring,
        method=search.evaluated,
        mechanism=unknown.put(mechanism, value),
        value=value,
        achieved=achieved,
        slack=slack,
        evaluations=search.evaluations,
    )
    told = isinstance(adversary, WorstCase) or method is not Method.EXACT
    return found if told else _no_more_than_told(found, search)


def _no_more_than_told(found: Calibration, search: _Search) -> Calibration:
    """``found``, or the answer of the worst case where that allows more: what keeps everybody below keeps this one."""
    if not found.target.met_by(found.worst_case().value):
        return found
    told = calibrate(found.mechanism, found.unknown, found.target, WorstCase(), found.neighbouring)
    better = told.value > found.value if found.unknown.risk_grows else told.value < found.value
    achieved = search.assessed(told.mechanism) if better else found.achieved
    if not (better and found.target.met_by(achieved.value)):
        return found
    evaluations = found.evaluations + told.evaluations
    return replace(found, mechanism=told.mechanism, value=told.value, achieved=achieved, evaluations=evaluations)


class _Search:
    """One calibration in progress; u = log(value), or its negative where risk falls with the value."""

    def __init__(
        self,
        mechanism: Mechanism,
        unknown: Unknown,
        target: Target,
        attack: Attack,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.mechanism, self.unknown, self.target, self.attack = mechanism, unknown, target, attack
        self.progress, self.steered_well = progress, False
        self.evaluated = Method.EXACT if isinstance(attack.adversary, WorstCase) else attack.method
        self.sign = 1.0 if unknown.risk_grows else -1.0
        self.wanted = math.log(target.equivalent_mu(target.value))
        self.slack, self.offset = unknown.slack, _OFFSET * unknown.slack
        self.evaluations = 0
        self.claims: dict[float, Interval] = {}
        self.bounded: set[Mechanism] | None = set()  # releases of which only a bound was taken; None: no more of these
        self.low, self.high = sorted(self.sign * math.log(x) for x in unknown.ends(mechanism))

    def value(self, u: float) -> float:
        """The parameter at ``u``; whole numbers are rounded."""
        low, high = self.unknown.ends(self.mechanism)
        value = min(max(math.exp(self.sign * u), low), high)
        return float(round(value)) if self.unknown.whole else value

    def claim(self, value: float) -> Interval:
        """The risk that is claimed at ``value``."""
        if value not in self.claims:
            release = self.unknown.put(self.mechanism, value)
            self.claims[value] = self._measured(release)
            self.evaluations += 1
            if self.progress is not None:
                self.progress(self.evaluations)
        return self.claims[value]

    def met_without(self) -> bool:
        """Whether the target is met without the parameter at all; not where nothing is known of that."""
        try:
            return self.target.met_by(self.claim(0.0).value)
        except ReticentError:
            return False

    def _measured(self, release: Mechanism) -> Interval:
        """By formula or at a point where that says the same; by a bound that keeps the target; else off the curve."""
        claimed = self.attack.claim(release, self.target)
        if claimed is not None:
            return claimed
        bound = None if self.bounded is None else self.attack.at_most(release, self.target)
        if self.bounded is not None and bound is not None and self.target.met_by(bound):
            self.bounded.add(release)
            return Interval(bound, bound, bound)
        return self.assessed(release)

    def assessed(self, release: Mechanism) -> Interval:
        """Read off the curve of ``assess``."""
        assessment = self.attack.adversary.assess(release, self.attack.neighbouring, self.attack.method)
        self.evaluated = assessment.method
        return self.target.of(assessment)

    def answer(self) -> tuple[float, Interval, float]:
        """The parameter, its risk with both ends, and the slack.

        Where only a bound on the curve was taken, the curve itself is asked at the answer. If it says less there by
        more than the slack, the edge of the bound is not that of the curve, which is then searched itself.
        """
        value, claimed, slack = self.whole() if self.unknown.whole else self.real()
        release = self.unknown.put(self.mechanism, value)
        if self.bounded is None or release not in self.bounded:
            return value, claimed, slack
        found = self.assessed(release)
        if not self.target.met_by(found.value):
            return value, replace(found, value=claimed.value), slack
        of_bound, of_curve = (math.log(self.target.equivalent_mu(one.value)) for one in (claimed, found))
        if of_bound - of_curve <= self.slack:
            return value, found, slack
        self.bounded, self.claims, self.slack = None, {value: found}, self.unknown.slack
        return self.answer()

    def gap(self, u: float) -> float:
        """log(equivalent mu) of the claim over that of the target; its sign follows the claim itself."""
        achieved = self.claim(self.value(u)).value
        gap = self._gap(math.log(self.target.equivalent_mu(achieved)))
        return min(gap, 0.0) if self.target.met_by(achieved) else max(gap, _UNMET)

    def _gap(self, log_mu: float) -> float:
        return min(max(log_mu - self.wanted, -_FAR), _FAR)

    def steered(self) -> tuple[float, float]:
        """(u, slope of the gap) near the edge, from estimates where there are any."""
        mu = math.exp(self.wanted)
        if self.attack.method is Method.PROVEN:  # sqrt(1 - rho^2T) instead of erf(sqrt(-T log rho))
            mu = 2.0 * math.sqrt(-math.log1p(-min(math.erf(mu / math.sqrt(8.0)) ** 2, _CERTAIN)))
        u, slope = start_of(self.mechanism, self.unknown, mu, self.attack.neighbouring)
        estimate = steering(self.mechanism, self.unknown, self.target, self.attack)
        u = min(max(u, self.low), self.high)
        if estimate is None:
            return u - self.offset, slope
        edge = Edge(lambda v: self._gap(estimate(math.exp(self.sign * v))), self.low, self.high, _STEERING)
        edge.find(u, slope)
        self.evaluations += len(edge.seen)
        if edge.root is not None:
            slope = edge.last_slope(slope)
            self.steered_well = slope < _STEEPEST
            return edge.root - self.offset, min(slope, _STEEPEST)
        root, gap = min((end for end in (edge.safe, edge.unsafe) if end is not None), key=lambda end: abs(end[1]))
        # A gap that is left is a step between two estimates: its slope says nothing.
        self.steered_well = abs(gap) < _STEERED
        return root - self.offset, edge.last_slope(slope) if self.steered_well else slope

    def real(self) -> tuple[float, Interval, float]:
        """The answer for a parameter that varies continuously: step to the safe side, then confirm."""
        u, slope = self.steered()
        edge = Edge(self.gap, self.low, self.high, 0.0)
        for turn in range(_MAX_CLAIMS):
            value = edge.probe(min(max(u, self.low), self.high))
            slope = edge.last_slope(slope)
            sure = slope if len(edge.seen) > 1 or self.steered_well else min(slope, 1.0)
            if edge.safe is not None and (edge.safe[0] >= self.high or -edge.safe[1] <= self.slack * sure):
                break
            if edge.safe is None and edge.unsafe is not None and edge.unsafe[0] <= self.low:
                self._unreachable(self.value(self.low))
            if edge.width <= self.slack:
                break
            step = value / slope
            if turn == 0 and self.steered_well:
                self.slack = max(self.slack, _FAR_OFF * abs(step))
            u -= step + min(self.offset + _UNSURE * abs(step), _MOST_OFFSET * self.slack)
            u = edge.guarded(u) if len(edge.seen) > 1 else u
            if turn >= _HURRIED:
                u = self._unhurried(edge, turn, u)
        if edge.safe is None:
            raise NumericalError(f"calibration of {self.unknown.name} to {self.target} did not settle")
        best, gap = edge.safe
        slack = 0.0 if best >= self.high else min(-gap / slope, edge.width)
        return self.value(best), self.claim(self.value(best)), slack

    def _unhurried(self, edge: Edge, turn: int, u: float) -> float:
        """Where secant steps have not settled: further beyond them each time, then halve every third time."""
        further = self.slack * 4.0 ** (turn - _HURRIED)
        if edge.unsafe is None:
            return u + further
        if edge.safe is None:
            return u - further
        return 0.5 * (edge.safe[0] + edge.unsafe[0]) if turn % 3 == 2 else u

    def whole(self) -> tuple[float, Interval, float]:
        """The answer for whole numbers: the last that meets the target, its successor does not.

        By secants; steps into what was not seen yet double at least, and a bracket is halved every third time.
        """
        ends = self.unknown.ends(self.mechanism)
        low, high = float(math.ceil(ends[0])), float(math.floor(ends[1]))
        u, slope = self.steered()
        edge, guess = Edge(self.gap, self.low, self.high, 0.0), min(max(float(math.floor(math.exp(u))), low), high)
        safe, unsafe, step = low - 1.0, high + 1.0, 1.0
        while unsafe - safe > 1.0:
            gap = edge.probe(math.log(guess))
            slope = edge.last_slope(slope)
            safe, unsafe = (guess, unsafe) if gap <= 0.0 else (safe, guess)
            both = safe >= low and unsafe <= high
            near = guess * math.exp(min(max(-gap / slope, -_FURTHEST), _FURTHEST))
            if both and len(edge.seen) % 3 == 0:
                near = 0.5 * (safe + unsafe)
            elif not both:
                near, step = (max if gap <= 0.0 else min)(near, guess + math.copysign(step, -gap)), 2.0 * step
            guess = min(max(float(math.floor(near)), safe + 1.0), unsafe - 1.0)
        if safe < low:
            self._unreachable(low)
        return safe, self.claim(safe), 0.0 if safe >= high else 1.0 / safe

    def _unreachable(self, value: float) -> None:
        raise UnreachableError(self.unknown, self.target, value, self.claim(value).value)
