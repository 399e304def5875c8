"""Is this DP-SGD what it claims to be? Statistical tests of a whole implementation, with p-values.

Short runs on a :class:`~reticent.attacks.white_box.Probe` are enough:

* *silence*, twice: every gradient is zero, so what is released is noise and nothing else;
* *canaries*: records with one huge gradient coordinate each, in every layer: clipped, each counts as one;
* *chorus*: all records have the same huge gradient in one coordinate, so the noisy sum counts the batch;
* *spread chorus*: all records have the same huge gradient, spread over every coordinate of every layer;
* *participation*, several times, a few epochs long and with little noise: who was in which batch.

If the implementation does what it claims, each p-value is uniform or larger, so that with the Bonferroni
correction it is accused with probability at most ``significance``. No test knows any particular bug.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from scipy import special, stats

from reticent import _check
from reticent.attacks.participation import NOISE, SPARE, Check, Plan, participation_checks
from reticent.attacks.white_box import (
    OVERSHOOT,
    Layers,
    Trainer,
    check_claim,
    dirac_records,
    released_sums,
    spread_records,
    square_layers,
)
from reticent.errors import UnsupportedError
from reticent.mechanisms import DPSGD, Sampler
from reticent.text import Brief, html_table

LAYERS: Layers = ((12, 8), (8, 12), (1, 24))
_SIMULATIONS = 19_999
_AT_ONCE = 2_000_000  # simulated batch sizes in memory
_TAILS = [1e-18, 1.0 - 1e-16]  # quantiles of a binomial law between which it is summed


@dataclass(frozen=True, slots=True, repr=False)
class MechanicsReport(Brief):
    """All tests of one implementation; printed as the verdict and a line for each test.

    Attributes:
        checks: in the order in which they ran.
        significance: probability of accusing a correct implementation, at most.
    """

    checks: tuple[Check, ...]
    significance: float

    @property
    def failed(self) -> tuple[Check, ...]:
        """The tests whose corrected p-value is at most ``significance``."""
        return tuple(c for c in self.checks if c.p_value * len(self.checks) <= self.significance)

    @property
    def accused(self) -> bool:
        """Whether the claim is refuted, with confidence ``1 - significance``."""
        return bool(self.failed)

    @property
    def adjusted_p_value(self) -> float:
        """Smallest p-value, corrected for their number."""
        return min(1.0, len(self.checks) * min(c.p_value for c in self.checks))

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.accused:
            return f"REFUTED: the loop does not do what it claims; p-value {self.adjusted_p_value:.2g} for all tests."
        return (
            f"NOT REFUTED at significance {self.significance:g}: no test found a fault; docs/attacks.md lists what "
            "they cannot see."
        )

    def _lines(self) -> list[str]:
        return [self.verdict, *(f"{name} (p-value {p_value}): {finding}" for name, p_value, finding in self._rows())]

    def _repr_html_(self) -> str:
        return html_table(self.verdict, [("test", "p-value", "found"), *self._rows()])

    def _rows(self) -> list[tuple[str, str, str]]:
        failed = self.failed
        return [(f"{'FAILED: ' if c in failed else ''}{c.name}", f"{c.p_value:.2g}", c.finding) for c in self.checks]


@dataclass(frozen=True, eq=False)
class Experiment:
    """One run of the implementation: what it is given.

    Attributes:
        layers: shapes of the probe.
        features: of the records, shape (claim.dataset_size, features of the probe).
        claim: the settings of this run.
        run: its number.
    """

    layers: Layers
    features: torch.Tensor
    claim: DPSGD
    run: int

    def perform(self, trainer: Trainer) -> np.ndarray:
        """Noisy sums in units of the clip norm, (steps, weights)."""
        return released_sums(trainer, self.layers, self.features, self.claim, self.run)


@dataclass(frozen=True, slots=True)
class Observations:
    """Noisy sums in units of the clip norm, (steps, weights), of all runs.

    Attributes:
        silence, second_silence: without any gradient.
        canaries: with one canary in each coordinate of ``coordinates``.
        chorus: with every record's gradient at coordinate 0.
        spread: with every record's gradient along ``direction``.
        participation: with little noise and a coordinate for each record followed, (runs, steps, weights).
        coordinates: positions of the canaries.
        direction: of the spread gradient, norm 1.
        records: how many are followed in ``participation``.
    """

    silence: np.ndarray
    second_silence: np.ndarray
    canaries: np.ndarray
    chorus: np.ndarray
    spread: np.ndarray
    participation: np.ndarray
    coordinates: np.ndarray
    direction: np.ndarray
    records: int


def audit_mechanics(trainer: Trainer, claim: DPSGD, *, significance: float = 0.01, seed: int = 0) -> MechanicsReport:
    """Run the implementation about a dozen times and test what it released.

    Args:
        trainer: the implementation.
        claim: what it says that it does: Poisson sampling, with batch_size and dataset_size.
        significance: probability of accusing a correct implementation, at most.
        seed: of the simulated null distribution and of the signs of the spread gradient.

    Raises:
        UnsupportedError: the claim is not Poisson sampling.
        ParameterError: the claim lacks sizes or noise.
    """
    setup = experiments(claim, seed)
    seen = observe(setup, [experiment.perform(trainer) for experiment in setup], seed)
    return judge(seen, claim, significance=significance, seed=seed)


def experiments(claim: DPSGD, seed: int = 0) -> list[Experiment]:
    """All runs of an audit: five at the settings of the claim, then those that show who takes part.

    Raises:
        UnsupportedError: the claim is not Poisson sampling.
        ParameterError: the claim lacks sizes or noise.
    """
    check_claim(claim)
    if claim.sampler is not Sampler.POISSON:
        raise UnsupportedError(f"the mechanics are tested against Poisson sampling, not {claim.sampler.value}")
    size, huge = claim.dataset_size or 0, OVERSHOOT * claim.max_grad_norm
    coordinates = _coordinates(size)
    silent = dirac_records(LAYERS, np.array([], dtype=int), np.array([]), size)
    loud = dirac_records(LAYERS, coordinates, np.full(len(coordinates), huge), size)
    together = dirac_records(LAYERS, np.zeros(size, dtype=int), np.full(size, huge), size)
    spread, _ = spread_records(LAYERS, huge, size, seed)
    main = [
        Experiment(LAYERS, features, claim, run)
        for run, features in enumerate((silent, silent, loud, together, spread))
    ]
    plan = Plan.of(claim.sample_rate, claim.steps, size)
    layers = square_layers(len(plan.records) + SPARE)
    followed = torch.zeros(size, sum(map(sum, layers)))
    norms = np.full(len(plan.records), huge)
    followed[torch.from_numpy(plan.records)] = dirac_records(layers, np.arange(len(norms)), norms, len(norms))
    quiet = replace(claim, noise_multiplier=min(NOISE, claim.noise_multiplier), steps=plan.steps)
    return main + [Experiment(layers, followed, quiet, len(main) + run) for run in range(plan.runs)]


def observe(setup: Sequence[Experiment], sums: Sequence[np.ndarray], seed: int = 0) -> Observations:
    """Name what the runs of :func:`experiments` released."""
    claim = setup[0].claim
    size = claim.dataset_size or 0
    _, direction = spread_records(LAYERS, 1.0, 1, seed)
    followed = len(Plan.of(claim.sample_rate, claim.steps, size).records)
    first, second, third, fourth, fifth, *rest = sums
    return Observations(first, second, third, fourth, fifth, np.stack(rest), _coordinates(size), direction, followed)


def _coordinates(dataset_size: int) -> np.ndarray:
    """One canary in each coordinate, as long as there are records."""
    return np.arange(min(sum(outputs * inputs for outputs, inputs in LAYERS), dataset_size))


def judge(seen: Observations, claim: DPSGD, *, significance: float = 0.01, seed: int = 0) -> MechanicsReport:
    """Test what was released against the claim; arrays in, p-values out.

    Args:
        seen: what the experiments released.
        claim: what the loop says that it did.
        significance: of the verdict, in (0, 1).
        seed: of what is simulated.

    Raises:
        ParameterError: ``significance`` is outside (0, 1).
    """
    _check.open_fraction(significance=significance)
    noise, second = seen.silence / claim.noise_multiplier, seen.second_silence / claim.noise_multiplier
    batch = seen.chorus[:, 0]
    quiet = min(NOISE, claim.noise_multiplier)
    checks = (
        _noise_scale(noise),
        _noise_shape(noise),
        _noise_of_each_step(noise),
        _noise_of_each_layer(noise),
        _repeated("noise across coordinates", "coordinates", noise.T, None),
        _repeated("noise across steps", "steps", noise, None),
        _repeated("noise across runs", "steps of two runs", noise, second),
        _canary_effect(seen.canaries[:, seen.coordinates], claim),
        _spread_effect(seen.spread @ seen.direction, claim),
        _sampling_rate(batch, claim),
        _batch_dispersion(batch, claim, seed),
        *participation_checks(seen.participation, seen.records, claim.sample_rate, quiet),
    )
    return MechanicsReport(checks, significance)


def _noise_scale(noise: np.ndarray) -> Check:
    energy = float((noise**2).sum())
    ratio = np.sqrt(energy / noise.size)
    return Check("noise scale", _chi2_two_sided(energy, noise.size), f"noise is {ratio:.3g} times the claimed size")


def _noise_shape(noise: np.ndarray) -> Check:
    result = stats.kstest(noise.ravel(), special.ndtr)
    return Check("noise shape", float(result.pvalue), f"largest distance to the normal law {result.statistic:.3g}")


def _noise_of_each_step(noise: np.ndarray) -> Check:
    p = [_chi2_two_sided(float(e), noise.shape[1]) for e in (noise**2).sum(axis=1)]
    step = int(np.argmin(p))
    size = np.sqrt((noise[step] ** 2).mean())
    return Check("noise of each step", min(1.0, len(p) * min(p)), f"step {step} has {size:.3g} times the claimed noise")


def _noise_of_each_layer(noise: np.ndarray) -> Check:
    ends = np.cumsum([outputs * inputs for outputs, inputs in LAYERS])[:-1]
    parts = np.split(noise, ends, axis=1)
    p = [_chi2_two_sided(float((part**2).sum()), part.size) for part in parts]
    layer = int(np.argmin(p))
    size = np.sqrt((parts[layer] ** 2).mean())
    finding = f"layer {layer} has {size:.3g} times the claimed noise"
    return Check("noise of each layer", min(1.0, len(p) * min(p)), finding)


def _repeated(name: str, what: str, rows: np.ndarray, others: np.ndarray | None) -> Check:
    """Largest correlation between two rows that should be independent.

    Two independent normal vectors of length n have a squared cosine of law Beta(1/2, (n - 1)/2).
    """
    unit = _unit(rows)
    cosines = np.abs(unit @ (unit if others is None else _unit(others)).T)
    if others is None:
        cosines = cosines[np.triu_indices(len(unit), k=1)]
    largest = min(float(cosines.max()), 1.0)
    p = float(stats.beta.sf(largest**2, 0.5, 0.5 * (rows.shape[1] - 1)))
    return Check(name, min(1.0, cosines.size * p), f"largest correlation between {what} {largest:.3g}")


def _canary_effect(sums: np.ndarray, claim: DPSGD) -> Check:
    """Each canary's total over the run is Binomial(steps, q) + N(0, steps s^2), if clipped and sampled as claimed."""
    totals = sums.sum(axis=0)
    p = _upper_tail(totals, claim.steps, claim)
    worst = int(np.argmin(p))
    limit = claim.steps * claim.sample_rate
    finding = f"canary {worst} adds up to {totals[worst]:.4g} clip norms where {limit:.4g} are expected"
    return Check("canary effect", min(1.0, len(p) * float(p[worst])), finding)


