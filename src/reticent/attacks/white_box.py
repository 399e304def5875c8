"""White-box audits of a DP-SGD implementation: records whose gradients the auditor chooses.

A :class:`Probe` is a small module on which a record's gradient is exactly what the auditor wrote into the record,
whatever the weights are. Any implementation that trains a torch module with cross-entropy can be driven with it,
so the whole code under audit runs: batches, per-record gradients, clipping, summing, noise, scaling.

"Dirac canaries" are records whose gradient has one non-zero coordinate, each its own, and a norm far above the
clip norm: clipped they are the worst case of the guarantee, orthogonal to each other, so that one run holds
hundreds of independent trials (Nasr et al. 2023; section 5 of KAISSIS2023).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import TensorDataset

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD

OVERSHOOT = 100.0
"""Norm of a canary's gradient before clipping, in clip norms."""
_SATURATED = 1e6
"""So far below the other logit the cross-entropy is linear in the logit: its slope is 1 - e^-1000000."""

Layers = tuple[tuple[int, int], ...]
"""(outputs, inputs) of every weight matrix; without inputs it is a bias of this many outputs."""


TrainFunction = Callable[[nn.Module, TensorDataset, DPSGD], torch.Tensor | None]
"""An implementation under audit: trains the model in place by the cross-entropy of its logits, with the settings of the
claim, on ``claim.dataset_size`` records and labels, and reuses no randomness.

It returns nothing, or what each step released: (sum of clipped gradients + noise) / ``claim.batch_size``, flat in the
order of ``model.parameters()``, shape (claim.steps, parameters).
"""


