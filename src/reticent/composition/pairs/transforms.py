"""What the transform route asks of the loss law of one step: M(lambda) = E_P[(dQ/dP)^lambda], with error bounds."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np


class Transform(NamedTuple):
    """M(c + it) - 1 per frequency (complex), and a bound on its absolute error."""

    excess: np.ndarray
    error: np.ndarray


class Decay(Protocol):
    """At one real part c."""

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        """Per frequency, an upper bound on log |M(c + it)| / M(c) for all t at least that large."""


class Law(Protocol):
    """The loss law of one step."""

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        """M(c + it) - 1 at ``frequencies`` t, increasing from 0."""

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        """Upper bounds on log M(c) at real ``exponents`` c; inf where there is none."""

    def log_scale(self, c: float) -> float:
        """log M(c), without a bound: whatever it is, values are divided by it and multiplied again."""

    def moments(self, c: float) -> tuple[float, float]:
        """Mean and variance of the loss under the law tilted by e^(cL): not certified, they only plan."""

    def decay(self, c: float) -> Decay:
        """Bounds on |M(c + it)| / M(c) beyond any frequency."""
