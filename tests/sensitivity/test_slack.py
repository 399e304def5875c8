"""How far rounding moves squared distances: never further than the slack, in extended precision by an own formula.

Where clipping makes two gradients equal that were multiples of each other, all terms of a square cancel. Their distance
came out as the root of what is left, thousands of times the slack that was said to be one of distances.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from reticent.mechanisms.mask_terms import mask_term
from reticent.sensitivity import GradientSensitivity, Precision, Route, SensitiveAttribute
from reticent.sensitivity.meter import Distances
from reticent.sensitivity.recorder import AttributeRecorder, AuditSet
from reticent.sensitivity.recorder_sums import pair_mask_terms
from tests.watching.programs import Net

EACH = list(Precision)


def longer(x: torch.Tensor) -> np.ndarray:
    return x.detach().double().numpy().astype(np.longdouble)


def truth(model: nn.Sequential, x: torch.Tensor, label: int, values: list[float], clip: float) -> np.ndarray:
    """Squared distances of one record, (n, n): passes by hand through layers of which all but the last end in tanh."""
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    gradients = []
    for value in values:
        row = longer(x).copy()
        row[0] = value
        inputs = [row]
        for layer in layers:
            out = longer(layer.weight) @ inputs[-1] + (0.0 if layer.bias is None else longer(layer.bias))
            inputs.append(out if layer is layers[-1] else np.tanh(out))
        error = np.exp(inputs[-1] - inputs[-1].max())
        error = error / error.sum() - (np.arange(len(error)) == label)
        whole = []
        for k in reversed(range(len(layers))):
            whole += [np.outer(error, inputs[k]).ravel(), *([] if layers[k].bias is None else [error])]
            error = (longer(layers[k].weight).T @ error) * (1.0 - inputs[k] ** 2)
        gradient = np.concatenate(whole)
        gradients.append(gradient / max(np.sqrt((gradient**2).sum()), np.longdouble(clip)))
    rows = np.array(gradients)
    return ((rows[:, None] - rows[None]) ** 2).sum(-1)


def wrapped(inner: nn.Sequential) -> nn.Module:
    """The same network, where the meter has to follow its layers."""
    return Net(lambda m, x: m.inner(x), inner=inner)


def parallel(values: list[float]) -> tuple[nn.Sequential, SensitiveAttribute]:
    """No bias, and the attribute is all there is: after clipping, gradients are equal but for the answers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(1, 2, bias=False))
    model[0].weight.data *= 1e-6
    return model, SensitiveAttribute((0,), np.array(values)[:, None])


@pytest.mark.parametrize("precision", EACH)
@pytest.mark.parametrize("route", [Route.DENSE, Route.LAYERED])
@pytest.mark.parametrize("values", [[1.0, 2.0], [-3.0, -1.0], [1.0, 2.0, 3.0], [1.0, 3000.0], [1.0, 30.0, 1000.0]])
def test_multiples_that_clipping_makes_equal(values, route, precision) -> None:
    model, attribute = parallel(values)
    x, y = torch.ones(4, 1), torch.tensor([0, 1, 0, 1])
    meter = GradientSensitivity(
        model if route is Route.DENSE else wrapped(model), attribute, max_grad_norm=1e-3, precision=precision
    )
    largest = max(float(block.squared.max()) for block in meter.blocks(x, y))
    assert meter.route is route
    true = max(float(truth(model, x[0], label, values, 1e-3).max()) for label in (0, 1))
    assert abs(largest - true) <= 0.5 * meter.slack
    assert float(meter.diameters(x, y).max()) ** 2 + meter.slack >= true
    ratio = max(map(abs, values)) / min(map(abs, values))
    assert meter.slack <= 64.0 * torch.finfo(precision.value).eps * 1.01 * ratio**2


