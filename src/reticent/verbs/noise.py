"""``calibrate`` and ``compare``: the least noise for a target, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from pydantic import Field

from reticent import _check
from reticent.adversaries import Assessment, Method, WorstCase
from reticent.calibration.scale import NoiseScale
from reticent.calibration.solve import Calibration, UnreachableError
from reticent.calibration.solve import calibrate as solve
from reticent.calibration.spelling import MEANT
from reticent.calibration.spelling import target_of as spelt
from reticent.calibration.targets import STATED, Target
from reticent.calibration.unknowns import BatchSize, MeanRuns, NoiseMultiplier, SampleRate, Steps, Unknown
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.mechanisms.codec import mechanism_record
from reticent.pairs.neighbouring import relation_of
from reticent.proofs import conditions_by_whom
from reticent.risk.report import ConditionRecord, Record, condition_records, strict
from reticent.text import one_of
from reticent.verbs.names import Who, adversaries
from reticent.verbs.names import adversary as one_adversary
from reticent.verbs.risks import mechanism_of
from reticent.verbs.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_UNKNOWNS: dict[str, Any] = {
    kind.name: kind for kind in (NoiseMultiplier, NoiseScale, SampleRate, Steps, BatchSize, MeanRuns)
}


class ComparisonRow(Record):
    """One attacker: the value that keeps it within the target, and what the worst case has there.

    ``noise_ratio`` is against the worst case of the same relation; null where that is no row, and for another unknown.
    """

    adversary: str
    neighbouring: str
    method: str
    claim: str
    conditions: list[ConditionRecord]
    unknown: str
    value: float
    noise_ratio: float | None
    achieved: float | None
    worst_case_achieved: float | None
    mechanism: dict[str, Any]


class Comparison(Record):
    """What ``reticent compare --json`` prints; ``skipped`` says why an attacker is not in it."""

    schema_: str = Field(default="reticent.comparison/1", alias="schema")
    target: str
    rows: list[ComparisonRow]
    skipped: dict[str, str]


def stated_of(answer: Calibration, found: Assessment) -> dict[str, Any]:
    """What every document states of an answer, by name; ``found`` is the attacker at it."""
    return {
        "adversary": answer.adversary.name,
        "neighbouring": answer.neighbouring.value,
        "method": answer.method.value,
        "claim": found.claim.value,
        "conditions": condition_records(found.conditions),
        "value": answer.value,
        "achieved": strict(answer.achieved.value),
        "mechanism": mechanism_record(answer.mechanism),
    }


class Calibrations(Table, Sequence[Calibration]):
    """Calibrations to one target: a sequence, and a table with the worst case at each answer.

    Attributes:
        target: what had to be reached.
        calibrations: one for each attacker that could be answered.
        skipped: the others, with the reason.
    """

    _leading = 2

    def __init__(
        self, target: Target, calibrations: Sequence[Calibration], skipped: dict[str, str] | None = None
    ) -> None:
        self.target, self.calibrations, self.skipped = target, tuple(calibrations), dict(skipped or {})
        self._worst = [one.worst_case().value for one in self.calibrations]
        self._found = [one.assessment() for one in self.calibrations]

    @overload
    def __getitem__(self, index: int) -> Calibration: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Calibration, ...]: ...

    def __getitem__(self, index: int | slice) -> Calibration | tuple[Calibration, ...]:
        return self.calibrations[index]

    def __len__(self) -> int:
        return len(self.calibrations)

    @property
    def value(self) -> float:
        """The answer, where there is one only: a value of the unknown that meets the target.

        Raises:
            ParameterError: several attackers were compared.
        """
        return self._only().value

    @property
    def mechanism(self) -> Mechanism:
        """The release at the answer, where there is one answer only."""
        return self._only().mechanism

    def title(self) -> str:
        return f"target {self.target}"

    def columns(self) -> tuple[str, ...]:
        """Who attacks, the answer, what is achieved there, and what the worst case gains there."""
        unknown = self.calibrations[0].unknown.name if self.calibrations else "noise_multiplier"
        return ("attacker", "neighbouring", "claim", unknown, "achieved", "worst case there")

    def rows(self) -> list[tuple[Cell, ...]]:
        return [
            (found.adversary.label, str(one.neighbouring), found.claim.value, one.value, one.achieved.value, worst)
            for one, worst, found in zip(self.calibrations, self._worst, self._found, strict=True)
        ]

    def ways(self, row: tuple[Cell, ...]) -> list[bool | None]:
        """The answer, and the risk there, on the safe side."""
        grows = self.calibrations[0].unknown.risk_grows
        risk = self.target.grows_with_risk
        return [None, None, None, not grows, risk, risk]

    def notes(self) -> list[str]:
        """What makes a claim conditional, and who was left out and why."""
        needed = ((f.adversary.name, [one for one in f.conditions if one.weakens]) for f in self._found)
        rests = conditions_by_whom((name, open_ones) for name, open_ones in needed if open_ones)
        return [*rests, *(f"{name} left out: {reason}" for name, reason in self.skipped.items())]

    def conditions(self) -> list[str]:
        """What the numbers rest on, worst status first: one sentence each."""
        return conditions_by_whom((found.adversary.name, found.conditions) for found in self._found)

    @cached_property
    def document(self) -> Comparison:
        """Every answer with its claim and what it rests on, as ``reticent compare --json`` prints it."""
        noises = [one for one in self.calibrations if isinstance(one.unknown, NoiseMultiplier)]
        reference = {one.neighbouring: one.value for one in noises if isinstance(one.adversary, WorstCase)}
        rows = [
            ComparisonRow(
                unknown=one.unknown.name,
                noise_ratio=one.value / reference[one.neighbouring] if one.neighbouring in reference else None,
                worst_case_achieved=strict(worst),
                **stated_of(one, found),
            )
            for one, worst, found in zip(self.calibrations, self._worst, self._found, strict=True)
        ]
        return Comparison(target=str(self.target), rows=rows, skipped=self.skipped)

    def to_json(self) -> str:
        """The document ``reticent.comparison/1`` as strict JSON text; null is an infinite number."""
        return self.document.model_dump_json(by_alias=True, indent=2)

    def theorems(self) -> list[str]:
        return [key for found in self._found for key in found.theorems]

    def plot(
        self,
        ax: Sequence[Axes] | Axes | None = None,
        panels: Sequence[str] | str | None = None,
        *,
        style: str = "attackers",
        legend: bool = True,
    ) -> list[Any]:
        """Draw each attacker's curve at its own answer; see ``reticent.verbs.plots.plot``."""
        from reticent.verbs.plots import plot

        return plot(self._found, ax, panels, style=style, legend=legend)

    def _only(self) -> Calibration:
        if len(self.calibrations) != 1:
            raise ParameterError("calibrations", len(self.calibrations), "one; take one by its number")
        return self.calibrations[0]


