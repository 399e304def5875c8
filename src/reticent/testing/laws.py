"""What holds for every leaf of a kind: functions that take one, and raise ``AssertionError`` where it does not.

A new curve, pair, route, attacker, sampler or mechanism is asked all laws of its kind by one call, also from another
package. What a law says, no test of a leaf needs to say. A law knows no leaf by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice

import numpy as np

from reticent.facts.base import Fact, Seen
from reticent.kernel import risk
from reticent.kernel.accountants import Composed, compose
from reticent.kernel.accountants.route import Route
from reticent.kernel.accountants.steps import Known, Step, Steps
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.curves import TradeOff
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Pair, Part
from reticent.kernel.pairs.base import Ends
from reticent.kernel.proofs import CONDITIONS, Claim
from reticent.kernel.proofs.references import THEOREMS
from reticent.kernel.registry import flat, gathered
from reticent.kernel.samplers import Sampler
from reticent.mechanisms.codec import mechanism_of, mechanism_record
from reticent.mechanisms.short import in_short
from reticent.records.ledger import RunLedger

NEAR = 1e-10
"""Rounding of a logarithm: relative error of a rate, or of the logarithm where that is large."""
SIZES = np.array([0.0, 0.05, 0.3, 1.0, 3.0, 8.0])
"""Thresholds, in nats."""


def slack(log: np.ndarray) -> np.ndarray:
    """How far a logarithm may be off.

    Args:
        log: of rates.
    """
    return NEAR * np.maximum(1.0, np.abs(np.where(np.isfinite(log), log, 0.0)))


def at_most(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether left <= right for logarithms, up to rounding.

    Args:
        left: logarithms.
        right: as many.
    """
    return bool(np.all((left <= right + slack(right)) | (left <= -1e4)))


def same(left: np.ndarray, right: np.ndarray, relative: float = 1e-10, absolute: float = 0.0) -> bool:
    """Whether two arrays of numbers are one.

    Args:
        left: numbers.
        right: as many.
        relative: how far they may differ, as a share.
        absolute: the same as a number.
    """
    with np.errstate(invalid="ignore"):  # infinities are one where they are equal
        return bool(np.all((left == right) | (np.abs(left - right) <= relative * np.abs(right) + absolute)))


# Curves


def rates(curve: TradeOff, log_alpha: np.ndarray) -> None:
    """The type II error falls, is at most 1 - alpha, and is the complement of the power.

    Args:
        curve: any.
        log_alpha: increasing, below 0.
    """
    beta, power = curve.log_beta(log_alpha), curve.log_power(log_alpha)
    assert not np.any(np.isnan(beta) | np.isnan(power))
    assert at_most(beta[1:], beta[:-1])
    assert at_most(power[:-1], power[1:])
    assert at_most(beta, np.log(-np.expm1(log_alpha)))
    assert at_most(log_alpha, power)
    assert same(np.exp(beta) + np.exp(power), np.ones(len(log_alpha)))


def convex(curve: TradeOff, log_alpha: np.ndarray, share: float) -> None:
    """No chord lies below the curve.

    Args:
        curve: any.
        log_alpha: increasing, below 0.
        share: of the left end of a chord, in (0, 1).
    """
    log_alpha = np.minimum(log_alpha, -1e-5)  # nearer to 1 the mean of two rates loses its digits here
    low, high = log_alpha[:-1], log_alpha[1:]
    middle = np.logaddexp(np.log(share) + low, np.log1p(-share) + high)
    chord_power = np.logaddexp(np.log(share) + curve.log_power(low), np.log1p(-share) + curve.log_power(high))
    assert at_most(chord_power, curve.log_power(middle))
    chord_beta = np.logaddexp(np.log(share) + curve.log_beta(low), np.log1p(-share) + curve.log_beta(high))
    assert at_most(curve.log_beta(middle), chord_beta)


