"""Audits that stop when they know: evidence against a claimed curve that holds after every pair of scores.

The scores come in pairs, one of a run without the record and one of a run with it, in the order of the runs. Bets are
made on each pair by what came before it; under the claim no bet gains on the average, so the capital reaches 1 / a
with probability at most a, whenever somebody looks (RETICENT:audit-sequential, docs/theory/auditing.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile

import numpy as np

from reticent.auditing.joint import SMALLEST_P
from reticent.auditing.lower_bounds import LowerBound, Quantity, notes_on
from reticent.auditing.scores import Design, Scores
from reticent.auditing.thresholds import Bonferroni, Given, ThresholdRule
from reticent.auditing.verdict import Verdict, judge_p_values
from reticent.kernel import checks
from reticent.kernel.curves import GaussianTradeOff, TradeOff
from reticent.kernel.errors import ParameterError
from reticent.kernel.proofs.references import cite

THEOREM = "RETICENT:audit-sequential"
_RATES = (0.01, 0.05, 0.15, 0.35)
_STAKES = np.array([0.1, 0.3, 0.8])
"""Of the most that can be staked."""
_FIRST, _GROWTH, _BLOCK = 2, 1.1, 4096
_SLOPES = np.concatenate([-np.geomspace(500.0, 1e-3, 200), [0.0], np.geomspace(1e-3, 500.0, 200)])
_TAIL = np.geomspace(1e-6, 0.01, 60)
_ALPHAS = np.concatenate([_TAIL, np.linspace(0.015, 0.985, 195), 1.0 - _TAIL[::-1]])
_LADDER = np.append(0.0, 0.05 * 1.05 ** np.arange(155))
"""Values of mu or epsilon, up to 92, that are tested from below."""
_MOST = 690.0
"""Logarithm of the largest capital that is told."""
_LOOKS = "Holds however often one looks, and whenever one stops."
Profile = Callable[[np.ndarray], np.ndarray]
"""delta at slopes e^epsilon, for epsilon of either sign: the claim as its supporting lines."""


@dataclass(frozen=True)
class Bets:
    """What is staked on "member if above a threshold", for several supporting lines of a claim.

    Attributes:
        share: of all scores, how many lie above the threshold where the claim touches the line; shape (lines,).
        gains: logarithm of the factor of the capital, shape (lines, stakes, 4), for the outcomes (non-member above,
            member above) = (no, no), (no, yes), (yes, no), (yes, yes).
    """

    share: np.ndarray
    gains: np.ndarray

    @classmethod
    def against(cls, profile: Profile) -> Bets:
        """Bets against the claim TPR <= delta(epsilon) + e^epsilon FPR for all epsilon."""
        delta, slope = np.clip(profile(_SLOPES), 0.0, 1.0), np.exp(_SLOPES)
        lines = delta + slope * _ALPHAS[:, None]
        line, power = lines.argmin(axis=1), np.minimum(lines.min(axis=1), 1.0)
        at = [np.abs(side - rate).argmin() for rate in _RATES for side in (_ALPHAS, 1.0 - power)]
        a, b, s = _ALPHAS[at][:, None], power[at][:, None], slope[line[at]][:, None]
        stake = _STAKES * np.minimum(1.0 / b, 1.0 / (s * (1.0 - a)))
        gains = [np.log1p(s * stake * (a - x)) + np.log1p(stake * (y - b)) for x in (0, 1) for y in (0, 1)]
        return cls((0.5 * (a + b))[:, 0], np.stack(gains, axis=-1))

    def capital(self, scores: Scores, rule: ThresholdRule | None = None) -> np.ndarray:
        """Logarithm of the capital after each pair, which begins at 1 and is spread evenly over all bets.

        Under the claim it reaches 1 / a with probability at most a: RETICENT:audit-sequential.

        Args:
            rule: ``Given`` or ``Bonferroni`` fixes thresholds; by default they follow from the scores before.

        Raises:
            ParameterError: another rule, which looks at all scores.
        """
        return np.concatenate(list(self._grown(scores, rule)))

    def reach(self, needed: float, scores: Scores, rule: ThresholdRule | None) -> bool:
        """Whether the logarithm of the capital ever is so large; no pair is looked at after that."""
        return any(part.max(initial=0.0) >= needed for part in self._grown(scores, rule))

    def _grown(self, scores: Scores, rule: ThresholdRule | None) -> Iterator[np.ndarray]:
        """The capital, some pairs at a time."""
        pairs = min(len(scores.member), len(scores.non_member))
        others, members = scores.non_member[:pairs], scores.member[:pairs]
        at, end = fixed_thresholds(rule), 0 if rule else _FIRST
        capital, renewed = np.zeros(1), pairs if rule else end
        yield np.zeros(min(end, pairs))
        while (start := end) < pairs:
            if start >= renewed:
                at = self._usual(np.concatenate([others[:start], members[:start]]))
                renewed = max(start + 1, int(start * _GROWTH))
            end = min(pairs, start + _BLOCK, renewed)
            above = 2 * (others[start:end, None, None] > at) + (members[start:end, None, None] > at)
            each = capital + np.cumsum(self.gains[np.arange(len(self.share)), :, above], axis=0)
            flat = each.reshape(len(each), -1)
            most = flat.max(axis=1)
            yield most + np.log(np.exp(flat - most[:, None]).mean(axis=1))
            capital = each[-1]

    def _usual(self, before: np.ndarray) -> np.ndarray:
        """A threshold for each line, below the largest score where there is one: its share of those so far."""
        ordered = np.sort(before)
        place = np.ceil((1.0 - self.share) * len(ordered)).astype(int) - 1
        return ordered[np.clip(place, 0, max(0, int(np.searchsorted(ordered, ordered[-1])) - 1))][None]


def audit_claim_sequential(
    scores: Scores, curve: TradeOff, rule: ThresholdRule | None = None, confidence: float = 0.95
) -> Verdict:
    """Test the claim that no attack beats ``curve``, at every number of pairs of scores at once.

    Scores may be added, and this may be asked again, until the claim is refuted: all of it together is wrong with
    probability at most ``1 - confidence``.

    Args:
        scores: in the order of the runs; the first of the members and the first of the non-members are a pair.
        curve: the claimed trade-off curve.
        rule: ``Given`` or ``Bonferroni``; by default thresholds follow from earlier scores.
        confidence: in (0, 1).

    Raises:
        ParameterError: the scores are not of a run each, or another rule.
    """
    _refuse_at_once(scores)
    needed = -np.log(1.0 - checks.open_fraction(confidence=confidence))
    bets, guessing = Bets.against(curve.delta), Bets.against(GaussianTradeOff(0.0).delta)
    capital = bets.capital(scores, rule)
    others = guessing.capital(scores, rule), bets.capital(_perfect(scores, rule), rule)
    p_value, guessed, perfect = (max(SMALLEST_P, float(np.exp(-max(0.0, one.max())))) for one in (capital, *others))
    found = judge_p_values(p_value, guessed, perfect, confidence, (THEOREM,), (*notes_on(scores.design), _LOOKS))
    known = np.flatnonzero(capital >= needed)
    stopped = int(known[0]) + 1 if known.size else None
    reason = found.reason + (f" It was known after {stopped} of {len(capital)} pairs." if stopped else "")
    return replace(found, reason=reason, e_value=float(np.exp(min(capital[-1], _MOST))), stopped_at=stopped)


def sequential_mu(scores: Scores, rule: ThresholdRule | None = None, confidence: float = 0.95) -> LowerBound:
    """Lower bound on mu that holds at every number of pairs; arguments as for ``audit_claim_sequential``."""
    return _bound(scores, lambda mu: GaussianTradeOff(mu).delta, Quantity.MU, rule, confidence, None)


def sequential_epsilon(
    scores: Scores, delta: float, rule: ThresholdRule | None = None, confidence: float = 0.95
) -> LowerBound:
    """Lower bound on epsilon at ``delta``, in [0, 1), that holds at every number of pairs; the rest as before."""
    delta = checks.fraction(delta=delta)

    def profile(epsilon: float) -> Profile:
        corner = (1.0 - delta) / (1.0 + np.exp(epsilon))
        corners = np.array([[0.0, delta], [corner, 1.0 - corner], [1.0 - delta, 1.0]])
        return lambda slopes: (corners[:, 1, None] - np.exp(slopes) * corners[:, :1]).max(axis=0)

    return _bound(scores, profile, Quantity.EPSILON, rule, confidence, delta)


def _bound(
    scores: Scores,
    member: Callable[[float], Profile],
    quantity: Quantity,
    rule: ThresholdRule | None,
    confidence: float,
    delta: float | None,
) -> LowerBound:
    _refuse_at_once(scores)
    needed = -np.log(1.0 - checks.open_fraction(confidence=confidence))

    against = cache(lambda value: Bets.against(member(value)))  # asked again for what perfect leakage would give

    def end(of: Scores) -> float:
        """The last value below which, and at which, all are refuted: it is too large only if the first true one is."""
        refuted = takewhile(lambda value: against(value).reach(needed, of, rule), _LADDER.tolist())
        return max(refuted, default=0.0)

    value, fixed = end(scores), fixed_thresholds(rule)
    ceiling, words = max(value, end(_perfect(scores, rule))), "from earlier scores" if rule is None else str(rule)
    at = () if fixed is None else tuple(fixed.ravel().tolist())
    notes = (*notes_on(scores.design), _LOOKS)
    return LowerBound(quantity, value, ceiling, confidence, words, delta, at, cite(THEOREM), notes)


def fixed_thresholds(rule: ThresholdRule | None) -> np.ndarray | None:
    """Thresholds that a rule fixes, shape (thresholds, 1).

    Raises:
        ParameterError: it looks at all scores.
    """
    match rule:
        case None:
            return None
        case Given(threshold):
            return np.array([[threshold]])
        case Bonferroni(candidates):
            return np.array(candidates)[:, None]
    wanted = "given:T or bonferroni:T,.. for a sequential audit: others look at all scores"
    raise ParameterError("rule", str(rule), wanted)


def _perfect(scores: Scores, rule: ThresholdRule | None) -> Scores:
    """As many scores without a single error."""
    fixed, rng = fixed_thresholds(rule), np.random.default_rng(0)
    low, high = (0.0, 0.0) if fixed is None else (float(fixed.min()), float(fixed.max()))
    member, other = (1.0 + rng.random(len(side)) for side in (scores.member, scores.non_member))
    return Scores(high + member, low - other, design=scores.design)


def _refuse_at_once(scores: Scores) -> None:
    if scores.design is not Design.INDEPENDENT:
        wanted = "independent: one score of each run, in their order. Scores of one run come at once"
        raise ParameterError("design", str(scores.design), wanted)
