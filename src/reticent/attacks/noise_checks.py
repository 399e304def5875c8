"""Is the noise normal, of the claimed size, fresh, and the same whatever the records are? Tests with p-values.

``rows`` are releases divided by the claimed deviation, (steps, coordinates), on coordinates where no record has a
gradient: independent standard normal numbers, if the claim is true.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special, stats

from reticent.attacks.participation import Check, chi2_two_sided, two_sided, worst_of

_TAILS = (2.5, 3.0, 3.5)


def noise_scale(rows: np.ndarray) -> Check:
    """All noise together: chi-square."""
    energy = float((rows**2).sum())
    ratio = np.sqrt(energy / rows.size)
    return Check("noise scale", chi2_two_sided(energy, rows.size), f"noise is {ratio:.3g} times the claimed size")


def noise_shape(rows: np.ndarray) -> Check:
    """Kolmogorov-Smirnov against the normal law."""
    result = stats.kstest(rows.ravel(), special.ndtr)
    return Check("noise shape", float(result.pvalue), f"largest distance to the normal law {result.statistic:.3g}")


def noise_tails(*parts: np.ndarray) -> Check:
    """How many numbers lie beyond 2.5, 3 and 3.5 deviations: binomial, two-sided, union bound."""
    far = np.abs(np.concatenate([part.ravel() for part in parts]))
    found = []
    for limit in _TAILS:
        hits, rate = int((far > limit).sum()), 2.0 * float(special.ndtr(-limit))
        words = f"{hits} of {far.size} numbers lie beyond {limit:g} deviations where {rate * far.size:.3g} are expected"
        found.append((two_sided(hits, far.size, rate), words))
    return worst_of("noise tails", found)


def noise_of_each_step(rows: np.ndarray) -> Check:
    """Chi-square for each step, union bound."""
    return _of_each("step", list(rows))


def noise_of_each_layer(rows: np.ndarray, sizes: Sequence[int]) -> Check:
    """Chi-square for each layer, union bound."""
    return _of_each("layer", np.split(rows, np.cumsum(sizes)[:-1], axis=1))


def _of_each(what: str, parts: Sequence[np.ndarray]) -> Check:
    sizes = [f"{what} {k} has {np.sqrt((part**2).mean()):.3g} times the claimed noise" for k, part in enumerate(parts)]
    p_values = [chi2_two_sided(float((part**2).sum()), part.size) for part in parts]
    return worst_of(f"noise of each {what}", list(zip(p_values, sizes, strict=True)))


def noise_beside(name: str, energy: np.ndarray, freedom: int) -> Check:
    """Noise of the steps of a run in which records have gradients elsewhere: in all, and of each step; union bound.

    Args:
        energy: sum of squares of ``freedom`` independent numbers, for each step.
        freedom: degrees of freedom of each step.
    """
    if freedom < 1:
        return Check(name, 1.0, "not tested: no coordinate is free of gradients")
    whole = chi2_two_sided(float(energy.sum()), freedom * len(energy))
    each = np.array([chi2_two_sided(float(e), freedom) for e in energy])
    size, worst = np.sqrt(energy.sum() / (freedom * len(energy))), int(each.argmin())
    p = min(1.0, 2.0 * min(whole, len(each) * float(each[worst])))
    words = f"noise is {size:.3g} times the claimed size, {np.sqrt(energy[worst] / freedom):.3g} times in step {worst}"
    return Check(name, p, words)


def repeated(name: str, what: str, rows: np.ndarray, others: np.ndarray | None) -> Check:
    """Largest correlation between two rows that should be independent.

    Two independent normal vectors of length n have a squared cosine of law Beta(1/2, (n - 1)/2).
    """
    unit = _unit(rows)
    cosines = np.abs(unit @ (unit if others is None else _unit(others)).T)
    if others is None:
        cosines = cosines[np.triu_indices(len(unit), k=1)]
    if cosines.size == 0 or rows.shape[1] < 2:
        return Check(name, 1.0, f"not tested: too few {what}")
    largest = min(float(cosines.max()), 1.0)
    p = float(stats.beta.sf(largest**2, 0.5, 0.5 * (rows.shape[1] - 1)))
    return Check(name, min(1.0, cosines.size * p), f"largest correlation between {what} {largest:.3g}")


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros stays zero and correlates with nothing (the scale tests see it)."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
