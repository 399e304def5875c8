"""What a dominating pair is: two laws of one release. H0, the target is absent, against H1, it is present.

A pair knows everything that is known about it: a new one is a file of its own in this folder, or in another package.
Lengths are in units of the largest contribution of one record.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from reticent.kernel.curves import TradeOff
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture
from reticent.kernel.pairs.losses import LossMasses

if TYPE_CHECKING:
    from reticent.kernel.pairs.part import Part

Ends = tuple[float, float]
"""(lower, upper) around one number; or a number for either direction."""


class Composer(Protocol):
    """What an accountant lends to pairs whose curve follows from that of other releases."""

    def __call__(self, parts: tuple[Part, ...], weaker: bool, times: int = 1) -> tuple[TradeOff, Ends]:
        """The curve of ``parts``, each ``times`` as often, H0 = absent, and its largest losses.

        Args:
            parts: the other releases.
            weaker: the curve of a weaker attacker is wanted, not of a stronger one.
            times: how many runs of them are seen together.
        """

    def __hash__(self) -> int:
        """What it finds is found once."""


class Pair:
    """Two laws of one release that are at least as easy to tell apart as the release on any two neighbours.

    A subclass is a frozen dataclass, without ``slots`` where it caches its curve.

    Attributes:
        log_absent: log of the probability that the target takes no part in the release; -inf where it always takes
            part or nothing is known of it, which is safe, and never because a probability was rounded to 1.
    """

    __slots__ = ()

    @property
    def log_absent(self) -> float:
        """See the class."""
        return -math.inf

    @property
    def curve(self) -> TradeOff | None:
        """The trade-off curve, H0 = absent, whose ``reversed`` is the other direction; None where none is known."""
        return None

    @property
    def curve_below(self) -> TradeOff | None:
        """The curve of a weaker attacker, where ``curve`` is that of a stronger one; else the same."""
        return self.curve

    @property
    def rough(self) -> Pair:
        """A pair that is much the same and takes less time, for estimates; itself where there is none."""
        return self

    def composed(self, compose: Composer) -> Pair:
        """The same with its curve, where that follows from the curves of other releases; else itself."""
        return self

    def quick_delta(self, compose: Composer, epsilon: float) -> float:
        """delta of the composed pair at one epsilon >= 0, near enough to steer a search.

        Raises:
            UnsupportedError: nothing is quicker than its curve.
        """
        raise UnsupportedError("nothing is quicker than the curve")

    def losses(self, grid: np.ndarray) -> LossMasses | None:
        """The privacy loss distribution on cells between the points of ``grid``; None where it is not known."""
        return None if self.curve is None else LossMasses.of(self.curve, grid)

    @property
    def largest_losses(self) -> tuple[float, float]:
        """The largest privacy loss, in nats, and the largest of its negative; infinite where there is none."""
        return math.inf, math.inf

    @property
    def mixture(self) -> GaussianMixture | None:
        """The pair as a Gaussian mixture with one shift of 1: then its transform and its moments can be bounded."""
        return None

    @property
    def mu(self) -> float | None:
        """Where the pair is N(0, 1) against N(mu, 1) and nothing else, this mu: such releases are merged into one."""
        return None

    @property
    def unsampled_mu(self) -> float | None:
        """mu of an attacker who sees whether the target takes part; None unless the noise is Gaussian."""
        return None

    @property
    def log_ways(self) -> float:
        """log of how many Gaussian laws of ``unsampled_mu`` "present" is the even mixture of; infinite: it is none."""
        return math.inf

    @property
    def tail_mu(self) -> float:
        """What mu is at least at false positive rates near 0; 0 where losses are bounded. Such mu add in squares."""
        return self.unsampled_mu or 0.0

    @property
    def proven_mu_is_least(self) -> bool:
        """Whether no mu is smaller than ``curve.proven_mu``, at any error rate."""
        return False


class Drawn(Pair):
    """One coin decides whether the target takes part.

    Attributes:
        sample_rate: probability that it does, in (0, 1].
    """

    __slots__ = ()

    sample_rate: float

    @property
    def log_absent(self) -> float:
        return math.log1p(-self.sample_rate) if self.sample_rate < 1.0 else -math.inf

    @property
    def mu(self) -> float | None:
        return self.unsampled_mu if self.sample_rate == 1.0 else None
