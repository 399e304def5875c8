"""The worst case of what was run: its enclosed curve, single numbers of it, and a curve composed when it is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel import checks
from reticent.kernel.accountants.one_direction import one_direction, steps_of
from reticent.kernel.accountants.route import ROUTES, Single
from reticent.kernel.accountants.steps import Known, Release, Step
from reticent.kernel.curves import LogErrors, TradeOff, symmetrised
from reticent.kernel.curves.enclosure import Attempt, Enclosure
from reticent.kernel.curves.polygon import Polygon, hull, polygon_through, safest
from reticent.kernel.errors import NumericalError
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Disclosure, Neighbouring, Part, poisson_gaussian
from reticent.kernel.pairs.base import Ends

_WIDE = 1e-6  # of delta at one threshold: beyond it the curve is asked
_NEAR = 1.0 / 16.0  # of the distance of a polygon's thresholds: between the tests that are asked for one power
_REMEMBERED = 1024  # answers for single thresholds, and as many for single powers
_KNOWN = 1e-8  # relative width of an advantage, and of its complement, that the curve would not narrow


@lru_cache(maxsize=64)  # every adversary of a release is compared with the same worst case
def compose(release: Release, neighbouring: Neighbouring) -> Enclosure:
    """Enclose the worst-case trade-off curve of everything that was released.

    Both curves are symmetrised: they hold whichever of the two data sets is the true one. Poisson-sampled
    Gaussian steps follow Proposition 30 of ZHU2022 (add/remove, zero-out) and docs/theory/replace-dominance.md;
    composition is Theorem 3.2 of DONG2022, so adaptive choice of later steps is covered. What other
    samplers may claim is decided in ``samplers``. The other end follows from releases that some data
    set of the named sampler attains; where none is known it is perfect privacy.

    The advantage is mostly enclosed within 1e-6 (docs/theory/composition.md says where not). Where no route
    certifies, the enclosure is wide but holds, and ``notes`` say why; ``trace`` says what was asked.

    By DONG2022:Theorem 3.2 and RETICENT:composition-enclosure.

    Args:
        release: what was released: a mechanism, or anything that names its dominating pairs.
        neighbouring: between which data sets.

    Raises:
        UnsupportedError: no dominating pair is proven for this sampler or noise under ``neighbouring``.
    """
    whole, attained = steps_of(release, neighbouring), steps_of(release, neighbouring, attained=True)
    replaced = neighbouring is Neighbouring.REPLACE
    either_shows = replaced or (neighbouring is Neighbouring.ZERO_OUT and _shows_the_displaced(release))
    enclosed = both_directions(*whole, either_shows)
    if attained == whole and either_shows is replaced:
        return enclosed
    least = both_directions(*attained, replaced)
    notes = tuple(dict.fromkeys((*enclosed.notes, *least.notes)))
    return Enclosure.checked(enclosed.pessimistic, least.optimistic, notes, (*enclosed.trace, *least.trace))


def both_directions(noisy: tuple[Step, ...], unseen: float, either_shows: bool) -> Enclosure:
    """``one_direction``, symmetrised: whichever of the two data sets is the true one."""
    found = one_direction(noisy, unseen, either_shows=either_shows)
    above, below = found.pessimistic, found.optimistic
    if not noisy or unseen == -math.inf:
        return found
    if above is below and not isinstance(above, Polygon):
        return Enclosure.exact(symmetrised(above))
    with np.errstate(all="ignore"):
        least = hull([below, below.reversed]) if isinstance(below, Polygon) else symmetrised(below)
        most = above if above.reversed is above else safest([above, above.reversed])
        return Enclosure.checked(most, least, found.notes, found.trace)


def _shows_the_displaced(release: Release) -> bool:
    """Whether a release without noise may show whom the target displaced."""
    pairs = [part.pair for part in release.parts_under(Neighbouring.ZERO_OUT)]
    return any(isinstance(pair, Disclosure) and pair.displaces for pair in pairs)


class Composed(Enclosure):
    """The worst case of a release: its enclosed curve, composed when it is read, and single numbers of it.

    The worse direction throughout. ``advantage`` and ``delta`` ask for one threshold alone, and need no curve; where
    that does not apply they are read off ``bracket``. No answer depends on what was asked before.

    Attributes:
        release: what was released.
        neighbouring: between which data sets.

    Raises:
        UnsupportedError: as for ``compose``.
    """

    release: Release
    neighbouring: Neighbouring
    at_threshold: Callable[[float], Ends | None]
    _steps: tuple[Step, ...]

    def __init__(self, release: Release, neighbouring: Neighbouring) -> None:
        noisy, unseen = whole = steps_of(release, neighbouring)
        attained = whole == steps_of(release, neighbouring, attained=True)
        self.__dict__.update(
            release=release,
            neighbouring=neighbouring,
            _steps=noisy if unseen == 0.0 and attained else (),  # noisy steps that some data sets attain
            at_threshold=lru_cache(_REMEMBERED)(self._at_threshold),
        )

    @cached_property
    def bracket(self) -> Enclosure:
        """The enclosed curve, as polygons."""
        return compose(self.release, self.neighbouring)

    @cached_property
    def _single(self) -> Single | None:
        found = (kind.single(self._steps) for kind in ROUTES.values()) if self._steps else ()
        return next((one for one in found if one is not None), None)

    def advantage(self) -> Ends:
        """max over alpha of 1 - alpha - beta, which is delta(0)."""
        return self.delta(0.0)

    def delta(self, epsilon: float) -> Ends:
        """The smallest delta at ``epsilon`` >= 0 that holds in both directions.

        Returns:
            (lower, upper), proven.

        Raises:
            ParameterError: ``epsilon`` is negative, infinite or NaN.
        """
        epsilon = checks.non_negative(epsilon=epsilon)
        if (found := self.at_once(epsilon)) is not None:
            return found
        lower, upper = (float(curve.delta(epsilon)) for curve in (self.bracket.optimistic, self.bracket.pessimistic))
        return max(min(lower, upper), 0.0), upper  # rounding may exchange equal ends

    def at_once(self, epsilon: float = 0.0) -> Ends | None:
        """delta at ``epsilon`` >= 0 in milliseconds, proven; None where it takes the whole curve."""
        if epsilon == 0.0 and (known := self.certified) is not None:
            return known
        found = self.at_threshold(epsilon)
        return found if found is not None and min(found[1] - found[0], found[1]) < _WIDE else None

    def _at_threshold(self, epsilon: float) -> Ends | None:
        """delta at ``epsilon`` by a route that answers for one threshold; None where none reaches it.

        Closer than the polygons, which are exact at their own thresholds only. The last answers are remembered: several
        numbers of a report ask for the same.
        """
        single = self._single
        if single is None:
            return None
        one_way = single.symmetric or epsilon == 0.0
        ways = [single.delta(sign * epsilon) for sign in ((1.0,) if one_way else (1.0, -1.0))]
        known = [way for way in ways if way is not None]
        if len(known) < len(ways):
            return None
        return max(0.0, *(way[0] for way in known)), max(way[1] for way in known)

    def tests_near(self, epsilon: float, room: float) -> Polygon | None:
        """What three tests attain, at thresholds ``room`` apart around ``epsilon``, in either direction."""
        single, around = self._single, epsilon + room * np.array([-1.0, 0.0, 1.0])
        if single is None or around[0] <= 0.0:
            return None
        ahead = single.points(around)
        back = ahead if single.symmetric else single.points(-around[::-1])
        if ahead is None or back is None:
            return None
        return polygon_through(ahead if single.symmetric else LogErrors.joined(ahead, back.exchanged))

    @cached_property
    def _alone(self) -> tuple[Ends | None, tuple[str, ...]]:
        """The advantage by a route that certifies it alone, or why none did."""
        refused = []
        for kind in ROUTES.values():
            try:
                if (found := kind.advantage(self._steps)) is not None:
                    return found, ()
            except NumericalError as error:
                refused.append(str(error))
        return None, tuple(refused)

    @property
    def certified(self) -> Ends | None:
        """The advantage of equal sampled steps by its own certificate, mostly within 1e-8; None where it gives up."""
        return self._alone[0]

    @property
    def known_advantage(self) -> Ends | None:
        """``certified`` where it is so close that the curve would not narrow it."""
        ends = self.certified
        return ends if ends is not None and ends[1] - ends[0] <= _KNOWN * min(ends[1], 1.0 - ends[1]) else None

    @cached_property
    def pessimistic(self) -> TradeOff:
        return self._end(pessimistic=True)

    @cached_property
    def optimistic(self) -> TradeOff:
        return self._end(pessimistic=False)

    def _end(self, *, pessimistic: bool) -> TradeOff:
        ends = self.known_advantage
        if ends is None and (self._single is None or not isinstance(self.bracket.pessimistic, Polygon)):
            return self.bracket.pessimistic if pessimistic else self.bracket.optimistic
        return CurveWhenRead(None if ends is None else ends[pessimistic], self, pessimistic=pessimistic)

    @property
    def notes(self) -> tuple[Message | str, ...]:
        """Those of the curve; why the advantage alone was not certified, where the curve is wide."""
        return (*self.bracket.notes, *(self._alone[1] if self.bracket.notes else ()))

    @property
    def trace(self) -> tuple[Attempt, ...]:
        return (*(Attempt("threshold 0 alone", failure=reason) for reason in self._alone[1]), *self.bracket.trace)


def certified_advantage(noise_multiplier: float, sample_rate: float, steps: int, neighbouring: Neighbouring) -> Ends:
    """(lower, upper) around the worst-case advantage of a Poisson-sampled DP-SGD run, proven.

    The width is mostly below 1e-8, never above that of ``compose``.

    Args:
        noise_multiplier: >= 0.
        sample_rate: in (0, 1].
        steps: >= 1.
        neighbouring: between which data sets.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    checks.non_negative(noise_multiplier=noise_multiplier)
    pair = poisson_gaussian(noise_multiplier, checks.rate(sample_rate=sample_rate), neighbouring)
    return Composed(Known((Part(pair, checks.count(steps=steps), ()),)), neighbouring).advantage()


