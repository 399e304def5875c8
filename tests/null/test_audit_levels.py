"""Audits of releases for which the claim is exactly true: the violations stay within the significance.

A cell passes when its violations do not exceed the 99% quantile of Binomial(audits, significance). The
default suite tests the level of every rule at the true claim with a quarter of the audits; ``slow`` takes all of
them, and repeats everything through the public functions, with every quantity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from reticent.auditing import (
    Bonferroni,
    Design,
    Finding,
    Given,
    Guesses,
    NormalScores,
    Ranks,
    Scores,
    Split,
    auc_interval,
    audit_advantage,
    audit_claim,
    audit_claim_one_run,
    audit_epsilon,
    audit_epsilon_if_gaussian,
    audit_epsilon_one_run,
    audit_mu,
    audit_mu_one_run,
    count_guesses,
    delong,
    empirical_trade_off,
    tpr_interval,
)
from reticent.auditing.claims import ApproximateDP, Evidence, GaussianClaim, probits
from reticent.auditing.intervals import lower_proportion, upper_proportion
from reticent.auditing.lower_bounds import SMALL_ADVANTAGE, SMALL_EPSILON, least_epsilon
from reticent.auditing.normal_scores import OrderCounts
from reticent.auditing.one_run import binomial_p_value, rejects
from reticent.kernel.curves import GaussianTradeOff, Mixture
from tests.auditing.games import canaries, contains, gaussian
from tests.conftest import some

AUDITS = 1000
SIGNIFICANCE = 0.05
DELTA = 0.05
EPSILON = 1.0
MU = 1.0


@pytest.fixture(params=[AUDITS // 4, pytest.param(AUDITS, marks=pytest.mark.slow)])
def audits(request: pytest.FixtureRequest) -> int:
    """How many releases are audited."""
    return request.param


def allowed(audits: int, significance: float = SIGNIFICANCE) -> int:
    return int(binom.ppf(0.99, audits, significance))


def response(rng: np.random.Generator, members: int, others: int) -> Scores:
    """(EPSILON, DELTA) with equality: leak with probability DELTA, else randomised response; four values, many ties."""

    def one(size: int, bit: int) -> np.ndarray:
        flip = rng.random(size) < 1 / (1 + math.exp(EPSILON))
        leak = rng.random(size) < DELTA
        return np.where(leak, 3.0 * bit, 1.0 + (bit ^ flip))

    return Scores(one(members, 1), one(others, 0), design=Design.INDEPENDENT)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """By the textbook formula, not by the library."""
    return brentq(lambda e: norm.cdf(-e / mu + mu / 2) - math.exp(e) * norm.cdf(-e / mu - mu / 2) - delta, 0, 50)


HALF = 1 / (1 + math.exp(-EPSILON))
RELEASES: dict[str, tuple[Callable[..., Scores], dict[str, float]]] = {
    "nothing": (lambda rng, *sizes: gaussian(rng, 0.0, *sizes), {"mu": 0.0, "advantage": 0.0, "epsilon": 0.0}),
    "gaussian": (
        lambda rng, *sizes: gaussian(rng, MU, *sizes),
        {"mu": MU, "advantage": 2 * norm.cdf(MU / 2) - 1, "epsilon": gaussian_epsilon(MU, DELTA)},
    ),
    "response": (response, {"advantage": DELTA + (1 - DELTA) * (2 * HALF - 1), "epsilon": EPSILON}),
}
RULES = {
    "given": lambda rng: Given(1.2),
    "bonferroni": lambda rng: Bonferroni((0.3, 1.2, 2.3)),
    "split": lambda rng: Split(0.3, rng),
    "ranks": lambda rng: Ranks((0.02, 0.15, 0.4)),
    "one rank": lambda rng: Ranks((0.3,)),
    "default": lambda rng: None,
}
ESTIMATORS = {
    "mu": audit_mu,
    "advantage": audit_advantage,
    "epsilon": lambda scores, rule: audit_epsilon(scores, DELTA, rule),
}


def violations(release: str, rule: str, quantity: str, audits: int, members: int, others: int) -> int:
    """Bounds above the truth, through the public functions."""
    draw, truths = RELEASES[release]
    rng = np.random.default_rng([1, len(release), len(rule), len(quantity)])
    bound = ESTIMATORS[quantity]
    exceeded = 0
    for _ in range(audits):
        exceeded += bound(draw(rng, members, others), RULES[rule](rng)).value > truths[quantity] + 1e-9
    return exceeded


CELLS = [(r, u, q) for r in RELEASES for u in RULES for q in RELEASES[r][1]]
FAMILIES = {
    "mu": (GaussianClaim, probits),
    "advantage": (lambda advantage: ApproximateDP(0.0, advantage), lambda a, b: 1.0 - a - b),
    "epsilon": (lambda epsilon: ApproximateDP(epsilon, DELTA), lambda a, b: least_epsilon(a, b, DELTA)),
}

SMALL = {"epsilon": SMALL_EPSILON, "advantage": SMALL_ADVANTAGE}


def rejections(release: str, rule: str, quantity: str, audits: int, members: int, others: int) -> int:
    """The same by the test behind the bound: a bound exceeds the truth exactly when the truth is rejected."""
    draw, truths = RELEASES[release]
    rng = np.random.default_rng([2, len(release), len(rule), len(quantity)])
    family, ordering = FAMILIES[quantity]
    truth, exceeded = family(truths[quantity] + 1e-12), 0
    # Small claims are tested as those of mu are.
    small = quantity == "mu" or truths[quantity] <= SMALL[quantity]
    if small:
        ordering = probits

    @cache
    def refused(piece: Evidence, share: float) -> bool:
        return piece.test(share, ordering)(truth)

    for _ in range(audits):
        chosen = RULES[rule](rng) or (NormalScores() if small else Ranks())
        pieces = chosen.evidence(draw(rng, members, others), ordering)
        # Nothing but the counts decides, so equal counts need one test only.
        exceeded += any(refused(_only_counts(piece), SIGNIFICANCE * share) for piece, share in pieces)
    return exceeded


def _only_counts(piece: Evidence) -> Evidence:
    return piece if isinstance(piece, OrderCounts) else replace(piece, threshold=0.0)


QUICK = [
    (r, u, q)
    for r, q, rules in (("gaussian", "mu", ("split", "ranks")), ("response", "epsilon", ("given", "ranks")))
    for u in rules
]


@pytest.mark.parametrize(("release", "rule", "quantity"), QUICK)
def test_lower_bounds_are_below_the_truth(release: str, rule: str, quantity: str, audits: int) -> None:
    assert rejections(release, rule, quantity, audits, 50, 60) <= allowed(audits)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(60, 40), (300, 300)])
@pytest.mark.parametrize(("release", "rule", "quantity"), CELLS)
def test_every_rule_and_quantity(release: str, rule: str, quantity: str, sizes: tuple[int, int]) -> None:
    assert rejections(release, rule, quantity, AUDITS, *sizes) <= allowed(AUDITS)
    assert violations(release, rule, quantity, 30, *sizes) <= allowed(30)


CLAIMS = {"nothing": GaussianTradeOff(0.0), "gaussian": GaussianTradeOff(MU)}


def share(audits: int, seed: int, wrong: Callable[[np.random.Generator], Mapping[str, bool]]) -> dict[str, int]:
    """How often each thing that may go wrong in one audit did, in so many."""
    rng, found = np.random.default_rng(seed), Counter()
    for _ in range(audits):
        found.update({name: int(happened) for name, happened in wrong(rng).items()})
    return dict(found)


def stays_within(audits: int, seed: int, wrong: Callable[[np.random.Generator], Mapping[str, bool]]) -> dict[str, int]:
    """The same, which may be no more often than the significance allows."""
    found = share(audits, seed, wrong)
    assert all(count <= allowed(audits) for count in found.values()), found
    return found


@pytest.mark.parametrize(
    ("release", "rule"),
    some([("gaussian", "one rank"), ("nothing", "ranks"), ("nothing", "one rank"), ("gaussian", "ranks")], 0),
)
def test_verdicts_do_not_accuse(release: str, rule: str, audits: int) -> None:
    def accuses(rng: np.random.Generator) -> dict[str, bool]:
        verdict = audit_claim(RELEASES[release][0](rng, 120, 150), CLAIMS[release], RULES[rule](rng))
        return {"accused": verdict.finding is Finding.INCONSISTENT}

    stays_within(audits // 2, 2, accuses)


@pytest.mark.parametrize("audits", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_epsilon_if_gaussian(audits: int) -> None:
    truth = gaussian_epsilon(MU, 1e-5)
    stays_within(audits, 3, lambda rng: {
        "exceeded": audit_epsilon_if_gaussian(gaussian(rng, MU, 120, 150), 1e-5, Ranks((0.3,))).value > truth
    })  # fmt: skip


def both_ends(successes: int, trials: int) -> SimpleNamespace:
    """Clopper and Pearson's interval at confidence 95%."""
    return SimpleNamespace(
        lower=lower_proportion(successes, trials, 0.025), upper=upper_proportion(successes, trials, 0.025)
    )


