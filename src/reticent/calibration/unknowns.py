"""What a calibration may change: one type per parameter; whether risk grows with it is part of the type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.registry import parameters_of
from reticent.kernel.text import digits
from reticent.pairs import Fixed


class Unknown:
    """A parameter of a mechanism, searched between ``low`` and ``high``.

    Attributes:
        low, high: ends of what is searched, inclusive, > 0.
        name: as the library spells it.
        risk_grows: whether risk grows with the parameter. A theorem for each type here but one, not a guess.
        whole: whether only whole numbers are allowed.
        of_noise: whether it is noise, which may be left out altogether unless somebody set a least value.
        proven_edge: whether that theorem is there. Where it is not, an answer still meets the target, as it was
            assessed itself; that no better value would is not claimed.
        slack: how close to the edge a search goes, relative.

    Raises:
        ParameterError: ``low`` is not > 0, or ``high`` is below it.
    """

    name: ClassVar[str]
    risk_grows: ClassVar[bool]
    whole: ClassVar[bool] = False
    of_noise: ClassVar[bool] = False
    proven_edge: ClassVar[bool] = True
    slack: ClassVar[float] = 5e-5
    low: float
    high: float

    def put(self, mechanism: Mechanism, value: float) -> Mechanism:
        """``mechanism`` with the parameter set to ``value``; of the best of several runs, that of each run.

        Raises:
            UnsupportedError: the mechanism has no such parameter.
        """
        return mechanism.changed(self.name, round(value) if self.whole else float(value))

    def ends(self, mechanism: Mechanism) -> tuple[float, float]:
        """(low, high) for ``mechanism``."""
        return self.low, self.high

    @property
    def may_be_none(self) -> bool:
        """Whether it may be left out altogether."""
        return self.of_noise and self.low == type(self)().low

    def words(self, value: float, places: int) -> str:
        """A value that was found, rounded to the safe side; "none" where none is needed."""
        return digits(value, places, up=not self.risk_grows) if value else "none"

    def __post_init__(self) -> None:
        checks.positive(low=self.low)
        if not self.high >= checks.positive(high=self.high) >= self.low:
            raise ParameterError("high", self.high, f"at least {self.low!r}")


@dataclass(frozen=True, slots=True)
class NoiseMultiplier(Unknown):
    """Noise over the largest contribution of one record; more noise is post-processing, so risk falls."""

    low: float = 1e-6
    high: float = 1e5
    name: ClassVar[str] = "noise_multiplier"
    risk_grows: ClassVar[bool] = False
    of_noise: ClassVar[bool] = True


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
        checks.rate(high=self.high)


@dataclass(frozen=True, slots=True)
class Steps(Unknown):
    """Number of noisy releases; seeing more never hurts the attacker."""

    low: float = 1
    high: float = 10**8
    name: ClassVar[str] = "steps"
    risk_grows: ClassVar[bool] = True
    whole: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class BatchSize(Unknown):
    """Expected records per batch at a fixed number of training records: the sample rate in other words."""

    low: float = 1
    high: float = 10**12
    name: ClassVar[str] = "batch_size"
    risk_grows: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    def ends(self, mechanism: Mechanism) -> tuple[float, float]:
        run = mechanism.base.training
        return self.low, self.high if run is None or run.dataset_size is None else min(self.high, run.dataset_size)


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
        if mechanism.runs is None:
            raise UnsupportedError(f"{type(mechanism).__name__} selects no best run: state a selection")
        return Unknown.put(self, mechanism, value)


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


def of_release(unknown: Unknown, mechanism: Mechanism) -> Unknown:
    """The unknown as it is searched in ``mechanism``: a number of runs that is fixed is a whole one."""
    if not isinstance(unknown, MeanRuns):
        return unknown
    return replace(unknown, whole=isinstance(mechanism.runs, Fixed))


def unknowns_of(kind: type[Mechanism]) -> dict[str, Unknown]:
    """What may be searched in mechanisms of ``kind``, by name; the first is meant where none is stated."""
    common = {u.name: u for u in (NoiseMultiplier(), SampleRate(), Steps(), BatchSize())} | {"releases": Steps()}
    fields = {p.name: p.search for p in parameters_of(kind)}
    own = {name: Own(name, one.low, one.high, one.risk_grows) for name, one in fields.items() if one is not None}
    return {name.replace("_", "-"): (common | own)[name] for name in kind.searched()}
