"""What the best attackers reach on a small network, beside the bound for who does not know the record.

    python experiments/relaxed_dimension/networks.py

A network of 1,210 weights is trained on digits, many times, with and without one record of a pool of 64. The attackers
are told the batches of all other records, so what they see of a step is the gradient of the record, if it was drawn,
and noise. The likelihood ratio is exact: averaged over the pool, over the candidates with the right label, or of the
right record. From runs without the record the mean of (LR - 1)_+ is the advantage.
"""

from __future__ import annotations

import math

import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

import reticent as rt
from reticent import data
from reticent.adversaries import Population
from reticent.kernel.mechanisms import DPSGD

NOISE, RATE, STEPS, LEARNING_RATE, CLIP = 4.0, 0.2, 40, 1.0, 1.0
RUNS, CHUNK, POOL, OTHERS, WIDTH = 300, 30, 64, 200, 16

digits = data.load("digits")
features, labels = torch.tensor(digits.features), torch.tensor(digits.labels).long()
pool, others = torch.tensor(digits.test[:POOL]), torch.tensor(digits.train[:OTHERS])
model = torch.nn.Sequential(torch.nn.Linear(64, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 10))
names, shapes = zip(*((name, p.shape) for name, p in model.named_parameters()), strict=True)
sizes = [shape.numel() for shape in shapes]


def loss(flat: torch.Tensor, row: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Of one record at flat weights."""
    parts = {n: part.reshape(s) for n, part, s in zip(names, flat.split(sizes), shapes, strict=True)}
    return cross_entropy(functional_call(model, parts, (row[None],)), label[None])


of_records = vmap(grad(loss), in_dims=(None, 0, 0))


def clipped(weights: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
    """Gradients in clip norms, shape (runs, records, weights)."""
    rows = torch.stack([of_records(w, features[which], labels[which]) for w in weights])
    return rows / torch.linalg.vector_norm(rows, dim=2, keepdim=True).clamp(min=CLIP)


def runs(start: torch.Tensor, count: int, draws: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Runs without the record: log likelihood ratio of each candidate, squared means and second moments by step."""
    weights, logs = start.repeat(count, 1), torch.zeros(count, POOL, dtype=torch.float64)
    means, seconds = [], []
    for _ in range(STEPS):
        mine = clipped(weights, pool)
        noise = NOISE * torch.randn(weights.shape, generator=draws)
        product = torch.einsum("rpd,rd->rp", mine, noise).double()
        square = mine.square().sum(dim=2).double()
        logs += torch.log1p(RATE * torch.expm1((product - 0.5 * square) / NOISE**2))
        drawn = (torch.rand(count, OTHERS, generator=draws) < RATE).float()
        total = torch.einsum("rod,ro->rd", clipped(weights, others), drawn) + noise
        means.append(mine.mean(dim=1).square().sum(dim=1))
        seconds.append(torch.linalg.eigvalsh(mine @ mine.transpose(1, 2) / POOL)[:, -1])
        weights = weights - LEARNING_RATE * CLIP / (RATE * OTHERS) * total
    return logs, torch.stack(means), torch.stack(seconds)


def reached(ratios: torch.Tensor) -> str:
    """Mean of (LR - 1)_+ and twice its standard error."""
    found = (ratios - 1.0).clamp(min=0.0)
    return f"{float(found.mean()):.4f} (+- {2.0 * float(found.std()) / math.sqrt(len(found)):.4f})"


def main() -> None:
    torch.manual_seed(0)
    draws = torch.Generator().manual_seed(1)
    start = torch.cat([p.detach().flatten() for p in model.parameters()])
    parts = [runs(start, CHUNK, draws) for _ in range(RUNS // CHUNK)]
    ratios = torch.cat([logs for logs, _, _ in parts]).exp()
    mean = max(float(means.mean(dim=0).max()) for _, means, _ in parts) ** 0.5
    second = max(float(seconds.max()) for _, _, seconds in parts)
    groups = [(labels[pool] == label).nonzero()[:, 0] for label in range(10)]
    by_label = torch.cat([ratios[:, group].mean(dim=1) for group in groups if len(group)])
    shares = torch.tensor([len(g) / POOL for g in groups if len(g)]).repeat_interleave(RUNS)
    known = (by_label - 1.0).clamp(min=0.0)
    run = DPSGD(NOISE, RATE, STEPS)
    bound = Population(min(mean, 1.0), min(second, 1.0)).assess(run).measure(rt.advantage).value
    print(f"largest root mean square of the mean {mean:.3f}, largest second moment {second:.3f}, in {RUNS} runs")
    print(f"worst case {rt.WorstCase().assess(run).measure(rt.advantage).value:.4f}, bound {bound:.4f}")
    print(f"reached: record unknown {reached(ratios.mean(dim=1))}")
    print(f"label known {float((known * shares).sum() / RUNS):.4f}, record known {reached(ratios.flatten())}")


if __name__ == "__main__":
    main()