@pytest.mark.parametrize("mu", some([1.0, 0.0, 2.5], 0))
def test_intervals_of_the_roc_cover(mu: float, audits: int) -> None:
    area, curve = norm.cdf(mu / math.sqrt(2)), GaussianTradeOff(mu)

    def misses(rng: np.random.Generator) -> dict[str, bool]:
        scores = gaussian(rng, mu, 150, 200)
        found = {
            "auc": (auc_interval(scores), area),
            **({} if mu > 2.0 else {"delong": (delong(scores), area)}),  # asymptotic: near 1 it misses 9 in 100
            "tpr at .05": (tpr_interval(scores, 0.05), norm.cdf(norm.ppf(0.05) + mu)),
            "tpr at .2": (tpr_interval(scores, 0.2), norm.cdf(norm.ppf(0.2) + mu)),
            "proportion": (both_ends(int(np.sum(scores.member > 1.0)), 150), norm.sf(1.0 - mu)),
        }
        missed = {name: not interval.lower <= truth <= interval.upper for name, (interval, truth) in found.items()}
        return missed | {"band": not contains(empirical_trade_off(scores), curve)}

    missed = stays_within(audits, 4, misses)
    # Not all of it may come from being far too wide.
    assert missed.get("delong", audits) >= binom.ppf(0.01, audits, SIGNIFICANCE)
    assert missed["proportion"] >= audits / 100


