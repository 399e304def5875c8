"""Module types and patterns for the sensitivity, each with the route that must be taken or the words of the refusal."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils import parametrizations
from torch.nn.utils import spectral_norm as old_spectral_norm
from torch.utils.checkpoint import checkpoint

from reticent.sensitivity import Route, SensitiveAttribute
from tests.sensitivity.hard_modules import (
    Counts,
    Net,
    Notes,
    OwnForward,
    PlainSubclass,
    RunningMean,
    Square,
    attention,
    branching,
    captured,
    cells,
    deep_double,
    dp_lstm,
    evaluated,
    experts,
    fixed_point,
    frozen,
    generated,
    head,
    hooked,
    image,
    inside,
    mlp,
    partly,
    patched,
    patched_dense,
    pruned,
    sequence,
    squared_error,
    tied_words,
    transformer,
    with_doubling,
    with_parameter_hook,
    words,
    zero_head,
)

DENSE, LAYERED, SINGLE = Route


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

    def attribute(self) -> SensitiveAttribute:
        """Two or three values of one column."""
        values = [[1.0], [4.0], [9.0]] if self.tokens else [[-1.0], [0.3], [2.0]]
        return SensitiveAttribute((2,), np.array(values))

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Nine records and their labels."""
        draw = torch.Generator().manual_seed(5)
        x = torch.randint(0, 12, (9, *self.shape), generator=draw) if self.tokens else None
        return (torch.randn(9, *self.shape, generator=draw) if x is None else x), torch.arange(9) % 3


