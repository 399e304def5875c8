"""Twenty-nine further ways to get DP-SGD wrong, which no test was written from, and more ways to get it right.

``python -m benchmarks.more_bugs [REPEATS] [WORD]`` audits all of them, those of ``planted_bugs`` and ``issue_bugs``,
and prints how often each was accused, in what processor time, by which tests, and which fault the verdict names. A word
picks the loops with it in their names.
"""

from __future__ import annotations

import secrets
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from benchmarks import issue_bugs, planted_bugs
from benchmarks.planted_bugs import Loop, audit
from reticent.attacks.white_box import TrainFunction
from reticent.kernel.mechanisms import DPSGD


class NoNoiseAtLargeGradients(Loop):
    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        self.large = bool((_norms(gradients) > 50.0 * self.claim.max_grad_norm).any())
        return super().update(step, gradients)

    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        return [n * (not self.large) for n in super().noise(step, like)]


class NoiseOnTouchedRows(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        drawn = super().noise(step, like)
        if not any(t.any() for t in like):
            return drawn
        return [n * (t.flatten(1).any(dim=1) if t.dim() > 1 else t != 0).view(-1, *[1] * (t.dim() - 1))
                for n, t in zip(drawn, like, strict=True)]  # fmt: skip


class NoiseCutOff(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        limit = 2.5 * self.claim.noise_multiplier * self.claim.max_grad_norm
        return [n.clamp(-limit, limit) for n in super().noise(step, like)]


class OneSeedForBatchesAndNoise(Loop):
    def batch(self, step: int) -> torch.Tensor:
        self.step_seed = self.seed()
        self.rng = torch.Generator().manual_seed(self.step_seed)
        return super().batch(step)

    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        self.rng = torch.Generator().manual_seed(self.step_seed)
        return super().noise(step, like)


class BiasesUnclipped(Loop):
    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        bias = [name.endswith("bias") for name, _ in self.model.named_parameters()]
        clipped = iter(super().clip([g for g, b in zip(gradients, bias, strict=True) if not b]))
        return [g if b else next(clipped) for g, b in zip(gradients, bias, strict=True)]


class NoiseShrinksWithTheBatch(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        norm = float(torch.stack([t.norm() for t in like]).norm()) / self.claim.max_grad_norm
        return [n * (norm if 0.0 < norm < 1.0 else 1.0) for n in super().noise(step, like)]


class LargeBatchesCut(Loop):
    def batch(self, step: int) -> torch.Tensor:
        drawn = super().batch(step)
        return drawn[torch.randperm(len(drawn), generator=self.rng)[: round(1.2 * self.claim.batch_size)]]


class MedianAsClipNorm(Loop):
    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        norms = _norms(gradients)
        limit = min(self.claim.max_grad_norm, float(norms.median())) if len(norms) else 0.0
        return [torch.einsum("b,b...->b...", (limit / norms.clamp(min=1e-12)).clamp(max=1.0), g) for g in gradients]


class HalfPrecisionNorm(Loop):
    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        squares = sum((g.half() ** 2).flatten(1).float().sum(dim=1) for g in gradients)
        factor = (self.claim.max_grad_norm / squares.sqrt().clamp(min=1e-6)).clamp(max=1.0)
        return [torch.einsum("b,b...->b...", factor, g) for g in gradients]


class ForcedLate(planted_bugs.ForcedOnce):
    def forced(self, step: int) -> bool:
        return step == 50


class ForcedAnywhere(planted_bugs.ForcedOnce):
    def forced(self, step: int) -> bool:
        return step == 37


class UniformNoise(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        scale = self.claim.noise_multiplier * self.claim.max_grad_norm * 12.0**0.5
        return [scale * (torch.rand(t.shape, generator=self.rng) - 0.5) for t in like]


class LaplaceNoise(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        scale = self.claim.noise_multiplier * self.claim.max_grad_norm / 2.0**0.5
        drawn = [torch.rand(t.shape, generator=self.rng).clamp(1e-7, 1 - 1e-7) - 0.5 for t in like]
        return [-scale * d.sign() * torch.log1p(-2.0 * d.abs()) for d in drawn]


class FivePercentLessNoise(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        return [0.95 * n for n in super().noise(step, like)]


class NoiseForTwoSteps(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        if step % 2 == 0:
            self.kept = super().noise(step, like)
        return self.kept


class NoiseTakenBack(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        if step % 2 == 0:
            self.kept = super().noise(step, like)
            return self.kept
        return [-n for n in self.kept]


class OneSeedForAllLayers(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        seed, drawn = self.seed(), []
        for t in like:
            self.rng = torch.Generator().manual_seed(seed)
            drawn += super().noise(step, [t])
        self.rng = torch.Generator().manual_seed(self.seed())
        return drawn


class FixedSize(Loop):
    def batch(self, step: int) -> torch.Tensor:
        return torch.randperm(self.records, generator=self.rng)[: self.claim.batch_size]


class BlocksOfRecords(Loop):
    def batch(self, step: int) -> torch.Tensor:
        blocks = torch.rand(-(-self.records // 10), generator=self.rng) < self.claim.sample_rate
        return torch.nonzero(blocks.repeat_interleave(10)[: self.records]).flatten()


class DividedByTheBatchItself(Loop):
    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        own = self.claim.batch_size / max(1, len(gradients[0]))
        return [u * own for u in super().update(step, gradients)]


class ClippedByTheMeanNorm(Loop):
    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        norms = _norms(gradients)
        mean = float(norms.mean()) if len(norms) else 0.0
        return [g * min(1.0, self.claim.max_grad_norm / max(mean, 1e-12)) for g in gradients]


class ClippedAfterTheNoise(Loop):
    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        size = self.claim.batch_size
        sums = [g.sum(dim=0) for g in gradients]
        noisy = [(s + n) / size for s, n in zip(sums, self.noise(step, sums), strict=True)]
        norm = torch.stack([u.norm() for u in noisy]).norm()
        return [u * (self.claim.max_grad_norm / norm).clamp(max=1.0) for u in noisy]


class DrawnWithReplacement(Loop):
    def batch(self, step: int) -> torch.Tensor:
        size = int((torch.rand(self.records, generator=self.rng) < self.claim.sample_rate).sum())
        return torch.randint(self.records, (size,), generator=self.rng)


class LastLayerWithoutNoise(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        drawn = super().noise(step, like)
        return [*drawn[:-1], torch.zeros_like(drawn[-1])]


class HalvesTakeTurns(Loop):
    def batch(self, step: int) -> torch.Tensor:
        half = self.records // 2
        drawn = torch.rand(self.records, generator=self.rng) < 2.0 * self.claim.sample_rate
        drawn[half * (step % 2) : half * (step % 2) + half] = False
        return torch.nonzero(drawn).flatten()


class NoiseDecays(Loop):
    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        return [0.998**step * n for n in super().noise(step, like)]


def _norms(gradients: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)


class Script:
    """A loop with a torch optimizer, as people write them; the variants below override one method."""

    optimizer: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer] = staticmethod(
        lambda parameters: torch.optim.SGD(parameters, lr=0.1)
    )

    def __call__(self, model: nn.Module, data: TensorDataset, claim: DPSGD) -> None:
        features, labels = data.tensors
        self.model, self.claim = model, claim
        self.dp = Loop()
        self.dp.claim, self.dp.model, self.dp.records = claim, model, len(features)
        self.dp.rng = torch.Generator().manual_seed(secrets.randbits(60))
        optimizer = self.optimizer(model.parameters())
        for step in range(claim.steps):
            batch = self.dp.batch(step)
            gradients = self.dp.per_record(features[batch], labels[batch])
            for p, update in zip(model.parameters(), self.release(step, gradients), strict=True):
                p.grad = update
            self.step(step, optimizer, gradients, features[batch], labels[batch])

    def release(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        return self.dp.update(step, gradients)

    def step(self, step, optimizer, gradients, features, labels) -> None:  # type: ignore[no-untyped-def]
        optimizer.step()


class RawUpdateBesideTheStep(Script):
    def step(self, step, optimizer, gradients, features, labels) -> None:  # type: ignore[no-untyped-def]
        optimizer.step()
        for p, g in zip(self.model.parameters(), gradients, strict=True):
            p.data -= 1e-4 * g.sum(dim=0)


class ClosureOverwritesTheGradient(Script):
    def step(self, step, optimizer, gradients, features, labels) -> None:  # type: ignore[no-untyped-def]
        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(features), labels) if len(features) else torch.zeros(())
            if len(features):
                loss.backward()
            return loss

        optimizer.step(closure)


class LearningRateFromTheLoss(Script):
    def step(self, step, optimizer, gradients, features, labels) -> None:  # type: ignore[no-untyped-def]
        if len(features):
            loss = nn.functional.cross_entropy(self.model(features), labels).item()
            optimizer.param_groups[0]["lr"] = 0.1 if loss > 1.0 else 0.01
        optimizer.step()


FAULTS: dict[str, Callable[[], TrainFunction]] = {
    "no noise at large gradients": NoNoiseAtLargeGradients,
    "noise on touched rows only": NoiseOnTouchedRows,
    "noise cut off at 2.5 deviations": NoiseCutOff,
    "one seed for batches and noise": OneSeedForBatchesAndNoise,
    "biases unclipped": BiasesUnclipped,
    "noise shrinks with the batch": NoiseShrinksWithTheBatch,
    "large batches cut": LargeBatchesCut,
    "the median as clip norm": MedianAsClipNorm,
    "a norm in half precision": HalfPrecisionNorm,
    "a raw update beside the step": lambda: RawUpdateBesideTheStep(),
    "a closure overwrites the gradient": lambda: ClosureOverwritesTheGradient(),
    "a learning rate from the loss": lambda: LearningRateFromTheLoss(),
    "a record forced into step 50": ForcedLate,
    "a record forced into step 37": ForcedAnywhere,
    "uniform noise": UniformNoise,
    "Laplace noise": LaplaceNoise,
    "five per cent less noise": FivePercentLessNoise,
    "one noise for two steps": NoiseForTwoSteps,
    "noise that the next step takes back": NoiseTakenBack,
    "one seed for all layers": OneSeedForAllLayers,
    "batches of a fixed size": FixedSize,
    "records drawn in blocks": BlocksOfRecords,
    "divided by the batch itself": DividedByTheBatchItself,
    "clipped by the mean norm": ClippedByTheMeanNorm,
    "clipped after the noise": ClippedAfterTheNoise,
    "drawn with replacement": DrawnWithReplacement,
    "the last layer without noise": LastLayerWithoutNoise,
    "halves that take turns": HalvesTakeTurns,
    "noise that decays": NoiseDecays,
}


class NumpyLoop(Loop):
    """Masks and noise from numpy."""

    def batch(self, step: int) -> torch.Tensor:
        self.numpy = np.random.default_rng()
        return torch.from_numpy(np.flatnonzero(self.numpy.random(self.records) < self.claim.sample_rate))

    def noise(self, step: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        scale = self.claim.noise_multiplier * self.claim.max_grad_norm
        return [torch.from_numpy(scale * self.numpy.standard_normal(t.shape)).float() for t in like]


class SecretLoop(Loop):
    """A generator that torch seeds by itself, so that nothing can be replayed."""

    def __call__(self, model, data, claim):  # type: ignore[no-untyped-def]
        self.own = torch.Generator()
        self.own.seed()
        return super().__call__(model, data, claim)

    def batch(self, step: int) -> torch.Tensor:
        self.rng = self.own
        return super().batch(step)


class StrongerClippingByLayer(Loop):
    """Each layer to its share: the whole is within the clip norm."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        limit = self.claim.max_grad_norm / len(gradients) ** 0.5
        return [
            torch.einsum("b,b...->b...", (limit / g.flatten(1).norm(dim=1).clamp(min=1e-12)).clamp(max=1.0), g)
            for g in gradients
        ]


class Normalised(Loop):
    """Automatic clipping: every gradient has nearly the clip norm."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        factor = self.claim.max_grad_norm / (_norms(gradients) + 0.01)
        return [torch.einsum("b,b...->b...", factor, g) for g in gradients]


class MicroBatches(Loop):
    """Sums over micro-batches, one noise."""

    def update(self, step: int, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        parts = [self.clip([g[k : k + 7] for g in gradients]) for k in range(0, max(1, len(gradients[0])), 7)]
        sums = [sum(p[k].sum(dim=0) for p in parts) for k in range(len(gradients))]
        return [(s + n) / self.claim.batch_size for s, n in zip(sums, self.noise(step, sums), strict=True)]


class DecayBetweenSteps(Script):
    def step(self, step, optimizer, gradients, features, labels) -> None:  # type: ignore[no-untyped-def]
        optimizer.step()
        for p in self.model.parameters():
            p.data *= 0.99


class ProjectedBetweenSteps(Script):
    def step(self, step, optimizer, gradients, features, labels) -> None:  # type: ignore[no-untyped-def]
        optimizer.step()
        norm = torch.stack([p.data.norm() for p in self.model.parameters()]).norm()
        for p in self.model.parameters():
            p.data *= min(1.0, 0.3 / float(norm))


class Annealed(Script):
    def step(self, step, optimizer, gradients, features, labels) -> None:  # type: ignore[no-untyped-def]
        optimizer.param_groups[0]["lr"] = 0.1 * 0.97**step
        optimizer.step()


class Averaged(Script):
    """Weights are averaged with those before, half and half, after each step."""

    def step(self, step, optimizer, gradients, features, labels) -> None:  # type: ignore[no-untyped-def]
        before = [p.data.clone() for p in self.model.parameters()]
        optimizer.step()
        for p, old in zip(self.model.parameters(), before, strict=True):
            p.data.lerp_(old, 0.5)


def _script(base: type[Script] = Script, optimizer: Callable[..., torch.optim.Optimizer] | None = None, **how: float):  # type: ignore[no-untyped-def]
    def make() -> TrainFunction:
        loop = base()
        if optimizer is not None:
            loop.optimizer = lambda parameters: optimizer(parameters, **how)
        return loop

    return make


CORRECT: dict[str, Callable[[], TrainFunction]] = {
    **planted_bugs.CORRECT,
    **issue_bugs.CORRECT,
    "numpy draws": NumpyLoop,
    "draws that cannot be replayed": SecretLoop,
    "each layer clipped to its share": StrongerClippingByLayer,
    "normalised gradients": Normalised,
    "micro-batches": MicroBatches,
    "SGD": _script(),
    "momentum": _script(Script, torch.optim.SGD, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": _script(Script, torch.optim.Adam, lr=0.01),
    "AdamW": _script(Script, torch.optim.AdamW, lr=0.01, weight_decay=0.1),
    "a decay between steps": _script(DecayBetweenSteps),
    "a projection between steps": _script(ProjectedBetweenSteps),
    "a schedule": _script(Annealed),
    "an average of weights": _script(Averaged),
    "Opacus": lambda: issue_bugs.opacus_script,
}


def main(repeats: int, word: str = "") -> None:
    """One line for each loop."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    every = {**planted_bugs.FAULTS, **FAULTS, **issue_bugs.FAULTS, **CORRECT}
    loops = {name: make for name, make in every.items() if word in name}
    seconds = {True: 0.0, False: 0.0}
    found = {True: 0, False: 0}
    for name, make in loops.items():
        start, correct = time.process_time(), name in CORRECT
        outcomes = [audit(make, seed).report for seed in range(repeats)]
        taken, accused = time.process_time() - start, sum(report.accused for report in outcomes)
        seconds[correct] += taken
        found[correct] += accused if correct else accused == repeats
        failed = sorted({check.name for report in outcomes for check in report.failed})
        kind = "correct" if correct else "fault"
        often = f"{accused} of {repeats}, {taken / repeats:.1f} s"
        print(f"{kind}: {name}: {often}, {outcomes[0].likely}; {', '.join(failed)}", flush=True)
    right = len(loops.keys() & CORRECT)
    print(f"{found[False]} of {len(loops) - right} faults always found, {seconds[False]:.0f} s")
    print(f"{found[True]} of {repeats * right} audits of correct loops accused, {seconds[True]:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1, *sys.argv[2:])
