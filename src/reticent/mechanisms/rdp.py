"""A release of which nothing is known but bounds on its Renyi divergences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import le, lt
from typing import ClassVar

import numpy as np

from reticent.kernel import checks
from reticent.kernel.mechanisms.base import LARGEST
from reticent.kernel.messages import Message
from reticent.kernel.registry import described
from reticent.mechanisms.stated import REACH, Listed, Stated, check_lists, numbers

_LINES = 40_000  # of all orders together: half as many make epsilon up to .3 % larger
_ROUNDING = 2e-15  # of one logarithm, relative to its terms, with room
_HALVINGS = 30


@dataclass(frozen=True, slots=True, repr=False)
class RDP(Stated):
    """A release with stated Renyi divergences (RDP).

    Attributes:
        orders: of the divergences, > 1 and increasing; numbers, or a text with commas.
        stated_epsilons: the most that the divergence of each order is, of one release, in both directions.
        releases: number of releases, each with these bounds, whatever was released before; they add up by order.

    Raises:
        ParameterError: a list is no list of such numbers, falls, or is not as long as the other.

    Example:
        >>> import reticent as rt
        >>> round(rt.epsilon_at_delta(rt.RDP([2, 4, 8, 16], [0.1, 0.2, 0.4, 0.8]), 1e-5), 2)
        1.32
    """

    orders: str | Iterable[float] = field(metadata=described("Orders of the divergences, such as 2,8.", start="2,8"))
    stated_epsilons: str | Iterable[float] = field(
        metadata=described("The epsilons that somebody proved for one release, such as 0.1,0.4.", start="0.1,0.4")
    )
    releases: int = field(default=1, metadata=described("Number of releases with these divergences."))

    name: ClassVar[str] = "rdp"
    title: ClassVar[str] = "Stated Renyi divergences"
    sentence: ClassVar[Message | str] = Message("mechanism.rdp")
    _theorems: ClassVar[tuple[str, ...]] = ("RETICENT:renyi-lines",)
    _adds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        falls = "that do not fall, as no Renyi divergence falls where its order grows"
        check_lists(
            self,
            orders=Listed(lambda order: 1.0 < order <= LARGEST, lt, f"numbers above 1, to {LARGEST:g}, that increase"),
            stated_epsilons=Listed(lambda most: 0.0 <= most <= LARGEST, le, f"numbers from 0 to {LARGEST:g} {falls}"),
        )
        checks.count(releases=self.releases)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        epsilons = self.releases * np.array(numbers(self.stated_epsilons))
        return renyi_bounds(np.array(numbers(self.orders)), epsilons)


def renyi_bounds(orders: np.ndarray, divergences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Epsilons, and log of what delta is at most there, by RETICENT:renyi-lines.

    Each pair of likelihood ratios, low < 1 < high, gives a bound that holds. The best are those of two ratios that a
    release with this divergence may have as its only ones: for each low one the high one is found by halving.

    Args:
        orders: > 1.
        divergences: upper bounds on the Renyi divergence of each order.
    """
    from reticent.kernel.curves._logs import log1mexp, log_expm1

    if np.min(divergences) == 0.0:
        return np.zeros(1), np.full(1, -np.inf)
    a = orders[:, None]
    moment = (a - 1.0) * divergences[:, None]  # log of the most that the mean of ratio^a is
    each = min(max(20, _LINES // len(orders)), 2000)
    fall = np.append(-1e-9, -np.geomspace(0.01, 100.0, each))  # log(1 - low)
    low = log1mexp(fall)
    least, most = np.zeros((len(orders), len(fall))), (moment - fall) / (a - 1.0)
    for _ in range(_HALVINGS):
        high = 0.5 * (least + most)
        apart = high + log1mexp(low - high)
        mean = np.logaddexp(fall - apart + a * high, high + log1mexp(-high) - apart + a * low)
        least, most = np.where(mean > moment, least, high), np.where(mean > moment, high, most)
    high = most
    rest, steep = log1mexp((a - 1.0) * (low - high)), np.log(a - 1.0)
    epsilons = steep - np.log(a) - rest + high + log1mexp(a * (low - high))
    epsilons += _ROUNDING * (1.0 + high - low + np.abs(steep))
    touching = (a - 1.0) * low + np.log1p((a - 1.0) * np.exp(fall))
    over = np.maximum(moment - touching, 0.0) + _ROUNDING * (moment - (a - 1.0) * low + np.log(a))
    log_delta = touching + log_expm1(over) - np.log(a) - (a - 1.0) * high - rest
    log_delta += _ROUNDING * (100.0 + moment + a * (1.0 + high - low))
    used = (epsilons > 0.0) & (epsilons < REACH) & (log_delta < 0.0)
    return epsilons[used], log_delta[used]