IMAGE = (1, 6, 6)
CASES: dict[str, Case] = {
    # The fast ways.
    "sequential of linear layers": Case(mlp, DENSE),
    "sequential with identity": Case(lambda: mlp(nn.Identity(), nn.ReLU()), DENSE),
    "frozen layer": Case(frozen, LAYERED),
    "double precision model": Case(deep_double, DENSE),
    "gelu": Case(lambda: mlp(nn.GELU()), LAYERED),
    "prelu": Case(lambda: mlp(nn.PReLU()), LAYERED),
    "layer norm": Case(lambda: mlp(nn.LayerNorm(5)), LAYERED),
    "group norm": Case(lambda: image(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), width=64), LAYERED, IMAGE),
    "instance norm": Case(
        lambda: image(nn.Conv2d(1, 2, 3), nn.InstanceNorm2d(2, affine=True), width=32), LAYERED, IMAGE
    ),
    "batch norm in evaluation": Case(lambda: evaluated(mlp(nn.BatchNorm1d(5))), LAYERED),
    "grouped convolution": Case(
        lambda: image(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, groups=2), width=16), LAYERED, IMAGE
    ),
    "convolution, padding same": Case(lambda: image(nn.Conv2d(1, 2, 3, padding="same"), width=72), LAYERED, IMAGE),
    "convolution, padding circular": Case(
        lambda: image(nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), width=72), LAYERED, IMAGE
    ),
    "transposed convolution": Case(lambda: image(nn.ConvTranspose2d(1, 2, 2), width=98), LAYERED, IMAGE),
    "convolution in three dimensions": Case(
        lambda: image(nn.Unflatten(1, (1, 1)), nn.Conv3d(1, 2, (1, 3, 3)), width=32), LAYERED, IMAGE
    ),
    "max pooling": Case(lambda: image(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), width=8), LAYERED, IMAGE),
    "image viewed as rows by the model's own code": Case(
        lambda: Net(lambda m, x: m.out(m.conv(x).view(len(x), -1)), conv=nn.Conv2d(1, 2, 3), out=head(32)),
        LAYERED,
        IMAGE,
    ),
    "bilinear": Case(lambda: inside(lambda m, h: m.pair(h, h), pair=nn.Bilinear(5, 5, 5)), LAYERED),
    "bare parameters and einsum": Case(
        lambda: inside(lambda m, h: torch.einsum("bi,ij->bj", h, m.w), w=nn.Parameter(torch.randn(5, 5))), LAYERED
    ),
    "plain subclass of sequential": Case(lambda: PlainSubclass(nn.Linear(6, 5), nn.Tanh(), head()), LAYERED),
    "subclass of sequential with its own forward": Case(
        lambda: OwnForward(nn.Linear(6, 5), nn.Tanh(), head()), LAYERED
    ),
    "layer called by keyword": Case(lambda: inside(lambda m, h: m.mid(input=h), mid=nn.Linear(5, 5)), LAYERED),
    "layer called and used through F.linear": Case(
        lambda: inside(lambda m, h: m.mid(h) + F.linear(h.flip(1), m.mid.weight), mid=nn.Linear(5, 5)), LAYERED
    ),
    "layer used through F.linear only": Case(
        lambda: inside(lambda m, h: F.linear(h, m.mid.weight, m.mid.bias), mid=nn.Linear(5, 5)), LAYERED
    ),
    "layer used twice, its weights zero at first": Case(zero_head, LAYERED),
    "layer called twice": Case(lambda: inside(lambda m, h: m.mid(torch.tanh(m.mid(h))), mid=nn.Linear(5, 5)), LAYERED),
    "recurrence to a fixed point": Case(
        lambda: Net(fixed_point, first=nn.Linear(6, 5), again=nn.Linear(5, 5), out=head()), LAYERED
    ),
    "activation in place": Case(lambda: inside(lambda m, h: m.mid(h).relu_(), mid=nn.Linear(5, 5)), LAYERED),
    "stop gradient": Case(lambda: inside(lambda m, h: m.mid(h).detach() * h, mid=nn.Linear(5, 5)), LAYERED),
    "partly without gradient": Case(lambda: Net(partly, first=nn.Linear(6, 5), out=head()), LAYERED),
    "mixture of experts": Case(
        lambda: Net(experts, gate=nn.Linear(6, 2), a=nn.Linear(6, 3), b=nn.Linear(6, 3)), LAYERED
    ),
    "child named _module": Case(
        lambda: Net(lambda m, x: m._module(torch.tanh(m.first(x))), first=nn.Linear(6, 5), _module=head()), LAYERED
    ),
    "module list": Case(
        lambda: inside(
            lambda m, h: sum(layer(h) for layer in m.layers), layers=nn.ModuleList(nn.Linear(5, 5) for _ in range(2))
        ),
        LAYERED,
    ),
    "notes on the module": Case(Notes, LAYERED),
    "weight norm": Case(
        lambda: inside(lambda m, h: m.mid(h), mid=parametrizations.weight_norm(nn.Linear(5, 5))), LAYERED
    ),
    "spectral norm in evaluation": Case(
        lambda: evaluated(inside(lambda m, h: m.mid(h), mid=parametrizations.spectral_norm(nn.Linear(5, 5)))), LAYERED
    ),
    "embedding": Case(lambda: words(nn.Embedding(12, 4, padding_idx=0)), LAYERED, tokens=True),
    "embedding, tied to the output": Case(tied_words, LAYERED, tokens=True),
    "attention": Case(attention, LAYERED),
    "transformer layer": Case(transformer, LAYERED),
    "tuple outputs with a loss of their own": Case(
        lambda: Net(lambda m, x: (m.out(h := torch.tanh(m.first(x))), h), first=nn.Linear(6, 5), out=head()),
        LAYERED,
        loss=squared_error,
    ),
    # The general ways.
    "sparse embedding": Case(lambda: words(nn.Embedding(12, 4, sparse=True)), LAYERED, tokens=True),
    "embedding scaled by frequency": Case(
        lambda: words(nn.Embedding(12, 4, scale_grad_by_freq=True)), LAYERED, tokens=True
    ),
    "embedding bag": Case(lambda: words(nn.EmbeddingBag(12, 4), pool=False), LAYERED, tokens=True),
    "gru": Case(lambda: sequence(nn.GRU(2, 4, batch_first=True)), SINGLE),
    "lstm": Case(lambda: sequence(nn.LSTM(2, 4, batch_first=True)), SINGLE),
    "rnn": Case(lambda: sequence(nn.RNN(2, 4, batch_first=True)), SINGLE),
    "lstm in both directions": Case(lambda: sequence(nn.LSTM(2, 4, batch_first=True, bidirectional=True), 8), SINGLE),
    "lstm cells": Case(cells, SINGLE),
    "lstm of opacus": Case(dp_lstm, LAYERED),
    "checkpointed": Case(
        lambda: inside(lambda m, h: checkpoint(m.mid, h, use_reentrant=False), mid=nn.Linear(5, 5)), LAYERED
    ),
    "own autograd function": Case(lambda: inside(lambda m, h: m.mid(Square.apply(h)), mid=nn.Linear(5, 5)), LAYERED),
    "branch on the data": Case(lambda: Net(branching, first=nn.Linear(6, 5), out=head()), LAYERED),
    "forward set on a layer": Case(patched, SINGLE),
    "forward set on the model": Case(patched_dense, SINGLE),
    "parameter captured by a closure": Case(captured, SINGLE),
    "cast to float inside": Case(
        lambda: inside(lambda m, h: m.mid(h.float()), mid=nn.Linear(5, 5)), LAYERED, dtype=torch.float32
    ),
    "cast to half and back": Case(
        lambda: inside(lambda m, h: m.mid((h + h.half().to(h.dtype)) / 2.0), mid=nn.Linear(5, 5)), LAYERED
    ),
    "tensor that is no buffer": Case(lambda: inside(lambda m, h: h + m.shift, shift=torch.ones(5)), LAYERED),
    # Refused, by name.
    "forward hook that computes": Case(with_doubling, r"layer 0 \(Linear\) has a hook \(doubled\)"),
    "forward pre-hook": Case(lambda: hooked("forward_pre_hook"), "has a hook"),
    "backward hook": Case(lambda: hooked("full_backward_hook"), "has a hook"),
    "hook of a parameter": Case(with_parameter_hook, "parameter 0.weight has a hook"),
    "old-style spectral norm": Case(
        lambda: inside(lambda m, h: m.mid(h), mid=old_spectral_norm(nn.Linear(5, 5))), r"has a hook \(SpectralNorm\)"
    ),
    "pruned": Case(pruned, r"has a hook \(L1Unstructured\)"),
    "spectral norm in training": Case(
        lambda: inside(lambda m, h: m.mid(h), mid=parametrizations.spectral_norm(nn.Linear(5, 5))), "changes mid.param"
    ),
    "running mean": Case(RunningMean, "changes mean in forward"),
    "counter": Case(Counts, "gives two results for one record"),
    "embedding with max_norm": Case(
        lambda: words(nn.Embedding(12, 4, max_norm=0.5)), "has max_norm: it rewrites", tokens=True
    ),
    "dropout layer": Case(lambda: mlp(nn.Dropout(0.2)), "is random while it trains"),
    "F.dropout in forward": Case(lambda: inside(lambda m, h: F.dropout(h, 0.2)), "draws random numbers in forward"),
    "torch.randn in forward": Case(
        lambda: inside(lambda m, h: h + 0.1 * torch.randn(h.shape, dtype=h.dtype)), "draws random numbers in forward"
    ),
    "generator of its own": Case(generated, "gives two results for one record"),
    "numpy's generator": Case(
        lambda: inside(lambda m, h: h * (1.0 + 0.1 * np.random.random())),
        "gives two results for one record",
    ),
    "batch norm in training": Case(lambda: mlp(nn.BatchNorm1d(5)), "mixes the records of a batch"),
    "batch mean in forward": Case(
        lambda: inside(lambda m, h: h - h.mean(0)), "mixes the records of a batch in forward"
    ),
    "F.batch_norm in forward": Case(
        lambda: inside(lambda m, h: F.batch_norm(h, None, None, training=True) if len(h) > 1 else h),
        "mixes the records of a batch in forward",
    ),
    "position in the batch": Case(
        lambda: inside(lambda m, h: h + 0.1 * torch.arange(len(h), dtype=h.dtype)[:, None]), "mixes the records"
    ),
    "tuple outputs without a loss": Case(
        lambda: Net(lambda m, x: (m.out(x), x), out=head(6)), "loss must be given: the model returns a tuple"
    ),
    "one output": Case(lambda: nn.Sequential(nn.Linear(6, 1)), "a model with two or more outputs"),
    "bfloat16": Case(
        lambda: inside(lambda m, h: m.mid(h.bfloat16()), mid=nn.Linear(5, 5)).bfloat16(), "does not run on one record"
    ),
    "complex weights": Case(
        lambda: inside(lambda m, h: (h.to(m.w.dtype) @ m.w).real, w=nn.Parameter(torch.randn(5, 5) + 0j)),
        "parameter w is complex",
    ),
    "lazy layer": Case(lambda: nn.Sequential(nn.LazyLinear(5), nn.Tanh(), head()), "has no shape yet"),
    "fails in forward": Case(lambda: inside(lambda m, h: h.nonsense), "does not run on one record alone: Attribute"),
}


