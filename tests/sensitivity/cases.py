"""Modules for the sensitivity, each with the route that must be taken or the words of the refusal; and brute force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils import parametrizations, prune
from torch.utils.checkpoint import checkpoint

from reticent.sensitivity import GradientSensitivity, Route, SensitiveAttribute
from tests.watching.programs import Net

DENSE, LAYERED, SINGLE = Route
IMAGE = (1, 6, 6)


def gradients_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor, loss=None) -> torch.Tensor:
    """Gradients of each record by the trained weights in double, (records, parameters): one backward pass each.

    Nothing is shared with the library.
    """
    trained, loss = (
        [p for p in model.parameters() if p.requires_grad],
        loss or partial(F.cross_entropy, reduction="none"),
    )
    rows = []
    for one, label in zip(x, y, strict=True):
        own = torch.autograd.grad(loss(model(one[None]), label[None]).sum(), trained, allow_unused=True)
        flat = [torch.zeros_like(p) if g is None else g.to_dense() for g, p in zip(own, trained, strict=True)]
        rows.append(torch.cat([g.flatten() for g in flat]).double())
    return torch.stack(rows)


def clipped(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, attribute: SensitiveAttribute, clip: float, loss=None
) -> torch.Tensor:
    """Clipped gradients of all completions over the clip norm, (records, n, parameters)."""
    completions = x.to(next(model.parameters()).dtype if x.is_floating_point() else x.dtype)
    completions = completions.repeat_interleave(len(attribute.values), dim=0)
    values = torch.as_tensor(attribute.values, dtype=completions.dtype).repeat(len(x), 1)
    completions.view(len(completions), -1)[:, list(attribute.columns)] = values
    g = gradients_of(model, completions, y.repeat_interleave(len(attribute.values)), loss)
    g = g.reshape(len(x), len(attribute.values), -1)
    return g / clip / (g.norm(dim=2, keepdim=True) / clip).clamp(min=1.0)


def distances(g: torch.Tensor) -> torch.Tensor:
    """Of all pairs, (records, n, n); differences first, then norms: the only form that keeps small distances."""
    return (g[:, :, None] - g[:, None]).norm(dim=3)


def whole(meter: GradientSensitivity, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Squares and norms of all blocks."""
    blocks = [(b.squared.clone(), b.norms.clone()) for b in meter.blocks(x, y)]
    return torch.cat([b[0] for b in blocks]), torch.cat([b[1] for b in blocks])


def head(width: int = 5) -> nn.Linear:
    return nn.Linear(width, 3)


def mlp(*middle: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 5), *(middle or (nn.Tanh(),)), head())


def inside(change: Callable[[nn.Module, torch.Tensor], torch.Tensor], **parts: object) -> Net:
    """Two layers with something between them."""
    return Net(lambda m, x: m.out(change(m, torch.tanh(m.first(x)))), first=nn.Linear(6, 5), out=head(), **parts)