def coins(rng: np.random.Generator, number: int, epsilon: float) -> Scores:
    """Randomised response on every coin: pure epsilon-DP with equality; scores have two values."""
    included = rng.random(number) < 0.5
    told = included ^ (rng.random(number) < 1 / (1 + math.exp(epsilon)))
    return Scores(1.0 * told[included], 1.0 * told[~included], design=Design.ONE_RUN)


def shared(rng: np.random.Generator, number: int, weight: float, mu: float) -> Scores:
    """All canaries leak together with probability ``weight``: the strongest dependence there is."""
    return canaries(rng, number, mu if rng.random() < weight else 0.0)


def test_one_run_binomial_is_exact_for_randomised_response(audits: int) -> None:
    def rejected(rng: np.random.Generator) -> dict[str, bool]:
        counts = count_guesses(coins(rng, 200, EPSILON), Guesses(100, 100))
        return {"rejected": binomial_p_value(counts, EPSILON, 0.0) <= SIGNIFICANCE}

    stays_within(audits, 5, rejected)


def test_one_run_epsilon_with_shared_leakage(audits: int) -> None:
    """(0, weight)-DP at most: everything leaks with probability weight, nothing else ever does."""
    stays_within(audits, 6, lambda rng: {"above": audit_epsilon_one_run(shared(rng, 100, 1e-4, 50.0), 1e-4).value > 0})


