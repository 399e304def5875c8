"""Speed of the exact largest change R_t of one batch, against the loops that it replaces.

    python -m benchmarks.attribute [--json]

The peer does what Algorithm 4 of CHERUBIN2024 says: record by record, the gradients of all completions
(per-example gradients by torch.func), clipping, then the norm of every pair's difference. Ours and the
peer get the same model, batch and values and return the same number; both use one thread and the
precision that the row names. The error is ours against the peer in double, relative.

Ours is ``GradientSensitivity.largest`` after 50 steps of training, when it pays to skip records that the
triangle inequality excludes; late in training it does not, and every pair is compared, as in the row that
says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import torch
from torch import nn

from benchmarks._rows import Row, interleave, limit, main, spread
from reticent.sensitivity import GradientSensitivity, Precision, SensitiveAttribute

_ADULT = SensitiveAttribute((0,), ((np.arange(17.0, 91.0) - 40.0) / 15.0)[:, None])
_TWO = SensitiveAttribute((0,), np.array([[0.0], [1.0]]))


def _adult() -> tuple[nn.Module, torch.Tensor, torch.Tensor, SensitiveAttribute]:
    model = nn.Sequential(nn.Linear(108, 128), nn.Tanh(), nn.Linear(128, 2))
    return model, (torch.rand(256, 108) < 0.12).float(), torch.randint(0, 2, (256,)), _ADULT


def _purchase() -> tuple[nn.Module, torch.Tensor, torch.Tensor, SensitiveAttribute]:
    model = nn.Sequential(nn.Linear(600, 128), nn.Tanh(), nn.Linear(128, 100))
    return model, (torch.rand(512, 600) < 0.25).float(), torch.randint(0, 100, (512,)), _TWO


def _convnet() -> tuple[nn.Module, torch.Tensor, torch.Tensor, SensitiveAttribute]:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
    return model, torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)), SensitiveAttribute((390,), _TWO.values)


def _pairwise_loop(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, attribute: SensitiveAttribute, dtype: torch.dtype
) -> float:
    """R_t at clip norm 1 by the definition; ``model`` is in ``dtype``."""
    weights = {k: v.detach() for k, v in model.named_parameters()}

    def loss(params: dict[str, torch.Tensor], row: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(torch.func.functional_call(model, params, (row[None],)), label[None])

    per_example = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    values = torch.as_tensor(attribute.values, dtype=dtype)
    largest = 0.0
    for row, label in zip(x.to(dtype), y, strict=True):
        completions = row[None].repeat(len(values), *[1] * row.dim())
        completions.view(len(values), -1)[:, list(attribute.columns)] = values
        grads = per_example(weights, completions, label.expand(len(values)))
        flat = torch.cat([g.flatten(1) for g in grads.values()], dim=1)
        flat = flat / flat.norm(dim=1, keepdim=True).clamp(min=1.0)
        for i, j in combinations(range(len(values)), 2):
            largest = max(largest, float((flat[i] - flat[j]).norm()))
    return largest


def _trained(
    make: Callable[[], tuple[nn.Module, torch.Tensor, torch.Tensor, SensitiveAttribute]], steps: int
) -> tuple[nn.Module, torch.Tensor, torch.Tensor, SensitiveAttribute]:
    torch.manual_seed(0)
    model, x, y, attribute = make()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    return model, x, y, attribute


def _against_the_loop(
    name: str,
    make: Callable[[], tuple[nn.Module, torch.Tensor, torch.Tensor, SensitiveAttribute]],
    precision: Precision,
    goal: float,
    repeats: int,
    moonshot: float | None = None,
) -> Row:
    model, x, y, attribute = _trained(make, 50)
    own = GradientSensitivity(model, attribute, precision=precision)
    peer_model = _trained(make, 50)[0].to(precision.value)
    ratios = interleave(
        lambda: own.diameters(x, y),
        lambda: _pairwise_loop(peer_model, x, y, attribute, precision.value),
        repeats,
    )
    exact = _pairwise_loop(peer_model.double(), x, y, attribute, torch.float64)
    ratio = spread(ratios)
    what, floor = _arithmetic(model.to(precision.value), x.to(precision.value), y, attribute)
    return Row(
        work=f"exact R_t, {name}, {precision.name.lower()}",
        peer="per-record pairwise loop, torch.func gradients, same precision, one thread",
        ratio=ratio,
        error=abs(float(own.diameters(x, y).max()) / exact - 1.0),
        goal=f"at least {goal:g} times the loop",
        met=ratio["median"] >= goal,
        limit=limit(what, floor, lambda: own.diameters(x, y), ratio["median"]),
        moonshot=moonshot,
    )


def _arithmetic(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, attribute: SensitiveAttribute
) -> tuple[str, Callable[[], object]]:
    """What no code for this model can save.

    In a network of dense layers a completion changes the first layer by a multiple of one column, so one product for
    each record is enough there; hidden units belong to each completion. A convolution has to see every completion.
    """
    completions = len(attribute.values) * len(x)
    if isinstance(model[0], nn.Linear):
        hidden, out = torch.randn(completions, model[0].out_features, dtype=x.dtype), model[-1].weight.detach()
        first = model[0].weight.detach()
        upper = torch.empty_like(hidden)  # fresh memory of this size costs more in page faults than in work

        def units() -> torch.Tensor:
            torch.mm(x, first.T)
            scores = torch.tanh(hidden, out=upper) @ out.T
            return torch.mm(torch.softmax(scores, dim=1), out, out=upper).norm(dim=1)

        return "the first layer of each record, hidden units, output layer forward and back, norms", units
    every, labels = x.repeat_interleave(len(attribute.values), 0), y.repeat_interleave(len(attribute.values))
    return "one plain forward and backward pass of all completions", lambda: nn.functional.cross_entropy(
        model(every), labels
    ).backward()


def _against_opacus(repeats: int) -> Row:
    """One whole step of an Opacus loop (draw, forward, backward, clip, noise, update) and our R_t of its batch."""
    from opacus import PrivacyEngine

    model, x, y, attribute = _trained(_adult, 50)
    own = GradientSensitivity(model, attribute, precision=Precision.SINGLE)
    trained = _trained(_adult, 50)[0]
    records = torch.utils.data.TensorDataset((torch.rand(26_048, 108) < 0.12).float(), torch.randint(0, 2, (26_048,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private, optimizer, loader = PrivacyEngine().make_private(
            module=trained,
            optimizer=torch.optim.SGD(trained.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(records, batch_size=256),
            noise_multiplier=3.5,
            max_grad_norm=1.0,
        )
        batches = _endless(loader)

        def step() -> None:
            rows, labels = next(batches)
            optimizer.zero_grad()
            nn.functional.cross_entropy(private(rows), labels).backward()
            optimizer.step()

        ratio = spread(interleave(lambda: own.diameters(x, y), step, repeats))
    return Row(
        work="exact R_t, Adult shape, single, beside an Opacus step",
        peer="the Opacus step that it accompanies: Poisson draw, per-example gradients, clip, noise, update",
        ratio=ratio,
        error=None,
        goal="at most 2.5 times the step (ratio at least 0.4)",
        met=ratio["median"] >= 0.4,
        notes={"times_the_step": 1.0 / ratio["median"]},
    )


def _endless(loader: torch.utils.data.DataLoader) -> Iterator[list[torch.Tensor]]:
    while True:
        yield from loader


def rows() -> list[Row]:
    """All rows, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [
            _against_opacus(21),
            _against_the_loop("Adult shape (256 x 74, 108-128-2)", _adult, Precision.SINGLE, 400, 5, moonshot=700.0),
            _against_the_loop("Adult shape (256 x 74, 108-128-2)", _adult, Precision.DOUBLE, 250, 3),
            _against_the_loop(
                "Purchase shape (512 x 2, 600-128-100)", _purchase, Precision.SINGLE, 250, 15, moonshot=400.0
            ),
            _against_the_loop("ConvNet (64 x 2, 28 x 28)", _convnet, Precision.SINGLE, 8, 5, moonshot=12.0),
        ]
    finally:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    main(rows, "Exact attribute sensitivity of a batch")
