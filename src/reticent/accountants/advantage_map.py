"""Estimates of the worst-case advantage on a grid of noise multipliers and sample rates."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from reticent.accountants.step_losses import (
    CLOSER,
    DOUBT,
    FINE,
    LEAST_NOISE,
    LOUDEST,
    QUICK,
    StepLosses,
    frequencies_needed,
    last_size,
)
from reticent.kernel import checks
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture

_BLOCK = 500_000  # elements of one array
_DOUBTFUL = 0.02  # share of cells that may be interpolated


@lru_cache(maxsize=16)
def filled_map(
    noises: tuple[float, ...], rates: tuple[float, ...], steps: int, relation: Neighbouring, floor: float
) -> tuple[list[list[float | None]], tuple[float, ...]]:
    """``advantage_map`` for a picture: its rows, with single cells in doubt interpolated, and their noises.

    Args:
        noises, rates, steps, relation: as there, increasing.
        floor: rows in doubt below this noise are left out.

    Returns:
        Rows with None where too many cells are in doubt, and the noise of each row.
    """
    quick = advantage_map(np.array(noises), np.array(rates), steps, relation)
    doubt = np.isnan(quick)
    first = next((k for k, noise in enumerate(noises) if noise >= floor or not doubt[k].any()), 0)
    known, noises = _filled(quick[first:], np.log(noises[first:])), noises[first:]
    return [[None if math.isnan(value) else value for value in row] for row in known.tolist()], noises


def _filled(values: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Single cells in doubt, from those above and below; where many are, they stay empty."""
    doubt = np.isnan(values)
    if doubt.mean() > _DOUBTFUL or doubt[[0, -1]].any():
        return values
    return np.array([np.interp(logs, logs[~gaps], row[~gaps]) for row, gaps in zip(values.T, doubt.T, strict=True)]).T


def advantage_map(
    noise_multipliers: np.ndarray, sample_rates: np.ndarray, steps: int, neighbouring: Neighbouring
) -> np.ndarray:
    """``advantage`` on a grid; shape (noise multipliers, sample rates): estimates as good as there.

    Nodes are shared by a row of the grid. NaN where that rule does not vouch for itself (few sampled steps, little
    noise).

    Args:
        noise_multipliers: one-dimensional, > 0.
        sample_rates: one-dimensional, in (0, 1).
        steps: noisy updates.
        neighbouring: between which data sets.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    rates, noises = checks.probabilities(sample_rates=sample_rates), np.asarray(noise_multipliers, dtype=float)
    inside, found = (rates > 0.0) & (rates < 1.0), np.full((len(noises), len(rates)), np.nan)
    for row, noise in zip(found, noises, strict=True):
        if noise > LEAST_NOISE:
            with np.errstate(all="ignore"):
                row[inside] = _row(checks.positive(noise_multiplier=noise), rates[inside], steps, neighbouring)
    return found


def _row(noise: float, rates: np.ndarray, steps: int, neighbouring: Neighbouring) -> np.ndarray:
    """Advantages for one noise multiplier; NaN where they are in doubt, as in ``WorstCaseProfile.sure``.

    Those in doubt are asked again with a window that holds every loss, closer nodes and more frequencies.
    """
    result = np.full(len(rates), np.nan)
    for closer, share in ((1, 8), (CLOSER, 2)):
        todo = np.flatnonzero(np.isnan(result))
        if len(todo) == 0:
            break
        pair = GaussianMixture(noise, (rates[todo, None],), antipodal=neighbouring is Neighbouring.REPLACE)
        law = StepLosses.of(pair, steps, QUICK, closer)
        if closer > 1:
            law = law._replace(window=law.holding(law.window))
        place = frequencies_needed(QUICK.decay, law.kurtosis) / law.spread
        needed = closer * 8.0 / 7.0 * place * law.window / (2.0 * np.pi) + 2.0
        counts = np.exp2(np.ceil(2.0 * np.log2(needed)) / 2.0).astype(int)  # few different ones
        fits = (law.spread > 0.0) & (law.spread < LOUDEST) & (needed < FINE.frequencies)
        for count in np.unique(counts[fits]):
            same = np.flatnonzero(fits & (counts == count))
            blocks = len(same) * int(count) * law.loss.shape[-1] // _BLOCK
            for part in np.array_split(same, min(max(1, blocks), len(same))):
                parts = {name: getattr(law, name)[part] for name in ("weight", "loss", "missing", "window")}
                result[todo[part]] = _advantages(law._replace(**parts), int(count), share)
    return result


def _advantages(law: StepLosses, count: int, share: int) -> np.ndarray:
    """Advantages of several laws with ``count`` frequencies each; NaN where these are not enough."""
    spacing = 2.0 * np.pi / law.window
    t = spacing[:, None] * np.arange(count)
    log_size, phase = law.transform(spacing, 0, count)
    kernel = spacing[:, None] / np.pi / (t * t + 0.25)
    kernel[:, 0] *= 0.5
    total = 1.0 + 2.0 / np.expm1(0.5 * law.window) - np.sum(kernel * np.exp(log_size) * np.cos(phase), axis=1)
    # What is left out: |psi|^steps / (pi t), or three times as much where a transform dips and comes back.
    truncated = last_size(log_size, share) - np.log(np.pi * spacing * count)
    sure = (truncated < math.log(0.1 * DOUBT)) & (law.beyond(law.window) < DOUBT)
    return np.where(sure, np.clip(total, 0.0, 1.0), np.nan)
