"""GLiR, LiRA and the magnitude test on releases whose best attack is known, and others' formulas on the same scores.

``python -m benchmarks.attack_power`` prints a table: true positive rates at false positive rates of 1% and 10%, the
most that theory allows, and what each attack reaches. Rates are of the drawn scores, 10,000 on each side for single
numbers and vectors, 4,000 queries for GLiR; one standard error is at most .005 (GLiR .008).

*LiRA*: each record's signal is a + b y with y ~ N(mu or 0, 1), so it is G_mu; a and b differ from record to record and
only the shadow models show them. Privacy Meter's test is its own ``gaussian_threshold_func`` (1.0.1) where that package
is installed, else the same formula: a normal fit per record by ``scipy.stats.norm.fit``. The package ``leakpro`` on the
index is an empty placeholder, so its LiRA is the formula of its source and of Carlini and others (2022): log
densities of two normal fits per record, each with its own deviation; offline, minus the log density without the record.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import chi2, ncx2, norm

from reticent.attacks.covariance import Background
from reticent.attacks.glir_statistics import BatchDesign, score_step
from reticent.attacks.shadow_scores import lira_offline, lira_online

FPRS = (0.01, 0.1)
SIZE = 10_000
Line = tuple[str, str, tuple[float, ...], tuple[float, ...]]


def rates(member: np.ndarray, non_member: np.ndarray) -> tuple[float, ...]:
    """Share of members above the non-members' quantiles."""
    return tuple(float((member > np.quantile(non_member, 1.0 - fpr)).mean()) for fpr in FPRS)


def magnitude() -> Iterator[Line]:
    """Noisy sums with one target of length 1, whose direction is not known, or guessed."""
    rng = np.random.default_rng(0)
    for dimension, noise in ((1, 0.5), (10, 0.4), (50, 0.3)):
        direction = rng.standard_normal(dimension)
        direction /= np.linalg.norm(direction)
        absent, present = noise * rng.standard_normal((2, SIZE, dimension))
        present += direction
        far = tuple(float(ncx2.sf(chi2.isf(x, dimension), dimension, noise**-2)) for x in FPRS)
        straight = tuple(float(norm.sf(norm.isf(x) - 1 / noise)) for x in FPRS)
        release = f"Gaussian sum, {dimension} dimensions, noise {noise:g}"
        yield release, "magnitude", far, rates(np.linalg.norm(present, axis=1), np.linalg.norm(absent, axis=1))
        yield release, "one-sided, right guess", straight, rates(present @ direction, absent @ direction)


def lira() -> Iterator[Line]:
    """One number for each record, known up to its place and scale, which shadow models show."""
    rng, mu = np.random.default_rng(1), 2.0
    best = tuple(float(norm.sf(norm.isf(x) - mu)) for x in FPRS)
    for models, spread in ((16, 0.0), (16, 0.5), (64, 0.5), (256, 0.5)):
        place, scale = rng.normal(0, 3, 2 * SIZE), np.exp(spread * rng.standard_normal(2 * SIZE))
        there = np.arange(2 * SIZE) < SIZE
        target = place + scale * (rng.standard_normal(2 * SIZE) + mu * there)
        included = np.argsort(rng.random((models, 2 * SIZE)), axis=0) < models // 2
        shadow = place + scale * (rng.standard_normal((models, 2 * SIZE)) + mu * included)
        attacks: dict[str, Callable[[], np.ndarray]] = {
            "LiRA online": lambda t=target, s=shadow, i=included: lira_online(t, s, i),
            "LiRA online, as LeakPro": lambda t=target, s=shadow, i=included: _published(t, s, i, online=True),
            "LiRA offline": lambda t=target, s=shadow, i=included: lira_offline(t, s, i),
            "LiRA offline, as LeakPro": lambda t=target, s=shadow, i=included: _published(t, s, i, online=False),
            "reference test of Privacy Meter": lambda t=target, s=shadow, i=included: _privacy_meter(t, s, i),
        }
        release = f"G_2, {models} shadow models, {'unequal' if spread else 'equal'} scales"
        for name, attack in attacks.items():
            scores = attack()
            yield release, name, best, rates(scores[there], scores[~there])


