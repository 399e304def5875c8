"""A million scores in seconds, and the same numbers as the slow way."""

from __future__ import annotations

import time

import numpy as np
import pytest

from reticent.auditing import Design, Scores, audit
from reticent.auditing.claims import ApproximateDP, GaussianClaim
from reticent.auditing.one_run import GuessCounts, mass_needed
from reticent.kernel.curves import GaussianTradeOff

HALF = 500_000


def many(design: Design, half: int) -> Scores:
    rng = np.random.default_rng(0)
    return Scores(rng.normal(1.0, 1.0, half), rng.normal(0.0, 1.0, half), {}, design)


@pytest.mark.parametrize(
    ("design", "half", "seconds"),
    [
        (Design.INDEPENDENT, HALF // 5, 5.0),  # many times what it takes: a busy processor is no failure
        pytest.param(Design.INDEPENDENT, HALF, 5.0, marks=pytest.mark.slow),
        pytest.param(Design.ONE_RUN, HALF, 30.0, marks=pytest.mark.slow),
    ],
)
def test_a_million_scores(design, half, seconds):
    """Five seconds for independent scores, thirty for canaries of one run; processor time, with progress."""
    scores, seen = many(design, half), []
    start = time.process_time()
    report = audit(scores, {"mu=1": GaussianTradeOff(1.0)}, progress=lambda *now: seen.append(now))
    assert time.process_time() - start < seconds
    assert seen == [(n, len(seen)) for n in range(1, len(seen) + 1)]
    assert len(seen) == (9 if design is Design.ONE_RUN else 6)
    mu = next(bound for bound in report.bounds if str(bound.quantity) == "mu")
    assert 0.97 < mu.value <= 1.0


def to_the_end(counts, claim, tail):
    """The recursion of docs/theory/auditing.md, to its last step."""
    at_least, beyond = tail, 0.0
    for j in range(counts.correct, 0, -1):
        reached = min(1.0, (j * at_least + beyond) / counts.canaries)
        beyond += at_least
        needed = (counts.canaries * float(claim.beta(np.array([1.0 - reached]))[0]) + beyond) / (counts.guesses - j + 1)
        at_least = max(at_least, needed)
        if at_least > 1.0:
            break
    return at_least


@pytest.mark.parametrize("correct", [30, 61, 75, 80])
def test_the_recursion_stops_where_nothing_more_would_happen(correct):
    counts = GuessCounts(200, 80, correct)
    claims = [GaussianClaim(mu) for mu in (0.0, 0.4, 0.9, 1.3, 2.0)]
    claims += [ApproximateDP(epsilon, 1e-3) for epsilon in (0.0, 0.5, 1.0, 1.5, 3.0)]
    for claim in claims:
        for tail in (1e-9, 0.01, 0.05, 0.5):
            whole = to_the_end(counts, claim, tail)
            short = float(mass_needed(counts, claim, np.array([tail]))[0])
            assert (short > 1.0) == (whole > 1.0)
            if whole <= 1.0:
                assert short == pytest.approx(whole, rel=1e-9, abs=0)
