"""Opacus's optimizer with noise from our own sources and a record of what was clipped."""

from __future__ import annotations

import torch
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed
from torch.optim import Optimizer

from reticent.kernel.errors import NumericalError
from reticent.training.randomness import Source


class PrivateOptimizer(DPOptimizer):  # type: ignore[misc]
    """Clips each record's gradient, sums, adds noise, divides by a constant, steps.

    Clipping, accumulation and scaling are Opacus's. Noise is drawn in float64 for every coordinate on
    its own, on the device of the gradients, and added before rounding to float32.

    Args:
        optimizer: moves the weights.
        noise_multiplier: noise standard deviation over ``max_grad_norm``, on the sum.
        max_grad_norm: clip norm (L2) over all parameters together.
        divisor: what the noisy sum is divided by; not the realised batch size.
        source: where noise comes from.
    """

    def __init__(
        self, optimizer: Optimizer, *, noise_multiplier: float, max_grad_norm: float, divisor: float, source: Source
    ) -> None:
        super().__init__(
            optimizer,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            expected_batch_size=divisor,
            loss_reduction="mean",
        )
        self._source = source
        self._norms: list[torch.Tensor] = []
        self.clipped = 0
        """Records of the last step whose gradient norm exceeded the clip norm."""

    def take_norms(self) -> torch.Tensor:
        """Gradient norms before clipping since the last call, in the order of the records."""
        norms, self._norms = self._norms, []
        return torch.cat(norms) if norms else torch.zeros(0)

    def clip_and_accumulate(self) -> None:
        """Remember the norms, then clip and sum as Opacus does."""
        parts = [g.detach().reshape(len(g), -1).to(torch.float32).norm(dim=1) for g in self.grad_samples if len(g)]
        if parts:
            self._norms.append(torch.stack(parts, dim=1).norm(dim=1))
        super().clip_and_accumulate()

    def accumulate(self, norms: torch.Tensor, sums: dict[torch.Tensor, torch.Tensor]) -> None:
        """Take norms and clipped sums of some records that were computed without one gradient per record."""
        self._norms.append(norms)
        for p in self.params:
            p.summed_grad = sums[p] if p.summed_grad is None else p.summed_grad + sums[p]

    def release(self) -> None:
        """Noise on what was accumulated, one division, one step of the optimizer."""
        self.add_noise()
        for p in self.params:
            p.grad /= self.expected_batch_size
        self.original_optimizer.step()

    def add_noise(self) -> None:
        """Add independent noise of standard deviation ``noise_multiplier * max_grad_norm`` to every coordinate.

        Noise and sums are one vector on the device of the gradients. It is waited for once, when all is on its way.

        Raises:
            NumericalError: a record's gradient is not finite: no factor would clip it, and one such record
                would show in every weight.
        """
        for p in self.params:
            _check_processed_flag(p.summed_grad)
        sums = torch.cat([p.summed_grad.detach().reshape(-1).to(torch.float64) for p in self.params])
        noise = self._source.normal(len(sums), sums.device)
        sums += noise.mul_(self.noise_multiplier * self.max_grad_norm)
        for p, part in zip(self.params, sums.split([p.numel() for p in self.params]), strict=True):
            p.grad = part.view_as(p).to(p.dtype)
            _mark_as_processed(p.summed_grad)
        self._look()

    def _look(self) -> None:
        """Read at once what the norms say: each reading waits for the device."""
        norms = torch.cat(self._norms) if self._norms else torch.zeros(0)
        finite, self.clipped = torch.stack([norms.isfinite().sum(), (norms > self.max_grad_norm).sum()]).tolist()
        if finite < len(norms):
            raise NumericalError("a record's gradient is not finite and cannot be clipped; nothing is released")