def _published(target: np.ndarray, shadow: np.ndarray, included: np.ndarray, *, online: bool) -> np.ndarray:
    def density(chosen: np.ndarray) -> np.ndarray:
        values = np.where(chosen, shadow, np.nan)
        return norm.logpdf(target, np.nanmean(values, axis=0), np.nanstd(values, axis=0) + 1e-30)

    return (density(included) if online else 0.0) - density(~included)


def _privacy_meter(target: np.ndarray, shadow: np.ndarray, included: np.ndarray) -> np.ndarray:
    """The smallest of many false positive rates at which a loss, here minus the signal, is below its threshold."""
    levels = np.linspace(0.0005, 0.9995, 400)
    losses = -shadow.T[~included.T].reshape(len(target), -1)
    try:
        from privacy_meter.hypothesis_test import gaussian_threshold_func  # type: ignore[import-not-found]

        limits = gaussian_threshold_func(losses, levels)
        # Its threshold at alpha is the quantile at 1 - alpha: the test says member below it.
        levels = 1.0 - levels
    except ImportError:
        fits = np.array([norm.fit(row) for row in losses])
        limits = fits[:, 0] + norm.ppf(levels)[:, None] * fits[:, 1]
    below = np.where(-target < limits, levels[:, None], 1.0).min(axis=0)
    return np.asarray(-below)


def glir() -> Iterator[Line]:
    """Sums of normal gradients with noise; the best attack knows their law, GLiR has background records."""
    rng, dimension, n, noise = np.random.default_rng(2), 20, 50, 4.0
    mixing = rng.standard_normal((dimension, dimension)) / np.sqrt(dimension)
    mean, law = 0.2 * rng.standard_normal(dimension), mixing @ mixing.T
    absent = n * law + noise**2 * np.eye(dimension)
    present = absent - law
    for background in (100, 400, 5000):
        known = Background.estimated(mean + rng.standard_normal((background, dimension)) @ mixing.T)
        found, best = ([], []), ([], [])
        for _ in range(4000):
            rows = mean + rng.standard_normal((n + 1, dimension)) @ mixing.T
            total = rows[:n].sum(axis=0) + noise * rng.standard_normal(dimension)
            scores = score_step(total, rows[[0, n]], known, BatchDesign(n, noise=noise)).log_ratio
            for side in (0, 1):
                found[side].append(scores[side])
                best[side].append(_ratio(total - n * mean, rows[n * side] - mean, absent, present))
        release = f"normal gradients, {dimension} dimensions, batch of {n}"
        most = rates(np.array(best[0]), np.array(best[1]))
        yield release, f"GLiR, {background} background records", most, rates(np.array(found[0]), np.array(found[1]))


def _ratio(moved: np.ndarray, own: np.ndarray, absent: np.ndarray, present: np.ndarray) -> float:
    """Log likelihood ratio from the densities, by nothing of the attack's code."""
    return float(_log_normal(moved - own, present) - _log_normal(moved, absent))


def _log_normal(x: np.ndarray, covariance: np.ndarray) -> float:
    return float(-0.5 * (x @ np.linalg.solve(covariance, x) + np.linalg.slogdet(covariance)[1]))


def main() -> None:
    """The table, in Markdown."""
    warnings.simplefilter("ignore")
    print("| release | attack | theory, 1% | reached | theory, 10% | reached |\n|---|---|---|---|---|---|")
    for part in (magnitude, lira, glir):
        for release, attack, theory, reached in part():
            pairs = zip(theory, reached, strict=True)
            print(f"| {release} | {attack} | {' | '.join(f'{t:.3f} | {r:.3f}' for t, r in pairs)} |", flush=True)


if __name__ == "__main__":
    main()