def _spread_effect(along: np.ndarray, claim: DPSGD) -> Check:
    """Along a gradient spread over all layers the run adds up to Binomial(steps * records, q) and noise, or to less."""
    trials = claim.steps * (claim.dataset_size or 1)
    total = np.array([along.sum()])
    finding = f"spread gradients add up to rate {total[0] / trials:.4g} where {claim.sample_rate:.4g} is expected"
    return Check("spread gradients", float(_upper_tail(total, trials, claim)[0]), finding)


def _sampling_rate(batch: np.ndarray, claim: DPSGD) -> Check:
    """All batches together are Binomial(steps * records, q) records, and noise."""
    trials = claim.steps * (claim.dataset_size or 1)
    total = np.array([batch.sum()])
    upper, lower = _upper_tail(total, trials, claim), _lower_tail(total, trials, claim)
    rate = float(total[0]) / trials
    finding = f"records take part at rate {rate:.4g} where {claim.sample_rate:.4g} is claimed"
    return Check("sampling rate", min(1.0, 2.0 * float(min(upper[0], lower[0]))), finding)


def _batch_dispersion(batch: np.ndarray, claim: DPSGD, seed: int) -> Check:
    """Poisson batches vary like a binomial; shuffled and fixed-size ones do not vary. By simulation, so valid."""
    size, q, steps = claim.dataset_size or 1, claim.sample_rate, claim.steps
    null, found = _simulated_variances(size, q, steps, claim.noise_multiplier, seed), float(batch.var())
    low, high = 1 + int((null <= found).sum()), 1 + int((null >= found).sum())
    p = min(1.0, 2.0 * min(low, high) / (_SIMULATIONS + 1))
    return Check("batch sizes", p, f"their variance is {found:.4g} where {null.mean():.4g} is expected")


