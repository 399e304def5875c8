"""``Diameter.CENTROID``: the distance to the mean gradient, in time and memory that grow with the number of values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from reticent.sensitivity import Diameter, GradientSensitivity, Precision, SensitiveAttribute

CLIP = 0.3


class _Product(nn.Module):
    """No layer that is known."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(12, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) @ self.w


def _sequence() -> nn.Module:
    """A linear layer on three positions: products over pairs of positions."""
    return nn.Sequential(nn.Unflatten(1, (3, 4)), nn.Linear(4, 9), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3))


def _convolution() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 3, 4)), nn.Conv2d(1, 4, 2), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten())


MODELS = {
    "two classes": lambda: nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 2)),
    "three layers": lambda: nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 5, bias=False), nn.Linear(5, 3)),
    "sequence": _sequence,
    "convolution": _convolution,
    "unknown layer": _Product,
}
ATTRIBUTES = {
    "one column": SensitiveAttribute.number(3, -1.0, 1.0, 9),
    "several columns": SensitiveAttribute((0, 2, 5, 6, 7, 11), np.eye(6) - 0.3),
}


def _naive(model: nn.Module, attribute: SensitiveAttribute, row: torch.Tensor, label: torch.Tensor) -> np.ndarray:
    """Clipped gradients over the clip norm, one backward pass each, (n, parameters)."""
    found = []
    for value in attribute.values:
        x = row.clone()
        x[list(attribute.columns)] = torch.from_numpy(value)
        loss = nn.functional.cross_entropy(model(x[None]), label[None])
        g = torch.cat([p.flatten() for p in torch.autograd.grad(loss, list(model.parameters()))]).numpy()
        found.append(g / max(np.linalg.norm(g), CLIP))
    return np.array(found)


@pytest.mark.parametrize("of", ATTRIBUTES)
@pytest.mark.parametrize("name", MODELS)
def test_twice_the_distance_to_the_mean(name: str, of: str) -> None:
    torch.manual_seed(0)
    model, attribute = MODELS[name]().double(), ATTRIBUTES[of]
    x, y = torch.randn(5, 12, dtype=torch.float64), torch.randint(0, 2, (5,))
    found = GradientSensitivity(model, attribute, max_grad_norm=CLIP).diameters(x, y, Diameter.CENTROID)
    for value, row, label in zip(found, x, y, strict=True):
        g = _naive(model, attribute, row, label)
        expected = 2.0 * np.linalg.norm(g - g.mean(0), axis=1).max()
        assert float(value) == pytest.approx(expected, rel=1e-9, abs=0)
        assert float(value) > max(np.linalg.norm(g - other, axis=1).max() for other in g)


class _NoPairs(TorchDispatchMode):
    """Fails where a tensor has room for all pairs of values."""

    def __init__(self, values: int) -> None:
        super().__init__()
        self._most = values**2

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for part in out if isinstance(out, (tuple, list)) else (out,):
            assert not isinstance(part, torch.Tensor) or part.numel() < self._most, func
        return out


@pytest.mark.parametrize("name", ["two classes", "unknown layer"])
def test_no_matrix_of_pairs_is_built(name: str) -> None:
    """4,000 values of two records took 800 MB: the whole matrix of distances, of which the mean needs nothing."""
    torch.manual_seed(0)
    attribute = SensitiveAttribute.number(3, -1.0, 1.0, 4000)
    meter = GradientSensitivity(MODELS[name](), attribute, precision=Precision.SINGLE)
    with _NoPairs(4000):
        found = meter.diameters(torch.randn(2, 12), torch.tensor([0, 1]), Diameter.CENTROID)
    assert found.shape == (2,)
