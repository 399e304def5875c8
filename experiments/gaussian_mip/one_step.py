"""One step of the membership game on simulated gradients with known mean and covariance, against theory.

    python -m experiments.gaussian_mip.one_step            # writes results/one_step.json

For each (n, d) and law of the gradients: 200,000 batches with a member, 200,000 without, the target's gradient redrawn
each time. Coordinates are independent with mean 0 and variance 1. What is simulated are the sums over the other n - 1
records: exactly for Gaussian (normal) and skewed gradients (exponential, so sums are gamma); for uniform gradients
exactly up to n = 32, beyond by a Cornish-Fisher expansion whose error is of order n^-2. Attack: the log likelihood
ratio of Theorem 5.1. Theory: the stochastic composition of Theorem 5.1 over the law of K.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from experiments.gaussian_mip.exact_step import GaussianGradientTradeOff
from experiments.where import results
from reticent.adversaries.game import gmip
from reticent.adversaries.game.stochastic import SusceptibilityLaw
from reticent.attacks import glir_statistics as glir
from reticent.attacks.covariance import Background
from reticent.curves import MembershipStepTradeOff
from reticent.kernel.curves import GaussianTradeOff

SETTINGS = ((5, 2), (32, 20), (500, 650), (1970, 2580))
LAWS = ("gaussian", "uniform", "skewed")
FPR = np.concatenate([np.geomspace(1e-3, 0.1, 13), np.linspace(0.15, 0.95, 17)])
RESULTS = results(__file__) / "one_step.json"
CHUNK_NUMBERS = 4_000_000


def records(law: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Single gradients: independent coordinates of mean 0 and variance 1."""
    if law == "gaussian":
        return rng.standard_normal(shape, dtype=np.float32)
    if law == "uniform":
        return (rng.random(shape, dtype=np.float32) - np.float32(0.5)) * np.float32(12**0.5)
    return rng.standard_exponential(shape, dtype=np.float32) - np.float32(1.0)


def sums(law: str, count: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Sums of ``count`` gradients; see the head of this file."""
    if law == "gaussian":
        return np.float32(count**0.5) * rng.standard_normal(shape, dtype=np.float32)
    if law == "skewed":
        return rng.standard_gamma(count, shape, dtype=np.float32) - np.float32(count)
    if count < 64:
        return records(law, (count, *shape), rng).sum(axis=0)
    z = rng.standard_normal(shape, dtype=np.float32)
    return np.float32(count**0.5) * (z - np.float32(1.2 / count / 24.0) * (z**3 - 3.0 * z))


def log_ratios(
    law: str, n: int, d: int, trials: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(scores of members, scores of non-members, K) of ``trials`` simulated steps each."""
    rows = max(1, CHUNK_NUMBERS // d)
    member, outsider, ks = [], [], []
    for start in range(0, trials, rows):
        shape = (min(rows, trials - start), d)
        theta, other = records(law, shape, rng), records(law, shape, rng)
        rest = sums(law, n - 1, shape, rng)
        k = np.einsum("ij,ij->i", theta, theta, dtype=np.float64)
        member.append(_score(rest + theta, theta, k, n))
        outsider.append(_score(rest + other, theta, k, n))
        ks.append(k)
    return np.concatenate(member), np.concatenate(outsider), np.concatenate(ks)


def _score(total: np.ndarray, theta: np.ndarray, k: np.ndarray, n: int) -> np.ndarray:
    gap = total / np.float32(n) - theta
    distance = n * np.einsum("ij,ij->i", gap, gap, dtype=np.float64)
    return 0.5 * (theta.shape[1] * np.log(n / (n - 1.0)) + k - distance / (n - 1.0))


def tpr_at(member: np.ndarray, outsider: np.ndarray, fpr: np.ndarray) -> np.ndarray:
    """Empirical TPR at thresholds that give ``fpr``."""
    thresholds = np.quantile(outsider, 1.0 - fpr)
    return 1.0 - np.searchsorted(np.sort(member), thresholds, side="right") / len(member)


def theory(n: int, d: int, ks: np.ndarray) -> np.ndarray:
    """Stochastic composition over 40 quantiles of the simulated K."""
    quantiles = np.quantile(ks, (np.arange(40) + 0.5) / 40)
    law = SusceptibilityLaw.sampled(np.maximum(quantiles, 1e-9))
    return law.compose(lambda k: MembershipStepTradeOff(float(n), d, k)).power(FPR)


def clt_warning(law: str, n: int, d: int, rng: np.random.Generator) -> str:
    """What the attack says about normality, from 20,000 background records."""
    background = Background.estimated(records(law, (max(20_000, 4 * d), d), rng).astype(float))
    return glir.normality(background, records(law, (64, d), rng).astype(float), float(n))


def case(law: str, n: int, d: int, trials: int, seed: int) -> dict[str, object]:
    """One row of the table."""
    rng = np.random.default_rng([seed, n, d, LAWS.index(law)])
    member, outsider, ks = log_ratios(law, n, d, trials, rng)
    found, expected = tpr_at(member, outsider, FPR), theory(n, d, ks)
    limit = GaussianTradeOff(gmip.one_step_mu(d, d, n)).power(FPR)
    low = [0.001, 0.01, 0.1]
    return {
        "law": law,
        "n": n,
        "d": d,
        "trials": trials,
        "largest_gap": float(np.max(np.abs(found - expected))),
        "largest_gap_to_gaussian_limit_at_k_equal_d": float(np.max(np.abs(found - limit))),
        "fpr": FPR.tolist(),
        "tpr": found.tolist(),
        "tpr_theory": expected.tolist(),
        "tpr_gaussian_gradients": GaussianGradientTradeOff(d, float(n)).power(FPR).tolist(),
        "tpr_low": dict(zip(map(str, low), tpr_at(member, outsider, np.array(low)).tolist(), strict=True)),
        "warning": clt_warning(law, n, d, rng) if d <= 650 else "",
    }


def main() -> None:
    """Run every case and write the results."""
    parser = argparse.ArgumentParser(description="One-step membership game, simulated against theory.")
    parser.add_argument("--trials", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rows = []
    for n, d in SETTINGS:
        for law in LAWS:
            rows.append(case(law, n, d, args.trials, args.seed))
            print(n, d, law, round(rows[-1]["largest_gap"], 5), rows[-1]["warning"], flush=True)
            RESULTS.write_text(json.dumps({"seed": args.seed, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
