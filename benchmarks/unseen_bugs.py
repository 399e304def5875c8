"""Two faults that were planted before it was known whether any test sees them: one with Opacus, one Trainer-like.

Neither is in the list of faults that the verdict can name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reticent.attacks.white_box import TrainFunction
from reticent.kernel.mechanisms import DPSGD


def small_batches_skipped(model: nn.Module, data: TensorDataset, claim: DPSGD) -> None:
    """Opacus; batches too small for batch normalisation are passed over, so who was drawn decides whether it counts."""
    from opacus import PrivacyEngine

    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=claim.batch_size),
        noise_multiplier=claim.noise_multiplier,
        max_grad_norm=claim.max_grad_norm,
    )
    steps = 0
    while steps < claim.steps:
        for x, y in loader:
            if len(x) < 0.9 * (claim.batch_size or 1):
                continue
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            steps += 1


class BestModelAtEnd:
    """A Trainer with ``load_best_model_at_end``, where the loss that decides is that of the training records."""

    def __call__(self, model: nn.Module, data: TensorDataset, claim: DPSGD) -> None:
        from opacus import PrivacyEngine

        self.data, self.best = data, float("inf")
        self.kept = {name: value.clone() for name, value in model.state_dict().items()}
        private, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(data, batch_size=claim.batch_size),
            noise_multiplier=claim.noise_multiplier,
            max_grad_norm=claim.max_grad_norm,
        )
        for x, y in self.batches(loader, claim.steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(private(x), y).backward()
            optimizer.step()
            self.evaluate(model)
        model.load_state_dict(self.kept)

    def batches(self, loader: DataLoader, steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """As many as there are steps, over epochs."""
        for _ in range(-(-steps // len(loader))):
            yield from loader

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> None:
        """Keep the weights if no earlier ones had a smaller loss."""
        features, labels = self.data.tensors
        loss = float(nn.functional.cross_entropy(model(features), labels))
        if loss < self.best:
            self.best = loss
            self.kept = {name: value.clone() for name, value in model.state_dict().items()}


FAULTS: dict[str, Callable[[], TrainFunction]] = {
    "small batches skipped": lambda: small_batches_skipped,
    "the best model at the end": lambda: BestModelAtEnd(),
}