def thresholds(curve: TradeOff, ratio: np.ndarray) -> None:
    """The rates of likelihood-ratio tests are complements, move one way, and lie on the curve.

    Args:
        curve: any.
        ratio: logs of thresholds, increasing.
    """
    found = curve.errors(ratio)
    assert same(np.exp(found.fpr) + np.exp(found.tnr), np.ones(len(ratio)))
    assert same(np.exp(found.fnr) + np.exp(found.tpr), np.ones(len(ratio)))
    assert at_most(found.fpr[1:], found.fpr[:-1])
    assert at_most(found.fnr[:-1], found.fnr[1:])
    # beta is steep in alpha where alpha is tiny: bracket it by moving alpha by its own rounding.
    room = slack(found.fpr)
    inside = np.isfinite(found.fpr) & (found.fpr < -1e-4)
    assert at_most(curve.log_beta(np.minimum(found.fpr + room, 0.0))[inside], found.fnr[inside])
    assert at_most(found.fnr[inside], curve.log_beta(np.minimum(found.fpr - room, 0.0))[inside])


def inverse(curve: TradeOff, log_alpha: np.ndarray) -> None:
    """The other direction is the inverse function.

    Args:
        curve: any.
        log_alpha: increasing, below 0.
    """
    other, beta = curve.reversed, curve.log_beta(log_alpha)
    assert same(other.reversed.log_beta(log_alpha), beta)
    usable = np.isfinite(beta) & (beta < -1e-6)
    back = other.log_beta(beta[usable])
    assert at_most(other.log_beta(np.minimum(beta + slack(beta), 0.0)[usable]), log_alpha[usable])
    room, finite = 10.0 * slack(back), np.isfinite(back)
    reached = curve.log_beta(np.minimum(back + room, 0.0))
    assert at_most(reached[finite], beta[usable][finite])
    start = curve.log_beta(-np.inf)
    strict = finite & (beta[usable] < start - 1e-6) & (back - room < 0)
    again = curve.log_beta(np.minimum(back - room, 0.0))
    assert at_most(beta[usable][strict], again[strict])


def tangents(curve: TradeOff, log_alpha: np.ndarray, ratio: np.ndarray) -> None:
    """power <= delta(e) + e^e alpha for every alpha and real e, with equality at the threshold e; delta falls.

    Args:
        curve: any.
        log_alpha: increasing, below 0.
        ratio: logs of thresholds, increasing.
    """
    log_delta, power = curve.log_delta(ratio), curve.log_power(log_alpha)[:, None]
    assert at_most(power, np.logaddexp(log_delta, ratio + log_alpha[:, None]))
    found = curve.errors(ratio)
    assert same(np.logaddexp(log_delta, ratio + found.fpr), found.tpr, 1e-9, 1e-9)
    assert at_most(log_delta[1:], log_delta[:-1])


def directions(curve: TradeOff, ratio: np.ndarray) -> None:
    """delta(-e) = 1 - e^-e + e^-e delta_reversed(e).

    Args:
        curve: any.
        ratio: logs of thresholds.
    """
    e = np.abs(ratio)
    right = -np.expm1(-e) + np.exp(-e) * curve.reversed.delta(e)
    assert same(curve.delta(-e), right, 1e-10, 1e-300)


def ends(curve: TradeOff) -> None:
    """What is known at the rates 0 and 1, and at threshold 0: there delta is the total variation.

    Args:
        curve: any.
    """
    assert curve.beta(1.0) == 0.0
    assert math.isclose(float(curve.power(1.0)), 1.0, rel_tol=1e-12)
    assert curve.beta([[0.0, 1.0]]).shape == (1, 2)
    assert same(curve.power(0.0), np.exp(curve.errors(np.inf).tpr), 0.0, 1e-13)
    assert curve.errors(np.inf).fpr == -np.inf
    assert curve.errors(-np.inf).fnr == -np.inf
    assert np.array_equal(curve([0.0, 0.3, 1.0]), curve.beta([0.0, 0.3, 1.0]))
    assert np.all(np.diff(curve.beta([0.0, 1e-300, 1e-30, 1e-3])) <= 1e-15)
    found, advantage = curve.errors(0.0), curve.delta(0.0)
    assert same(advantage, curve.reversed.delta(0.0), 1e-10, 1e-300)
    assert same(advantage, 1.0 - np.exp(found.fpr) - np.exp(found.fnr), 1e-9, 1e-13)
    alphas = np.linspace(0.0, 1.0, 301)
    most = np.max(1.0 - alphas - curve.beta(alphas))
    assert advantage - 1.0 / 300.0 <= most <= advantage + 1e-13


