"""Faults that people reported in issue threads, chosen before the tests were read again, and a loop in sixteen bits.

The two that couple the records of a batch were not found at first; ``reticent.attacks.short_gradients`` is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.planted_bugs import Loop
from reticent.attacks.white_box import TrainFunction
from reticent.kernel.mechanisms import DPSGD


def opacus_script(
    model: nn.Module, data: TensorDataset, claim: DPSGD, weights: tuple[float, ...] | None = None
) -> None:
    """The loop of the Opacus tutorial.

    With class weights the mean of the losses divides by the weights of the batch (pytorch#61309).
    """
    from opacus import PrivacyEngine

    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=claim.batch_size),
        noise_multiplier=claim.noise_multiplier,
        max_grad_norm=claim.max_grad_norm,
    )
    loss = nn.CrossEntropyLoss(weight=None if weights is None else torch.tensor(weights))
    for _ in range(-(-claim.steps // len(loader))):
        for x, y in loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()


def rest_in_the_open(model: nn.Module, data: TensorDataset, claim: DPSGD) -> None:
    """Opacus's optimizer has the first layer, a plain one the others, as opacus#615 advises."""
    from opacus import GradSampleModule
    from opacus.data_loader import DPDataLoader
    from opacus.optimizers import DPOptimizer

    first, *others = model.linears
    wrapped = GradSampleModule(model)
    private = DPOptimizer(
        torch.optim.SGD(first.parameters(), lr=0.1),
        noise_multiplier=claim.noise_multiplier,
        max_grad_norm=claim.max_grad_norm,
        expected_batch_size=claim.batch_size,
    )
    plain = torch.optim.SGD([p for layer in others for p in layer.parameters()], lr=0.1)
    loader = DPDataLoader.from_data_loader(DataLoader(data, batch_size=claim.batch_size))
    for _ in range(-(-claim.steps // len(loader))):
        for x, y in loader:
            private.zero_grad()
            wrapped.zero_grad()
            nn.functional.cross_entropy(wrapped(x), y).backward()
            private.step()
            plain.step()


class DividedByItems(Loop):
    """The loss of each of two micro-batches is divided by the items of both, as Trainers do (transformers#34191)."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        size = len(gradients[0])
        half = (size + 1) // 2
        share = torch.cat([torch.full((half,), half), torch.full((size - half,), size - half)]) / max(size, 1)
        return super().clip([torch.einsum("b,b...->b...", share, g) for g in gradients])


class SeededByTheTrainer(Loop):
    """torch is seeded with 42 before the noise is drawn from its own generator, as a Trainer does by default."""

    def seed(self) -> int:
        torch.manual_seed(42)
        return int(torch.randint(2**31, (1,)))


class SixteenBits(Loop):
    """Correct, with gradients in bfloat16."""

    def clip(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        return [g.bfloat16().float() for g in super().clip([g.bfloat16().float() for g in gradients])]


FAULTS: dict[str, Callable[[], TrainFunction]] = {
    "Opacus with class weights": lambda: partial(opacus_script, weights=(1.0, 5.0)),
    "Opacus for the first layer alone": lambda: rest_in_the_open,
    "losses divided by the items of all micro-batches": DividedByItems,
    "the Trainer's default seed": SeededByTheTrainer,
}
CORRECT: dict[str, Callable[[], TrainFunction]] = {"gradients in sixteen bits": SixteenBits}