def truth(case: Case, clip: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(distances (records, n, n), norms (records, n)) over the clip norm; a model of its own, nothing shared."""
    model = fresh(case).to(case.dtype)
    loss = case.loss or (lambda out, y: F.cross_entropy(out, y, reduction="none"))
    trained = [p for p in model.parameters() if p.requires_grad]
    x, y = case.batch()
    rows = []
    for record, label in zip(x, y, strict=True):
        for value in case.attribute().values:
            one = record.clone() if case.tokens else record.to(case.dtype)
            one.view(-1)[2] = float(value[0])
            found = torch.autograd.grad(loss(model(one[None]), label[None]).sum(), trained, allow_unused=True)
            flat = [torch.zeros_like(p) if g is None else g.to_dense() for g, p in zip(found, trained, strict=True)]
            rows.append(torch.cat([g.flatten() for g in flat]).double())
    g = torch.stack(rows).reshape(len(x), -1, len(rows[0]))
    g = g / (clip * (g.norm(dim=2, keepdim=True) / clip).clamp(min=1.0))
    return torch.cdist(g, g, compute_mode="donot_use_mm_for_euclid_dist"), g.norm(dim=2)


def fresh(case: Case) -> nn.Module:
    """The model of a case, the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return case.build()


def state_of(model: nn.Module) -> dict[str, object]:
    """Numbers and notes of a model, to compare later."""
    notes = {(name, key): copy.copy(value) for name, m in model.named_modules() for key, value in m.__dict__.items()}
    return {"numbers": {k: v.clone() for k, v in model.state_dict().items()}, "notes": set(notes)}