def curve(one: TradeOff, rng: np.random.Generator) -> None:
    """All laws of curves, at random rates and thresholds.

    Args:
        one: any.
        rng: where it is asked.
    """
    log_alpha = np.sort(np.append(rng.uniform(-690.0, -1e-9, 10), np.log(rng.uniform(1e-6, 1.0 - 1e-9, 10))))
    ratio = np.sort(np.concatenate([[0.0], rng.uniform(-20.0, 20.0, 10), 10.0 ** rng.uniform(-9.0, 0.0, 10)]))
    rates(one, log_alpha)
    convex(one, log_alpha, rng.uniform(0.01, 0.99))
    thresholds(one, ratio)
    inverse(one, log_alpha)
    tangents(one, log_alpha, ratio)
    directions(one, ratio)
    ends(one)


# Pairs


def pair(one: Pair) -> None:
    """What a pair says agrees: its curve, losses on a grid, mixture, largest losses, mu, a composition of one.

    Args:
        one: of any kind; of a pair without a curve little is known.
    """
    curve, below = one.curve, one.curve_below
    assert one.log_absent < 0.0
    if curve is None or below is None:
        return
    assert curve.delta(0.0) <= -math.expm1(one.log_absent) * (1.0 + 1e-9) + 1e-15
    assert np.all(below.delta(SIZES) <= curve.delta(SIZES) * (1.0 + 1e-9))
    assert np.all(one.rough.curve.delta(SIZES) <= 1.05 * curve.delta(SIZES) + 1e-6)  # type: ignore[union-attr]
    on_a_grid(one, np.linspace(-4.0, 4.0, 161))
    for way, largest in zip((curve, curve.reversed), one.largest_losses, strict=True):
        if math.isfinite(largest):
            assert way.delta(largest * (1.0 + 1e-9)) <= 1e-12
    by_quadrature(one)
    for mu, exact in ((one.mu, True), (one.unsampled_mu, False)):
        if mu is not None:
            for way in (curve, curve.reversed):
                told = np.array([_gaussian_delta(mu, e) for e in SIZES])
                assert np.all(way.delta(SIZES) <= told * (1.0 + 1e-9) + 1e-13)
                assert not exact or same(way.delta(SIZES), told, 1e-9, 1e-14)
    alone(one)


def on_a_grid(one: Pair, grid: np.ndarray) -> None:
    """No mass is lost, losses lie in their cells, and what lies beyond a point of the grid is delta there.

    Args:
        one: with a curve.
        grid: losses, increasing.
    """
    masses = one.losses(grid)
    assert masses is not None
    assert one.curve is not None
    for mass, side in ((masses.p, 0), (masses.q, 1)):
        assert math.isclose(float(mass.sum()) + masses.below[side] + masses.above[side], 1.0, rel_tol=1e-9)
    room = 1e-9 * masses.q + 1e-15
    assert np.all(masses.q <= np.exp(grid[1:]) * masses.p + room)
    assert np.all(masses.q >= np.exp(grid[:-1]) * masses.p - room)
    beyond = [
        np.cumsum(np.append(mass, top)[::-1])[::-1]
        for mass, top in zip((masses.p, masses.q), masses.above, strict=True)
    ]
    assert same(beyond[1] - np.exp(grid) * beyond[0], one.curve.delta(grid), 1e-7, 1e-10)
    assert float(masses.connected() @ np.exp(grid)) >= float(masses.q.sum()) * (1.0 - 1e-9)


