"""Distances against brute force: of trained networks, close values, in single precision, and to the mean."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from reticent.sensitivity import Diameter, GradientSensitivity, Precision, Route, SensitiveAttribute
from tests.sensitivity.cases import clipped, distances, whole
from tests.watching.programs import Net

DRAW = torch.Generator().manual_seed(7)
normal = partial(torch.randn, generator=DRAW)
NUMBER = SensitiveAttribute.number(3, -1.5, 2.0, 5)
SEVERAL = SensitiveAttribute((0, 2, 5, 6, 7, 11), np.eye(6) - 0.3)


def table(activation: type[nn.Module], classes: int) -> nn.Sequential:
    sizes = nn.Linear(12, 16), activation(), nn.Linear(16, 9, bias=False), activation(), nn.Linear(9, classes)
    return nn.Sequential(nn.Flatten(), *sizes)


def convnet() -> nn.Module:
    first = nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.GroupNorm(2, 6), nn.ReLU()
    then = nn.Conv2d(6, 8, 3, padding=1, dilation=1), nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
    return nn.Sequential(*first, *then, nn.Linear(32, 3))


def words() -> nn.Module:
    """An embedding, a sequence layer, a norm, one layer used twice, a bare parameter."""

    def forward(m: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        h = m.norm(torch.tanh(m.mix(m.table(tokens))))
        return m.out((torch.tanh(m.twice(torch.tanh(m.twice(h)))) * m.scale).mean(1))

    parts = {"table": nn.Embedding(20, 6, padding_idx=0), "mix": nn.Linear(6, 5), "norm": nn.LayerNorm(5)}
    parts |= {"twice": nn.Linear(5, 5, bias=False), "scale": nn.Parameter(torch.full((5,), 1.3))}
    return Net(forward, **parts, out=nn.Linear(5, 4))


def signal() -> nn.Module:
    strided = nn.Conv1d(2, 4, 3, padding=2, stride=2, dilation=2)
    grouped = nn.Conv1d(4, 4, 2, groups=2)
    forward = lambda m, x: m.out(torch.tanh(m.grouped(torch.tanh(m.conv(x)))).mean(2))  # noqa: E731
    return Net(forward, conv=strided, grouped=grouped, out=nn.Linear(4, 3))


def unknown() -> nn.Module:
    """No layer that is known."""
    return Net(lambda m, x: torch.tanh(x) @ m.w, w=nn.Parameter(torch.randn(12, 3)))


MODELS = {
    "tanh": (lambda: table(nn.Tanh, 2), normal(8, 12), NUMBER),
    "relu": (lambda: table(nn.ReLU, 5), normal(8, 12), NUMBER),
    "sigmoid": (lambda: table(nn.Sigmoid, 2), normal(8, 12), SEVERAL),
    "two values": (lambda: table(nn.ReLU, 5), normal(8, 12), SensitiveAttribute.number(3, -1.5, 2.0, 2)),
    "linear": (lambda: nn.Sequential(nn.Linear(12, 9), nn.Linear(9, 2)), normal(8, 12), NUMBER),
    "convnet": (
        convnet,
        normal(5, 1, 8, 8),
        SensitiveAttribute((14, 15), np.array([[0.0, 0.0], [1.0, 0.3], [0.5, -1.0], [0.0, 1e-4]])),
    ),
    "words": (
        words,
        torch.randint(0, 20, (6, 7), generator=DRAW),
        SensitiveAttribute((2,), np.array([0.0, 3.0, 7.0, 8.0, 19.0])[:, None]),
    ),
    "signal": (signal, normal(5, 2, 11), SensitiveAttribute.number(4, 0.0, 1.0, 3)),
    "sequence": (
        lambda: nn.Sequential(nn.Unflatten(1, (3, 4)), nn.Linear(4, 9), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3)),
        normal(5, 12),
        SEVERAL,
    ),
    "unknown layer": (unknown, normal(5, 12), SEVERAL),
}
FAST = {"tanh", "relu", "sigmoid", "two values", "linear"}


@cache
def trained(name: str, steps: int = 30):
    """A network after some steps of gradient descent, its records and labels, and the attribute."""
    build, x, attribute = MODELS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = build()
        y = torch.randint(0, model(x).shape[1], (len(x),))
        optimiser = torch.optim.SGD(model.parameters(), lr=0.2)
        for _ in range(steps):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
    exact = build()
    exact.load_state_dict(model.state_dict())
    return model, exact.double(), x, y, attribute


@pytest.mark.parametrize("steps", [30, *(pytest.param(steps, marks=pytest.mark.slow) for steps in (0, 2000))])
@pytest.mark.parametrize("name", MODELS)
def test_equal_to_brute_force_over_all_pairs(name, steps):
    """In double, in blocks of one record, and in single precision; nothing is drawn."""
    model, exact, x, y, attribute = trained(name, steps)
    state = torch.get_rng_state()
    plain = distances(clipped(exact, x, y, attribute, 1e9))
    for clip in (float(plain[plain > 0].median()) * 1e9, 0.3):
        g = clipped(exact, x, y, attribute, clip)
        expected, meter = distances(g), GradientSensitivity(model, attribute, max_grad_norm=clip)
        squared, norms = whole(meter, x, y)
        far = expected >= 1e-5
        torch.testing.assert_close(squared.sqrt()[far], expected[far], rtol=1e-6, atol=0.0)
        assert float(squared[~far].max()) <= 1.0001e-10
        torch.testing.assert_close(norms, g.norm(dim=2), rtol=1e-9, atol=1e-12)
        assert meter.route is (Route.DENSE if name in FAST else Route.LAYERED)
    few, _ = whole(GradientSensitivity(model, attribute, max_grad_norm=clip, memory=1), x, y)
    torch.testing.assert_close(few, squared, rtol=1e-9, atol=1e-15)
    single = GradientSensitivity(model, attribute, max_grad_norm=clip, precision=Precision.SINGLE)
    rough, _ = whole(single, x, y)
    assert float((rough.double() - expected.square()).abs().max()) <= single.slack
    largest, found = expected.amax((1, 2)), rough.double().sqrt().amax((1, 2))
    assert float(((found - largest).abs() / largest.clamp(min=1e-2)).max()) <= (5e-4 if steps == 2000 else 1e-4)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["tanh", "relu", "convnet"])
def test_distances_of_1e_minus_5_of_the_clip_norm(name):
    model, exact, x, y, attribute = trained(name)
    close = SensitiveAttribute(attribute.columns, attribute.values[:1] + np.linspace(0, 2e-4, 4)[:, None])
    expected = distances(clipped(exact, x, y, close, 5.0))
    squared, _ = whole(GradientSensitivity(model, close, max_grad_norm=5.0), x, y)
    small = (expected > 1e-7) & (expected < 2e-5)
    assert int(small.sum()) > 16
    torch.testing.assert_close(squared.sqrt()[small], expected[small], rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("name", ["tanh", "relu", "sigmoid", "convnet", "sequence", "unknown layer"])
def test_twice_the_distance_to_the_mean(name):
    """``Diameter.CENTROID``, with few columns and with many."""
    _, exact, x, y, attribute = trained(name)
    found = GradientSensitivity(exact, attribute, max_grad_norm=0.3).diameters(x.double(), y, Diameter.CENTROID)
    g = clipped(exact, x, y, attribute, 0.3)
    expected = 2.0 * (g - g.mean(1, keepdim=True)).norm(dim=2).amax(1)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0.0)
    assert bool((found > distances(g).amax((1, 2))).all())


class NoPairs(TorchDispatchMode):
    """Fails where a tensor has room for all pairs of values."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for part in out if isinstance(out, (tuple, list)) else (out,):
            assert not isinstance(part, torch.Tensor) or part.numel() < 4000**2, func
        return out


