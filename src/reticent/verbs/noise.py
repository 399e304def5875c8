"""``calibrate`` and ``compare``: the least noise for a target, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import Field

from reticent.adversaries.report import (
    AssessmentRecord,
    ConditionRecord,
    Record,
    assessment_record,
    condition_records,
    strict,
)
from reticent.calibration.scale import NoiseScale
from reticent.calibration.solve import Calibration, UnreachableError
from reticent.calibration.solve import calibrate as solve
from reticent.calibration.spelling import forms
from reticent.calibration.targets import Target
from reticent.calibration.unknowns import MeanRuns, NoiseMultiplier, Unknown, unknowns_of
from reticent.kernel.adversaries import Adversary, Assessment, Method, WorstCase
from reticent.kernel.adversaries.base import ALL
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import conditions_by_whom
from reticent.kernel.risk.questions import Questions
from reticent.kernel.text import one_of, stated
from reticent.mechanisms.codec import mechanism_record
from reticent.verbs.curves import Curves
from reticent.verbs.names import ATTACKER, ATTACKERS, BETWEEN, HOW, METHOD, RELATION, WORST, Attackers, Who
from reticent.verbs.releases import RELEASE, SELECTION, Release
from reticent.verbs.request import Request, Spelling, asked
from reticent.verbs.table import Cell
from reticent.verbs.targets import TARGET, target_of

if TYPE_CHECKING:
    from reticent.pairs.runs import Runs

Progress = Callable[[str], None]


def _unknown(name: str, said: Any) -> Unknown | str:
    """What is searched, as it is or by its name, with dashes."""
    if not isinstance(said, (Unknown, str)):
        raise ParameterError(name, said, one_of(str(said), _ANYWHERE))
    return said.replace("_", "-") if isinstance(said, str) else said


def _written(unknown: Unknown | str) -> str:
    """Its name.

    Raises:
        UnsupportedError: it has bounds of its own, which no file can say.
    """
    if isinstance(unknown, str):
        return unknown
    if stated(unknown):
        raise UnsupportedError("a request with bounds of your own on what is searched cannot be written")
    return unknown.name.replace("_", "-")


_ANYWHERE: dict[str, Unknown] = {"noise-scale": NoiseScale(), "mean-runs": MeanRuns()}
"""What may be searched in any release, by name."""


def unknown_called(name: str | None, kinds: Mapping[str, Unknown]) -> tuple[str, Unknown]:
    """What is searched, with its name; the first where none is stated.

    Raises:
        ParameterError: there is nothing of this name.
    """
    meant = next(iter(kinds)) if name is None else name
    for known, kind in kinds.items():
        if meant in (known, kind.name):
            return known, kind
    raise ParameterError("unknown", meant, one_of(meant, kinds))


UNKNOWN = Spelling(_unknown, _written, {"type": "string"}, str)


@dataclass(frozen=True, kw_only=True)
class Calibrate(Request):
    """The parameter that keeps an attacker below a target."""

    verb = "calibrate"
    release: Release = asked(RELEASE, "The release; its value of what is searched does not matter.")
    selection: Runs | None = asked(SELECTION, "The best of several runs of it is released: how many.", None)
    target: Target = asked(TARGET, f"What has to be reached: {forms()}.")
    unknown: Unknown | str | None = asked(UNKNOWN, "What is searched; default: the noise.", None)
    adversary: Adversary = asked(ATTACKER, "Who attacks; default: the worst case.", WORST)
    neighbouring: Neighbouring | None = asked(RELATION, "Between which data sets; default: the attacker's own.", None)
    method: Method | None = asked(METHOD, "How curves are evaluated; default: the attacker's own.", None)

    @property
    def searched(self) -> tuple[str, Unknown]:
        """What is searched, with the name that it has for this release.

        Raises:
            ParameterError: the release has nothing of this name.
        """
        if isinstance(self.unknown, Unknown):
            return _written(type(self.unknown)()), self.unknown
        return unknown_called(self.unknown, {**unknowns_of(type(self.release.mechanism.base)), **_ANYWHERE})

    def answer(self, progress: Progress | None = None) -> Calibrated:
        """The value that meets the target.

        Args:
            progress: called with how many curves were evaluated.

        Raises:
            UnreachableError: no allowed value meets the target; it says which comes closest.
            UnsupportedError: nothing is proven for this combination.
        """
        release, (name, unknown) = self.release.best_of(self.selection), self.searched
        if isinstance(unknown, NoiseScale) and any(part.noise_multiplier == 0.0 for part in release.parts):
            raise UnsupportedError("no factor gives noise to a release that has none; reticent lint says why")
        said = None if progress is None else lambda n: progress(f"{n} evaluations")
        how = self.method or Method.EXACT
        found = solve(release, unknown, self.target, self.adversary, self.neighbouring, how, said)
        return Calibrated(self.target, [found], {}, self.release.warnings, name)


@dataclass(frozen=True, kw_only=True)
class Compare(Request):
    """The noise that each attacker would allow."""

    verb = "compare"
    release: Release = asked(RELEASE, "The release; its noise does not matter.")
    target: Target = asked(TARGET, f"What has to be reached: {forms()}.")
    adversary: Attackers = asked(ATTACKERS, "Who attacks; default: all.", Attackers.of(ALL))
    neighbouring: Neighbouring | None = asked(RELATION, BETWEEN, None)
    method: Method | None = asked(METHOD, HOW, None)

    def answer(self, progress: Progress | None = None) -> Calibrations:
        """The least noise against each attacker; one that cannot be answered is named with its reason.

        Args:
            progress: called with the name of each attacker before the search for it.
        """
        how, found, skipped = self.method or Method.EXACT, [], {}
        for who in self.adversary.each:
            if progress is not None:
                progress(who.name)
            try:
                asked = (self.release.mechanism, NoiseMultiplier(), self.target, who, self.neighbouring, how)
                found.append(solve(*asked))
            except (UnsupportedError, UnreachableError, ParameterError) as error:
                skipped[who.name] = str(error)
        return Calibrations(self.target, found, skipped, self.release.warnings)


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
    warnings: dict[str, str] = Field(default={}, exclude_if=lambda found: not found)


class WorstCaseRecord(AssessmentRecord):
    """The worst case at the answer; ``achieved`` is the risk that the target limits."""

    achieved: float | None


class CalibrationDocument(Record):
    """What ``reticent calibrate --json`` prints; ``warnings`` are those of the ledger that was read, if any."""

    schema_: str = Field(default="reticent.calibration/2", alias="schema")
    unknown: str
    value: float
    target: str
    achieved: float | None
    slack: float
    adversary: str
    neighbouring: str
    method: str
    claim: str
    conditions: list[ConditionRecord]
    mechanism: dict[str, Any]
    worst_case: WorstCaseRecord
    evaluations: int
    warnings: dict[str, str] = Field(default={}, exclude_if=lambda found: not found)


def _stated(answer: Calibration, found: Assessment) -> dict[str, Any]:
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


class Calibrations(Curves[Calibration]):
    """Calibrations to one target: a sequence, and a table with the worst case at each answer.

    Attributes:
        target: what had to be reached.
        calibrations: one for each attacker that could be answered.
        skipped: the others, with the reason.
        warnings: of the ledger that was read, text by name.
        unknown: the name of what was searched, where one attacker was asked about.
        worst: the risk that the target limits, under the worst case at each answer.
    """

    _leading = 2

    def __init__(
        self,
        target: Target,
        calibrations: Sequence[Calibration],
        skipped: Mapping[str, str],
        warnings: Mapping[str, str],
        unknown: str = "",
    ) -> None:
        self.target, self.calibrations, self.skipped = target, tuple(calibrations), dict(skipped)
        self.warnings, self.unknown = dict(warnings), unknown
        self.worst = [one.worst_case().value for one in self.calibrations]
        self._found = [one.assessment() for one in self.calibrations]

    def _each(self) -> Sequence[Calibration]:
        return self.calibrations

    def _curves(self) -> Sequence[Assessment]:
        return self._found

    def title(self) -> str:
        return f"target {self.target}"

    def columns(self) -> tuple[str, ...]:
        """Who attacks, the answer, what is achieved there, and what the worst case gains there."""
        unknown = self.calibrations[0].unknown.name if self.calibrations else "noise_multiplier"
        return ("attacker", "neighbouring", "claim", unknown, "achieved", "worst case there")

    def rows(self) -> list[tuple[Cell, ...]]:
        return [
            (found.adversary.label, str(one.neighbouring), found.claim.value, one.value, one.achieved.value, worst)
            for one, worst, found in zip(self.calibrations, self.worst, self._found, strict=True)
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
        left_out = (f"{name} left out: {reason}" for name, reason in self.skipped.items())
        return [*rests, *left_out, *(f"! {key}: {text}" for key, text in self.warnings.items())]

    @cached_property
    def document(self) -> Any:
        """Every answer with its claim and what it rests on, as ``reticent compare --json`` prints it."""
        noises = [one for one in self.calibrations if isinstance(one.unknown, NoiseMultiplier)]
        reference = {one.neighbouring: one.value for one in noises if isinstance(one.adversary, WorstCase)}
        rows = [
            ComparisonRow(
                unknown=one.unknown.name,
                noise_ratio=one.value / reference[one.neighbouring] if one.neighbouring in reference else None,
                worst_case_achieved=strict(worst),
                **_stated(one, found),
            )
            for one, worst, found in zip(self.calibrations, self.worst, self._found, strict=True)
        ]
        return Comparison(target=str(self.target), rows=rows, skipped=self.skipped, warnings=self.warnings)


class Calibrated(Calibrations):
    """The answer for one attacker."""

    @property
    def value(self) -> float:
        """A value of the unknown that meets the target."""
        return self.calibrations[0].value

    @property
    def mechanism(self) -> Mechanism:
        """The release at the answer."""
        return self.calibrations[0].mechanism

    @cached_property
    def document(self) -> CalibrationDocument:
        """The answer, and the worst case at it, as ``reticent calibrate --json`` prints it."""
        (answer,) = self.calibrations
        worst = WorstCase().assess(answer.mechanism, answer.neighbouring, Method.EXACT)
        record = assessment_record(worst, Questions())
        achieved = self.target.of(worst).value
        return CalibrationDocument(
            unknown=self.unknown,
            target=str(self.target),
            slack=answer.slack,
            worst_case=WorstCaseRecord(**dict(record), achieved=strict(achieved)),
            evaluations=answer.evaluations,
            warnings=self.warnings,
            **_stated(answer, self._found[0]),
        )


def calibrate(
    mechanism: Mechanism | None = None,
    adversary: Who | None = None,
    target: Target | str | None = None,
    *,
    unknown: str | Unknown | None = None,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str | None = None,
    progress: Progress | None = None,
    **limits: float,
) -> Calibrated:
    """The least noise (or largest rate, steps, batch size) at which the attacker keeps below a target.

    Args:
        mechanism: the release; its value of the unknown does not matter.
        target: a target of ``reticent.calibration`` or its text (``"epsilon=3@1e-5"``, also accepted as
            ``adversary``), or None with keywords: ``epsilon=3, delta=1e-5``, ``advantage=0.1``,
            ``bayes_security=0.9``, ``mu=1``, ``tpr=0.01, fpr=0.001``, ``success=0.6, prior=0.5``,
            ``ppv=0.4, prior=0.1, fpr=0.01``, ``recovered=0.2, baseline=0.1``.
        adversary: who attacks, or a name; None means the worst case.
        unknown: ``"noise_multiplier"``, ``"sample_rate"``, ``"steps"``, ``"batch_size"`` or another parameter of the
            release in which risk moves one way; ``"noise_scale"`` is one factor on the noise of all parts of a ledger;
            ``"mean_runs"`` is the average number of runs of a ``Selection``: the answer meets the target, and that no
            larger one would is not claimed. None means the noise, or what stands in its place.
        neighbouring: None means the adversary's own ``relation``.
        method: how curves are evaluated; None means the adversary's own.
        progress: called with how many curves were evaluated.
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
    who, goal = _told_apart(adversary, target)
    release, wanted = Release.of(mechanism), target_of(goal, limits)
    request = Calibrate.of(
        release=release, target=wanted, adversary=who, unknown=unknown, neighbouring=neighbouring, method=method
    )
    return request.answer(progress)


def compare(
    mechanism: Mechanism | None = None,
    adversary: Who | Sequence[Who] = "all",
    target: Target | str | None = None,
    *,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str | None = None,
    progress: Progress | None = None,
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
    who, goal = _told_apart(adversary, target)
    release, wanted = Release.of(mechanism), target_of(goal, limits)
    request = Compare.of(release=release, target=wanted, adversary=who, neighbouring=neighbouring, method=method)
    return request.answer(progress)


def _told_apart(who: Any, target: Target | str | None) -> tuple[Any, Target | str | None]:
    """Who attacks, and the target: a text such as ``advantage=0.1`` is a target in either place."""
    if target is None and (isinstance(who, Target) or (isinstance(who, str) and "=" in who)):
        return None, who
    return who, target