def linear(change: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> Net:
    """The same with a layer ``mid``."""
    return inside(change, mid=nn.Linear(5, 5))


def changed(change: Callable[[nn.Sequential], object]) -> nn.Sequential:
    """A plain network to which something was done."""
    model = mlp()
    change(model)
    return model


def hooked(kind: str) -> nn.Module:
    hook = lambda *a: None if kind.endswith("pre_hook") else a[-1]  # noqa: E731
    return changed(lambda m: getattr(m[0], f"register_{kind}")(hook))


def doubled(module: nn.Module, inputs: object, output: torch.Tensor) -> torch.Tensor:
    return output * 2.0


class OwnForward(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 1.7 + x[:, :3]


class PlainSubclass(nn.Sequential):
    pass


def captured() -> nn.Module:
    """A parameter that only a closure knows, besides its module."""
    first, out = nn.Linear(6, 5), head()
    return Net(lambda m, x: m.out(torch.tanh(m.first(x))) + x @ first.weight.T[:, :3], first=first, out=out)


def zero_head() -> nn.Module:
    model = inside(lambda m, h: h)
    nn.init.zeros_(model.out.weight)
    model.how = lambda m, x: m.out(h := torch.tanh(m.first(x))) + F.linear(h.flip(1), m.out.weight)
    return model


def evaluated(model: nn.Module) -> nn.Module:
    for _ in range(3):
        model(torch.randn(4, 6))
    return model.eval()


def notes(m: nn.Module, h: torch.Tensor) -> torch.Tensor:
    m.last = m.mid(h)
    return torch.tanh(m.last)


def counts(m: nn.Module, h: torch.Tensor) -> torch.Tensor:
    m.calls = getattr(m, "calls", 0) + 1
    return h * (1.0 + 0.01 * m.calls)


def running_mean() -> nn.Module:
    model = inside(lambda m, h: h - m.mean.lerp_(h.detach().mean(0), 0.1))
    model.register_buffer("mean", torch.zeros(5))
    return model


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad


def sequence(layer: nn.Module) -> nn.Module:
    return Net(lambda m, x: m.out(m.layer(x.reshape(len(x), 3, 2))[0][:, -1]), layer=layer, out=head(4))


def dp_lstm() -> nn.Module:
    from opacus.layers import DPLSTM

    return sequence(DPLSTM(2, 4, batch_first=True))


def words(**settings: object) -> nn.Module:
    return Net(lambda m, x: m.out(m.table(x).mean(1)), table=nn.Embedding(12, 4, **settings), out=head(4))


def tied_words() -> nn.Module:
    table, out = nn.Embedding(12, 4), nn.Linear(4, 12, bias=False)
    out.weight = table.weight
    return Net(lambda m, x: m.out(torch.tanh(m.table(x).mean(1)))[:, :3], table=table, out=out)


def attention() -> nn.Module:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        h = x.reshape(len(x), 3, 2)
        return m.out(m.attend(h, h, h)[0].flatten(1))

    return Net(forward, attend=nn.MultiheadAttention(2, 1, batch_first=True), out=head(6))


def image(*layers: nn.Module, width: int) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), head(width))