def calibrate(
    mechanism: Mechanism | None = None,
    adversary: Who | None = None,
    target: Target | str | None = None,
    *,
    unknown: str | Unknown = "noise_multiplier",
    neighbouring: Neighbouring | str | None = None,
    method: Method | str = Method.EXACT,
    **limits: float,
) -> Calibrations:
    """The least noise (or largest rate, steps, batch size) at which the attacker keeps below a target.

    Args:
        mechanism: the release; its value of the unknown does not matter.
        target: a target of ``reticent.calibration`` or its text (``"epsilon=3@1e-5"``, also accepted as
            ``adversary``), or None with keywords: ``epsilon=3, delta=1e-5``, ``advantage=0.1``,
            ``bayes_security=0.9``, ``mu=1``, ``tpr=0.01, fpr=0.001``, ``success=0.6, prior=0.5``,
            ``ppv=0.4, prior=0.1, fpr=0.01``, ``reconstruction=0.2, baseline=0.1``.
        adversary: who attacks, or a name; None means the worst case.
        unknown: ``"noise_multiplier"``, ``"sample_rate"``, ``"steps"`` or ``"batch_size"``; ``"noise_scale"`` is one
            factor on the noise of all parts of a ledger; ``"mean_runs"`` is the average number of runs of a
            ``Selection``: the answer meets the target, and that no larger one would is not claimed.
        neighbouring: None means the adversary's own ``relation``.
        method: how curves are evaluated.
        limits: see ``target``.

    Raises:
        UnreachableError: no allowed value meets the target; it says which comes closest.
        UnsupportedError, ParameterError: nothing is proven for this combination, or an argument is wrong or missing.

    Example:
        >>> import reticent as rt
        >>> found = rt.calibrate(rt.Gaussian(1.0), advantage=0.1)
        >>> round(found.value, 3)
        3.979
    """
    adversary, target = _told_apart(adversary, target)
    goal, searched, how = target_of(target, limits), _unknown(unknown), _check.member(Method, method=method)
    who, between = one_adversary(adversary), relation_of(neighbouring)
    return Calibrations(goal, [solve(mechanism_of(mechanism), searched, goal, who, between, how)])


