"""What a calibration must reach: one type per risk, each an upper limit on what the attacker gains."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from scipy.special import erfcinv, ndtri

from reticent.calibration.gaussian import ROOT_EIGHT, clipped, epsilon_at, mu_at
from reticent.kernel import checks, risk
from reticent.kernel.adversaries import Assessment
from reticent.kernel.curves import GaussianTradeOff, TradeOff
from reticent.kernel.curves.enclosure import Interval
from reticent.kernel.errors import ParameterError
from reticent.kernel.keywords import hinted
from reticent.kernel.risk.questions import MEASURES

if TYPE_CHECKING:
    from reticent.calibration.claims import Points


class Target(ABC):
    """A limit on one risk number.

    Attributes:
        name: as the command line spells it.
        places: the fields that say where the risk is read, each with an example.
        value: the limit, in the units of the risk.
        threshold: the epsilon >= 0 whose delta says by how much the limit is kept; None where a rate does.
        at_fpr: the false positive rate that it asks about otherwise.
        one_sided: only curves that bound every test say it; see ``Adversary.every_test``.
        needs: keys of conditions besides those of the curve; the person who asks declares them.
        read: takes the risk off a curve, at its places.
        grows_with_risk: whether more is worse; a claim is then rounded up, and otherwise down.

    Raises:
        ParameterError: the limit or a place is outside its domain.
    """

    name: ClassVar[str]
    places: ClassVar[tuple[tuple[str, str], ...]] = ()
    grows_with_risk: ClassVar[bool] = True
    one_sided: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    read: ClassVar[Callable[..., float]]
    value: float

    @property
    def threshold(self) -> float | None:
        """See the class; in nats."""
        return None

    @property
    def at_fpr(self) -> float:
        """See the class; in (0, 1)."""
        return 0.5

    def measure(self, curve: TradeOff) -> float:
        """The risk of ``curve``, in the units of ``value``."""
        return self.read(curve, *(getattr(self, name) for name, _ in self.places))

    def of(self, assessment: Assessment) -> Interval:
        """The risk that ``assessment`` claims, with its enclosure."""
        return assessment.measure(self.measure)

    def at(self, points: Points) -> Interval | None:
        """The risk without the whole curve; None where ``points`` cannot say it."""
        return None

    def met_by(self, achieved: float) -> bool:
        """Whether a risk that was ``achieved`` keeps within the limit."""
        return achieved <= self.value if self.grows_with_risk else achieved >= self.value

    def of_power(self, power: float) -> float:
        """The risk where the true positive rate at ``at_fpr`` is ``power``: grows with it."""
        return power

    def of_mu(self, mu: float) -> float:
        """``measure`` of the Gaussian curve with ``mu`` > 0."""
        return self.measure(GaussianTradeOff(mu))

    @abstractmethod
    def equivalent_mu(self, achieved: float) -> float:
        """mu of the Gaussian curve with ``achieved``: inverse of ``of_mu``, in [1e-60, 1e60]; grows with risk."""

    def __str__(self) -> str:
        """As the command line takes it: ``NAME=VALUE``, ``NAME=VALUE@PLACE`` or ``NAME=VALUE@PLACE,PLACE``."""
        at = ",".join(_exactly(getattr(self, name)) for name, _ in self.places)
        return f"{self.name}={_exactly(self.value)}{f'@{at}' if at else ''}"


def _exactly(x: float) -> str:
    """A number in as few digits as say it."""
    return short if float(short := f"{x:g}") == x else repr(float(x))


class _AtThreshold(Target):
    """A risk that is linear in delta at one threshold: 1 - rarer + rarer * delta; rarer is 1 for the advantage."""

    @property
    def threshold(self) -> float:
        return 0.0

    def of_delta(self, delta: float) -> float:
        """The risk where delta at the threshold is ``delta``."""
        return delta

    def delta_of(self, achieved: float) -> float:
        """Its inverse."""
        return achieved

    def at(self, points: Points) -> Interval | None:
        return mapped(points.delta(self.threshold), self.of_delta)

    def equivalent_mu(self, achieved: float) -> float:
        delta = self.delta_of(achieved)
        return mu_at(self.threshold, math.log(delta) if delta > 0.0 else -math.inf)


@dataclass(frozen=True, slots=True)
class Advantage(_AtThreshold):
    """Membership advantage (total variation) at most ``value``, in (0, 1)."""

    value: float
    name: ClassVar[str] = "advantage"
    read = staticmethod(risk.advantage)

    def __post_init__(self) -> None:
        checks.open_fraction(advantage=self.value)


@dataclass(frozen=True, slots=True)
class BayesSecurity(_AtThreshold):
    """Bayes security at least ``value``, in (0, 1): the only risk of which more is better."""

    value: float
    name: ClassVar[str] = "bayes-security"
    read = staticmethod(risk.bayes_security)
    grows_with_risk: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checks.open_fraction(bayes_security=self.value)

    def of_delta(self, delta: float) -> float:
        return 1.0 - delta

    def equivalent_mu(self, achieved: float) -> float:  # accurate next to 0
        return clipped(ROOT_EIGHT * float(erfcinv(achieved)))


@dataclass(frozen=True, slots=True)
class Success(_AtThreshold):
    """Probability of a right guess at ``prior`` at most ``value``, which must exceed the blind guess."""

    value: float
    prior: float
    name: ClassVar[str] = "success"
    read = staticmethod(risk.success)
    places: ClassVar[tuple[tuple[str, str], ...]] = (("prior", "0.5"),)

    def __post_init__(self) -> None:
        prior = checks.open_fraction(prior=self.prior)
        _limit("success", self.value, max(prior, 1.0 - prior))

    @property
    def _rarer(self) -> float:
        """Symmetric curves give the same success at a prior and at one minus it."""
        return min(self.prior, 1.0 - self.prior)

    @property
    def threshold(self) -> float:
        """The log odds of the likelier answer, where the best guess changes."""
        return math.log1p(-self._rarer) - math.log(self._rarer)

    def of_delta(self, delta: float) -> float:
        return 1.0 - self._rarer + self._rarer * delta

    def delta_of(self, achieved: float) -> float:
        return (achieved - (1.0 - self._rarer)) / self._rarer


class _AtRate(Target):
    """A risk that grows with the true positive rate at ``at_fpr``, its last place."""

    @property
    def at_fpr(self) -> float:
        return getattr(self, self.places[-1][0])

    def power_of(self, achieved: float) -> float:
        """The inverse of ``of_power``."""
        return achieved

    def at(self, points: Points) -> Interval | None:
        return mapped(points.power(self.at_fpr, lambda power: self.met_by(self.of_power(power))), self.of_power)

    def equivalent_mu(self, achieved: float) -> float:
        return clipped(float(ndtri(min(self.power_of(achieved), 1.0)) - ndtri(self.at_fpr)))


@dataclass(frozen=True, slots=True)
class TprAtFpr(_AtRate):
    """True positive rate at false positive rate ``fpr`` at most ``value``, which must exceed ``fpr``."""

    value: float
    fpr: float
    name: ClassVar[str] = "tpr"
    read = staticmethod(risk.tpr_at_fpr)
    places: ClassVar[tuple[tuple[str, str], ...]] = (("fpr", "0.01"),)

    def __post_init__(self) -> None:
        _limit("tpr", self.value, checks.open_fraction(fpr=self.fpr))


@dataclass(frozen=True, slots=True)
class Ppv(_AtRate):
    """Positive predictive value at most ``value``: how likely somebody who is flagged is in the data.

    It must exceed ``prior``, which needs no attack, and lie below what flagging everybody who is in the data gives.

    Attributes:
        value: the limit, in (0, 1).
        prior: share of the people that are in the data, in (0, 1), independently of each other.
        fpr: share of the others that are flagged, in (0, 1).
    """

    value: float
    prior: float
    fpr: float
    name: ClassVar[str] = "ppv"
    read = staticmethod(risk.ppv)
    places: ClassVar[tuple[tuple[str, str], ...]] = (("prior", "0.1"), ("fpr", "0.01"))

    def __post_init__(self) -> None:
        checks.open_fraction(fpr=self.fpr)
        _limit("ppv", self.value, checks.open_fraction(prior=self.prior))
        most = risk.ppv_of_power(1.0, self.prior, self.fpr)
        if not self.value < most:
            raise ParameterError("ppv", self.value, f"below {most:g}, which no attack exceeds at this fpr")

    def of_power(self, power: float) -> float:
        return risk.ppv_of_power(power, self.prior, self.fpr)

    def power_of(self, achieved: float) -> float:
        return risk.power_of_ppv(achieved, self.prior, self.fpr)


@dataclass(frozen=True, slots=True)
class Recovered(_AtRate):
    """What is guessed with ``baseline`` without the release is recovered with at most ``value`` with it.

    Attributes:
        value: the limit, above ``baseline`` and below 1.
        baseline: the best guess without one person's records, in (0, 1); see ``risk.recovered``.
    """

    value: float
    baseline: float
    name: ClassVar[str] = "recovered"
    read = staticmethod(risk.recovered)
    one_sided: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = MEASURES["recovered"].needs
    places: ClassVar[tuple[tuple[str, str], ...]] = (("baseline", "0.1"),)

    def __post_init__(self) -> None:
        _limit("recovered", self.value, checks.open_fraction(baseline=self.baseline))


@dataclass(frozen=True, slots=True)
class Secret(_AtRate):
    """A secret of ``secret_bits`` bits in one person's records is among ``guesses`` guesses with at most ``value``.

    Attributes:
        value: the limit, above what the guesses reach without the model and below 1.
        secret_bits: min-entropy of the secret for whoever lacks these records, > 0.
        guesses: how many, a whole number.
    """

    value: float
    secret_bits: float
    guesses: float
    name: ClassVar[str] = "secret"
    read = staticmethod(risk.secret_success)
    one_sided: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = MEASURES["secret"].needs
    places: ClassVar[tuple[tuple[str, str], ...]] = (("secret_bits", "13.3"), ("guesses", "10"))

    def __post_init__(self) -> None:
        _limit("secret", self.value, self.at_fpr)

    @property
    def at_fpr(self) -> float:
        """What the guesses reach without the model."""
        return risk.blind_guess(self.secret_bits, self.guesses)


@dataclass(frozen=True, slots=True)
class EpsilonAtDelta(Target):
    """(epsilon, delta)-DP with epsilon at most ``value`` > 0 at ``delta`` in (0, 1)."""

    value: float
    delta: float
    name: ClassVar[str] = "epsilon"
    read = staticmethod(risk.epsilon_at_delta)
    places: ClassVar[tuple[tuple[str, str], ...]] = (("delta", "1e-5"),)

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.value)
        checks.open_fraction(delta=self.delta)

    @property
    def threshold(self) -> float:
        return self.value

    def at(self, points: Points) -> Interval | None:
        return points.epsilon(self.delta)

    def of_mu(self, mu: float) -> float:  # a search on the curve takes a millisecond, as long as the whole calibration
        return epsilon_at(mu, math.log(self.delta))

    def equivalent_mu(self, achieved: float) -> float:
        return mu_at(achieved, math.log(self.delta))


@dataclass(frozen=True, slots=True)
class Mu(Target):
    """mu-GDP at every error rate with mu at most ``value``. Sampling does not help to reach it: docs/theory/mu.md."""

    value: float
    name: ClassVar[str] = "mu"
    read = staticmethod(risk.mu)

    def __post_init__(self) -> None:
        checks.positive(mu=self.value)

    def of(self, assessment: Assessment) -> Interval:
        return assessment.mu()

    def equivalent_mu(self, achieved: float) -> float:
        return clipped(achieved)


_KINDS: tuple[type[Target], ...] = (
    Advantage,
    BayesSecurity,
    Mu,
    Success,
    TprAtFpr,
    Ppv,
    EpsilonAtDelta,
    Recovered,
    Secret,
)
TARGETS: dict[str, Any] = {kind.name: hinted(kind) for kind in _KINDS}
"""Every target by name; those that are read at a place come last."""
STATED: dict[str, tuple[Any, tuple[str, ...]]] = {
    name.replace("-", "_"): (kind, tuple(place for place, _ in kind.places)) for name, kind in TARGETS.items()
}
"""Each target by the field or keyword that states its limit, and the fields that go with it."""


def target_in(fields: Mapping[str, Any]) -> Target:
    """The one target whose limit and places ``fields`` state; None states nothing.

    Raises:
        ValueError: there is none, more than one, or something is no number.
        KeyError: a place is missing.
        ParameterError: the limit or a place is outside its domain.
    """
    (name,) = (known for known in STATED if fields.get(known) is not None)
    kind, places = STATED[name]
    found: Target = kind(*(float(fields[field]) for field in (name, *places)))
    return found


def _limit(name: str, value: float, least: float) -> None:
    checks.open_fraction(**{name: value})
    if not value > least:
        raise ParameterError(name, value, f"a number above {least:g}, which needs no attack, and below 1")


def mapped(found: Interval | None, risk_of: Callable[[float], float]) -> Interval | None:
    """``found`` through the monotone map ``risk_of``; the claim stays the claim, None stays None.

    Args:
        risk_of: increasing or decreasing.
    """
    if found is None:
        return None
    ends = sorted((risk_of(found.lower), risk_of(found.upper)))
    return Interval(ends[0], risk_of(found.value), ends[1])
