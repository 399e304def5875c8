"""Membership scores from shadow models: LiRA, online and offline, and RMIA. Arrays in, arrays out.

Shapes: ``target`` (records,), ``shadow`` (models, records), ``included`` (models, records), True where the record
was in the model's training data. Everything is a scaled confidence (:mod:`reticent.attacks.signals`). Higher
scores are more member-like.

References: Carlini, Chien, Nasr, Song, Terzis, Tramer, "Membership inference attacks from first principles", S&P 2022;
Zarifzadeh, Liu, Shokri, "Low-cost high-power membership inference attacks", ICML 2024.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, logsumexp

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError

_ENOUGH_FOR_OWN_VARIANCE = 32
_LEAST_VARIANCE = 1e-12  # of the mean square: where all models agree to the last digit
"""Models on one side from which a record's own variance is better than the common one (section VI of the LiRA paper
switches at 64 models in total)."""


def lira_online(target: np.ndarray, shadow: np.ndarray, included: np.ndarray) -> np.ndarray:
    """Log ratio of two normal densities, fitted to the shadow models with and without each record.

    Raises:
        ParameterError: a record is in all models or in none, or shapes disagree.
    """
    target, shadow, included = _aligned(target, shadow, included)
    inside = _fit(shadow, included, "online LiRA")
    outside = _fit(shadow, ~included, "online LiRA")
    return _log_normal(target, *inside) - _log_normal(target, *outside)


def lira_offline(target: np.ndarray, shadow: np.ndarray, included: np.ndarray) -> np.ndarray:
    """How many standard deviations the confidence lies *above* that of models without the record.

    One-sided: a model that knows the record is more confident, never less. So the two-sided bound of the
    relaxed threat model does not cover this attack (KAISSIS2023:R4); the worst case does.

    Raises:
        ParameterError: a record is in all models, or shapes disagree.
    """
    target, shadow, included = _aligned(target, shadow, included)
    mean, deviation = _fit(shadow, ~included, "offline LiRA")
    return (target - mean) / deviation


def rmia(
    target: np.ndarray,
    shadow: np.ndarray,
    included: np.ndarray,
    population: np.ndarray,
    *,
    offline_share: float | None = None,
) -> np.ndarray:
    """The share of population records that the record beats in likelihood ratio.

    A record's ratio is p under the target model over its mean under the shadow models.

    Args:
        target, shadow, included: as above.
        population: positions of records that are neither a member nor a scored non-member by
            choice, one dimension; they serve as the population.
        offline_share: None averages over models with and without the record in equal parts (online). A number
            a in [0, 1] uses only models without it: mean = ((1 + a) p_out + 1 - a) / 2 (offline).

    Raises:
        ParameterError: a needed side has no model for some record, ``population`` is empty, or shapes disagree.
    """
    target, shadow, included = _aligned(target, shadow, included)
    population = np.asarray(population)
    if population.ndim != 1 or population.size == 0:
        raise ParameterError("population", population.shape, "at least one record")
    log_ratio = log_expit(target) - _log_mean_probability(log_expit(shadow), included, offline_share)
    against = np.sort(log_ratio[population])
    return np.searchsorted(against, log_ratio, side="right") / against.size


def _aligned(target: np.ndarray, shadow: np.ndarray, included: np.ndarray) -> tuple[np.ndarray, ...]:
    target, shadow = np.asarray(target, dtype=np.float64), np.asarray(shadow, dtype=np.float64)
    included = np.asarray(included, dtype=bool)
    if shadow.ndim != 2 or target.shape != shadow.shape[1:] or included.shape != shadow.shape:
        raise ParameterError("shadow", shadow.shape, f"of shape (models, {target.size}), like included")
    if not (np.isfinite(target).all() and np.isfinite(shadow).all()):
        raise ParameterError("shadow", "NaN or infinity", "finite confidences")
    return target, shadow, included


def needed_sides(included: np.ndarray, who: str, *, online: bool) -> None:
    """Refuse shadow models that lack a side which an attack compares, before they are trained.

    Args:
        included: (models, records), True where the record is in the model's training data.
        who: the attack, for the message.
        online: whether it needs models with the record too.

    Raises:
        ParameterError: a record is in all models or, online, in none.
    """
    for chosen in (included, ~included) if online else (~included,):
        if chosen.sum(axis=0).min() < 1:
            raise ParameterError("models", included.shape[0], f"more: {who} lacks models on one side of a record")


def _fit(values: np.ndarray, chosen: np.ndarray, who: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation per record over the chosen models; few models share one deviation."""
    needed_sides(~chosen, who, online=False)
    count = chosen.sum(axis=0)
    mean = np.where(chosen, values, 0.0).sum(axis=0) / count
    squares = np.where(chosen, values - mean, 0.0) ** 2
    if count.min() >= _ENOUGH_FOR_OWN_VARIANCE:
        variance = squares.sum(axis=0) / (count - 1)
    else:
        variance = np.full(mean.shape, squares.sum() / max(1, (count - 1).sum()))
    floor = _LEAST_VARIANCE * max(1.0, float(np.mean(mean**2)))
    return mean, np.sqrt(np.maximum(variance, floor))


def _log_normal(x: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Log density up to a constant common to all."""
    return -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation)


def _log_mean_probability(log_p: np.ndarray, included: np.ndarray, offline_share: float | None) -> np.ndarray:
    outside = _log_mean(log_p, ~included)
    if offline_share is None:
        return np.logaddexp(outside, _log_mean(log_p, included)) - np.log(2.0)
    share = checks.fraction(offline_share=offline_share)
    return np.log(0.5 * ((1.0 + share) * np.exp(outside) + 1.0 - share))


def _log_mean(log_p: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    needed_sides(~chosen, "RMIA", online=False)
    return logsumexp(log_p, b=chosen, axis=0) - np.log(chosen.sum(axis=0))
