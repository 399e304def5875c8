"""How many steps some passes over the data take, and how many batches one pass: one conversion for all doors."""

from __future__ import annotations

import math

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError

MOST_STEPS = 10**12  # steps that an answer is given for
_ROUNDING = 2.0**-50  # relative: of the rate, of epochs as typed, and of their quotient
_SAME = 2.0**-41
"""Relative distance of 1 / rate from a whole number that counts as none: 500 times what rounding makes of a quotient of
sizes, and less than half a record of 10^12. So both counts of batches are exact for up to so many records."""


def epochs_to_steps(epochs: float, sample_rate: float, most: int = MOST_STEPS) -> int:
    """Noisy updates in ``epochs`` passes of ``1 / sample_rate`` steps each: a step that was begun counts.

    A quotient that is a whole number but for the rounding of its parts is that number: three epochs of 75 batches
    are 225 steps.

    Args:
        epochs: passes over the data, > 0.
        sample_rate: share of the data in one step, in (0, 1].
        most: steps that are allowed.

    Raises:
        ParameterError: ``epochs`` is not a number > 0, or asks for more than ``most`` steps; or the rate is not one.

    Example:
        >>> [epochs_to_steps(3, 1 / 75), epochs_to_steps(0.5, 1 / 75)]
        [225, 38]
    """
    wanted = checks.positive(epochs=epochs) / checks.rate(sample_rate=sample_rate)
    if not wanted <= most:
        raise ParameterError("epochs", epochs, f"so few that the run has at most {most} steps")
    return max(1, math.ceil(wanted * (1.0 - _ROUNDING)))


def batches_of_a_pass(sample_rate: float) -> int:
    """Batches of one pass in which each record is used once, each with this share of the data; a smaller one counts."""
    return math.ceil((1.0 - _SAME) / sample_rate)


def whole_batches_of_a_pass(sample_rate: float) -> int:
    """The same where a smaller last batch is dropped."""
    return max(1, math.floor((1.0 + _SAME) / sample_rate))
