"""The relaxed adversary against plain Gaussian releases of different noise: one unknown direction for all.

With releases y_i = Delta_i u + sigma_i z_i and a common unknown unit vector u, S = sum Delta_i y_i / sigma_i^2 is
sufficient and ||S||^2 / lambda is noncentral chi-square with d degrees of freedom and noncentrality
lambda = sum Delta_i^2 / sigma_i^2. Lemma 8 of KAISSIS2023 takes the unweighted mean instead, which is too
optimistic: by Cauchy-Schwarz its lambda is smaller, and a further release can even lower it (KAISSIS2023:R1).
"""

from __future__ import annotations

from reticent.errors import UnsupportedError
from reticent.mechanisms import Mechanism, Neighbouring


def noncentrality(releases: Mechanism, neighbouring: Neighbouring) -> float:
    """lambda of the optimally weighted sum: sum over releases of (sensitivity / noise)^2.

    By KAISSIS2022:Theorem 2.

    Args:
        releases: plain Gaussian releases with noise.

    Raises:
        UnsupportedError: a part is sampled, not Gaussian, or without noise.
    """
    total = 0.0
    for part in releases.parts:
        plain = part.training is None and part.sums
        if not plain or plain.noise_multiplier == 0.0:
            raise UnsupportedError("a common direction is composed exactly for plain Gaussian releases with noise only")
        total += plain.steps * (neighbouring.sensitivity / plain.noise_multiplier) ** 2
    return total