@pytest.mark.parametrize("precision", EACH)
@pytest.mark.parametrize("seed", range(12))
def test_no_square_is_further_off_than_its_slack(seed, precision) -> None:
    rng = np.random.default_rng(seed)
    widths = [int(w) for w in (*rng.integers(1, 20, rng.integers(1, 4)), rng.integers(2, 4))]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [nn.Linear(a, b, bias=bool(rng.integers(2))) for a, b in pairwise(widths)]
    model = nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())))[:-1]
    values = [float(v) for v in rng.normal(size=rng.integers(2, 6)) * 10.0 ** rng.uniform(-1.0, 2.0)]
    values = [float(np.float32(v)) for v in values]
    clip = float(10.0 ** rng.uniform(-3.0, 1.0))
    x, y = torch.from_numpy(rng.normal(size=(3, widths[0])).astype(np.float32)), torch.tensor([0, 1, 1])
    own = wrapped(model) if seed % 2 else model
    meter = GradientSensitivity(
        own, SensitiveAttribute((0,), np.array(values)[:, None]), max_grad_norm=clip, precision=precision
    )
    for block in meter.blocks(x, y):
        for row, label, found in zip(x[block.first :], y[block.first :], block.squared, strict=False):
            true = truth(model, row, int(label), values, clip)
            assert float(np.abs(longer(found) - true).max()) <= 0.5 * block.slack


@pytest.mark.parametrize("precision", EACH)
@pytest.mark.parametrize("kept", [True, False])
def test_what_is_recorded_is_never_below_the_truth(kept, precision) -> None:
    """Values whose gradients are all but equal: true squares of 1e-17 came out as 0, or as 2e-16."""
    model, attribute = parallel([1.0, 1.5, 2.0])
    x, y = torch.ones(2, 1), torch.tensor([0, 1])
    audit = AuditSet(x, y, whole=True) if kept else None
    recorder = AttributeRecorder(
        model, attribute, noise_multiplier=1.3, max_grad_norm=1e-3, audit=audit, precision=precision
    )
    for _ in range(3):
        recorder.observe(x, y, None if kept else np.arange(2))
    found = recorder.record()
    true = max(
        float(truth(model, row, int(label), [1.0, 1.5, 2.0], 1e-3).max()) for row, label in zip(x, y, strict=True)
    )
    assert 0.0 < 3.0 * true <= found.squared_change
    assert 3.0 * float(mask_term(1.0, 1.0, math.sqrt(true), 1.3)) <= found.mask_term
    assert found.published_squared_change >= 3.0 * true


@pytest.mark.parametrize("noise", [0.4, 1.0, 4.0])
def test_mask_terms_cover_squares_and_norms_that_are_off_by_the_slack(noise) -> None:
    rng, slack = np.random.default_rng(1), 1e-3
    for _ in range(50):
        u = rng.normal(size=(2, 3))
        u *= rng.uniform(0.1, 1.0, (2, 1)) / np.linalg.norm(u, axis=1, keepdims=True)
        norms, square = (u**2).sum(1), float(((u[0] - u[1]) ** 2).sum())
        low = np.maximum(norms + slack * rng.choice([-1.0, 0.0, 1.0], 2), 0.0)
        squared = torch.tensor([[[0.0, max(square - slack, 0.0)], [max(square - slack, 0.0), 0.0]]])
        block = Distances(0, squared.double(), torch.from_numpy(np.sqrt(low))[None], slack)
        true = float(mask_term(*np.sqrt(norms), math.sqrt(square), noise))
        assert float(pair_mask_terms(block, noise)[0, 0, 1]) >= true * (1.0 - 1e-12)


def test_sequences_that_are_multiples() -> None:
    """Answers that add over the positions of a sequence, all equal, so clipped gradients are: their distance is 0."""
    model = Net(lambda m, x: m.layer(x.reshape(len(x), 2, 32)).sum(1), layer=nn.Linear(32, 32, bias=False))
    nn.init.zeros_(model.layer.weight)
    ones = np.random.default_rng(0).normal(size=64)
    attribute = SensitiveAttribute(tuple(range(64)), np.outer([1000.0, 1.0, 3.0], ones))
    meter = GradientSensitivity(model, attribute, max_grad_norm=1e-3)
    largest = float(meter.diameters(torch.zeros(2, 64), torch.tensor([0, 5])).max())
    assert largest**2 <= 0.5 * meter.slack
