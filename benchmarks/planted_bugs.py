"""Twenty-one ways to get DP-SGD wrong, and two to get it right: which audit finds which, and how fast.

Each variant is a complete training loop on any torch module. The audits are those of ``reticent.attacks``, which know
the claim and see what was released, and nothing of the variant.

Form of the rows: ``work`` names the fault, ``peer`` is the time that one audit may take so that one of each fits into
five minutes, ``ratio`` is that time over the time taken, ``error`` is the largest corrected p-value over the repeats
(for a correct loop: the share of repeats in which it was accused), ``goal`` and ``met`` say whether that is small
enough. Two processes work at a time; a row is printed as soon as it is known, and progress goes to standard error.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import binom
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import TensorDataset

from benchmarks._rows import Row, main, spread
from reticent.attacks.experiments import LAYERS, Experiment, experiments
from reticent.attacks.mechanics import SIGNIFICANCE, MechanicsReport, audit_mechanics, judge
from reticent.attacks.own_trainer import OwnTrainer
from reticent.attacks.white_box import Released, TrainFunction, sizes, spread_records
from reticent.kernel.mechanisms import DPSGD

CLAIM = DPSGD(noise_multiplier=1.0, sample_rate=0.05, steps=64, max_grad_norm=1.0, batch_size=50, dataset_size=1000)
BUDGET_SECONDS = 300.0
WORKERS = 2
LEARNING_RATE = 0.1


class Loop:
    """DP-SGD as it should be. Each fault below overrides one method."""

    def __call__(self, model: nn.Module, data: TensorDataset, claim: DPSGD) -> torch.Tensor:
        features, labels = data.tensors
        self.claim, self.model, self.records = claim, model, len(features)
        self.rng = torch.Generator().manual_seed(self.seed())
        released = []
        for step in range(claim.steps):
            batch = self.batch(step)
            gradients = self.per_record(features[batch], labels[batch])
            update = self.update(step, gradients)
            for parameter, change in zip(model.parameters(), update, strict=True):
                parameter.data.sub_(change, alpha=LEARNING_RATE)
            released.append(torch.cat([change.flatten() for change in update]))
        return torch.stack(released)

    def seed(self) -> int:
        return int.from_bytes(os.urandom(7), "little")

    def batch(self, step: int) -> torch.Tensor:
        return torch.nonzero(torch.rand(self.records, generator=self.rng) < self.claim.sample_rate).flatten()

    def per_record(self, features: torch.Tensor, labels: torch.Tensor) -> list[torch.Tensor]:
        parameters = {name: p.detach() for name, p in self.model.named_parameters()}
        if len(features) == 0:
            return [torch.zeros(0, *p.shape) for p in parameters.values()]

        def loss(weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            logits = functional_call(self.model, weights, (x.unsqueeze(0),))
            return nn.functional.cross_entropy(logits, y.unsqueeze(0))

        return list(vmap(grad(loss), in_dims=(None, 0, 0))(parameters, features, labels).values())

    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        sums = [g.sum(dim=0) for g in self.clip(gradients)]
        return [(s + n) / self.claim.batch_size for s, n in zip(sums, self.noise(step, sums), strict=True)]

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)
        factor = (self.claim.max_grad_norm / norms.clamp(min=1e-12)).clamp(max=1.0)
        return [torch.einsum("b,b...->b...", factor, g) for g in gradients]

    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        scale = self.claim.noise_multiplier * self.claim.max_grad_norm
        return [scale * torch.randn(t.shape, generator=self.rng) for t in like]


class NoClipping(Loop):
    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        return gradients


class ClippingAfterAveraging(Loop):
    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        means = [g.sum(dim=0) / self.claim.batch_size for g in gradients]
        norm = torch.stack([m.norm() for m in means]).norm()
        factor = min(1.0, self.claim.max_grad_norm / max(float(norm), 1e-12))
        noise = self.noise(step, means)
        return [factor * m + n / self.claim.batch_size for m, n in zip(means, noise, strict=True)]


class NoiseDividedTwice(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        return [n / self.claim.batch_size for n in super().noise(step, like)]


class SameNoiseEveryStep(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        if step == 0:
            self.kept = super().noise(step, like)
        return self.kept


class SameNoiseEveryRow(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        return [n[:1].expand_as(n) if n.dim() > 1 else n for n in super().noise(step, like)]


class NoiseForTheWrongRate(Loop):
    """Batches are half as large again as the rate that the noise was chosen for."""

    def batch(self, step: int) -> torch.Tensor:
        return torch.nonzero(torch.rand(self.records, generator=self.rng) < 1.5 * self.claim.sample_rate).flatten()


class ShuffledAsPoisson(Loop):
    def batch(self, step: int) -> torch.Tensor:
        size = self.claim.batch_size
        place = step % (self.records // size)
        if place == 0:
            self.order = torch.randperm(self.records, generator=self.rng)
        return self.order[place * size : (place + 1) * size]


class OneLayerUnclipped(Loop):
    """Norms are taken over all layers but the last, and the last is left as it is."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        return [*super().clip(gradients[:-1]), gradients[-1]]