@lru_cache(maxsize=8)
def _simulated_variances(size: int, rate: float, steps: int, noise_multiplier: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    variances = np.empty(_SIMULATIONS)
    for rows in np.array_split(np.arange(_SIMULATIONS), max(1, _SIMULATIONS * steps // _AT_ONCE)):
        drawn = rng.binomial(size, rate, size=(len(rows), steps)).astype(np.float64)
        drawn += noise_multiplier * rng.standard_normal(drawn.shape)
        variances[rows] = drawn.var(axis=1)
    variances.setflags(write=False)
    return variances


def _upper_tail(totals: np.ndarray, trials: int, claim: DPSGD) -> np.ndarray:
    return _tail(totals, trials, claim, lambda z: special.ndtr(-z))


def _lower_tail(totals: np.ndarray, trials: int, claim: DPSGD) -> np.ndarray:
    return _tail(totals, trials, claim, special.ndtr)


def _tail(totals: np.ndarray, trials: int, claim: DPSGD, side: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """P(Binomial(trials, q) + N(0, steps s^2) beyond the total), summed over the binomial between ``_TAILS``."""
    low, high = stats.binom.ppf(_TAILS, trials, claim.sample_rate)
    counts = np.arange(max(0, int(low) - 1), min(trials, int(high) + 2) + 1)
    weights = stats.binom.pmf(counts, trials, claim.sample_rate)
    scale = claim.noise_multiplier * np.sqrt(claim.steps)
    tails = side((totals[:, None] - counts) / scale) @ weights
    return np.minimum(tails + max(0.0, 1.0 - weights.sum()), 1.0)


def _chi2_two_sided(energy: float, freedom: int) -> float:
    return float(min(1.0, 2.0 * min(stats.chi2.cdf(energy, freedom), stats.chi2.sf(energy, freedom))))


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros stays zero and correlates with nothing (the scale tests see it)."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
