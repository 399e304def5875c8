"""One factor for the noise of every step: what is searched where noise changes along a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from reticent.accountants import closed_forms
from reticent.calibration.unknowns import Unknown
from reticent.curves._thresholds import halved
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD, Ledger, Mechanism, Neighbouring
from reticent.mechanisms.base import LARGEST, SMALLEST
from reticent.mechanisms.dpsgd import accountable
from reticent.mechanisms.ledger import parts_of

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

    @property
    def may_be_none(self) -> bool:
        return self.low == NoiseScale().low

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        """``mechanism`` with the noise of every part times ``value``.

        Raises:
            UnsupportedError: a part has no noise that could be scaled.
        """
        if isinstance(mechanism, Ledger):
            return Ledger(tuple(self.put(part, value) for part in mechanism.parts))
        noise = getattr(mechanism, "noise_multiplier", None)
        if noise is None:
            raise UnsupportedError(f"{type(mechanism).__name__} has no noise that could be scaled")
        if noise == 0.0:
            raise UnsupportedError(
                "a step without noise stays without noise, whatever the factor: it has no calibration"
            )
        scaled: Any = mechanism
        return replace(scaled, noise_multiplier=noise * value)

    def ends(self, mechanism: Mechanism) -> tuple[float, float]:
        """The range, without factors at which the noise of a part leaves what can be computed with.

        Raises:
            ParameterError: the noises are too far apart for one factor.
        """
        noises = [float(getattr(part, "noise_multiplier", 1.0)) or 1.0 for part in parts_of(mechanism)]
        low, high = max(self.low, 2.0 * SMALLEST / min(noises)), min(self.high, 0.5 * LARGEST / max(noises))
        if low > high:
            raise ParameterError("noise_multiplier", max(noises), "within thirty orders of magnitude of the others")
        return low, high


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
    total = sum(_mu(part, neighbouring) ** 2 for part in parts_of(mechanism))
    return 0.5 * math.log(total) if 0.0 < total < math.inf else math.copysign(math.inf, total - 1.0)


def _mu(part: Mechanism, neighbouring: Neighbouring) -> float:
    noise = float(getattr(part, "noise_multiplier", 1.0))
    if isinstance(part, DPSGD):
        run = accountable(part)
        return float(closed_forms.clt_mu(max(noise, _LEAST_NOISE), run.sample_rate, run.steps, neighbouring))
    return neighbouring.sensitivity * math.sqrt(float(getattr(part, "releases", 1))) / noise
