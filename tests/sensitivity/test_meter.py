"""Distances against brute force: one autograd call per completion, all pairs, nothing shared with the library."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from reticent.kernel.errors import ParameterError
from reticent.sensitivity import GradientSensitivity, Precision, Route, SensitiveAttribute

_LAST: dict = {}


def _brute(model: nn.Module, x: torch.Tensor, y: torch.Tensor, attribute: SensitiveAttribute, clip: float):
    """(distances (records, n, n), norms (records, n)) in double, in units of the clip norm."""
    distances, norms = [], []
    for raw in _gradients(model, x, y, attribute):
        g = raw / clip / (raw.norm(dim=1, keepdim=True) / clip).clamp(min=1.0)
        # Differences first, then norms: the only form that keeps small distances.
        distances.append(torch.stack([(g - other).norm(dim=1) for other in g]))
        norms.append(g.norm(dim=1))
    return torch.stack(distances), torch.stack(norms)


def _gradients(model: nn.Module, x: torch.Tensor, y: torch.Tensor, attribute: SensitiveAttribute):
    """For each record its (n, parameters) gradients; the last answer is kept for the next clip norm."""
    asked = (model, x, y, attribute)
    key = [*map(id, asked), *(p._version for p in model.parameters())]
    if _LAST.get("key") == key:
        return _LAST["found"]
    double = torch.nn.Module.double(_clone(model))
    trained = [p for p in double.parameters() if p.requires_grad]
    found = []
    for row, label in zip(x, y, strict=True):
        grads = []
        for value in attribute.values:
            one = row.double().clone() if row.is_floating_point() else row.clone()
            one.view(-1)[list(attribute.columns)] = torch.as_tensor(value, dtype=one.dtype)
            loss = nn.functional.cross_entropy(double(one[None]), label[None])
            grads.append(torch.cat([v.flatten() for v in torch.autograd.grad(loss, trained)]))
        found.append(torch.stack(grads))
    _LAST.update(key=key, asked=asked, found=found)  # what was asked is kept: ids stay theirs
    return found


def _clone(model: nn.Module) -> nn.Module:
    state = {k: v.clone() for k, v in model.state_dict().items()}
    with torch.random.fork_rng(devices=[]):
        fresh = _MODELS[model.kind]()[0]
    fresh.load_state_dict(state)
    for own, theirs in zip(fresh.parameters(), model.parameters(), strict=True):
        own.requires_grad_(theirs.requires_grad)
    return fresh


def _tag(model: nn.Module, kind: str) -> nn.Module:
    model.kind = kind
    return model


def _table(kind: str, activation: type[nn.Module], classes: int):
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(12, 16), activation(), nn.Linear(16, 9), activation(), nn.Linear(9, classes)
    )
    return _tag(model, kind), torch.randn(24, 12), SensitiveAttribute.number(3, -1.5, 2.0, 7), classes


def _convnet():
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, stride=2, padding=1),
        nn.GroupNorm(2, 6),
        nn.ReLU(),
        nn.Conv2d(6, 8, 3, padding=1, dilation=1),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 3),
    )
    attribute = SensitiveAttribute((14, 15), np.array([[0.0, 0.0], [1.0, 0.3], [0.5, -1.0], [0.0, 1e-4]]))
    return _tag(model, "convnet"), torch.randn(10, 1, 8, 8), attribute, 3


class _Words(nn.Module):
    """An embedding, a sequence layer, a norm, one layer used twice, a bare parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 6, padding_idx=0)
        self.mix = nn.Linear(6, 5)
        self.norm = nn.LayerNorm(5)
        self.twice = nn.Linear(5, 5, bias=False)
        self.scale = nn.Parameter(torch.full((5,), 1.3))
        self.out = nn.Linear(5, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        h = self.norm(torch.tanh(self.mix(self.table(tokens))))
        h = torch.tanh(self.twice(torch.tanh(self.twice(h)))) * self.scale
        return self.out(h.mean(1))


def _words():
    attribute = SensitiveAttribute((2,), np.array([[0.0], [3.0], [7.0], [8.0], [19.0]]))
    return _tag(_Words(), "words"), torch.randint(0, 20, (12, 7)), attribute, 4


class _Signal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding=2, stride=2, dilation=2)
        self.grouped = nn.Conv1d(4, 4, 2, groups=2)
        self.out = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.grouped(torch.tanh(self.conv(x)))).mean(2))


def _signal():
    return _tag(_Signal(), "signal"), torch.randn(9, 2, 11), SensitiveAttribute.number(4, 0.0, 1.0, 3), 3


