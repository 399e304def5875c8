"""Between (epsilon, delta) and the advantage, for any mechanism: equation 5 and section 4.2.1 of CHERUBIN2024."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel import checks


def advantage_bound(epsilon: ArrayLike, delta: ArrayLike) -> np.ndarray:
    """Largest advantage that (epsilon, delta)-DP allows: (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    Equation 5 of CHERUBIN2024, after Humphries et al.; exact for the class of all such mechanisms, as the trade-off
    curve of (epsilon, delta)-DP attains it. Along one curve, with delta = delta(epsilon), it is smallest at epsilon =
    0, where it is the advantage itself.

    Args:
        epsilon: >= 0, any shape.
        delta: in [0, 1], broadcast against ``epsilon``.

    Raises:
        ParameterError: ``epsilon`` is NaN, or ``delta`` outside [0, 1].
    """
    epsilon, delta = checks.reals(epsilon=epsilon), checks.probabilities(delta=delta)
    # Divided by e^epsilon, which overflows: tanh(epsilon / 2) + 2 delta / (e^epsilon + 1).
    return np.minimum(np.tanh(0.5 * epsilon) + 2.0 * delta * np.exp(-np.logaddexp(0.0, epsilon)), 1.0)


def least_epsilon(advantage: float, delta: float) -> float:
    """Below it no (epsilon, delta)-DP allows ``advantage``: log((1 + advantage - 2 delta) / (1 - advantage)).

    Section 4.2.1 of CHERUBIN2024 calls it an estimate of epsilon. It is a *lower* bound on every epsilon that holds at
    ``delta``, if some attacker reaches the advantage: it refutes claims and proves none. With Corollary 7 instead of
    the advantage it is as good as that corollary. Mostly far below the true epsilon at small delta.

    Args:
        advantage: that is reached, in [0, 1]; 1 minus Bayes security.
        delta: in [0, 1).

    Returns:
        A number >= 0; infinite where the advantage is 1.

    Raises:
        ParameterError: an argument is outside [0, 1].
    """
    advantage, delta = checks.fraction(advantage=advantage), checks.fraction(delta=delta)
    if advantage == 1.0:
        return math.inf if delta < 1.0 else 0.0
    return max(0.0, math.log1p((2.0 * advantage - 2.0 * delta) / (1.0 - advantage))) if advantage > delta else 0.0
