"""Utility of a last layer at 20 levels of mu: ``python -m experiments.gaussian_mip.last_layer`` trains Adult's.

All levels, rules and seeds are trained at once: the gradient of softmax regression is an outer product, so its length
is known without forming it. Settings are those of Table 4 and of the paper's code. The rules: GDP and GMIP as
published, and noise that keeps epsilon of mu-GDP at 1e-5 in the true run (Poisson sampling, replacement).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

RULES = ("GDP", "GMIP", "true run")


@dataclass(frozen=True)
class Records:
    """Features with a column of ones, (records, features), and labels; on one device."""

    features: Tensor
    labels: Tensor

    @classmethod
    def of(cls, features: Tensor, labels: Tensor) -> Records:
        """Append the column of ones."""
        return cls(torch.cat([features.float(), features.new_ones(len(features), 1).float()], 1), labels)


@dataclass(frozen=True)
class Recipe:
    """How every layer is trained: batches of a fixed size in shuffled passes, Adam, a clip norm."""

    size: int
    epochs: int
    clip: float
    learning_rate: float
    classes: int
    seeds: int = 5


def accuracies(train: Records, test: Records, recipe: Recipe, noises: list[float]) -> list[list[float]]:
    """Test accuracies of each noise, in the order of the seeds; noise is in clip norms on the sum."""
    device, columns = train.features.device, train.features.shape[1]
    generator = torch.Generator(device.type).manual_seed(0)
    tau = torch.tensor(noises, device=device)[:, None, None, None] * recipe.clip / recipe.size
    shape = (len(noises), recipe.seeds, columns, recipe.classes)
    w = (torch.rand(shape, generator=generator, device=device) * 2 - 1) / (columns - 1) ** 0.5
    first, second, t = torch.zeros_like(w), torch.zeros_like(w), 0
    usable = len(train.labels) // recipe.size * recipe.size
    for _ in range(recipe.epochs):
        orders = torch.rand(recipe.seeds, len(train.labels), generator=generator, device=device).argsort(1)
        for some in orders[:, :usable].split(recipe.size, dim=1):
            rows, t = train.features[some], t + 1
            g = torch.einsum("snf,rsfc->rsnc", rows, w).softmax(-1) - F.one_hot(train.labels[some], recipe.classes)
            lengths = g.norm(dim=-1) * rows.norm(dim=-1)
            g = g * (recipe.clip / lengths.clamp(min=recipe.clip))[..., None]
            mean = torch.einsum("snf,rsnc->rsfc", rows, g) / recipe.size
            mean += tau * torch.randn(w.shape, generator=generator, device=device)
            first.lerp_(mean, 0.1)
            second.lerp_(mean.square(), 0.001)
            step = first / (1 - 0.9**t) / ((second / (1 - 0.999**t)).sqrt() + 1e-8)
            w -= recipe.learning_rate * step
    return [
        (torch.einsum("nf,sfc->snc", test.features, one).argmax(-1) == test.labels).float().mean(1).tolist()
        for one in w
    ]


def rows_of(levels: list[dict[str, float]], train: Records, test: Records, recipe: Recipe) -> list[dict[str, Any]]:
    """One row for each rule and level: noise and accuracies."""
    kinds = [(rule, level["mu"], level[rule]) for rule in RULES for level in levels]
    found = accuracies(train, test, recipe, [noise for _, _, noise in kinds])
    return [{"rule": r, "mu": mu, "noise": n, "test": a} for (r, mu, n), a in zip(kinds, found, strict=True)]


def main() -> None:
    """Adult: 512 random tanh features as in the paper's code, 43,000 records to learn from, the rest to judge."""
    from experiments.images.noise import published_levels
    from experiments.where import results
    from reticent import data
    from reticent.kernel.mechanisms import DPSGD
    from reticent.tasks import write_json

    torch.manual_seed(0)
    adult = data.load("adult")
    x, y = torch.tensor(adult.features).float(), torch.tensor(adult.labels)
    order = torch.randperm(len(x))
    x, y = ((x - x.mean(0)) / (x.std(0) + 1e-5))[order], y[order]
    with torch.no_grad():
        x = torch.tanh(torch.nn.Linear(x.shape[1], 512)(x))
    train, test = Records.of(x[:43_000], y[:43_000]), Records.of(x[43_000:], y[43_000:])
    levels = published_levels(DPSGD(1.0, 1 / 43, 860, num_parameters=1026, batch_size=1000))
    rows = rows_of(levels, train, test, Recipe(size=1000, epochs=20, clip=800.0, learning_rate=2e-3, classes=2))
    write_json(results(__file__) / "utility-adult.json", {"rows": rows})


if __name__ == "__main__":
    main()
