"""What really reached the weights of a toy loop, counted without any code of ``reticent.watching``.

The oracle stands below the watch, at ``step`` of the optimizer inside. Before each step it compares all weights with
those that the last step left, and measures the noise between the sum and what is released.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from types import MethodType
from typing import Any

import torch
from scipy.stats import chi2

from reticent.kernel.mechanisms import Ledger
from reticent.kernel.samplers import Poisson
from reticent.samplers import Shuffled


def digest(model: Any) -> str:
    state = [t for t in model.state_dict().values() if isinstance(t, torch.Tensor)]
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in state)).hexdigest()


class Oracle:
    """Counts releases, and remembers whatever reached the weights without noise."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.last = digest(model)
        self.bare: list[str] = []
        self.releases: list[tuple[float, float | None, Counter[int]]] = []
        self.clipped_to: list[float] = []
        self.waiting: Counter[int] = Counter()
        self.known_seed = self.known_draw = self.secure = False
        self.under: Counter[int] = Counter()
        """Releases by the seed that torch's generator had: a state that none of them came after repeats nothing."""

    def used(self, records: Iterable[int]) -> None:
        """A part of a batch goes through the model; its first part tells when the batch was drawn."""
        if not self.waiting:
            self.known_draw = self.known_seed
        self.waiting.update(records)

    def dirty(self, why: str) -> None:
        self.bare.append(why)

    def compare(self, when: str) -> None:
        if digest(self.model) != self.last:
            self.dirty(f"weights written {when}")
            self.last = digest(self.model)

    def released(self, noise: float, rate: float | None) -> None:
        if self.known_seed and not self.secure:
            self.dirty("noise with a known seed")
        if self.known_draw and rate is not None:
            rate = 1.0
        self.releases.append((noise, rate, self.waiting))
        self.under[torch.initial_seed()] += 1
        self.waiting, self.clipped_to = Counter(), []
        self.last = digest(self.model)

    def follow(self, optimizer: Any, rate_of: Any) -> None:
        """Stand below a private optimizer."""
        inner = optimizer.original_optimizer
        own = inner.step

        def step(_: Any, *args: Any, **kwargs: Any) -> Any:
            self.compare("before a step")
            scale = optimizer.expected_batch_size * optimizer.accumulated_iterations
            gaps = [p.grad * scale - p.summed_grad.view_as(p) for p in optimizer.params]
            length = sum(float(g.double().square().sum()) for g in gaps)
            count = sum(g.numel() for g in gaps)
            norm = float(optimizer.max_grad_norm)
            deviation = float(optimizer.noise_multiplier) * norm
            if length < min(0.1 * count, float(chi2.ppf(1e-9, count))) * deviation**2:  # few may be small by chance
                self.dirty("a step without its noise")
            found = own(*args, **kwargs)
            clip = max(self.clipped_to, default=norm)
            self.released(deviation / clip, rate_of())
            return found

        inner.step = MethodType(step, inner)  # schedulers want a method


def understated(mechanism: Any, oracle: Oracle) -> str | None:
    """Why the ledger states less than what ran, or None."""
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    if any(part.noise_multiplier == 0.0 for part in parts):
        return None
    if oracle.bare:
        return f"unprotected: {oracle.bare}"
    if all(rate is not None for _, rate, _ in oracle.releases):
        return _less_poisson(parts, oracle)
    return _less_in_passes(parts, oracle)


def _less_poisson(parts: Any, oracle: Oracle) -> str | None:
    stated = sorted((p.noise_multiplier, p.sample_rate) for p in parts for _ in range(p.steps))
    true = sorted((noise, rate) for noise, rate, _ in oracle.releases)
    if len(stated) < len(true):
        return f"{len(stated)} steps are stated, {len(true)} ran"
    for (noise, rate), (real, drawn) in zip(stated, true, strict=False):
        if noise > real * (1 + 1e-6) or rate < drawn * (1 - 1e-9):
            return f"stated {noise:g} at rate {rate:g}, ran {real:g} at {drawn:g}"
    return None


def _less_in_passes(parts: Any, oracle: Oracle) -> str | None:
    stated = 0.0
    for part in parts:
        if isinstance(part.sampler, Poisson) and part.sample_rate < 1.0:
            return "amplification for batches that are not Poisson"
        batches = part.sampler.batches_per_epoch if isinstance(part.sampler, Shuffled) else 1
        stated += -(-part.steps // (batches or 1)) / part.noise_multiplier**2
    real: Counter[int] = Counter()
    for noise, _, records in oracle.releases:
        for record, times in records.items():
            real[record] += times**2 / noise**2  # type: ignore[assignment]
    worst = max(real.values(), default=0.0)
    return None if stated >= worst * (1 - 1e-6) else f"stated mu^2 {stated:g}, ran {worst:g}"