def _linear():
    """Two classes, and no activation between the layers."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 9), nn.Linear(9, 2))
    return _tag(model, "linear"), torch.randn(48, 12), SensitiveAttribute.number(3, -1.5, 2.0, 5), 2


_MODELS = {
    "tanh": lambda: _table("tanh", nn.Tanh, 2),
    "relu": lambda: _table("relu", nn.ReLU, 5),
    "sigmoid": lambda: _table("sigmoid", nn.Sigmoid, 2),
    "convnet": _convnet,
    "words": _words,
    "signal": _signal,
    "linear": _linear,
}


def _case(kind: str, steps: int):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model, x, attribute, classes = _MODELS[kind]()
        y = torch.randint(0, classes, (len(x),))
        optimiser = torch.optim.SGD(model.parameters(), lr=0.2)
        for _ in range(steps):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
    return model, x, y, attribute


def _measure(model, x, y, attribute, clip, **settings):
    meter = GradientSensitivity(model, attribute, max_grad_norm=clip, **settings)
    blocks = [(b.squared.clone(), b.norms.clone()) for b in meter.blocks(x, y)]
    return torch.cat([b[0] for b in blocks]).sqrt(), torch.cat([b[1] for b in blocks])


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("kind", ["relu", *(pytest.param(k, marks=pytest.mark.slow) for k in ("tanh", "sigmoid"))])
def test_two_values_are_exact(kind, precision):
    model, x, y, attribute = _case(kind, 200)
    two = SensitiveAttribute(attribute.columns, attribute.values[[0, -1]])
    for clip in (0.05, 50.0):
        expected, _ = _brute(model, x, y, two, clip)
        meter = GradientSensitivity(model, two, max_grad_norm=clip, precision=precision)
        largest = meter.diameters(x, y)
        assert meter.route is Route.DENSE  # one that is wrong would be left for a slower one
        torch.testing.assert_close(
            largest.double().square(), expected.amax((1, 2)).square(), rtol=0.0, atol=meter.slack
        )


@pytest.mark.parametrize("steps", [200, *(pytest.param(steps, marks=pytest.mark.slow) for steps in (0, 2000))])
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in {"tanh", "convnet"} else pytest.mark.slow) for k in _MODELS]
)
def test_equal_to_brute_force_over_all_pairs(kind, steps):
    model, x, y, attribute = _case(kind, steps)
    plain, _ = _brute(model, x, y, attribute, 1e9)
    for clip in (0.3, float(plain[plain > 0].median()) * 1e9):
        expected, norms = _brute(model, x, y, attribute, clip)
        distances, own_norms = _measure(model, x, y, attribute, clip)
        far = expected >= 1e-5
        torch.testing.assert_close(distances[far], expected[far], rtol=1e-6, atol=0.0)
        assert float(distances[~far].max()) <= 1.0001e-5
        torch.testing.assert_close(own_norms, norms, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("values", [pytest.param(2, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize("kind", ["tanh", pytest.param("relu", marks=pytest.mark.slow), "convnet"])
def test_distances_of_1e_minus_5_of_the_clip_norm(kind, values):
    model, x, y, attribute = _case(kind, 200)
    close = SensitiveAttribute(attribute.columns, attribute.values[:1] + np.linspace(0, 5e-5 * values, values)[:, None])
    expected, _ = _brute(model, x, y, close, 5.0)
    distances, _ = _measure(model, x, y, close, 5.0)
    small = (expected > 1e-7) & (expected < 2e-5)
    assert int(small.sum()) > 4 * values
    torch.testing.assert_close(distances[small], expected[small], rtol=1e-6, atol=0.0)


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in {"convnet", "words"} else pytest.mark.slow) for k in _MODELS]
)
def test_single_precision_stays_within_its_slack(kind):
    model, x, y, attribute = _case(kind, 200)
    expected, _ = _brute(model, x, y, attribute, 0.5)
    distances, _ = _measure(model, x, y, attribute, 0.5, precision=Precision.SINGLE)
    slack = GradientSensitivity(model, attribute, precision=Precision.SINGLE).slack
    largest = expected.amax((1, 2))
    error = (distances.double().amax((1, 2)) - largest).abs()
    assert float((distances.double().square() - expected.square()).abs().max()) <= slack
    assert float((error / largest.clamp(min=1e-3)).max()) <= 1e-4


@pytest.mark.parametrize("kind", ["tanh", "convnet", "words"])
def test_blocks_do_not_change_the_result(kind):
    model, x, y, attribute = _case(kind, 3)
    whole, _ = _measure(model, x, y, attribute, 0.4)
    tiny, _ = _measure(model, x, y, attribute, 0.4, memory=1)
    torch.testing.assert_close(tiny, whole, rtol=1e-9, atol=1e-13)


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_own_loss_and_opacus_wrapper():
    from opacus import GradSampleModule

    model, x, y, attribute = _case("relu", 5)
    expected, _ = _measure(model, x, y, attribute, 0.3)
    wrapped = GradSampleModule(model)
    nn.functional.cross_entropy(wrapped(x), y).backward()
    before = [p.grad_sample.clone() for p in wrapped.parameters()]
    loss = lambda out, target: nn.functional.cross_entropy(out, target, reduction="none")  # noqa: E731
    distances, _ = _measure(wrapped, x, y, attribute, 0.3, loss=loss)
    torch.testing.assert_close(distances, expected, rtol=1e-9, atol=1e-13)
    for p, kept in zip(wrapped.parameters(), before, strict=True):
        assert torch.equal(p.grad_sample, kept)


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_layered_engine_leaves_the_wrapper_alone():
    from opacus import GradSampleModule

    model, x, y, attribute = _case("convnet", 5)
    expected, _ = _measure(model, x, y, attribute, 0.3)
    wrapped = GradSampleModule(model)
    nn.functional.cross_entropy(wrapped(x), y).backward()
    before = [(p.grad.clone(), p.grad_sample.clone()) for p in wrapped.parameters()]
    distances, _ = _measure(wrapped, x, y, attribute, 0.3)
    torch.testing.assert_close(distances, expected, rtol=1e-9, atol=1e-13)
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
    wide = torch.cat([e, torch.zeros(1, 2, 2).double()], dim=2)
    for errors in (e.clone(), wide):
        squared = squared_distances(linear_gram(a, errors, bias=True))
        assert float(squared[0, 0, 1].sqrt()) == pytest.approx(2.73861278752583057, rel=1e-12, abs=0)


def test_attributes():
    jointly = SensitiveAttribute.jointly(SensitiveAttribute.number(0, 0, 1, 2), SensitiveAttribute((3, 4), np.eye(2)))
    assert jointly.columns == (0, 3, 4)
    assert jointly.values.tolist() == [[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
    seen = SensitiveAttribute.observed([1], np.array([[0.0, 2.0], [1.0, 1.0], [0.0, 2.0]]))
    assert seen.values.tolist() == [[1.0], [2.0]]
    with pytest.raises(ParameterError, match="values"):
        SensitiveAttribute((0,), np.zeros((1, 1)))
    with pytest.raises(ParameterError, match="columns"):
        SensitiveAttribute((0, 0), np.zeros((2, 2)))


def test_no_random_draw():
    for kind in _MODELS:
        model, x, y, attribute = _case(kind, 0)
        state = torch.get_rng_state()
        _measure(model, x, y, attribute, 1.0)
        assert torch.equal(torch.get_rng_state(), state)


def test_brute_force_can_fail():
    """The oracle disagrees with a wrong clip norm: the comparison above has teeth."""
    model, x, y, attribute = _case("tanh", 0)
    expected, _ = _brute(model, x, y, attribute, 2.0)
    distances, _ = _measure(model, x, y, attribute, 2.4)
    assert float((distances - expected).abs().max()) > 1e-4
    assert len(list(itertools.islice(GradientSensitivity(model, attribute).blocks(x[:0], y[:0]), 1))) == 0


@pytest.mark.parametrize("values", [2, 4])
@pytest.mark.parametrize("end", [[nn.Linear(12, 3)], [nn.Linear(12, 5), nn.Tanh(), nn.Linear(5, 3), nn.ReLU()]])
def test_a_loss_whose_gradient_is_one_number_for_all(end, values):
    model, x, y = nn.Sequential(*end), torch.randn(6, 12, generator=torch.Generator().manual_seed(3)), torch.zeros(6)
    attribute = SensitiveAttribute.number(3, -1.0, 1.0, values)
    meter = GradientSensitivity(model, attribute, loss=lambda out, target: out.sum(1))
    layered = GradientSensitivity(nn.Sequential(model), attribute, loss=lambda out, target: out.sum(1))
    np.testing.assert_allclose(meter.diameters(x, y), layered.diameters(x, y), rtol=1e-9)
    assert (meter.route, layered.route) == (Route.DENSE, Route.LAYERED)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tanh_is_the_same_on_many_threads(dtype, monkeypatch):
    from reticent.sensitivity import dense

    x = torch.cat([torch.logspace(-30, 3, 101, dtype=dtype), torch.tensor([0.0, torch.inf, torch.nan], dtype=dtype)])
    few = dense.tanh(torch.cat([x, -x]))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    many = dense.tanh(torch.cat([x, -x]))
    torch.testing.assert_close(few, many, rtol=4.0 * torch.finfo(dtype).eps, atol=0.0, equal_nan=True)


def test_two_classes_without_an_activation_are_a_dense_network():
    model, x, y, attribute = _case("linear", 20)
    meter = GradientSensitivity(model, attribute)
    expected, _ = _brute(model, x, y, attribute, 1.0)
    assert float(meter.diameters(x, y).max()) == pytest.approx(float(expected.max()), rel=1e-9, abs=0)
    assert meter.route is Route.DENSE
