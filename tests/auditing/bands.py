"""Whether a curve can be the true one of an attack, by its band."""

from __future__ import annotations

import numpy as np

from reticent.auditing import EmpiricalTradeOff
from reticent.kernel.curves import TradeOff


def contains(band: EmpiricalTradeOff, curve: TradeOff) -> bool:
    """Whether ``curve`` lies in the band at every alpha."""
    starts = np.clip(band.alpha + band.alpha_radius, 0.0, 1.0)
    below_upper = curve.beta(starts) <= band.upper(starts) + 1e-12
    ends = np.append((band.alpha - band.alpha_radius)[1:], 1.0)
    inside = ends > 0.0
    floor = np.maximum(band.beta - band.beta_radius, 0.0)[inside]
    above_lower = curve.beta(np.minimum(ends[inside], 1.0)) >= floor - 1e-12
    return bool(np.all(below_upper) and np.all(above_lower))
