"""White-box audits of a DP-SGD implementation: records whose gradients the auditor chooses.

A :class:`Probe` is a small module on which a record's gradient is exactly what the auditor wrote into the record,
whatever the weights are. Any implementation that trains a torch module with cross-entropy can be driven with it,
so the whole code under audit runs: batches, per-record gradients, clipping, summing, noise, scaling.

"Dirac canaries" are records whose gradient has one non-zero coordinate, each its own, and a norm far above the
clip norm: clipped they are the worst case of the guarantee, orthogonal to each other, so that one run holds
hundreds of independent trials (Nasr et al. 2023; section 5 of KAISSIS2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import nn

from reticent import _check
from reticent.auditing.scores import Design, MetaValue, Scores
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD, Sampler
from reticent.mechanisms.dpsgd import one_record

OVERSHOOT = 100.0
"""Norm of a canary's gradient before clipping, in clip norms."""
_SATURATED = 1e6
"""So far below the other logit the cross-entropy is linear in the logit: its slope is 1 - e^-1000000."""

Layers = tuple[tuple[int, int], ...]


class Trainer(Protocol):
    """A DP-SGD implementation under audit."""

    def __call__(
        self, model: nn.Module, features: torch.Tensor, labels: torch.Tensor, claim: DPSGD, run: int
    ) -> torch.Tensor:
        """Train ``model`` in place on the cross-entropy of its logits, with the settings of ``claim``.

        Args:
            model: a module with Linear layers.
            features: shape (claim.dataset_size, ...).
            labels: shape (claim.dataset_size,).
            claim: what the implementation says that it does.
            run: number of this run; runs are independent, so the implementation must not reuse randomness.

        Returns:
            What each step released: (sum of clipped gradients + noise) / claim.batch_size, flat in the order of
            ``model.parameters()``, shape (claim.steps, parameters).
        """
        ...


