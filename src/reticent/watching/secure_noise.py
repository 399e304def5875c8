"""Noise for Opacus that nobody can predict: ``reticent.training.normals``, in the place of ``torch.normal``.

``torch.normal`` draws on a processor from a Mersenne twister, which 624 of its outputs give away, and from a seed that
a program may have set. The package ``torchcsprng``, which Opacus's ``secure_mode`` asks for, cannot be installed with
today's torch.
"""

from __future__ import annotations

import math
from types import MethodType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function

from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.training.normals import normal
from reticent.watching import optimisers
from reticent.watching.events import in_place_of

NORMAL = torch.normal
_TOGETHER = 1 << 16
"""Tensors of fewer numbers share what is drawn at once: each draw is a launch, or costs as much as 10,000 numbers."""


def secure_noise(optimizer: Any) -> Any:
    """Let a private optimizer of Opacus draw its noise from a stream cipher with keys of the operating system.

    Args:
        optimizer: that ``make_private`` returned.

    Returns:
        The optimizer.

    Raises:
        ParameterError: it is no private optimizer of Opacus.
        UnsupportedError: its clipping is adaptive, which draws noise elsewhere too, or its ``add_noise`` was replaced.
            A class of the program may add noise by Opacus's method or by ``torch.normal``: a step fails that does not.

    Example:
        >>> import reticent as rt
        >>> optimizer = rt.secure_noise(optimizer)  # doctest: +SKIP
    """
    if not optimisers.is_private(optimizer):
        raise ParameterError("optimizer", type(optimizer).__name__, "the private one that make_private returned")
    if optimisers.is_secured(optimizer):
        return optimizer
    if hasattr(optimizer, "target_unclipped_quantile"):
        raise UnsupportedError("secure_noise: adaptive clipping draws the noise of its count elsewhere")
    own: Any = type(optimizer)
    before = vars(optimizer).get("add_noise")
    if optimisers.method_of(optimizer, "add_noise") is not own.add_noise:
        raise UnsupportedError(f"secure_noise: this {own.__name__} has an add_noise of its own")

    def add_noise(self: Any) -> None:
        with _Secure(sum(p.numel() for p in self.params)) as source:
            own.add_noise(self) if before is None else before()
        if not source.asked and self.noise_multiplier > 0.0 and not getattr(self, "rank", 0):
            raise UnsupportedError(f"secure_noise: add_noise of {own.__name__} uses neither Opacus's nor torch.normal")

    add_noise.reticent_noise = own.add_noise  # type: ignore[attr-defined]
    in_place_of(optimizer, "add_noise", MethodType(add_noise, optimizer))
    return optimizer


class _Secure(TorchFunctionMode):
    """Whoever asks torch for normal numbers gets others meanwhile."""

    asked = False
    """Whether anybody did."""

    def __init__(self, expected: int) -> None:
        """For this many numbers, more or less."""
        super().__init__()
        self._most = min(expected, _TOGETHER)
        self._rest: dict[torch.device, torch.Tensor] = {}

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is NORMAL:
            self.asked, function = True, self._normal
        return function(*args, **kwargs or {})

    def _normal(
        self, mean: Any, std: Any, size: Any = (), device: Any = None, dtype: Any = None, **_: Any
    ) -> torch.Tensor:
        """As ``torch.normal`` for numbers; a generator is not asked."""
        if isinstance(mean, torch.Tensor) or (isinstance(std, torch.Tensor) and std.ndim):
            raise UnsupportedError("secure_noise: add_noise asks torch.normal for numbers of several laws at once")
        kind = torch.get_default_dtype() if dtype is None else dtype
        where = torch.get_default_device() if device is None else torch.device(device)
        return drawn(self._numbers(tuple(size), float(std), kind, where) + mean, std=float(std))

    def _numbers(
        self, shape: tuple[int, ...], deviation: float, dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        count = math.prod(shape)
        if count >= _TOGETHER:
            return normal(shape, deviation, dtype, device)
        rest = self._rest.get(device)
        if rest is None or len(rest) < count:
            rest = normal((max(count, self._most),), 1.0, torch.float64, device)
        self._rest[device] = rest[count:]
        return (rest[:count] * deviation).to(dtype).view(shape)


def drawn(noise: torch.Tensor, *, std: float) -> torch.Tensor:
    """This noise, which has this standard deviation: modes of torch see it here."""
    if has_torch_function((noise,)):
        noise = handle_torch_function(drawn, (noise,), noise, std=std)
    return noise
