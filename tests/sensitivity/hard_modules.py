"""Modules that are hard on the sensitivity: hooks, patches, state, sequences, images and own gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils import prune


class Net(nn.Module):
    """Children by keyword, and a forward given as a function of the module and the input."""

    def __init__(self, forward: Callable[[nn.Module, torch.Tensor], object], **parts: object) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.how = forward

    def forward(self, x: torch.Tensor) -> object:
        return self.how(self, x)


def head(width: int = 5) -> nn.Linear:
    return nn.Linear(width, 3)


def mlp(*middle: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 5), *(middle or (nn.Tanh(),)), head())


def inside(change: Callable[[nn.Module, torch.Tensor], torch.Tensor], **parts: object) -> Net:
    """Two layers with something between them."""
    forward = lambda m, x: m.out(change(m, torch.tanh(m.first(x))))  # noqa: E731
    return Net(forward, first=nn.Linear(6, 5), out=head(), **parts)


class OwnForward(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 1.7 + x[:, :3]


class PlainSubclass(nn.Sequential):
    pass


def hooked(kind: str) -> nn.Module:
    model = mlp()
    getattr(model[0], f"register_{kind}")(lambda *a: None if kind.endswith("pre_hook") else a[-1])
    return model


def doubled(module: nn.Module, inputs: object, output: torch.Tensor) -> torch.Tensor:
    return output * 2.0


def with_doubling() -> nn.Module:
    model = mlp()
    model[0].register_forward_hook(doubled)
    return model


def with_parameter_hook() -> nn.Module:
    model = mlp()
    model[0].weight.register_hook(lambda g: 0.5 * g)
    return model


def patched() -> nn.Module:
    model = mlp()
    first = model[0]
    first.forward = lambda x: F.linear(x, 2.0 * first.weight, first.bias)
    return model


def patched_dense() -> nn.Module:
    model = mlp()
    model.forward = lambda x: 1.5 * nn.Sequential.forward(model, x)
    return model


def captured() -> nn.Module:
    """A parameter that only a closure knows, besides its module."""
    first, out = nn.Linear(6, 5), head()
    return Net(lambda m, x: m.out(torch.tanh(m.first(x))) + x @ first.weight.T[:, :3], first=first, out=out)


def pruned() -> nn.Module:
    model = mlp()
    prune.l1_unstructured(model[0], "weight", 0.3)
    return model


def zero_head() -> nn.Module:
    model = inside(lambda m, h: h)
    nn.init.zeros_(model.out.weight)
    model.how = lambda m, x: m.out(h := torch.tanh(m.first(x))) + F.linear(h.flip(1), m.out.weight)
    return model


def evaluated(model: nn.Module) -> nn.Module:
    for _ in range(3):
        model(torch.randn(4, 6))
    return model.eval()


def frozen() -> nn.Module:
    model = mlp()
    model[0].requires_grad_(False)
    return model


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.out, self.calls = nn.Linear(6, 5), head(), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.out(torch.tanh(self.first(x))) * (1.0 + 0.01 * self.calls)


class Notes(Counts):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = self.first(x)
        return self.out(torch.tanh(self.last))


class RunningMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.out = nn.Linear(6, 5), head()
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        if self.training:
            self.mean.lerp_(h.detach().mean(0), 0.1)
        return self.out(h - self.mean)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad


def sequence(layer: nn.Module, width: int = 4) -> nn.Module:
    return Net(lambda m, x: m.out(m.layer(x.reshape(len(x), 3, 2))[0][:, -1]), layer=layer, out=head(width))


def dp_lstm() -> nn.Module:
    from opacus.layers import DPLSTM

    return sequence(DPLSTM(2, 4, batch_first=True))


def cells() -> nn.Module:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        state = None
        for t in range(3):
            state = m.cell(x[:, 2 * t : 2 * t + 2], state)
        return m.out(state[0])

    return Net(forward, cell=nn.LSTMCell(2, 4), out=head(4))


def words(table: nn.Module, pool: bool = True) -> nn.Module:
    return Net(lambda m, x: m.out(m.table(x).mean(1) if pool else m.table(x)), table=table, out=head(4))


def tied_words() -> nn.Module:
    table, out = nn.Embedding(12, 4), nn.Linear(4, 12, bias=False)
    out.weight = table.weight
    return Net(lambda m, x: m.out(torch.tanh(m.table(x).mean(1)))[:, :3], table=table, out=out)


def attention() -> nn.Module:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        h = x.reshape(len(x), 3, 2)
        return m.out(m.attend(h, h, h)[0].flatten(1))

    return Net(forward, attend=nn.MultiheadAttention(2, 1, batch_first=True), out=head(6))


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(2, 1, 4, dropout=0.0, batch_first=True)
    return Net(lambda m, x: m.out(m.layer(x.reshape(len(x), 3, 2)).flatten(1)), layer=layer, out=head(6))


def image(*layers: nn.Module, width: int) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), head(width))


def squared_error(outputs: tuple[torch.Tensor, torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
    return ((outputs[0].sum(1) - targets) ** 2) + outputs[1].square().mean(1)


def experts(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.einsum("be,beo->bo", m.gate(x).softmax(1), torch.stack([m.a(x), m.b(x)], dim=1))


def fixed_point(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    h = torch.zeros(len(x), 5, dtype=x.dtype)
    for _ in range(4):
        h = torch.tanh(m.first(x) + 0.5 * m.again(h))
    return m.out(h)


def partly(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        fixed = m.first(x)
    return m.out(torch.tanh(m.first(x)) + fixed)


def generated() -> nn.Module:
    return inside(lambda m, h: h + 0.1 * torch.randn(h.shape, generator=m.source, dtype=h.dtype), source=_Source(3))


class _Source(torch.Generator):
    def __new__(cls, seed: int = 0) -> _Source:
        return super().__new__(cls)

    def __init__(self, seed: int = 0) -> None:
        self.manual_seed(seed)

    def __deepcopy__(self, memo: object) -> _Source:
        return _Source(3)


def deep_double() -> nn.Module:
    return mlp().double()


def branching(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    h = torch.tanh(m.first(x))
    return m.out(torch.stack([row * 2.0 if float(row.sum()) > 0.0 else row for row in h]))