@pytest.mark.parametrize(
    ("audits", "guesses"), some([(12, Guesses(20, 20)), (150, Guesses(20, 20)), (150, Guesses(60, 60))], 0)
)
def test_one_run_verdicts_with_independent_and_shared_leakage(guesses: Guesses, audits: int) -> None:
    weight, mu = 0.04, 6.0
    mixture = Mixture([GaussianTradeOff(mu), GaussianTradeOff(0.0)], [weight, 1 - weight])

    def accuses(rng: np.random.Generator) -> dict[str, bool]:
        drawn = {
            "independent": (canaries(rng, 120, MU), CLAIMS["gaussian"]),
            "shared": (shared(rng, 120, weight, mu), mixture),
        }
        return {k: audit_claim_one_run(*one, guesses).finding is Finding.INCONSISTENT for k, one in drawn.items()}

    stays_within(audits, 7, accuses)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.1, 1 / 3, 1.0])
@pytest.mark.parametrize("mu", [0.0, MU])
def test_one_run_bounds_in_full(part: float, mu: float) -> None:
    """A bound exceeds the truth exactly when the test rejects the true member of the family."""
    number, delta = 300, 1e-5
    guesses, epsilon = Guesses.share(number, part), gaussian_epsilon(mu, delta) if mu else 0.0

    def rejected(rng: np.random.Generator) -> dict[str, bool]:
        scores = canaries(rng, number, mu)
        counts = count_guesses(scores, guesses)
        found = {
            "binomial": binomial_p_value(counts, epsilon, delta) <= SIGNIFICANCE,
            "f-dp": rejects(counts, ApproximateDP(epsilon, delta), SIGNIFICANCE),
            "mu": rejects(counts, GaussianClaim(mu), SIGNIFICANCE),
        }
        if rng.random() < 0.01:
            above = audit_epsilon_one_run(scores, delta, guesses).value > epsilon
            assert above >= (found["binomial"] or found["f-dp"])
            assert (audit_mu_one_run(scores, guesses).value > mu) >= found["mu"]
        return found

    stays_within(AUDITS, 8, rejected)


def best_window_finds_leakage(scores: Scores) -> bool:
    """The naive one-run audit: the best of all pairs of window ends, each as if it were the only one."""
    value = np.concatenate([scores.member, scores.non_member])
    included = (np.arange(len(value)) < len(scores.member))[np.argsort(value)]
    total, step = len(value), math.isqrt(len(value))
    low = np.concatenate([[0], np.cumsum(~included)])
    high = np.concatenate([np.cumsum(included[::-1])[::-1], [0]])
    ends = [(k, m) for m in range(0, total, step) for k in range(0, m, step)]
    k, m = np.array(ends).T
    right, made = low[k] + high[m], k + total - m
    return bool(np.any(binom.sf(right - 1, made, 0.5) <= SIGNIFICANCE))


def test_choosing_the_best_window_is_invalid_and_ours_is_not() -> None:
    def found(rng: np.random.Generator) -> dict[str, bool]:
        scores = canaries(rng, 1000, 0.0)
        p_value = binomial_p_value(count_guesses(scores, Guesses.share(1000, 1 / 3)), 0.0, 0.0)
        return {"naive": best_window_finds_leakage(scores), "ours": p_value <= SIGNIFICANCE}

    leaks = share(60, 9, found)
    assert leaks["naive"] > 0.3 * 60
    assert leaks["ours"] <= allowed(60)


def test_choosing_the_best_threshold_of_a_fixed_rule_is_what_bonferroni_pays_for() -> None:
    """Without the correction many thresholds break the level: the correction is not decoration."""
    levels = tuple(np.linspace(0.02, 0.6, 30))

    def careless(rng: np.random.Generator) -> dict[str, bool]:
        evidence = Ranks(levels).evidence(gaussian(rng, 0.0, 150, 150), lambda a, b: a)
        return {"rejected": any(piece.rejects(GaussianClaim(0.0), SIGNIFICANCE) for piece, _ in evidence)}

    assert share(40, 10, careless)["rejected"] > 0.1 * 40
