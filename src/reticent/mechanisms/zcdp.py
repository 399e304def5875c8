"""A release of which nothing is known but a rho: zero-concentrated differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.messages import Message
from reticent.kernel.registry import described
from reticent.mechanisms.rdp import renyi_bounds
from reticent.mechanisms.stated import REACH, Stated

_ORDERS = 100


@dataclass(frozen=True, slots=True, repr=False)
class ZCDP(Stated):
    """A release with a stated rho (zCDP).

    Attributes:
        rho: of one release, from 0 to 600: its Renyi divergence of each order a > 1 is at most a rho.
        releases: number of releases, each with this rho, whatever was released before; they add up.

    Raises:
        ParameterError: a number is outside its domain, or NaN.

    Example:
        >>> import reticent as rt
        >>> round(rt.epsilon_at_delta(rt.ZCDP(0.1), 1e-5), 1)
        1.9
    """

    rho: float = field(metadata=described("The rho that somebody proved for one release."))
    releases: int = field(default=1, metadata=described("Number of releases with this rho."))

    name: ClassVar[str] = "zcdp"
    title: ClassVar[str] = "A stated rho"
    sentence: ClassVar[Message | str] = Message("mechanism.zcdp")
    _theorems: ClassVar[tuple[str, ...]] = ("BUN2016:Definition 1.1", "RETICENT:renyi-lines")
    _adds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if checks.non_negative(rho=self.rho) > REACH:
            raise ParameterError("rho", self.rho, f"at most {REACH:g}")
        checks.count(releases=self.releases)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        rho = self.rho * self.releases
        orders = 1.0 + np.geomspace(0.01, 1.0 + 12.0 / math.sqrt(rho or 1.0), _ORDERS)
        return renyi_bounds(orders, rho * orders)
