"""What a calibration may change: one type per parameter; whether risk grows with it is part of the type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from reticent import _check
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD, Mechanism, Selection
from reticent.pairs import Fixed
from reticent.registry import parameters_of
from reticent.text import digits


class Unknown(ABC):
    """A parameter of a mechanism, searched between ``low`` and ``high``.

    Attributes:
        low, high: ends of what is searched, inclusive, > 0.
        name: as the library spells it.
        risk_grows: whether risk grows with the parameter. A theorem for each type here but one, not a guess.
        whole: whether only whole numbers are allowed.
        proven_edge: whether that theorem is there. Where it is not, an answer still meets the target, as it was
            assessed itself; that no better value would is not claimed.
        slack: how close to the edge a search goes, relative.

    Raises:
        ParameterError: ``low`` is not > 0, or ``high`` is below it.
    """

    name: ClassVar[str]
    risk_grows: ClassVar[bool]
    whole: ClassVar[bool] = False
    proven_edge: ClassVar[bool] = True
    slack: ClassVar[float] = 5e-5
    low: float
    high: float

    @abstractmethod
    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        """``mechanism`` with the parameter set to ``value``.

        Raises:
            UnsupportedError: the mechanism has no such parameter.
        """

    def ends(self, mechanism: Mechanism) -> tuple[float, float]:
        """(low, high) for ``mechanism``."""
        return self.low, self.high

    @property
    def may_be_none(self) -> bool:
        """Whether it may be left out altogether: noise, unless somebody set a least value."""
        return False

    def words(self, value: float, places: int) -> str:
        """A value that was found, rounded to the safe side; "none" where none is needed."""
        return digits(value, places, up=not self.risk_grows) if value else "none"

    def __post_init__(self) -> None:
        _check.positive(low=self.low)
        if not self.high >= _check.positive(high=self.high) >= self.low:
            raise ParameterError("high", self.high, f"at least {self.low!r}")

    def _with(self, mechanism: Mechanism, value: float) -> Mechanism:
        if not hasattr(mechanism, self.name):
            raise self._refuse(mechanism)
        return replace(mechanism, **{self.name: value})  # type: ignore[type-var]

    def _refuse(self, mechanism: Mechanism) -> UnsupportedError:
        return UnsupportedError(f"{type(mechanism).__name__} has no {self.name} that could be calibrated")


@dataclass(frozen=True, slots=True)
class NoiseMultiplier(Unknown):
    """Noise over the largest contribution of one record; more noise is post-processing, so risk falls."""

    low: float = 1e-6
    high: float = 1e5
    name: ClassVar[str] = "noise_multiplier"
    risk_grows: ClassVar[bool] = False

    @property
    def may_be_none(self) -> bool:
        return self.low == NoiseMultiplier().low

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        return self._with(mechanism, float(value))


def _of_rate(run: DPSGD, rate: float) -> DPSGD:
    """The run at another rate: how many steps a pass then has is not known."""
    return replace(run, sample_rate=rate, sampler=run.sampler.in_batches(None))


@dataclass(frozen=True, slots=True)
class SampleRate(Unknown):
    """Poisson inclusion probability; a lower rate is a mixture with the absent law, so risk grows with it.

    Attributes:
        low, high: as for all; at most 1.
    """

    low: float = 1e-9
    high: float = 1.0
    name: ClassVar[str] = "sample_rate"
    risk_grows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Unknown.__post_init__(self)
        _check.rate(high=self.high)

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        if isinstance(mechanism, DPSGD):
            return _of_rate(mechanism, min(float(value), 1.0))
        raise self._refuse(mechanism)


@dataclass(frozen=True, slots=True)
class Steps(Unknown):
    """Number of noisy releases; seeing more never hurts the attacker."""

    low: float = 1
    high: float = 10**8
    name: ClassVar[str] = "steps"
    risk_grows: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        if hasattr(mechanism, "releases"):
            return replace(mechanism, releases=round(value))  # type: ignore[type-var]
        return self._with(mechanism, round(value))


@dataclass(frozen=True, slots=True)
class BatchSize(Unknown):
    """Expected records per batch at a fixed number of training records: the sample rate in other words."""

    low: float = 1
    high: float = 10**12
    name: ClassVar[str] = "batch_size"
    risk_grows: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        size = self._dataset_size(mechanism)
        if not isinstance(mechanism, DPSGD):
            raise self._refuse(mechanism)
        return replace(_of_rate(mechanism, min(round(value) / size, 1.0)), batch_size=round(value))

    def ends(self, mechanism: Mechanism) -> tuple[float, float]:
        return self.low, min(self.high, self._dataset_size(mechanism))

    def _dataset_size(self, mechanism: Mechanism) -> int:
        if not isinstance(mechanism, DPSGD):
            raise self._refuse(mechanism)
        if mechanism.dataset_size is None:
            raise ParameterError(
                "dataset_size", None, "given, as the batch size is the sample rate times it", shown=False
            )
        return mechanism.dataset_size


@dataclass(frozen=True, slots=True)
class MeanRuns(Unknown):
    """Average number of runs of which the best is released; of a law that is fixed, the number.

    Risk is proven to grow with it for the Poisson law (docs/theory/selection.md); for the others it did wherever it was
    computed.

    Attributes:
        low, high: ends of what is searched, inclusive, > 0.
        whole: only whole numbers: of a fixed number of runs.
    """

    low: float = 1.0
    high: float = 1e6
    whole: bool = False  # type: ignore[misc]
    name: ClassVar[str] = "mean_runs"
    risk_grows: ClassVar[bool] = True
    proven_edge: ClassVar[bool] = False
    slack: ClassVar[float] = 1e-3  # runs are counted, and each try costs seconds

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        if not isinstance(mechanism, Selection):
            raise UnsupportedError(f"{type(mechanism).__name__} selects no best run: state a selection")
        return replace(mechanism, runs=replace(mechanism.runs, mean=float(value)))  # type: ignore[type-var]

    def fitted(self, mechanism: Mechanism) -> MeanRuns:
        """The same for the law of ``mechanism``."""
        return replace(self, whole=isinstance(mechanism, Selection) and isinstance(mechanism.runs, Fixed))


@dataclass(frozen=True, slots=True)
class Own(Unknown):
    """A parameter that only one kind of mechanism has, searched where its ``Search`` says.

    Attributes:
        name: of the field.
        low, high: ends of what is searched, inclusive, > 0.
        risk_grows: with the parameter; the mechanism states it.
    """

    name: str  # type: ignore[misc]
    low: float
    high: float
    risk_grows: bool  # type: ignore[misc]

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        return self._with(mechanism, float(value))


@dataclass(frozen=True, slots=True)
class OfOneRun(Unknown):
    """A parameter of one run, where the best of several is released: the best then tells more or less as each run does.

    Attributes:
        inner: the parameter.
    """

    inner: Unknown

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the parameter."""
        return self.inner.name

    @property
    def risk_grows(self) -> bool:  # type: ignore[override]
        """As of one run: what one run of less risk shows, a run of more risk shows too, score and all."""
        return self.inner.risk_grows

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """As of the parameter."""
        return self.inner.whole

    def __post_init__(self) -> None:
        """The parameter has checked its ends."""

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        if not isinstance(mechanism, Selection):
            raise self._refuse(mechanism)
        return replace(mechanism, base=self.inner.put(mechanism.base, value))

    def ends(self, mechanism: Mechanism) -> tuple[float, float]:
        return self.inner.ends(mechanism.base if isinstance(mechanism, Selection) else mechanism)


def of_release(unknown: Unknown, mechanism: Mechanism) -> Unknown:
    """The unknown as it is searched in ``mechanism``: of the best of several runs, that of one run or their number."""
    if isinstance(unknown, MeanRuns):
        return unknown.fitted(mechanism)
    return OfOneRun(unknown) if isinstance(mechanism, Selection) else unknown


def unknowns_of(kind: type[Mechanism]) -> dict[str, Unknown]:
    """What may be searched in mechanisms of ``kind``, by name; the first is meant where none is stated."""
    common: tuple[Unknown, ...] = (NoiseMultiplier(), SampleRate(), Steps(), BatchSize())
    known = {p.name: p for p in parameters_of(kind)}
    found = {u.name: u for u in common if u.name in known and (kind is DPSGD or u.name != "sample_rate")}
    if "releases" in known:
        found["releases"] = Steps()
    own = {p.name: Own(p.name, p.search.low, p.search.high, p.search.risk_grows) for p in known.values() if p.search}
    return {name.replace("_", "-"): unknown for name, unknown in {**own, **found}.items()}
