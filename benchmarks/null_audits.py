"""Null audits: how often each statistic says something false of a release with exactly the claimed curve.

``python -m benchmarks.null_audits [PART PARTS]`` runs the cells of ``tests/null/test_audit_levels.py``, 1,000 audits
each, or every PARTS-th of them from PART on, and prints a line for each: what was audited, in how many audits it was
false, and the most that chance allows at 99%.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reticent.auditing import (
    Finding,
    Guesses,
    auc_interval,
    audit_claim,
    audit_epsilon_if_gaussian,
    delong,
    empirical_trade_off,
    tpr_interval,
)
from reticent.auditing.claims import ApproximateDP, GaussianClaim
from reticent.auditing.one_run import binomial_p_value, count_guesses, curve_p_value, rejects
from reticent.kernel.curves import GaussianTradeOff, Mixture

Cell = tuple[str, int, Callable[[], int]]
AUDITS = 1000
SIGNIFICANCE = 0.05
SIZES = ((60, 40), (300, 300))


def cells() -> Iterator[Cell]:
    """(what, audits, how many are false)."""
    null: Any = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "null" / "test_audit_levels.py"))
    for sizes in SIZES:
        for release, rule, quantity in null["CELLS"]:
            named = f"{quantity}, {rule}, {release}, {sizes[0]} + {sizes[1]}"
            yield named, AUDITS, partial(null["rejections"], release, rule, quantity, AUDITS, *sizes)
    for release in ("nothing", "gaussian"):
        for rule in ("ranks", "one rank", "default"):
            yield f"verdict, {rule}, {release}, 120 + 150", AUDITS, partial(_verdicts, null, release, rule)
    yield "epsilon if Gaussian, one rank, 120 + 150", 200, partial(_if_gaussian, null)
    for mu in (0.0, 1.0, 2.5):
        for what in ("auc", "delong", "tpr at .05", "tpr at .2", "band", "proportion"):
            yield f"{what}, mu {mu:g}, 150 + 200", AUDITS, partial(_intervals, null, what, mu)
    for share in (0.1, 1 / 3, 1.0):
        for mu in (0.0, 1.0):
            for test in ("binomial", "f-dp", "mu", "verdict"):
                named = f"one run, {test}, mu {mu:g}, {share:.0%} of 300 guessed"
                yield named, AUDITS, partial(_one_run, null, test, share, mu)
    for leak in ("independent", "shared"):
        yield f"one run, verdict, {leak} leakage, 120", AUDITS, partial(_leaks, null, leak)


def _verdicts(null: Any, release: str, rule: str) -> int:
    rng, draw = np.random.default_rng(2), null["RELEASES"][release][0]
    return sum(
        audit_claim(draw(rng, 120, 150), null["CLAIMS"][release], null["RULES"][rule](rng)).finding
        is Finding.INCONSISTENT
        for _ in range(AUDITS)
    )


def _if_gaussian(null: Any) -> int:
    rng, truth, rule = np.random.default_rng(3), null["gaussian_epsilon"](1.0, 1e-5), null["RULES"]["one rank"]
    return sum(
        audit_epsilon_if_gaussian(null["gaussian"](rng, 120, 150), 1e-5, rule(rng)).value > truth for _ in range(200)
    )


def _intervals(null: Any, what: str, mu: float) -> int:
    norm, rng, missed = null["norm"], np.random.default_rng(4), 0
    curve = GaussianTradeOff(mu)
    for _ in range(AUDITS):
        scores = null["gaussian"](rng, 150, 200, mu)
        match what:
            case "auc":
                interval, truth = auc_interval(scores), norm.cdf(mu / 2**0.5)
            case "delong":
                interval, truth = delong(scores), norm.cdf(mu / 2**0.5)
            case "band":
                missed += not null["contains"](empirical_trade_off(scores), curve)
                continue
            case "proportion":
                interval, truth = null["both_ends"](int(np.sum(scores.member > 1.0)), 150), norm.sf(1.0 - mu)
            case _:
                fpr = float(what.removeprefix("tpr at "))
                interval, truth = tpr_interval(scores, fpr), norm.cdf(norm.ppf(fpr) + mu)
        missed += not interval.lower <= truth <= interval.upper
    return missed


def _one_run(null: Any, test: str, share: float, mu: float) -> int:
    rng, delta, guesses = np.random.default_rng(8), 1e-5, Guesses.share(300, share)
    epsilon = null["gaussian_epsilon"](mu, delta) if mu else 0.0
    tests: dict[str, Callable[[Any], bool]] = {
        "binomial": lambda c: binomial_p_value(c, epsilon, delta) <= SIGNIFICANCE,
        "f-dp": lambda c: rejects(c, ApproximateDP(epsilon, delta), SIGNIFICANCE),
        "mu": lambda c: rejects(c, GaussianClaim(mu), SIGNIFICANCE),
        "verdict": lambda c: curve_p_value(c, GaussianTradeOff(mu)) <= SIGNIFICANCE,
    }
    return sum(tests[test](count_guesses(null["canaries"](rng, 300, mu), guesses)) for _ in range(AUDITS))


def _leaks(null: Any, kind: str) -> int:
    rng, weight, mu, guesses = np.random.default_rng(7), 0.04, 6.0, Guesses(20, 20)
    mixture = Mixture([GaussianTradeOff(mu), GaussianTradeOff(0.0)], [weight, 1 - weight])
    found = 0
    for _ in range(AUDITS):
        independent = kind == "independent"
        scores = null["canaries"](rng, 120, 1.0) if independent else null["shared"](rng, 120, weight, mu)
        curve = GaussianTradeOff(1.0) if independent else mixture
        found += curve_p_value(count_guesses(scores, guesses), curve) <= SIGNIFICANCE
    return found


def main(part: int = 0, parts: int = 1) -> None:
    """One line for each cell."""
    from scipy.stats import binom

    beyond = 0
    chosen = list(cells())[part::parts]
    for named, audits, count in chosen:
        false, most = count(), int(binom.ppf(0.99, audits, SIGNIFICANCE))
        beyond += false > most
        print(f"| {named} | {audits} | {false} | {most} |", flush=True)
    print(f"{len(chosen)} cells, {beyond} beyond the limit")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