@lru_cache(maxsize=64)  # as ``compose``
def worst_case(release: Release, neighbouring: Neighbouring) -> Composed:
    """``Composed``, put off until a reader needs more than the advantage or Bayes security of a Poisson-sampled run.

    The advantage is then that of ``certified_advantage``. Where that certificate gave up, ``trace`` begins with its
    reason, which joins the notes of a wide curve.

    Args:
        release: what was released.
        neighbouring: between which data sets.

    Raises:
        UnsupportedError: as for ``compose``.
    """
    found = Composed(release, neighbouring)
    if found.known_advantage is None:
        found.bracket  # noqa: B018  (what it refuses is refused here)
    return found


class CurveWhenRead(TradeOff):
    """One end of a symmetric enclosure; it is composed once, for the first question but that for a known delta at 0.

    One delta, and one power up to threshold 0, are asked of a route that answers for one threshold too, and the closer
    answer counts. Many at once are those of the polygon.

    Args:
        advantage: delta at 0, in (0, 1), where it is known; None where the polygon says it.
        release: what is composed.
        pessimistic: which end.
    """

    def __init__(self, advantage: float | None, release: Composed, *, pessimistic: bool) -> None:
        self.advantage, self._release, self._pessimistic = advantage, release, pessimistic
        self._power = lru_cache(_REMEMBERED)(self._log_power)

    @property
    def composed(self) -> TradeOff:
        """The polygon; of one step the curve itself."""
        bracket = self._release.bracket
        return bracket.pessimistic if self._pessimistic else bracket.optimistic

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        if self.advantage is None or np.any(log_ratio):
            return self.composed.errors(log_ratio)
        # A symmetric curve touches its tangent of slope -1 where both errors are equal.
        error, shape = 0.5 * (1.0 - self.advantage), np.shape(log_ratio)
        wrong, right = np.full(shape, math.log(error)), np.full(shape, math.log1p(-error))
        return LogErrors(fpr=wrong, tnr=right, fnr=wrong, tpr=right)

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        if self.advantage is not None and not np.any(epsilon):
            return np.full(np.shape(epsilon), math.log(self.advantage))
        coarse = self.composed.log_delta(epsilon)
        if np.size(epsilon) > 1 or not np.all(np.greater(epsilon, 0.0)):
            return coarse
        return self._closer(coarse, self._log_delta(float(np.ravel(epsilon)[0])))

    def log_beta(self, log_alpha: ArrayLike) -> np.ndarray:
        return self.composed.log_beta(log_alpha)

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_beta, coarse = self.composed._at(log_alpha)
        if log_alpha.size > 1:
            return log_beta, coarse
        return log_beta, self._closer(coarse, self._power(float(log_alpha.ravel()[0])))

    def _closer(self, coarse: np.ndarray, fine: float | None) -> np.ndarray:
        if fine is None:
            return coarse
        return np.minimum(coarse, fine) if self._pessimistic else np.maximum(coarse, fine)

    def _log_delta(self, epsilon: float) -> float | None:
        ends = self._release.at_threshold(epsilon)
        return None if ends is None else _log(ends[self._pessimistic])

    def _log_power(self, log_alpha: float) -> float | None:
        """The tangent whose threshold is closest from above; tests around that threshold from below."""
        polygon = self.composed
        if not isinstance(polygon, Polygon):
            return None
        edges, alphas = polygon.log_slopes, polygon.vertices.fpr
        edge = int(np.searchsorted(alphas, log_alpha)) - 1
        if not 1 <= edge < len(edges) - 1 or not edges[edge + 1] > 0.0:
            return None
        room = 0.5 * float(edges[edge - 1] - edges[edge + 1])
        threshold = _least(lambda line: self._tangent(line, log_alpha), float(edges[edge]), room)
        if self._pessimistic:
            return min(self._tangent(threshold, log_alpha), 0.0)
        tests = self._release.tests_near(threshold, _NEAR * room)
        return None if tests is None else float(tests.log_power(log_alpha))

    def _tangent(self, threshold: float, log_alpha: float) -> float:
        """log of the power at ``log_alpha`` on the tangent of that threshold; infinite where it is not known."""
        ends = self._release.at_threshold(threshold)
        return math.inf if ends is None else float(np.logaddexp(threshold + log_alpha, _log(ends[1])))

    @property
    def reversed(self) -> TradeOff:
        return self.composed.reversed

    def largest_shift(self, lowest: float) -> float:
        return self.composed.largest_shift(lowest)

    @property
    def proven_mu(self) -> float:
        return self.composed.proven_mu

    def __repr__(self) -> str:
        return f"CurveWhenRead(advantage={self.advantage!r})"


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _least(value: Callable[[float], float], middle: float, room: float) -> float:
    """Where the parabola through three values, ``room`` apart, is least; the best of the three where it bends down."""
    places = [middle - room, middle, middle + room]
    before, at, after = (value(place) for place in places)
    bend = before - 2.0 * at + after
    if math.isfinite(bend) and bend > 0.0:
        return middle + max(-2.0, min(2.0, 0.5 * (before - after) / bend)) * room
    return min(zip((before, at, after), places, strict=True))[1]