class Probe(nn.Module):
    """Logits ``(sum over layers of <u, W x> - 10^6 (1 + t), 0)``: with label 0 the gradient of W is ``-u x^T``.

    Weights start at zero, and as long as they stay small the gradient does not depend on them. A record's features are
    the x of every layer, the u of every layer, and t, which makes its loss larger and leaves its gradient as it is.

    A layer without inputs is a Linear layer with a bias whose only input is always zero: the gradient of the bias
    is -u, that of its matrix is zero.

    Attributes:
        layers: (outputs, inputs) of every weight matrix; without inputs it is a bias.
    """

    def __init__(self, layers: Layers) -> None:
        super().__init__()
        self.layers = layers
        linears = [nn.Linear(max(1, inputs), outputs, bias=inputs == 0) for outputs, inputs in layers]
        for linear in linears:
            for parameter in linear.parameters():
                nn.init.zeros_(parameter)
        self.linears = nn.ModuleList(linears)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Logits, shape (batch, 2)."""
        widths = [inputs for _, inputs in self.layers] + [outputs for outputs, _ in self.layers]
        *parts, extra = features.split([*widths, 1], dim=1)
        silent = features.new_zeros(len(features), 1)
        inputs = [x if x.shape[1] else silent for x in parts[: len(self.layers)]]
        pairs = zip(self.linears, inputs, parts[len(self.layers) :], strict=True)
        total = torch.stack([(u * linear(x)).sum(dim=1) for linear, x, u in pairs]).sum(dim=0)
        return torch.stack([total - _SATURATED * (1.0 + extra[:, 0]), torch.zeros_like(total)], dim=1)

    @property
    def dimension(self) -> int:
        """Number of weights."""
        return sum(sizes(self.layers))


def sizes(layers: Layers) -> list[int]:
    """How many weights each layer has; a bias comes with a column of weights that never move."""
    return [outputs * inputs if inputs else 2 * outputs for outputs, inputs in layers]


def usable(layers: Layers) -> np.ndarray:
    """The coordinates that a record may have as the only one of its gradient: all but the columns next to biases."""
    starts = np.cumsum([0, *sizes(layers)])
    parts = [
        start + np.arange(outputs * inputs) if inputs else start + outputs + np.arange(outputs)
        for start, (outputs, inputs) in zip(starts, layers, strict=False)
    ]
    return np.concatenate(parts)


def dirac_records(
    layers: Layers, coordinates: np.ndarray, norms: np.ndarray, dataset_size: int, records: np.ndarray | None = None
) -> torch.Tensor:
    """Features of records with one non-zero gradient coordinate each; the rest of the data set is silent.

    Args:
        coordinates: flat position of the coordinate, one per record, doubles allowed; ``usable`` lists them.
        norms: gradient at that coordinate.
        dataset_size: records in all; all but the canaries have gradient zero.
        records: which of them are the canaries; by default the first.

    Returns:
        float32, shape (dataset_size, features of the probe).

    Raises:
        ParameterError: more canaries than records in the data set.
    """
    if len(coordinates) > dataset_size:
        raise ParameterError("canaries", len(coordinates), f"at most the {dataset_size} records of the data set")
    coordinates = np.asarray(coordinates, dtype=np.int64)
    ends = np.cumsum(sizes(layers))
    layer = np.searchsorted(ends, coordinates, side="right")
    starts, shapes = np.append(0, ends)[:-1], np.array(layers)[layer]
    place, bias = coordinates - starts[layer], shapes[:, 1] == 0
    row, column = np.divmod(place, np.maximum(shapes[:, 1], 1))
    row = np.where(bias, place - shapes[:, 0], row)
    inputs, outputs, width = _places(layers)
    features = np.zeros((dataset_size, width), dtype=np.float32)
    records = np.arange(len(coordinates)) if records is None else records
    features[records[~bias], (inputs[layer] + column)[~bias]] = 1.0
    features[records, outputs[layer] + row] = -np.asarray(norms)
    return torch.from_numpy(features)


def spread_records(layers: Layers, norm: float, dataset_size: int, seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    """Features of records that all have the same gradient, spread evenly over every coordinate of every layer.

    Such a gradient tells clipping of the whole from clipping layer by layer, row by row or number by number, which a
    gradient with one coordinate cannot.

    Returns:
        float32, shape (dataset_size, features of the probe), and the gradient's direction, shape (dimension,), norm 1.
    """
    rng = np.random.default_rng(seed)
    dimension = len(usable(layers))
    left = [rng.choice([-1.0, 1.0], size=outputs) for outputs, _ in layers]
    right = [rng.choice([-1.0, 1.0], size=inputs) for _, inputs in layers]
    inputs, outputs, width = _places(layers)
    row = np.zeros(width, dtype=np.float32)
    for u, x, first, second in zip(left, right, inputs, outputs, strict=True):
        row[first : first + len(x)] = x
        row[second : second + len(u)] = -norm / np.sqrt(dimension) * u
    parts = [
        np.outer(u, x).ravel() if len(x) else np.append(np.zeros(len(u)), u) for u, x in zip(left, right, strict=True)
    ]
    direction = np.concatenate(parts) / np.sqrt(dimension)
    return torch.from_numpy(row).expand(dataset_size, -1), direction


def _places(layers: Layers) -> tuple[np.ndarray, np.ndarray, int]:
    """Where the x and the u of every layer begin in a record's features, and the number of features; t is the last."""
    inputs = np.cumsum([0] + [i for _, i in layers])
    outputs = inputs[-1] + np.cumsum([0] + [o for o, _ in layers])
    return inputs[:-1], outputs[:-1], int(outputs[-1]) + 1


@dataclass(frozen=True, eq=False)
class Released:
    """One run of a trainer on chosen records.

    Attributes:
        sums: noisy sums in units of the clip norm, (steps, dimension).
        weights: at the end, (dimension,).
        moves: how far the weights moved after each step before the next, and where they were then, both
            (steps, dimension); None where the implementation returned what it released.
    """

    sums: np.ndarray
    weights: np.ndarray
    moves: tuple[np.ndarray, np.ndarray] | None = None