class FixedSeed(Loop):
    def seed(self) -> int:
        return 0


class NoiseOneStepLate(Loop):
    """Noise drawn at one step is added at the next; the first release has none."""

    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        late = self.pending if step else [torch.zeros_like(t) for t in like]
        self.pending = super().noise(step, like)
        return late


class EachLayerClipped(Loop):
    """Every layer's part of the gradient is clipped to the clip norm by itself."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        return [super(EachLayerClipped, self).clip([g])[0] for g in gradients]


class EachRowClipped(Loop):
    """Every row of every matrix is clipped to the clip norm by itself."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        limit = self.claim.max_grad_norm
        return [g * (limit / g.norm(dim=-1, keepdim=True).clamp(min=1e-12)).clamp(max=1.0) for g in gradients]


class EachNumberClipped(Loop):
    """Every number is cut off at the clip norm."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        return [g.clamp(-self.claim.max_grad_norm, self.claim.max_grad_norm) for g in gradients]


class LargestNumberClipped(Loop):
    """Gradients are scaled by their largest number in place of their norm."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        largest = torch.stack([g.flatten(1).norm(p=torch.inf, dim=1) for g in gradients]).amax(dim=0)
        factor = (self.claim.max_grad_norm / largest.clamp(min=1e-12)).clamp(max=1.0)
        return [torch.einsum("b,b...->b...", factor, g) for g in gradients]


class ForcedOnce(Loop):
    """The first record is put into the first batch."""

    def batch(self, step: int) -> torch.Tensor:
        drawn = super().batch(step)
        return torch.unique(torch.cat([torch.tensor([0]), drawn])) if self.forced(step) else drawn

    def forced(self, step: int) -> bool:
        return step == 0


class ForcedEveryEpoch(ForcedOnce):
    """The first record is put into the first batch of every epoch."""

    def forced(self, step: int) -> bool:
        return step % round(1.0 / self.claim.sample_rate) == 0


class QueueWithRandomSizes(Loop):
    """Sizes are drawn as for Poisson batches, records from a shuffled queue: each comes once before any comes twice."""

    def batch(self, step: int) -> torch.Tensor:
        if step == 0:
            self.queue = torch.empty(0, dtype=torch.int64)
        size = int((torch.rand(self.records, generator=self.rng) < self.claim.sample_rate).sum())
        if len(self.queue) < size:
            self.queue = torch.cat([self.queue, torch.randperm(self.records, generator=self.rng)])
        drawn, self.queue = self.queue[:size], self.queue[size:]
        return drawn


class MomentumBeforeNoise(Loop):
    """Clipped sums go through momentum, and the noise comes after it: one record counts in many steps."""

    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        sums = [g.sum(dim=0) for g in self.clip(gradients)]
        self.momentum = [0.9 * m + s for m, s in zip(self.momentum, sums, strict=True)] if step else sums
        noise = self.noise(step, sums)
        return [(m + n) / self.claim.batch_size for m, n in zip(self.momentum, noise, strict=True)]