def squared_error(outputs: tuple[torch.Tensor, torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
    return ((outputs[0].sum(1) - targets) ** 2) + outputs[1].square().mean(1)


def partly(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        fixed = m.first(x)
    return m.out(torch.tanh(m.first(x)) + fixed)


def branching(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    h = torch.tanh(m.first(x))
    return m.out(torch.stack([row * 2.0 if float(row.sum()) > 0.0 else row for row in h]))


@dataclass(frozen=True)
class Case:
    """One pattern.

    Attributes:
        build: a fresh model; called twice with the same seed.
        expected: the route, or a pattern that the refusal matches.
        shape: of one record, 6 numbers by default; ``tokens`` takes whole numbers.
        loss: of each record, if it is not cross-entropy on logits.
        dtype: in which the model can run.
    """

    build: Callable[[], nn.Module]
    expected: Route | str
    shape: tuple[int, ...] = (6,)
    tokens: bool = False
    loss: Callable[..., torch.Tensor] | None = None
    dtype: torch.dtype = torch.float64

    @property
    def attribute(self) -> SensitiveAttribute:
        """Three values of one column."""
        return SensitiveAttribute((2,), np.array([1.0, 4.0, 9.0] if self.tokens else [-1.0, 0.3, 2.0])[:, None])

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Five records and their labels."""
        draw = torch.Generator().manual_seed(5)
        x = torch.randint(0, 12, (5, *self.shape), generator=draw) if self.tokens else None
        return (torch.randn(5, *self.shape, generator=draw) if x is None else x), torch.arange(5) % 3

    def fresh(self) -> nn.Module:
        """The model, the same each time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            return self.build()

    def truth(self, clip: float) -> torch.Tensor:
        """Clipped gradients of a model of its own."""
        return clipped(self.fresh().to(self.dtype), *self.batch(), self.attribute, clip, self.loss)


CASES: dict[str, Case] = {
    # The fast ways.
    "sequential of linear layers": Case(mlp, DENSE),
    "sequential with identity": Case(lambda: mlp(nn.Identity(), nn.ReLU()), DENSE),
    "double precision model": Case(lambda: mlp().double(), DENSE),
    "frozen layer": Case(lambda: changed(lambda m: m[0].requires_grad_(False)), LAYERED),
    "prelu": Case(lambda: mlp(nn.PReLU()), LAYERED),
    "layer norm": Case(lambda: mlp(nn.LayerNorm(5)), LAYERED),
    "group norm": Case(lambda: image(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), width=64), LAYERED, IMAGE),
    "batch norm in evaluation": Case(lambda: evaluated(mlp(nn.BatchNorm1d(5))), LAYERED),
    "grouped": Case(lambda: image(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, groups=2), width=16), LAYERED, IMAGE),
    "padding same": Case(lambda: image(nn.Conv2d(1, 2, 3, padding="same"), width=72), LAYERED, IMAGE),
    "padding circular": Case(
        lambda: image(nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), width=72), LAYERED, IMAGE
    ),
    "image viewed as rows by the model's own code": Case(
        lambda: Net(lambda m, x: m.out(m.conv(x).view(len(x), -1)), conv=nn.Conv2d(1, 2, 3), out=head(32)),
        LAYERED,
        IMAGE,
    ),
    "bare parameters and einsum": Case(
        lambda: inside(lambda m, h: torch.einsum("bi,ij->bj", h, m.w), w=nn.Parameter(torch.randn(5, 5))), LAYERED
    ),
    "plain subclass of sequential": Case(lambda: PlainSubclass(nn.Linear(6, 5), nn.Tanh(), head()), LAYERED),
    "subclass with its own forward": Case(lambda: OwnForward(nn.Linear(6, 5), nn.Tanh(), head()), LAYERED),
    "layer called by keyword": Case(lambda: linear(lambda m, h: m.mid(input=h)), LAYERED),
    "layer called and used through F.linear": Case(
        lambda: linear(lambda m, h: m.mid(h) + F.linear(h.flip(1), m.mid.weight)), LAYERED
    ),
    "layer used twice, its weights zero at first": Case(zero_head, LAYERED),
    "layer called twice": Case(lambda: linear(lambda m, h: m.mid(torch.tanh(m.mid(h)))), LAYERED),
    "activation in place": Case(lambda: linear(lambda m, h: m.mid(h).relu_()), LAYERED),
    "stop gradient": Case(lambda: linear(lambda m, h: m.mid(h).detach() * h), LAYERED),
    "partly without gradient": Case(lambda: Net(partly, first=nn.Linear(6, 5), out=head()), LAYERED),
    "child named _module": Case(
        lambda: Net(lambda m, x: m._module(torch.tanh(m.first(x))), first=nn.Linear(6, 5), _module=head()), LAYERED
    ),
    "notes on the module": Case(lambda: linear(notes), LAYERED),
    "weight norm": Case(
        lambda: inside(lambda m, h: m.mid(h), mid=parametrizations.weight_norm(nn.Linear(5, 5))), LAYERED
    ),
    "embedding": Case(lambda: words(padding_idx=0), LAYERED, tokens=True),
    "embedding, tied to the output": Case(tied_words, LAYERED, tokens=True),
    "attention": Case(attention, LAYERED),
    "tuple outputs with a loss of their own": Case(
        lambda: Net(lambda m, x: (m.out(h := torch.tanh(m.first(x))), h), first=nn.Linear(6, 5), out=head()),
        LAYERED,
        loss=squared_error,
    ),
    # The general ways.
    "sparse embedding": Case(lambda: words(sparse=True), LAYERED, tokens=True),
    "embedding scaled by frequency": Case(lambda: words(scale_grad_by_freq=True), LAYERED, tokens=True),
    "gru": Case(lambda: sequence(nn.GRU(2, 4, batch_first=True)), SINGLE),
    "lstm of opacus": Case(dp_lstm, LAYERED),
    "checkpointed": Case(lambda: linear(lambda m, h: checkpoint(m.mid, h, use_reentrant=False)), LAYERED),
    "own autograd function": Case(lambda: linear(lambda m, h: m.mid(Square.apply(h))), LAYERED),
    "branch on the data": Case(lambda: Net(branching, first=nn.Linear(6, 5), out=head()), LAYERED),
    "forward set on a layer": Case(
        lambda: changed(lambda m: setattr(m[0], "forward", lambda x: F.linear(x, 2.0 * m[0].weight))), SINGLE
    ),
    "forward set on the model": Case(
        lambda: changed(lambda m: setattr(m, "forward", lambda x: 1.5 * nn.Sequential.forward(m, x))), SINGLE
    ),
    "parameter captured by a closure": Case(captured, SINGLE),
    "cast to float inside": Case(lambda: linear(lambda m, h: m.mid(h.float())), LAYERED, dtype=torch.float32),
    # Refused, by name.
    "forward hook that computes": Case(
        lambda: changed(lambda m: m[0].register_forward_hook(doubled)), r"layer 0 \(Linear\) has a hook \(doubled\)"
    ),
    "forward pre-hook": Case(lambda: hooked("forward_pre_hook"), "has a hook"),
    "backward hook": Case(lambda: hooked("full_backward_hook"), "has a hook"),
    "hook of a parameter": Case(
        lambda: changed(lambda m: m[0].weight.register_hook(lambda g: 0.5 * g)), "parameter 0.weight has a hook"
    ),
    "pruned": Case(
        lambda: changed(lambda m: prune.l1_unstructured(m[0], "weight", 0.3)), r"has a hook \(L1Unstructured\)"
    ),
    "running mean": Case(running_mean, "changes mean in forward"),
    "counter": Case(lambda: inside(counts), "gives two results for one record"),
    "embedding with max_norm": Case(lambda: words(max_norm=0.5), "has max_norm: it rewrites", tokens=True),
    "no weights": Case(nn.Tanh, "no trained parameter"),
    "all weights frozen": Case(lambda: mlp().requires_grad_(False), "no trained parameter"),
    "lstm with dropout": Case(lambda: nn.LSTM(6, 4, 2, dropout=0.5), "is random while it trains"),
    "attention with dropout": Case(lambda: nn.MultiheadAttention(6, 2, dropout=0.1), "is random while it trains"),
    "random slopes": Case(lambda: mlp(nn.RReLU()), "is random while it trains"),
    "dropout layer": Case(lambda: mlp(nn.Dropout(0.2)), "is random while it trains"),
    "F.dropout in forward": Case(lambda: inside(lambda m, h: F.dropout(h, 0.2)), "draws random numbers in forward"),
    "numpy's generator": Case(
        lambda: inside(lambda m, h: h * (1.0 + 0.1 * np.random.random())), "gives two results for one record"
    ),
    "batch norm in training": Case(lambda: mlp(nn.BatchNorm1d(5)), "mixes the records of a batch"),
    "batch mean": Case(lambda: inside(lambda m, h: h - h.mean(0)), "mixes the records of a batch in forward"),
    "tuple outputs without a loss": Case(
        lambda: Net(lambda m, x: (m.out(x), x), out=head(6)), "loss must be given: the model returns a tuple"
    ),
    "one output": Case(lambda: nn.Sequential(nn.Linear(6, 1)), "a model with two or more outputs"),
    "one row of labels for two of answers": Case(
        lambda: Net(lambda m, x: m.out(x)[:, None], out=head(6)), "loss must be given: the model returns outputs"
    ),
    "bfloat16": Case(lambda: linear(lambda m, h: m.mid(h.bfloat16())).bfloat16(), "does not run on one record"),
    "complex weights": Case(
        lambda: inside(lambda m, h: (h.to(m.w.dtype) @ m.w).real, w=nn.Parameter(torch.randn(5, 5) + 0j)),
        "parameter w is complex",
    ),
    "lazy layer": Case(lambda: nn.Sequential(nn.LazyLinear(5), nn.Tanh(), head()), "has no shape yet"),
    "fails in forward": Case(lambda: inside(lambda m, h: h.nonsense), "does not run on one record alone: Attribute"),
}
