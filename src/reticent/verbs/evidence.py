"""``audit``: what an attack really achieved, and whether that refutes what is claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from reticent.attacks.base import ATTACKS
from reticent.attacks.sources import FORMATS, kind_of, read_scores
from reticent.auditing.one_run import Guesses
from reticent.auditing.report import DEFAULT_FPRS, AuditReport
from reticent.auditing.report import audit as judge
from reticent.auditing.scores import Design, Scores
from reticent.auditing.sequential import fixed_thresholds
from reticent.auditing.spelling import guesses_of, rule_of
from reticent.auditing.thresholds import ThresholdRule
from reticent.auditing.verdict import Finding
from reticent.io.files import sha256_file
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.curves import GaussianTradeOff, TradeOff
from reticent.kernel.errors import ParameterError, needing
from reticent.kernel.keywords import hinting
from reticent.kernel.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.pairs.neighbouring import relation_of
from reticent.tasks.engines import ENGINES, engine_of
from reticent.verbs.names import ATTACKERS, BETWEEN, HOW, METHOD, RELATION, Attackers
from reticent.verbs.progress import Say, counted, reporting
from reticent.verbs.releases import mechanism_of
from reticent.verbs.request import (
    COUNT,
    FLAG,
    FRACTION,
    NON_NEGATIVE,
    NUMBER,
    NUMBERS,
    PATH,
    POSITIVE,
    SEED,
    TEXT,
    Spelling,
    asked,
    leave_out,
    member,
    several,
    word,
)
from reticent.verbs.risks import Assess
from reticent.verbs.sealing import PLAN, Planned, Sealed, SealedPlan
from reticent.verbs.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Audited(Table):
    """An audit as a table of measured numbers with their limits.

    Attributes:
        report: everything that the audit says.
        claims: the curves that were claimed, by name.
        claimed: the release that they are of, where one is known.
        plan: that was sealed before the attack.
    """

    def __init__(
        self,
        report: AuditReport,
        claims: Mapping[str, TradeOff] | None = None,
        claimed: Mechanism | None = None,
        plan: SealedPlan | None = None,
    ) -> None:
        self.report, self.claims, self.claimed, self.plan = report, dict(claims or {}), claimed, plan

    def title(self) -> str:
        scores = self.report.scores
        many = f"{len(scores.member)} members, {len(scores.non_member)} non-members"
        return f"audit of {many}; each line holds with confidence {self.report.confidence:g}"

    def columns(self) -> tuple[str, ...]:
        return ("measured", "value", "at least", "at most")

    def rows(self) -> list[tuple[Cell, ...]]:
        """Rates with both limits, then lower bounds, one row each."""
        report = self.report
        found: list[tuple[Cell, ...]] = [("AUC", report.auc.value, report.auc.lower, report.auc.upper)]
        for fpr, rate in report.tpr.items():
            found.append((f"TPR@{fpr:g}", rate.value, rate.lower, rate.upper))
        return found + [(bound.title, None, bound.value, None) for bound in report.bounds]

    def ways(self, row: tuple[Cell, ...]) -> list[bool | None]:
        """Limits are rounded outwards."""
        return [None, None, False, True]

    def notes(self) -> list[str]:
        found = [f"claim {name}: {verdict.finding}" for name, verdict in self.report.verdicts.items()]
        return [*(found or ["no claim was tested: give claim="]), *self.report.hints]

    def theorems(self) -> list[str]:
        report = self.report
        found = [bound.theorems for bound in report.bounds] + [one.theorems for one in report.verdicts.values()]
        return [*report.curve.theorems, *(key for keys in found for key in keys)]

    def plot(self, ax: Sequence[Axes] | None = None, *, legend: bool = True) -> list[Any]:
        """Draw the measured curve with its band, and the claims: error rates, and confident accusations.

        Args:
            ax: two matplotlib axes; None makes a figure.
            legend: as for ``reticent.verbs.plots.plot``.

        Returns:
            The axes, as a list.

        Raises:
            ParameterError: there are not two axes.
            UnsupportedError: matplotlib is not installed.
        """
        from reticent.certificates.page.figures import draw_audit
        from reticent.verbs.plots import axes_for, with_legend

        drawn = axes_for(ax, 2)
        draw_audit(drawn[0], drawn[1], self.report, self.claims)
        return with_legend(drawn, legend)

    @property
    def document(self) -> dict[str, object]:
        """The document ``reticent.audit/1``: aggregates only, no single score."""
        plan = None if self.plan is None else self.plan.model_dump(mode="json", by_alias=True)
        return {**self.report.to_json(), "plan": plan}

    @property
    def refuted(self) -> bool:
        """Whether a claim is refuted."""
        return any(verdict.finding is Finding.INCONSISTENT for verdict in self.report.verdicts.values())


GUESSES = Spelling(
    lambda _, said: said if isinstance(said, Guesses) else guesses_of(str(said)),
    lambda made: f"{made.members},{made.non_members}",
    {"type": "string"},
    str,
)
_COINS = " unless the design is one-run"
_SCORED = " for scores, which an attack has given already"
NO_RELEASE = " unless --noise-multiplier or --claim is given"
_OF_RELEASE = ("claim", "noise_multiplier", "sample_rate", "steps", "dimension")
_OF_ATTACK = ("records", "models", "canaries", "engine", "address", "workers", "timeout", "work", "resume")


@dataclass(frozen=True, kw_only=True)
class Audit(Planned):
    """What an attack on a run achieves, or scores of one, and whether that refutes what is claimed."""

    verb = "audit"
    source: Path = asked(PATH, "A run, a score file, a LiRA folder or a Privacy Meter log folder.", word="RUN|SCORES")
    attack: str = asked(TEXT, f"For a run: {', '.join(ATTACKS)}.", "loss")
    against: Attackers | None = asked(ATTACKERS, "Whose curves are tested; default: the worst case.", None)
    against_mu: tuple[float, ...] = asked(several(NON_NEGATIVE), "Gaussian curve to test.", ())
    neighbouring: Neighbouring | None = asked(RELATION, BETWEEN, None)
    method: Method | None = asked(METHOD, HOW, None)
    confidence: float = asked(FRACTION, "Confidence of each statement.", 0.95)
    delta: float = asked(FRACTION, "delta for the bounds on epsilon.", 1e-5)
    fpr: tuple[float, ...] = asked(several(FRACTION), "False positive rate at which the TPR is reported.", DEFAULT_FPRS)
    rule: str | None = asked(
        TEXT, "Thresholds: normal-scores | ranks:FPR,.. | given:T | bonferroni:T,.. | split:FRACTION.", None
    )
    guesses: Guesses | None = asked(GUESSES, "One run: MEMBERS,NON_MEMBERS guessed, fixed in advance.", None)
    design: Design | None = asked(member(Design), "How scores came about; default: as they say.", None)
    claim: Path | None = asked(
        PATH,
        "For scores: the file that says what was released, as for risk ledger: a ledger, mechanism or DpEvent.",
        None,
    )
    noise_multiplier: float | None = asked(
        NUMBER, "For scores: the release that they are tested against; alone, one Gaussian release.", None
    )
    sample_rate: float | None = asked(NUMBER, "With --steps: DP-SGD.", None)
    steps: int | None = asked(COUNT, "With --sample-rate: DP-SGD.", None)
    dimension: int | None = asked(COUNT, "Released coordinates.", None)
    format: str = asked(word(*FORMATS), "What the source is.", "auto")
    sequential: bool = asked(FLAG, "Scores in the order of the runs: verdicts and bounds hold at every number.", False)
    target: int = asked(SEED, "Which model of a LiRA or Privacy Meter folder.", 0)
    seed: int = asked(SEED, "Seed of the attack and of the rule split.", 0)
    records: int = asked(COUNT, "Members and non-members to score, at most.", 1000)
    models: int = asked(COUNT, "Shadow models.", 16)
    canaries: int = asked(COUNT, "Gradient canaries.", 1000)
    engine: str = asked(word(*ENGINES), "Where shadow models are trained.", "local")
    address: str | None = asked(TEXT, "Address of the Dask scheduler or the Ray head.", None)
    workers: int = asked(COUNT, "Processes of the local engine.", 1)
    timeout: float | None = asked(POSITIVE, "Give up when no task was finished for this many seconds.", None)
    work: Path | None = asked(PATH, "Folder for shadow models: a new one, or that of an earlier attack.", None)
    resume: bool = asked(FLAG, "Continue with what is in that folder.", False)
    plan: Path | None = asked(PATH, PLAN, None)

    def __post_init__(self) -> None:
        if self.thresholds is not None and self.sequential:  # refused at once, not after an attack that takes hours
            fixed_thresholds(self.thresholds)

    @property
    def thresholds(self) -> ThresholdRule | None:
        """How they are chosen; None: as each statistic does."""
        return None if self.rule is None else rule_of(self.rule, self.seed)

    @cached_property
    def kind(self) -> str:
        """What lies at ``source``: run, scores, lira or privacy-meter.

        Raises:
            ArtifactError: nothing does.
            ParameterError: something is said that this kind of source would ignore.
        """
        found = kind_of(self.source, self.format)
        said = {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}
        given: Mapping[str, Any] = {one.name: said.get(one.name) for one in fields(self)}
        if found == "run":
            leave_out({name: given[name] for name in _OF_RELEASE}, " for a run, whose ledger says what it released")
        else:
            leave_out({name: given[name] for name in _OF_ATTACK}, _SCORED)
        if found in ("scores", "privacy-meter"):
            leave_out({"attack": given["attack"]}, _SCORED)
        if found in ("run", "scores"):
            leave_out({"target": given["target"]}, " unless the source is a LiRA or Privacy Meter folder")
        if found == "run" and self.design is not Design.ONE_RUN:
            leave_out({"guesses": self.guesses}, _COINS)
        return found

    @cached_property
    def claimed(self) -> Mechanism | None:
        """The release that scores are tested against: of the run, of a file or of numbers; None if none is described.

        Raises:
            ParameterError: it is described twice, or by halves.
        """
        if self.kind == "run":
            with needing("auditing a run", "train"):
                import reticent.training.run  # noqa: F401
            from reticent.training import load_run

            return load_run(self.source).ledger.mechanism()
        said = {"noise_multiplier": self.noise_multiplier, "sample_rate": self.sample_rate, "steps": self.steps}
        if self.claim is not None:
            leave_out(said, ": the file of --claim says it")
            return mechanism_of(self.claim)
        if self.noise_multiplier is None:
            leave_out({**said, "dimension": self.dimension}, NO_RELEASE)
            return None
        if self.sample_rate is None and self.steps is None:
            return Gaussian(self.noise_multiplier, dimension=self.dimension or 1)
        if self.sample_rate is None or self.steps is None:
            missing, given = ("sample_rate", "--steps") if self.sample_rate is None else ("steps", "--sample-rate")
            raise ParameterError(missing, None, f"given together with {given}", shown=False)
        return DPSGD(self.noise_multiplier, self.sample_rate, self.steps, num_parameters=self.dimension)

    @cached_property
    def claims(self) -> Mapping[str, TradeOff]:
        """Curves to test, by name; the worst case comes with every attacker that is named.

        Raises:
            ParameterError: somebody attacks a release that is not described.
        """
        how = {"neighbouring": self.neighbouring, "method": self.method}
        found: dict[str, TradeOff] = {}
        if self.claimed is None:
            if self.against is not None:
                wanted = "given, or --claim, so that --against has a release"
                raise ParameterError("noise_multiplier", None, wanted, shown=False)
            leave_out(how, NO_RELEASE)
        else:
            for one in Assess.of(release=self.claimed, adversary=self.against, **how).answer():
                found[f"{one.adversary.name} ({one.neighbouring})"] = one.curve
        return found | {f"mu={mu!r}": GaussianTradeOff(mu) for mu in self.against_mu}

    def decides(self) -> dict[str, Any]:
        """What was asked; of a file with the claim its bytes, by their SHA-256."""
        file = {} if self.claim is None else {"claim": sha256_file(self.claim)}
        return {**super().decides(), **file, "confidence": self.confidence, "seed": self.seed}

    def scores(self, progress: Say | None = None, announce: Say | None = None, waits: Say | None = None) -> Scores:
        """What the attack scores, or what lies there.

        Args:
            progress: called with a few words about what is being worked on.
            announce: called with one line on what long work will cost.
            waits: called with one line on why nothing moves.

        Raises:
            ArtifactError, ParameterError, UnsupportedError: nothing of this kind can be audited.
        """
        _ = self.claims  # refused before an attack that takes hours
        if self.kind == "run":
            from reticent.attacks.base import AttackSettings, find_attack

            found, engine = find_attack(self.attack), engine_of(self.engine, self.address, self.workers)
            own = ("records", "models", "canaries", "timeout", "work", "resume", "seed")
            told = reporting(counted(progress, f"attack {self.attack} "), waits)
            how = {name: getattr(self, name) for name in own}
            scores = found.scores(self.source, AttackSettings(**how, engine=engine, announce=announce, progress=told))
        else:
            scores = read_scores(self.source, self.kind, self.attack, self.target, self.design)
        if self.design is not None and scores.design is not self.design:
            scores = Scores(scores.member, scores.non_member, scores.meta, self.design)
        if scores.design is not Design.ONE_RUN:
            leave_out({"guesses": self.guesses}, _COINS)
        return scores

    def judgement(self, scores: Scores, progress: Say | None = None) -> Audited:
        """What these scores say of the claims.

        Raises:
            ParameterError: there are more guesses than scores.
        """
        how: dict[str, Any] = {"delta": self.delta, "fprs": self.fpr, "rule": self.thresholds, "guesses": self.guesses}
        bar = counted(progress, "audit ")
        how |= {"confidence": self.confidence, "sequential": self.sequential}
        report = judge(scores, self.claims, **how, progress=bar)
        return Audited(report, self.claims, self.claimed, self.sealed()[0])

    def answer(self, progress: Say | None = None) -> Audited | Sealed:
        """Bound from below what the release gives away, and judge the claims made for it; or seal a plan.

        Raises:
            ArtifactError, ParameterError, UnsupportedError: as for ``scores`` and ``judgement``.
        """
        plan, new = self.sealed()
        return Sealed(plan) if plan is not None and new else self.judgement(self.scores(progress), progress)


@hinting
def audit(
    scores: Scores | ArrayLike,
    non_member_scores: ArrayLike | None = None,
    *,
    claim: Any = None,
    neighbouring: Neighbouring | str | None = None,
    delta: float = 1e-5,
    fprs: Sequence[float] = DEFAULT_FPRS,
    rule: ThresholdRule | None = None,
    guesses: Guesses | None = None,
    confidence: float = 0.95,
    sequential: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Audited:
    """What an attack achieved, and whether it refutes a claim.

    Args:
        scores: ``reticent.auditing.Scores``, or the scores of members; higher is more member-like.
        non_member_scores: the scores of non-members, unless ``scores`` has both.
        claim: what is claimed: a mechanism, or a file or ledger that says what was released (its worst case); a curve;
            or curves by name.
        neighbouring: between which data sets, for a mechanism.
        delta, fprs, rule, guesses, confidence, sequential, progress: as for ``reticent.auditing.report.audit``.

    Raises:
        ParameterError: scores are missing or not finite, or an option is wrong.

    Example:
        >>> import reticent as rt
        >>> found = rt.audit([3.0, 2.0, 2.5] * 40, [0.0, 1.0, 0.5] * 40, claim=rt.Gaussian(1.0))
        >>> found.notes()
        ['claim worst-case: inconsistent']
    """
    if not isinstance(scores, Scores):
        if non_member_scores is None:
            raise ParameterError("non_member_scores", None, "given with the scores of members", shown=False)
        scores = Scores(np.asarray(scores), np.asarray(non_member_scores))
    elif non_member_scores is not None:
        raise ParameterError("non_member_scores", "given", "left out: the scores hold both", shown=False)
    claims = _claims(claim, neighbouring)
    rates = NUMBERS.read("fprs", fprs)
    how: dict[str, Any] = {"delta": delta, "fprs": rates, "rule": rule, "guesses": guesses, "confidence": confidence}
    report = judge(scores, claims, **how, sequential=sequential, progress=progress)
    return Audited(report, claims)


def _claims(claim: Any, neighbouring: Neighbouring | str | None) -> dict[str, TradeOff]:
    if claim is None:
        return {}
    if isinstance(claim, TradeOff):
        return {"claim": claim}
    if isinstance(claim, Mapping):
        for curve in claim.values():
            if not isinstance(curve, TradeOff):
                raise ParameterError("claim", type(curve).__name__, "curves by name: a release is given by itself")
        return dict(claim)
    between = relation_of(neighbouring) or WorstCase.relation
    return {WorstCase.name: WorstCase().assess(mechanism_of(claim), between).curve}
