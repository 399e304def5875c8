"""One factor for the noise of every step: what is searched where noise changes along a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from reticent.accountants import closed_forms
from reticent.calibration.unknowns import NoiseMultiplier, Unknown
from reticent.kernel.curves._thresholds import halved
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.mechanisms.base import LARGEST, SMALLEST
from reticent.kernel.pairs import Neighbouring

_HALVINGS = 60
_APART = 0.01  # in log factor, to either side: over which a slope is taken
_LEAST_NOISE = 0.05  # below, the central limit theorem says nothing


@dataclass(frozen=True, slots=True)
class NoiseScale(Unknown):
    """A factor on the noise of every release; more noise is post-processing of each, so risk falls.

    Composition keeps the order of its steps: if each release tells less, so do all together.

    Attributes:
        low, high: ends of the factor that is searched, inclusive, > 0.
    """

    low: float = 1e-6
    high: float = 1e6
    name: ClassVar[str] = "noise_scale"
    risk_grows: ClassVar[bool] = False
    of_noise: ClassVar[bool] = True

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        return mechanism.scaled(value)

    def ends(self, mechanism: Mechanism) -> tuple[float, float]:
        """The range, without factors at which the noise of a part leaves what can be computed with.

        Raises:
            ParameterError: the noises are too far apart for one factor.
        """
        noises = [part.noise_multiplier or 1.0 for part in mechanism.base.parts]
        low, high = max(self.low, 2.0 * SMALLEST / min(noises)), min(self.high, 0.5 * LARGEST / max(noises))
        if low > high:
            raise ParameterError("noise_multiplier", max(noises), "within thirty orders of magnitude of the others")
        return low, high


def all_noise(mechanism: Mechanism) -> Unknown:
    """All noise of a release: that of one mechanism, or a factor on that of several."""
    return NoiseScale() if len(mechanism.parts) > 1 else NoiseMultiplier()


def scale_near(mechanism: Mechanism, mu: float, neighbouring: Neighbouring) -> tuple[float, float]:
    """(factor, slope of log mu) where the central limit theorem has ``mu``: the squares of all parts add up.

    Args:
        mechanism: a run, or a ledger of runs, all with noise.
        mu: > 0.
    """
    unit = NoiseScale()
    low, high = (math.log(end) for end in unit.ends(mechanism))

    def log_mu(u: float) -> float:
        return log_clt_mu(unit.put(mechanism, math.exp(u)), neighbouring)

    wanted = math.log(mu)
    high = float(halved(lambda u: log_mu(float(u)) > wanted, low, high, _HALVINGS)[1])
    slope = (log_mu(high - _APART) - log_mu(high + _APART)) / (2.0 * _APART)
    return math.exp(high), slope if math.isfinite(slope) and slope > 0.0 else 1.0


def log_clt_mu(mechanism: Mechanism, neighbouring: Neighbouring) -> float:
    """log of the mu that the central limit theorem has for all parts together."""
    total = sum(_mu(part, neighbouring) ** 2 for part in mechanism.parts)
    return 0.5 * math.log(total) if 0.0 < total < math.inf else math.copysign(math.inf, total - 1.0)


def _mu(part: Mechanism, neighbouring: Neighbouring) -> float:
    noise, run = part.noise_multiplier or 1.0, part.training
    if run is not None:
        run = run.accountable
        return float(closed_forms.clt_mu(max(noise, _LEAST_NOISE), run.sample_rate, run.steps, neighbouring))
    return neighbouring.sensitivity * math.sqrt(part.releases) / noise