class NoisePerMicroBatch(Loop):
    """Noise is drawn for each of four micro-batches at a quarter of the deviation: their sum has half of it."""

    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        drawn = [super(NoisePerMicroBatch, self).noise(step, like) for _ in range(4)]
        return [sum(parts, start=torch.zeros(())) / 4.0 for parts in zip(*drawn, strict=True)]


class AccumulationDivisor(Loop):
    """Accumulated gradients are means over micro-batches of a quarter, the noise is for the whole batch."""

    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        sums = [g.sum(dim=0) for g in self.clip(gradients)]
        size = self.claim.batch_size or 1
        return [s / (size / 4.0) + n / size for s, n in zip(sums, self.noise(step, sums), strict=True)]


class AugmentationsClippedOneByOne(Loop):
    """Four views of each record are clipped as if they were four records, and the mean is over all views."""

    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        views, size = 4, self.claim.batch_size or 1
        sums = [views * g.sum(dim=0) for g in self.clip(gradients)]
        return [(s + n) / (views * size) for s, n in zip(sums, self.noise(step, sums), strict=True)]


FAULTS: dict[str, Callable[[], TrainFunction]] = {
    "no clipping": NoClipping,
    "clipping after averaging": ClippingAfterAveraging,
    "noise divided by the batch size twice": NoiseDividedTwice,
    "the same noise every step": SameNoiseEveryStep,
    "the same noise for every row of a matrix": SameNoiseEveryRow,
    "noise for the wrong rate": NoiseForTheWrongRate,
    "shuffled batches accounted as Poisson": ShuffledAsPoisson,
    "one layer unclipped": OneLayerUnclipped,
    "fixed seed": FixedSeed,
    "noise one step late": NoiseOneStepLate,
    "each layer clipped by itself": EachLayerClipped,
    "each row clipped by itself": EachRowClipped,
    "each number clipped by itself": EachNumberClipped,
    "clipped by the largest number": LargestNumberClipped,
    "a record forced into the first batch": ForcedOnce,
    "a record forced into every epoch's first batch": ForcedEveryEpoch,
    "random sizes from a shuffled queue": QueueWithRandomSizes,
    "momentum before the noise": MomentumBeforeNoise,
    "noise for each micro-batch": NoisePerMicroBatch,
    "wrong divisor by accumulation": AccumulationDivisor,
    "clipping before averaging over views": AugmentationsClippedOneByOne,
}
CORRECT: dict[str, Callable[[], TrainFunction]] = {"correct loop": Loop, "reticent.training": OwnTrainer}


@dataclass(frozen=True)
class Outcome:
    """One audit of one variant."""

    report: MechanicsReport
    seconds: float


def audit(make: Callable[[], TrainFunction], seed: int) -> Outcome:
    """One timed audit."""
    start = time.perf_counter()
    report = audit_mechanics(make(), CLAIM, significance=SIGNIFICANCE, seed=seed)
    return Outcome(report, time.perf_counter() - start)


def simulate_correct(rng: np.random.Generator, claim: DPSGD = CLAIM) -> tuple[list[Experiment], list[Released]]:
    """What a correct implementation releases, straight from the definition, without any training."""
    setup = experiments(claim)
    size = claim.dataset_size or 0
    _, direction = spread_records(LAYERS, 1.0, 1)
    runs = []
    for experiment in setup:
        sums = experiment.claim.noise_multiplier * rng.standard_normal(
            (experiment.claim.steps, sum(sizes(experiment.layers))), dtype=np.float32
        )
        if experiment.seed is not None:  # replays of nobody: the same noise again
            sums[:] = 0.0
        batch = rng.binomial(size, claim.sample_rate, size=len(sums))
        match experiment.name:
            case "chorus":
                sums[:, 0] += batch
            case "whisper":
                sums[:, 0] += batch * 0.5 / (claim.sample_rate * size)
            case "spread":
                sums += np.outer(batch, direction)
            case "short gradients":
                part = rng.random((len(sums), size), dtype=np.float32) < claim.sample_rate
                sums[:, :size] += part * rng.uniform(0.2, 0.9, size)
            case "participation":
                sums[:, :size] += rng.random((len(sums), size), dtype=np.float32) < claim.sample_rate
        runs.append(Released(sums.astype(np.float64), np.zeros(sums.shape[1])))
    return setup, runs