class Probe(nn.Module):
    """Logits ``(sum over layers of <u, W x> - 10^6, 0)``: with label 0 the gradient of W is ``-u x^T``.

    Weights start at zero, and as long as they stay small the gradient does not depend on them. A record's features are
    the x and then the u of every layer, one after the other.

    Attributes:
        layers: (outputs, inputs) of every weight matrix.
    """

    def __init__(self, layers: Layers) -> None:
        super().__init__()
        self.layers = layers
        linears = [nn.Linear(inputs, outputs, bias=False) for outputs, inputs in layers]
        for linear in linears:
            nn.init.zeros_(linear.weight)
        self.linears = nn.ModuleList(linears)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Logits, shape (batch, 2)."""
        widths = [inputs for _, inputs in self.layers] + [outputs for outputs, _ in self.layers]
        parts = features.split(widths, dim=1)
        pairs = zip(self.linears, parts[: len(self.layers)], parts[len(self.layers) :], strict=True)
        total = torch.stack([(u * linear(x)).sum(dim=1) for linear, x, u in pairs]).sum(dim=0)
        return torch.stack([total - _SATURATED, torch.zeros_like(total)], dim=1)

    @property
    def dimension(self) -> int:
        """Number of weights."""
        return sum(outputs * inputs for outputs, inputs in self.layers)


def dirac_records(layers: Layers, coordinates: np.ndarray, norms: np.ndarray, dataset_size: int) -> torch.Tensor:
    """Features of records with one non-zero gradient coordinate each; the rest of the data set is silent.

    Args:
        layers: shapes of the probe.
        coordinates: flat position of the coordinate, one per record, doubles allowed.
        norms: gradient at that coordinate.
        dataset_size: records in all; those after the canaries have gradient zero.

    Returns:
        float32, shape (dataset_size, features of the probe).

    Raises:
        ParameterError: more canaries than records in the data set.
    """
    if len(coordinates) > dataset_size:
        raise ParameterError("canaries", len(coordinates), f"at most the {dataset_size} records of the data set")
    coordinates = np.asarray(coordinates, dtype=np.int64)
    ends = np.cumsum([o * i for o, i in layers])
    layer = np.searchsorted(ends, coordinates, side="right")
    starts, columns = np.append(0, ends)[:-1], np.array([i for _, i in layers])
    row, column = np.divmod(coordinates - starts[layer], columns[layer])
    inputs, outputs, width = _places(layers)
    features = np.zeros((dataset_size, width), dtype=np.float32)
    records = np.arange(len(coordinates))
    features[records, inputs[layer] + column] = 1.0
    features[records, outputs[layer] + row] = -np.asarray(norms)
    return torch.from_numpy(features)


def spread_records(layers: Layers, norm: float, dataset_size: int, seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    """Features of records that all have the same gradient, spread evenly over every coordinate of every layer.

    Such a gradient tells clipping of the whole from clipping layer by layer, row by row or number by number, which a
    gradient with one coordinate cannot.

    Args:
        layers: shapes of the probe.
        norm: of the gradient.
        dataset_size: records.
        seed: of the signs.

    Returns:
        float32, shape (dataset_size, features of the probe), and the gradient's direction, shape (dimension,), norm 1.
    """
    rng = np.random.default_rng(seed)
    dimension = sum(outputs * inputs for outputs, inputs in layers)
    left = [rng.choice([-1.0, 1.0], size=outputs) for outputs, _ in layers]
    right = [rng.choice([-1.0, 1.0], size=inputs) for _, inputs in layers]
    inputs, outputs, width = _places(layers)
    row = np.zeros(width, dtype=np.float32)
    for u, x, first, second in zip(left, right, inputs, outputs, strict=True):
        row[first : first + len(x)] = x
        row[second : second + len(u)] = -norm / np.sqrt(dimension) * u
    direction = np.concatenate([np.outer(u, x).ravel() for u, x in zip(left, right, strict=True)]) / np.sqrt(dimension)
    return torch.from_numpy(row).expand(dataset_size, -1), direction


def _places(layers: Layers) -> tuple[np.ndarray, np.ndarray, int]:
    """Where the x and the u of every layer begin in a record's features, and the number of features."""
    inputs = np.cumsum([0] + [i for _, i in layers])
    outputs = inputs[-1] + np.cumsum([0] + [o for o, _ in layers])
    return inputs[:-1], outputs[:-1], int(outputs[-1])


def released_sums(
    trainer: Trainer, layers: Layers, features: torch.Tensor, claim: DPSGD, run: int, dtype: type = np.float64
) -> np.ndarray:
    """Drive the trainer once and give back noisy sums in units of the clip norm, (steps, dimension), as ``dtype``.

    Raises:
        ParameterError: the claim lacks batch or data size, or has no noise; or the trainer returned another shape.
    """
    check_claim(claim)
    model = Probe(layers)
    labels = torch.zeros(len(features), dtype=torch.int64)
    released = torch.as_tensor(trainer(model, features, labels, claim, run)).detach().cpu().numpy()
    if released.shape != (claim.steps, model.dimension):
        raise ParameterError("released", released.shape, f"of shape {(claim.steps, model.dimension)}")
    if not np.isfinite(released).all():
        raise ParameterError("released", "NaN or infinity", "finite: the training under audit has diverged")
    return released.astype(dtype, copy=False) * ((claim.batch_size or 1) / claim.max_grad_norm)


def check_claim(claim: DPSGD) -> None:
    """Refuse claims that a white-box audit cannot test.

    Raises:
        ParameterError: batch or data size is missing, or there is no noise.
    """
    one_record(claim, "an audit of a loop")
    if claim.batch_size is None or claim.dataset_size is None:
        raise ParameterError("claim", claim, "with batch_size and dataset_size")
    _check.positive(noise_multiplier=claim.noise_multiplier)