@pytest.mark.parametrize("name", ["tanh", "unknown layer"])
def test_no_matrix_of_pairs_is_built(name):
    """4,000 values of two records took 800 MB: the whole matrix of distances, of which the mean needs nothing."""
    model, _, x, y, _ = trained(name)
    meter = GradientSensitivity(model, SensitiveAttribute.number(3, -1.0, 1.0, 4000), precision=Precision.SINGLE)
    with NoPairs():
        assert meter.diameters(x[:2], y[:2], Diameter.CENTROID).shape == (2,)


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("name", ["relu", "convnet"])
def test_own_loss_and_a_wrapper_of_opacus_that_is_left_alone(name):
    from opacus import GradSampleModule

    model, _, x, y, attribute = trained(name, 5)
    expected, _ = whole(GradientSensitivity(model, attribute, max_grad_norm=0.3), x, y)
    wrapped = GradSampleModule(model)
    nn.functional.cross_entropy(wrapped(x), y).backward()
    before = [(p.grad.clone(), p.grad_sample.clone()) for p in wrapped.parameters()]
    loss = lambda out, target: nn.functional.cross_entropy(out, target, reduction="none")  # noqa: E731
    found, _ = whole(GradientSensitivity(wrapped, attribute, max_grad_norm=0.3, loss=loss), x, y)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-15)
    for p, (grad, sample) in zip(wrapped.parameters(), before, strict=True):
        assert torch.equal(p.grad, grad)
        assert torch.equal(p.grad_sample, sample)
    wrapped.zero_grad()
    nn.functional.cross_entropy(wrapped(x), y).backward()
    assert all(p.grad_sample.shape[0] == len(x) for p in wrapped.parameters())