def accusations(repeats: int, seed: int) -> int:
    """In how many simulated audits a correct implementation is accused."""
    rng = np.random.default_rng(seed)
    return sum(judge(*simulate_correct(rng), significance=SIGNIFICANCE).accused for _ in range(repeats))


def fault_row(name: str, outcomes: Sequence[Outcome]) -> Row:
    """Is the fault found in every repeat, by what, and in what time?"""
    error = max(outcome.report.adjusted_p_value for outcome in outcomes)
    return _row(name, outcomes, error, f"corrected p at most {SIGNIFICANCE}", error <= SIGNIFICANCE)


def correct_row(name: str, outcomes: Sequence[Outcome]) -> Row:
    """How often is a correct loop accused, really run?"""
    accused, repeats = sum(outcome.report.accused for outcome in outcomes), len(outcomes)
    limit = int(binom.ppf(0.99, repeats, SIGNIFICANCE))
    goal = f"accused in at most {limit} of {repeats}: the 99% limit at this significance"
    return _row(name, outcomes, accused / repeats, goal, accused <= limit)


def simulated_row(accused: int, repeats: int, seconds: float) -> Row:
    """How often is a correct mechanism accused, simulated many times?"""
    name, goal = f"correct mechanism, {repeats} simulated audits", "accused in at most 1% of them"
    ratio = spread([BUDGET_SECONDS / seconds])
    return Row(name, "300 s", ratio, accused / repeats, goal, accused <= 0.01 * repeats, {"seconds": seconds})


def _row(name: str, outcomes: Sequence[Outcome], error: float, goal: str, met: bool) -> Row:
    allowed = BUDGET_SECONDS * WORKERS / (len(FAULTS) + len(CORRECT))
    found = sorted({check.name for outcome in outcomes for check in outcome.report.failed})
    seconds = statistics.median(outcome.seconds for outcome in outcomes)
    ratio = spread([allowed / outcome.seconds for outcome in outcomes])
    notes: dict[str, object] = {"found_by": found, "seconds": seconds}
    return Row(name, f"{allowed:.0f} s of one core", ratio, error, goal, bool(met), notes)


def _one(name: str, seed: int) -> Outcome:
    torch.set_num_threads(1)
    return audit({**FAULTS, **CORRECT}[name], seed)


def _timed_accusations(repeats: int, seed: int) -> tuple[int, float]:
    start = time.perf_counter()
    return accusations(repeats, seed), time.perf_counter() - start


def rows(repeats: int = 2, simulated: int = 200) -> Iterator[Row]:
    """One row per fault, one per correct loop, one for the simulated level, each as soon as it is known."""
    start = time.perf_counter()
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        wanted = dict.fromkeys(FAULTS, repeats) | dict.fromkeys(CORRECT, 3 * repeats)
        audits = {name: [pool.submit(_one, name, seed) for seed in range(times)] for name, times in wanted.items()}
        chunk = 20
        simulations = [pool.submit(_timed_accusations, chunk, seed) for seed in range(simulated // chunk)]
        for place, (name, futures) in enumerate(audits.items(), start=1):
            outcomes = [future.result() for future in futures]
            yield fault_row(name, outcomes) if name in FAULTS else correct_row(name, outcomes)
            taken = time.perf_counter() - start
            print(f"{place} of {len(audits) + 1} rows, {taken:.0f} s", file=sys.stderr, flush=True)
        counts = [future.result() for future in simulations]
        seconds = sum(taken for _, taken in counts)
        yield simulated_row(sum(accused for accused, _ in counts), chunk * len(counts), seconds)
        print(f"all rows, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(rows, "Which audit finds which planted bug, and how fast.")
