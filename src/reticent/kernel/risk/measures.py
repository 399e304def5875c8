"""Every risk number is read off a trade-off curve; larger risk means a stronger attacker.

Each function takes a ``TradeOff`` and returns a float. All but ``bayes_security`` grow with risk. On a
pessimistic curve the result is on the safe side, on an optimistic one on the other: evaluating both
encloses the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, cast

import numpy as np
from scipy.special import ndtri_exp

from reticent.kernel import checks
from reticent.kernel.curves import TradeOff
from reticent.kernel.curves._logs import HUGE
from reticent.kernel.errors import ParameterError
from reticent.kernel.keywords import own_number

MU_FLOOR = 1e-9
"""The error rate down to which ``mu_above`` looks."""
_LARGEST_EPSILON = 2.0**60  # beyond, none is looked for
_CLOSE, _MOST_STEPS = 1e-14, 400  # width of a bracket around a root, relative beyond 1; steps to it

_Read = TypeVar("_Read", bound=Callable[..., float])


def _of_curve(read: _Read) -> _Read:
    """``read``, which says what it wants where it is handed an assessment or a release."""

    @wraps(read)
    def number(curve: TradeOff, *args: float, **kwargs: float) -> float:
        if not isinstance(curve, TradeOff):
            given = type(curve).__name__
            raise ParameterError("curve", given, "a trade-off curve, such as the .curve of an assessment")
        return read(curve, *map(own_number, args), **{name: own_number(value) for name, value in kwargs.items()})

    return cast(_Read, number)


@_of_curve
def advantage(curve: TradeOff) -> float:
    """Membership advantage: max over alpha of ``1 - alpha - beta`` (total variation), in [0, 1].

    Args:
        curve: trade-off curve, such as the ``curve`` of an assessment.

    Raises:
        ParameterError: ``curve`` is no trade-off curve.

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(advantage(GaussianTradeOff(1.0)), 4)
        0.3829
    """
    return float(curve.delta(0.0))


@_of_curve
def bayes_security(curve: TradeOff) -> float:
    """``1 - advantage``, without cancellation: 1 is perfect. Section 2 of CHERUBIN2024, two worst secrets.

    By CHERUBIN2024:Section 2.

    Args:
        curve: trade-off curve, such as the ``curve`` of an assessment.

    Raises:
        ParameterError: ``curve`` is no trade-off curve.

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(bayes_security(GaussianTradeOff(1.0)), 4)
        0.6171
    """
    rates = curve.errors(0.0)
    return min(1.0, float(np.exp(np.logaddexp(rates.fpr, rates.fnr))))


@_of_curve
def success(curve: TradeOff, prior: float) -> float:
    """Probability that the attacker guesses right when the secret holds with probability ``prior``.

    The Bayes decision: ``1 - prior + prior * delta(log((1 - prior)/prior))``. At least
    ``max(prior, 1 - prior)``, which is the guess without the release.

    Args:
        curve: trade-off curve, such as the ``curve`` of an assessment.
        prior: probability of the secret before the release, in (0, 1), for somebody who knows all other records.

    Raises:
        ParameterError: ``prior`` is not strictly between 0 and 1.

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(success(GaussianTradeOff(1.0), prior=0.5), 4)
        0.6915
    """
    prior = checks.open_fraction(prior=prior)
    gain = float(curve.delta(math.log1p(-prior) - math.log(prior)))
    return min(1.0, (1.0 - prior) + prior * gain)


@_of_curve
def tpr_at_fpr(curve: TradeOff, fpr: float) -> float:
    """Largest true positive rate at false positive rate ``fpr`` (both in [0, 1], not percent).

    It is about one person, all others given. As a share of many people it holds where all are equally likely to be in
    the data, independently of each other.

    Args:
        curve: trade-off curve, such as the ``curve`` of an assessment.
        fpr: in [0, 1].

    Raises:
        ParameterError: ``fpr`` is outside [0, 1].

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(tpr_at_fpr(GaussianTradeOff(1.0), fpr=0.01), 4)
        0.0924
    """
    return _power(_Same(curve), checks.fraction(fpr=fpr))


@_of_curve
def ppv(curve: TradeOff, prior: float, fpr: float) -> float:
    """Positive predictive value: how likely a flagged person is in the data, who was so with ``prior`` beforehand.

    The attacker flags ``fpr`` of those who are not in the data, or more. By Bayes' rule a flagged person is in the
    data with probability ``prior TPR / (prior TPR + (1 - prior) fpr)``, which grows with the true positive rate, and
    falls as ``fpr`` grows. As ``fpr`` goes to 0 it goes to 1 wherever delta is above 0 at every epsilon, as with
    Gaussian noise: without a false positive rate there is no bound. Where some people are likelier than others, the
    largest prior counts (docs/howto/worth-of-an-accusation.md): at the mean of all, whoever
    flags the likelier ones exceeds this number even without the release. People must be in the data independently of
    each other. Of two who are in it together or not at all, each is found by what both release: protect them as one
    (``records_per_user=2``).

    Args:
        curve: trade-off curve, such as the ``curve`` of an assessment.
        prior: the largest probability of being in the data that anybody has without the release, for somebody who
            knows of all others whether they are in it; in (0, 1). The share of the people that are in it, where they
            are so independently of each other and nobody is known to be likelier.
        fpr: share of the others that are flagged, in (0, 1].

    Raises:
        ParameterError: ``prior`` or ``fpr`` is outside its domain.

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(ppv(GaussianTradeOff(1.0), prior=0.1, fpr=0.01), 4)
        0.5065
    """
    return ppv_of_power(tpr_at_fpr(curve, checks.rate(fpr=fpr)), prior, fpr)


def ppv_of_power(power: float, prior: float, fpr: float) -> float:
    """The positive predictive value of a test with true positive rate ``power`` at ``fpr``; see ``ppv``."""
    prior = checks.open_fraction(prior=prior)
    if power == 0.0:
        return 0.0
    return prior / (prior + (1.0 - prior) * (fpr / power))  # a product of two small numbers might vanish


def power_of_ppv(value: float, prior: float, fpr: float) -> float:
    """The inverse of ``ppv_of_power``; above 1 where no test with ``fpr`` has so high a value."""
    return value / (1.0 - value) * (1.0 - prior) * (fpr / prior) if value < 1.0 else math.inf


@_of_curve
def delta_at_epsilon(curve: TradeOff, epsilon: float) -> float:
    """Smallest delta at which the curve implies (epsilon, delta)-DP, for any real epsilon.

    One that is smaller than every number of the machine, and not 0, is the smallest of these: 0 would promise too much.

    Args:
        curve: trade-off curve, such as the ``curve`` of an assessment.
        epsilon: in nats.

    Raises:
        ParameterError: ``epsilon`` is not finite.

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(delta_at_epsilon(GaussianTradeOff(1.0), epsilon=1.0), 4)
        0.1269
    """
    found = float(curve.delta(checks.finite(epsilon=epsilon)))
    return found or (math.ulp(0.0) if float(curve.log_delta(epsilon)) > -math.inf else 0.0)


@_of_curve
def epsilon_at_delta(curve: TradeOff, delta: float) -> float:
    """Smallest epsilon >= 0 at which the curve implies (epsilon, delta)-DP; inf where there is none.

    Args:
        curve: trade-off curve, such as the ``curve`` of an assessment.
        delta: in (0, 1].

    Raises:
        ParameterError: ``delta`` is outside (0, 1].

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(epsilon_at_delta(GaussianTradeOff(1.0), delta=1e-5), 4)
        4.3772
    """
    return _epsilon(_Same(curve), checks.rate(delta=delta))


@_of_curve
def mu(curve: TradeOff) -> float:
    """A mu for which the curve is mu-GDP at *every* error rate; infinite where the curve proves none.

    The smallest for Gaussian and Laplace curves and for polygons. A composed curve ends in a floor at false
    positive rate 0, which no mu covers; what its release proves is in ``Assessment.mu``. docs/theory/mu.md.

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(mu(GaussianTradeOff(1.0)), 4)
        1.0
    """
    return curve.proven_mu


@_of_curve
def mu_above(curve: TradeOff, floor: float = MU_FLOOR) -> float:
    """Smallest mu such that the curve is mu-GDP at false positive rates from ``floor`` to 1/2, either way round.

    ``sup -Phi^-1(alpha) - Phi^-1(beta)``: exact for polygons, else by a grid of thresholds that zooms in on its
    maximum, to about 1e-9 where the curve is smooth on the scale of the grid (0.02 in the normal quantile of alpha). An
    estimate, and no mu of the curve: below the floor the shift mostly grows on.

    Raises:
        ParameterError: ``floor`` is outside (0, 1).
    """
    return _mu_above(_Same(curve), checks.open_fraction(floor=floor))


@_of_curve
def recovered(curve: TradeOff, baseline: float) -> float:
    """Largest probability that something about one person is recovered that is guessed with ``baseline`` otherwise.

    The attacker may rebuild a record, pick a face, or guess a field; what counts as recovered is settled before the
    release. With the release it happens with probability at most ``1 - beta(baseline)`` (RETICENT:recovery). Where
    persons differ in how well they are guessed, their mean baseline gives a bound on the mean over them.

    Valid for curves of attackers who bound every test, as the worst case does: to recover is a one-sided test.

    Args:
        curve: trade-off curve, such as the ``curve`` of the worst case.
        baseline: the best guess without this person's records, of somebody who knows everything else; in (0, 1).

    Raises:
        ParameterError: ``baseline`` is not strictly between 0 and 1.

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(recovered(GaussianTradeOff(1.0), baseline=0.01), 4)  # one of 100 faces
        0.0924
    """
    return tpr_at_fpr(curve, checks.open_fraction(baseline=baseline))


@_of_curve
def secret_success(curve: TradeOff, secret_bits: float, guesses: float = 1) -> float:
    """Largest probability that one of ``guesses`` guesses is a secret of ``secret_bits`` bits in one person's records.

    Without the model the guesses are right with probability at most ``guesses 2^-secret_bits``; with it the curve
    limits them (RETICENT:secret): ``1 - beta(guesses 2^-secret_bits)``. Asking the model more often changes nothing,
    each guess does. Where the secret is not uniform, state its min-entropy: minus the binary logarithm of the likeliest
    value's probability; or, if that is known, log2(guesses / p), where p is what the likeliest values have together.

    Valid for curves of attackers who bound every test, as the worst case does. The secret must be in the records of one
    person only, and nowhere else in the data.

    Args:
        curve: trade-off curve, such as the ``curve`` of the worst case.
        secret_bits: min-entropy of the secret for whoever lacks these records, in bits, > 0.
        guesses: how many values may be tried, a whole number >= 1.

    Raises:
        ParameterError: ``secret_bits`` or ``guesses`` is outside its domain.

    Example:
        >>> from reticent.kernel.curves import GaussianTradeOff
        >>> round(secret_success(GaussianTradeOff(1.0), secret_bits=13.29, guesses=10), 4)
        0.0183
    """
    return tpr_at_fpr(curve, blind_guess(secret_bits, guesses))


def blind_guess(secret_bits: float, guesses: float = 1) -> float:
    """Probability that one of ``guesses`` is a secret of ``secret_bits`` bits, without the model: at most 1.

    Raises:
        ParameterError: ``secret_bits`` is not a finite number > 0, or ``guesses`` no whole number >= 1.
    """
    if checks.finite(guesses=guesses) < 1 or guesses != math.floor(guesses):
        raise ParameterError("guesses", guesses, "a whole number >= 1")
    share = math.exp2(math.log2(guesses) - checks.positive(secret_bits=secret_bits))
    return min(1.0, max(share, math.ulp(0.0)))  # never 0, where a curve may say 0


class _Same:
    """A curve as a key: the same object, not one like it."""

    __slots__ = ("curve",)

    def __init__(self, curve: TradeOff) -> None:
        self.curve = curve

    def __hash__(self) -> int:
        return id(self.curve)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.curve is self.curve


@lru_cache(maxsize=32)  # what follows from a power reads it again
def _power(same: _Same, fpr: float) -> float:
    return float(same.curve.power(fpr))


@lru_cache(maxsize=32)
def _epsilon(same: _Same, delta: float) -> float:
    curve, target = same.curve, math.log(delta)

    def excess(epsilon: float) -> float:
        return float(np.clip(curve.log_delta(epsilon), -HUGE, 0.0)) - target

    if excess(0.0) <= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
        if high > _LARGEST_EPSILON:
            return math.inf
    return _root_above(excess, low, high)


@lru_cache(maxsize=16)  # one assessment reads the same curve up to three times
def _mu_above(same: _Same, floor: float) -> float:
    lowest = float(ndtri_exp(math.log(floor)))
    ways = {id(way): way for way in (same.curve, same.curve.reversed)}  # one, where a curve is its own inverse
    return max(0.0, *(way.largest_shift(lowest) for way in ways.values()))


def _root_above(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 0, at most 1e-14 above (relative beyond 1); the function is <= 0 there.

    Steps of the secant through both ends, an end that stays twice counted half (Illinois); every fourth step halves
    the bracket.
    """
    left, right, moved = excess(low), excess(high), 0.0
    for turn in range(_MOST_STEPS):
        width = _CLOSE * max(1.0, high)
        if high - low <= width:
            break
        if turn % 4 == 3 or not math.isfinite(left - right):
            guess = 0.5 * (low + high)
        else:
            guess = low + (high - low) * left / (left - right)
        guess = min(max(guess, low + 0.5 * width), high - 0.5 * width)
        value = excess(guess)
        if value > 0.0:
            low, left, right = guess, value, right * (0.5 if moved > 0.0 else 1.0)
        else:
            high, right, left = guess, value, left * (0.5 if moved < 0.0 else 1.0)
        moved = 1.0 if value > 0.0 else -1.0
    return high