def canary_scores(sums: np.ndarray, claim: DPSGD) -> np.ndarray:
    """Log likelihood ratio of "took part" against "did not", per coordinate, over the whole run.

    The optimal test where the mask is unknown: each step contributes ``log(1 - q + q e^{(y - 1/2)/s^2})``
    (Poisson sampling at rate q, noise multiplier s, canary of clip norm).

    Args:
        sums: noisy sums at the canaries' coordinates in units of the clip norm, (steps, canaries).
        claim: what the implementation says that it does.

    Raises:
        UnsupportedError: batches are not drawn by Poisson sampling.
    """
    if claim.sampler is not Sampler.POISSON:
        raise UnsupportedError(f"the canary test is derived for Poisson sampling, not for {claim.sampler.value}")
    variance, total = claim.noise_multiplier**2, np.zeros(np.shape(sums)[1:])
    for step in sums:  # one at a time: a run of a hundred thousand canaries is large
        ratio = (np.asarray(step, dtype=np.float64) - 0.5) / variance
        if claim.sample_rate == 1.0:
            total += ratio
        else:
            total += np.logaddexp(np.log1p(-claim.sample_rate), np.log(claim.sample_rate) + ratio)
    return total


def unknown_sign_scores(sums: np.ndarray, claim: DPSGD) -> np.ndarray:
    """The relaxed attacker's score: the canary's direction is known up to one sign, the same in all steps.

    The mean of both likelihood ratios is the optimal test where either sign is as likely. Adding up squares
    step by step, as if the sign were new in every step, is weaker (KAISSIS2023:R11).

    Args:
        sums, claim: as for :func:`canary_scores`.
    """
    return np.logaddexp(canary_scores(sums, claim), canary_scores(-sums, claim)) - np.log(2.0)


@dataclass(frozen=True)
class CanaryAudit:
    """Many Dirac canaries through one whole training run.

    Attributes:
        canaries: how many; each takes part by its own fair coin.
        seed: of the coins.
        layers: shapes of the probe, or None for two square-ish layers that hold the canaries.
        sign_known: whether the attacker knows the canary's sign; without it this is the relaxed attacker.
    """

    canaries: int = 1000
    seed: int = 0
    layers: Layers | None = None
    sign_known: bool = True

    def scores(self, trainer: Trainer, claim: DPSGD) -> Scores:
        """Run and score.

        For an implementation that does what it claims, the scores are independent of each other: every canary
        has a coordinate and a sampling mask of its own. So a verdict against the claim is valid; a lower bound
        for an implementation that turns out to be faulty assumes that its noise is independent across coordinates.

        Raises:
            ParameterError: there are more canaries than records or coordinates.
        """
        check_claim(claim)
        layers = self.layers or square_layers(_check.count(canaries=self.canaries))
        dimension = sum(outputs * inputs for outputs, inputs in layers)
        if self.canaries > dimension:
            raise ParameterError("canaries", self.canaries, f"at most the {dimension} coordinates of the probe")
        coordinates, member = self._draw(dimension)
        chosen = coordinates[member]
        norms = np.full(len(chosen), OVERSHOOT * claim.max_grad_norm)
        features = dirac_records(layers, chosen, norms, claim.dataset_size or 0)
        sums = released_sums(trainer, layers, features, claim, run=0, dtype=np.float32)
        score = canary_scores if self.sign_known else unknown_sign_scores
        scores = score(sums[:, coordinates], claim)
        meta: dict[str, MetaValue] = {
            "attack": "canary",
            "canaries": self.canaries,
            "steps": claim.steps,
            "seed": self.seed,
        }
        return Scores(scores[member], scores[~member], meta, Design.INDEPENDENT)

    def _draw(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        coordinates = rng.permutation(dimension)[: self.canaries]
        return coordinates, rng.random(self.canaries) < 0.5


def square_layers(dimension: int) -> Layers:
    """Two layers of different shape with at least ``dimension`` weights together."""
    side = max(2, int(np.ceil(np.sqrt(dimension / 2))))
    return ((side, side + 1), (side + 1, side))