def release(
    train: TrainFunction, layers: Layers, features: torch.Tensor, claim: DPSGD, labels: torch.Tensor | None = None
) -> Released:
    """Run the implementation once, and watch the steps of its optimizer; labels are 0 unless given.

    Raises:
        ParameterError: the claim lacks batch or data size, or has no noise; what was returned has another shape; or
            nothing was, and the loop steps no torch optimizer on the model or takes fewer than ``claim.steps`` steps.
    """
    check_claim(claim)
    model = Probe(layers)
    labels = torch.zeros(len(features), dtype=torch.int64) if labels is None else labels
    with _steps_of(model) as seen:
        found = train(model, TensorDataset(features, labels), claim)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).cpu().double().numpy()
    if found is not None:
        return Released(in_clip_norms(found, model, claim), weights)
    if not seen:
        hint = "one for each release; a loop without a torch optimizer returns what each step released"
        raise ParameterError("optimizer steps", "none on the model's parameters", hint)
    if len(seen) < claim.steps:
        raise ParameterError("optimizer steps", len(seen), f"at least claim.steps = {claim.steps}")
    gradients, before, after = (torch.stack(parts) for parts in zip(*seen[: claim.steps], strict=True))
    # A run with more steps than planned goes on after the last that counts.
    following = np.vstack([before.double().numpy()[1:], weights[None]])
    stayed = after.double().numpy()
    return Released(in_clip_norms(gradients, model, claim), weights, (following - stayed, stayed))


def in_clip_norms(found: torch.Tensor | None, model: Probe, claim: DPSGD, dtype: type = np.float64) -> np.ndarray:
    """What an implementation released, as sums in units of the clip norm, (steps, dimension).

    Raises:
        ParameterError: it has another shape, or is not finite.
    """
    released = torch.as_tensor(found).detach().cpu().numpy()
    if released.shape != (claim.steps, model.dimension):
        raise ParameterError("released", released.shape, f"of shape {(claim.steps, model.dimension)}")
    if not np.isfinite(released).all():
        raise ParameterError("released", "NaN or infinity", "finite: the training under audit has diverged")
    return released.astype(dtype, copy=False) * dtype((claim.batch_size or 1) / claim.max_grad_norm)


@contextmanager
def _steps_of(model: nn.Module) -> Iterator[list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]]:
    """At each step of an optimizer of the model's parameters: the gradient it finds, weights before and after; flat."""
    parameters = list(model.parameters())
    own = {id(p) for p in parameters}
    seen: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    started: list[tuple[torch.Tensor, torch.Tensor]] = []

    def concerned(optimizer: Optimizer) -> bool:
        # Opacus wraps the optimizer: what the inner one finds is clipped and noisy.
        wrapped = hasattr(optimizer, "original_optimizer")
        return not wrapped and any(id(p) in own for group in optimizer.param_groups for p in group["params"])

    def weights() -> torch.Tensor:
        return torch.cat([p.detach().flatten().cpu() for p in parameters])

    def before(optimizer: Optimizer, args: object, kwargs: object) -> None:
        if concerned(optimizer):
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
            started.append((torch.cat([g.detach().flatten().cpu() for g in gradients]), weights()))

    def after(optimizer: Optimizer, args: object, kwargs: object) -> None:
        if concerned(optimizer) and started:
            seen.append((*started.pop(), weights()))

    handles = register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def check_claim(claim: DPSGD) -> None:
    """Refuse claims that a white-box audit cannot test.

    Raises:
        ParameterError: batch or data size is missing, or there is no noise.
    """
    claim.one_record("an audit of a loop")
    if claim.batch_size is None or claim.dataset_size is None:
        raise ParameterError("claim", claim, "with batch_size and dataset_size")
    checks.positive(noise_multiplier=claim.noise_multiplier)


def square_layers(dimension: int) -> Layers:
    """Two layers of different shape with at least ``dimension`` weights together."""
    side = max(2, int(np.ceil(np.sqrt(dimension / 2))))
    return ((side, side + 1), (side + 1, side))