def by_quadrature(one: Pair) -> None:
    """Where it is a mixture of normal laws, its curve is that of the densities, and its nodes have their masses.

    Args:
        one: with a curve.
    """
    law = one.mixture
    if law is None or one.curve is None:
        return
    s, far = law.noise_multiplier, law.shifts[-1]
    x = np.linspace(-far - 12.0 * s, far + 12.0 * s, 40_001)
    dx = float(x[1] - x[0])
    chances = (1.0 - math.fsum(law.weights), *law.weights)
    moved = zip(chances, (0.0, *law.shifts), strict=True)
    present = sum(c * np.exp(-0.5 * ((x - m) / s) ** 2) for c, m in moved) * dx / (s * math.sqrt(2.0 * math.pi))
    rest = np.exp(-0.5 * (x / s) ** 2) * dx / (s * math.sqrt(2.0 * math.pi))
    absent = present[::-1] if law.antipodal else rest
    for way, one_law, other in ((one.curve, present, absent), (one.curve.reversed, absent, present)):
        seen = [float(np.maximum(one_law - math.exp(e) * other, 0.0).sum()) for e in SIZES]
        assert same(way.delta(SIZES), np.array(seen), 1e-5, 1e-9)
    nodes = law.nodes(x, dx)
    assert same(nodes.weight, absent, 1e-9, 1e-300)
    assert same(nodes.tilted(1.0), present, 1e-9, 1e-300)


def alone(one: Pair) -> None:
    """One release composed is the worse direction of its curve; several at once are as many one by one.

    Args:
        one: with a curve.
    """
    single = compose(Known((Part(one, 1, ()),)), Neighbouring.ADD_REMOVE)
    assert one.curve is not None
    assert one.curve_below is not None
    below, above = (np.maximum(c.delta(SIZES), c.reversed.delta(SIZES)) for c in (one.curve_below, one.curve))
    assert np.all(single.optimistic.delta(SIZES) <= above * (1.0 + 1e-6) + 1e-12)
    assert np.all(single.pessimistic.delta(SIZES) >= below * (1.0 - 1e-6) - 1e-12)
    assert same(single.pessimistic.delta(SIZES), above, 1e-4, 1e-9)
    whole, parts = (
        compose(Known(tuple(Part(one, count, ()) for count in counts)), Neighbouring.ADD_REMOVE)
        for counts in ((4,), (1, 3))
    )
    for first, second in ((whole, parts), (parts, whole)):
        assert np.all(first.optimistic.delta(SIZES) <= second.pessimistic.delta(SIZES) * (1.0 + 1e-9) + 1e-12)
    low, high = Composed(Known((Part(one, 4, ()),)), Neighbouring.ADD_REMOVE).certified or (0.0, 1.0)
    assert low <= float(whole.pessimistic.delta(0.0)) * (1.0 + 1e-9)
    assert float(whole.optimistic.delta(0.0)) * (1.0 - 1e-9) <= high


def _gaussian_delta(mu: float, epsilon: float) -> float:
    if mu == 0.0:
        return 0.0
    a, b = (0.5 * math.erfc(-z / math.sqrt(2.0)) for z in (mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu))
    return a - math.exp(epsilon) * b


# Routes


def route(one: Route, steps: Steps, truth: Mapping[float, Ends], others: Sequence[Route] = ()) -> None:
    """It encloses what is known, overlaps other routes, and says as much of steps at once as one by one.

    Args:
        one: with some accuracy.
        steps: that it serves.
        truth: (lower, upper) around delta at each threshold, H0 = absent; at e < 0 of the other direction, at -e.
        others: routes that serve these steps too.
    """
    assert one.serves(steps)
    found = one.answer(steps)
    for epsilon, (low, high) in truth.items():
        above, below = (
            [float((c if epsilon >= 0.0 else c.reversed).delta(abs(epsilon))) for c in side]
            for side in (found.above, found.below)
        )
        assert max(below) <= high * (1.0 + 1e-9) + 1e-12, (epsilon, max(below), high)
        assert low * (1.0 - 1e-9) - 1e-12 <= min(above), (epsilon, low, min(above))
    apart = [Step(step.pair, 1) for step in steps for _ in range(min(step.count, 2))]
    apart += [Step(step.pair, step.count - 2) for step in steps if step.count > 2]
    answers = [found, *(other.answer(steps) for other in others), *([one.answer(apart)] if one.serves(apart) else [])]
    for first in answers:
        for second in answers:
            for over in first.above:
                for under in second.below:
                    assert np.all(under.delta(SIZES) <= over.delta(SIZES) * (1.0 + 1e-9) + 1e-12)
                    assert np.all(under.reversed.delta(SIZES) <= over.reversed.delta(SIZES) * (1.0 + 1e-9) + 1e-12)