def test_gram_example_by_hand():
    """<G_i, G_j> = (a_i.a_j + 1) e_i.e_j: [[1.5, 1], [1, 8]] and distance 2.7386 in the reference vectors."""
    from reticent.sensitivity.gram import linear_gram, squared_distances

    a, e = torch.tensor([[[1.0, 2.0], [0.0, -1.0]]]).double(), torch.tensor([[[0.5], [-2.0]]]).double()
    for errors in (e.clone(), torch.cat([e, torch.zeros(1, 2, 2).double()], dim=2)):
        squared = squared_distances(linear_gram(a, errors, bias=True))
        assert float(squared[0, 0, 1].sqrt()) == pytest.approx(2.73861278752583057, rel=1e-12, abs=0)


@pytest.mark.parametrize("values", [2, 4])
@pytest.mark.parametrize("end", [[nn.Linear(12, 3)], [nn.Linear(12, 5), nn.Tanh(), nn.Linear(5, 3), nn.ReLU()]])
def test_a_loss_whose_gradient_is_one_number_for_all(end, values):
    model, x, y = nn.Sequential(*end), torch.randn(6, 12, generator=torch.Generator().manual_seed(3)), torch.zeros(6)
    attribute = SensitiveAttribute.number(3, -1.0, 1.0, values)
    meter, layered = (
        GradientSensitivity(module, attribute, loss=lambda out, target: out.sum(1))
        for module in (model, nn.Sequential(model))
    )
    np.testing.assert_allclose(meter.diameters(x, y), layered.diameters(x, y), rtol=1e-9)
    assert (meter.route, layered.route) == (Route.DENSE, Route.LAYERED)
    assert meter.diameters(x[:0], y[:0]).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tanh_is_the_same_on_many_threads(dtype, monkeypatch):
    from reticent.sensitivity import dense

    x = torch.cat([torch.logspace(-30, 3, 101, dtype=dtype), torch.tensor([0.0, torch.inf, torch.nan], dtype=dtype)])
    few = dense.tanh(torch.cat([x, -x]))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    many = dense.tanh(torch.cat([x, -x]))
    torch.testing.assert_close(few, many, rtol=4.0 * torch.finfo(dtype).eps, atol=0.0, equal_nan=True)