def compare(
    mechanism: Mechanism | None = None,
    adversary: Who | Sequence[Who] = "all",
    target: Target | str | None = None,
    *,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str = Method.EXACT,
    progress: Callable[[str], None] | None = None,
    **limits: float,
) -> Calibrations:
    """The least noise against each attacker, side by side; one that cannot be answered is named with its reason.

    Args:
        mechanism, target, neighbouring, method, limits: as for ``calibrate``.
        adversary: an adversary, its name, a list of both, or ``"all"``.
        progress: called with the name of each attacker before the search for it.

    Example:
        >>> import reticent as rt
        >>> print(rt.compare(rt.Gaussian(1.0), ["worst-case", "relaxed"], advantage=0.1))
        target advantage=0.1
        attacker    neighbouring  claim  noise_multiplier  achieved  worst case there
        worst-case    add-remove  bound             3.979       0.1               0.1
        relaxed       add-remove  bound             1.501       0.1            0.2611
    """
    adversary, target = _told_apart(adversary, target)
    adversary = "all" if adversary is None else adversary
    goal, between, how = target_of(target, limits), relation_of(neighbouring), _check.member(Method, method=method)
    release, found, skipped = mechanism_of(mechanism), [], {}
    for who in adversaries(adversary):
        if progress is not None:
            progress(who.name)
        try:
            found.append(solve(release, NoiseMultiplier(), goal, who, between, how))
        except (UnsupportedError, UnreachableError, ParameterError) as error:
            skipped[who.name] = str(error)
    return Calibrations(goal, found, skipped)


def target_of(target: Target | str | None, limits: dict[str, float]) -> Target:
    """The target that is meant, from an object, from its text, or from keywords.

    Raises:
        ParameterError: there is none, more than one, or a keyword that goes with it is missing.
    """
    partners = {place for _, places in STATED.values() for place in places}
    for name in limits:
        if name not in STATED and name not in partners:
            spelt_name = MEANT.get(name, name).replace("-", "_")
            words = [*STATED, *sorted(partners), "unknown", "neighbouring", "method", "progress"]
            raise ParameterError("keyword", name, one_of(spelt_name, words))
    named = [name for name in limits if name in STATED]
    if target is not None:
        if isinstance(target, str) and not limits:
            return spelt(target)
        if limits or not isinstance(target, Target):
            raise ParameterError(
                "target", target, "a target such as 'epsilon=3@1e-5', or keywords such as advantage=0.1"
            )
        return target
    if len(named) != 1:
        raise ParameterError("target", named, "exactly one of " + ", ".join(STATED))
    kind, places = STATED[named[0]]
    wanted = [named[0], *places]
    if set(limits) != set(wanted):
        raise ParameterError("target", sorted(limits), f"given as {', '.join(f'{name}=...' for name in wanted)}")
    found: Target = kind(*(limits[name] for name in wanted))
    return found


def _told_apart(who: Any, target: Target | str | None) -> tuple[Any, Target | str | None]:
    """Who attacks, and the target: a text such as ``advantage=0.1`` is a target in either place."""
    if target is None and (isinstance(who, Target) or (isinstance(who, str) and "=" in who)):
        return None, who
    return who, target


def _unknown(unknown: str | Unknown) -> Unknown:
    if isinstance(unknown, Unknown):
        return unknown
    if not isinstance(unknown, str) or unknown not in _UNKNOWNS:
        raise ParameterError("unknown", unknown, one_of(unknown, _UNKNOWNS))
    found: Unknown = _UNKNOWNS[unknown]()
    return found
