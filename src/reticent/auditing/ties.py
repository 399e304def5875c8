"""Equal scores: nineteen of twenty orders of them have to refute a claim.

Coins among equal scores make any test valid, on the average over the coins. But scores with few values come again and
again, and so would coins that follow from the scores. So no single order decides. A test is asked at nineteen
twentieths of its significance, by what nineteen of twenty random orders reach: docs/theory/auditing.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SHARE = 0.95
"""Of the orders that have to refute, and of the significance that is left to each."""
_ORDERS = 1000


def reached(values: np.ndarray) -> float:
    """The largest number that ``SHARE`` of the ``values`` reach, one of them for each order."""
    return float(np.sort(values)[int((1.0 - SHARE) * len(values) + 1e-9)])


@dataclass(frozen=True, slots=True)
class Edge:
    """Guesses from one end of the scores, and the equal scores where they stop.

    Attributes:
        score: of those equal ones.
        guessed: how many of them are guessed.
        fitting: how many of them make a guess right.
        others: how many make it wrong.
        beyond: right guesses at the scores before them, which are all guessed.
    """

    score: float
    guessed: int
    fitting: int
    others: int
    beyond: int

    @classmethod
    def of(cls, right: np.ndarray, wrong: np.ndarray, guesses: int) -> Edge:
        """The edge of the ``guesses`` largest scores, each guessed to be one of ``right``."""
        if not guesses:
            return cls(np.inf, 0, 0, 1, 0)
        last = np.sort(np.concatenate([right, wrong]))[-guesses]
        beyond, wrong_beyond, fitting, others = (
            int(np.count_nonzero(part)) for part in (right > last, wrong > last, right == last, wrong == last)
        )
        return cls(float(last), guesses - beyond - wrong_beyond, fitting, others, beyond)


def right_guesses(top: Edge, bottom: Edge) -> int:
    """Right guesses that ``SHARE`` of all orders of equal scores reach.

    Args:
        top: the edge of the largest scores.
        bottom: that of the smallest, whose signs are turned.
    """
    numbers = [n for edge in (top, bottom) for n in (edge.guessed, edge.fitting, edge.others)]
    rng = np.random.default_rng([0, *numbers])
    above = rng.hypergeometric(top.fitting, top.others, top.guessed, _ORDERS)
    # Where the same scores are at both ends, what is guessed above is left out below.
    shared = int(top.score == -bottom.score)
    fitting, others = bottom.fitting - shared * (top.guessed - above), bottom.others - shared * above
    right = above + rng.hypergeometric(fitting, others, bottom.guessed, _ORDERS)
    return top.beyond + bottom.beyond + int(reached(right))