# Attackers


def attacker(one: Adversary, mechanism: Mechanism, neighbouring: Neighbouring | None = None) -> None:
    """At most the worst case, by curve, rates, epsilon and mu; its ends in order; on theorems and conditions that hold.

    Args:
        one: any.
        mechanism: that it answers for.
        neighbouring: between which data sets; its own relation where none is stated.

    Raises:
        UnsupportedError: it does not.
    """
    relation = neighbouring or one.relation
    found = one.assess(mechanism, relation, one.methods[0])
    worst = WorstCase().assess(mechanism, found.neighbouring)
    assert found.theorems
    assert all(THEOREMS[key].holds for key in found.theorems)
    assert {condition.key for condition in found.conditions} <= CONDITIONS.keys()
    assert all(isinstance(note, Message) for note in found.notes)
    measures = (risk.advantage,), (risk.delta_at_epsilon, 1.0), (risk.epsilon_at_delta, 1e-5), (risk.tpr_at_fpr, 1e-3)
    for number, *at in (*measures, (risk.tpr_at_fpr, 0.5)):
        mine, most = found.measure(number, *at), worst.measure(number, *at)
        assert mine.lower <= mine.upper * (1.0 + 1e-9) + 1e-14
        if found.claim.proven:
            assert mine.lower <= mine.value * (1.0 + 1e-9)
            assert mine.value <= most.upper * (1.0 + 1e-3) + 1e-12  # chords, beside tests that are asked one by one
    security = found.measure(risk.bayes_security)
    assert security.lower <= security.upper
    if found.claim is not Claim.ESTIMATE:
        assert np.all(found.curve.delta(SIZES) <= worst.curve.delta(SIZES) * (1.0 + 1e-6) + 1e-12)
        assert np.all(found.curve.reversed.delta(SIZES) <= worst.curve.delta(SIZES) * (1.0 + 1e-6) + 1e-12)
        told = found.mu()
        assert told.lower <= told.value <= worst.mu().value * (1.0 + 1e-9)
        if found.truth is not None and math.isfinite(told.value):  # what it stands for lies above what is shown
            implied = np.array([_gaussian_delta(told.value, e) for e in SIZES])
            assert np.all(found.truth.optimistic.delta(SIZES) <= implied * (1.0 + 1e-9) + 1e-12)


def monotone(one: Adversary, louder: Mechanism, quieter: Mechanism, neighbouring: Neighbouring | None = None) -> None:
    """More noise, a smaller rate or fewer steps never raise what is claimed.

    Args:
        one: any.
        louder: what was released.
        quieter: the same with less of it.
        neighbouring: as of ``attacker``.
    """
    relation = neighbouring or one.relation
    more, less = (one.assess(run, relation, one.methods[0]).curve for run in (louder, quieter))
    assert np.all(less.delta(SIZES) <= more.delta(SIZES) * (1.0 + 1e-6) + 1e-12)
    assert float(less.delta(0.0)) <= float(more.delta(0.0))


# Samplers


