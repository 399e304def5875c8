"""What was run, as frozen data. Nothing here says what follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent import _check
from reticent.errors import ParameterError
from reticent.mechanism.sampling import Sampler

_SMALL, _LARGE = 1e-30, 1e30
"""Beyond these, squares and exponentials leave the range of floating point, and no answer means anything."""


def _noise(noise_multiplier: float) -> None:
    if _check.non_negative(noise_multiplier=noise_multiplier) and not _SMALL <= noise_multiplier <= _LARGE:
        raise ParameterError("noise_multiplier", noise_multiplier, f"0, or from {_SMALL:g} to {_LARGE:g}")


def _rate(sample_rate: float) -> None:
    if _check.rate(sample_rate=sample_rate) < _SMALL:
        raise ParameterError("sample_rate", sample_rate, f"a number from {_SMALL:g} to 1")


@dataclass(frozen=True, slots=True)
class Gaussian:
    """A vector sum released with Gaussian noise, ``releases`` times.

    Attributes:
        noise_multiplier: noise standard deviation over the largest norm of one record's
            contribution, >= 0; 0 means no noise.
        releases: number of independent noisy releases of the same data.
        dimension: number of released coordinates; only the relaxed adversary looks at it.
    """

    noise_multiplier: float
    releases: int = 1
    dimension: int = 1

    def __post_init__(self) -> None:
        _noise(self.noise_multiplier)
        _check.count(releases=self.releases)
        _check.count(dimension=self.dimension)


@dataclass(frozen=True, slots=True)
class Laplace:
    """A scalar sum released with Laplace noise, ``releases`` times.

    Attributes:
        noise_multiplier: Laplace scale over the largest absolute contribution of one record, >= 0.
        releases: number of independent noisy releases of the same data.
        sample_rate: probability that one record takes part in one release (Poisson sampling), in (0, 1].
    """

    noise_multiplier: float
    releases: int = 1
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        _noise(self.noise_multiplier)
        _check.count(releases=self.releases)
        _rate(self.sample_rate)


@dataclass(frozen=True, slots=True)
class DPSGD:
    """DP-SGD: clip each gradient, sum a random batch, add Gaussian noise; ``steps`` times.

    Attributes:
        noise_multiplier: noise standard deviation over ``max_grad_norm``, on the *sum*, >= 0.
        sample_rate: probability that one record is in one batch, in (0, 1]. Under ``SHUFFLED`` it is
            the share of the data in one batch.
        steps: number of noisy updates, >= 1.
        max_grad_norm: clip norm (L2); results do not depend on it, gradients in their own units do.
        num_parameters: number of trained parameters, or None where it is not known.
        batch_size: expected records per batch, or None.
        dataset_size: number of training records, or None.
        sampler: how batches were really drawn.
        batches_per_epoch: under ``SHUFFLED``, noisy updates per pass over the data, if it is known whether the
            loader keeps the last incomplete batch; None is answered as if it were dropped, which is safe.
    """

    noise_multiplier: float
    sample_rate: float
    steps: int
    max_grad_norm: float = 1.0
    num_parameters: int | None = None
    batch_size: int | None = None
    dataset_size: int | None = None
    sampler: Sampler = Sampler.POISSON
    batches_per_epoch: int | None = None

    def __post_init__(self) -> None:
        _noise(self.noise_multiplier)
        _rate(self.sample_rate)
        _check.count(steps=self.steps)
        _check.positive(max_grad_norm=self.max_grad_norm)
        for name in ("num_parameters", "batch_size", "dataset_size"):
            if getattr(self, name) is not None:
                _check.count(**{name: getattr(self, name)})
        if not isinstance(self.sampler, Sampler):
            raise ParameterError("sampler", self.sampler, f"one of {[s.value for s in Sampler]}")
        if self.batches_per_epoch is not None:
            self._check_epoch(_check.count(batches_per_epoch=self.batches_per_epoch))

    def _check_epoch(self, batches: int) -> None:
        if self.sampler is not Sampler.SHUFFLED:
            raise ParameterError("batches_per_epoch", batches, "left out unless batches are shuffled")
        fewest, most = math.floor((1.0 + 1e-9) / self.sample_rate), math.ceil((1.0 - 1e-9) / self.sample_rate)
        if not fewest <= batches <= max(fewest, most):
            raise ParameterError("batches_per_epoch", batches, f"1 / sample_rate, rounded ({fewest} or {most})")


@dataclass(frozen=True, slots=True)
class Ledger:
    """Several mechanisms run one after the other on the same data, adaptively or not.

    Attributes:
        parts: the mechanisms in the order in which they ran; at least one.
    """

    parts: tuple[Gaussian | Laplace | DPSGD, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ParameterError("parts", self.parts, "at least one mechanism")


Mechanism = Gaussian | Laplace | DPSGD | Ledger