class Source:
    """Independent draws of one generator, as samplers take them.

    Args:
        seed: of the generator.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def uniform(self, size: int) -> np.ndarray:
        """``size`` numbers between 0 and 1."""
        return self._rng.random(size)


def sampler(one: Sampler, run: DPSGD) -> None:
    """Read back from its flat form; attained is not beyond what dominates; no pass counts less than it drew.

    Args:
        one: with all its fields.
        run: of at least two passes over 20 records in batches of four, with ``one``.
    """
    assert run.sampler == one
    document = json.loads(json.dumps(mechanism_record(run)))
    assert document["sampler"] == one.name
    assert mechanism_of(document) == run
    assert DPSGD(**gathered(DPSGD, flat(run))) == run
    assert {name: document[name] for name in flat(one)} == flat(one)
    for each in (one, one.in_batches(None).drawn_once()):
        for relation in Neighbouring:
            told = compose(DPSGD(2.0, 0.2, 10, batch_size=4, dataset_size=20, sampler=each), relation)
            assert 0.0 <= risk.advantage(told.optimistic) <= risk.advantage(told.pessimistic) * (1.0 + 1e-9)
    if type(one).batches is not Sampler.batches:
        batches(one)


def batches(one: Sampler) -> None:
    """Batches are increasing positions, as many as the rate says where there is one, and counted in full.

    Args:
        one: whose batches can be drawn.
    """
    drawn = list(islice(one.in_batches(None).batches(Source(1), 20, 0.2, 4), 50))
    assert all(np.all(np.diff(batch) > 0) and (len(batch) == 0 or 0 <= batch[0] <= batch[-1] < 20) for batch in drawn)
    assert not one.at_rate or abs(sum(map(len, drawn)) - 200) < 75, "six deviations of 1,000 coins at 0.2"
    if not one.in_passes:
        return
    seen, known = np.zeros(20, dtype=int), one.in_batches(5)
    for steps, batch in enumerate(islice(known.batches(Source(5), 20, 0.2, 4), 33), 1):
        seen[batch] += 1
        counted = known.releases(DPSGD(2.0, 0.2, steps, batch_size=4, dataset_size=20, sampler=known))
        assert counted is not None
        assert seen.max() <= counted


# Mechanisms


def mechanism(one: Mechanism) -> None:
    """Read back as it was; its parts are proven; attained is not beyond what dominates; what it says is known.

    Args:
        one: any.
    """
    assert mechanism_of(json.loads(json.dumps(mechanism_record(one)))) == one
    assert type(one).__name__ in in_short(one) or one.inner
    assert "\n" not in in_short(one)
    assert all(isinstance(note, Message) for note in one.notes)
    assert {condition.key for condition in one.conditions} <= CONDITIONS.keys()
    assert one.steps >= 1
    for relation in Neighbouring:
        try:
            parts = one.parts_under(relation)
        except UnsupportedError:
            continue
        assert all(part.count >= 1 for part in parts)
        assert all(THEOREMS[key].holds for part in parts for key in part.theorems)
        told = compose(one, relation)
        assert np.all(told.optimistic.delta(SIZES) <= told.pessimistic.delta(SIZES) * (1.0 + 1e-9) + 1e-12)
        with suppress(UnsupportedError):
            quieter = compose(one.scaled(2.0), relation)
            assert np.all(quieter.pessimistic.delta(SIZES) <= told.pessimistic.delta(SIZES) + 1e-12)


# Facts


def fact(one: Fact, run: RunLedger, stated: object = Seen.FOUND) -> None:
    """It is said; an error leaves no privacy; without an effect nothing else changes; an effect only adds risk.

    Args:
        one: in the list of facts, and not shown by other facts.
        run: accepted, in which nothing voids.
        stated: what a ledger says of it. Where nobody could look is asked too if it says no more than ``found``.
    """
    before, known = run.mechanism(), run.vouches()
    for value in (stated, Seen.BLIND) if one.stated is Seen else (stated,):
        found = run.model_copy(update={"facts": {**run.facts, one.key: value}})
        after, vouched = found.mechanism(), found.vouches()
        assert vouched.keys() <= CONDITIONS.keys()
        assert not one.said or one.voids in [fault.voids for fault in found.faults if fault == one]
        if one.stated is Seen:
            assert vouched.items() <= known.items()
        if after == before:
            assert not one.voids
            continue
        assert one.voids or one.effect is not Fact(one.key).effect
        less, more = (WorstCase().assess(released).measure(risk.advantage) for released in (before, after))
        assert less.lower <= more.upper * (1.0 + 1e-9)
        assert not one.voids or more.lower == 1.0
