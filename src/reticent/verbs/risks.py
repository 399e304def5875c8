"""``assess``: each attacker against one release, and the worst case, as a table that plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from reticent.kernel.adversaries import Assessment, Method, assess_answerable
from reticent.kernel.adversaries import assess as assess_named
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.adversaries.side_by_side import Ask
from reticent.kernel.curves.enclosure import Interval
from reticent.kernel.errors import ParameterError
from reticent.kernel.keywords import hinting
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import MEASURES, Questions
from reticent.kernel.text import by_whom, escaped, one_of
from reticent.verbs.curves import Curves
from reticent.verbs.names import ATTACKERS, BETWEEN, HOW, METHOD, RELATION, USUAL, Attackers, Who
from reticent.verbs.releases import RELEASE, SELECTION, Release
from reticent.verbs.request import NUMBERS, Request, asked
from reticent.verbs.table import Cell

if TYPE_CHECKING:
    from reticent.adversaries.report import RiskDocument
    from reticent.pairs.runs import Runs
    from reticent.records.ledger import RunLedger

OF_SECRETS = (
    "A secret of so many bits (min-entropy) in one person's records: 13.29 for a random PIN of four digits, 14.83 for "
    "a date of birth in 80 years, 128 for a key."
)
OF_BASELINES = (
    "The best guess, without the model, of what somebody tries to recover about one person: 0.01 for one of 100 faces, "
    "0.5 for yes or no; a category by its share."
)
_PLACES = {"fpr": "fprs", "delta": "deltas", "epsilon": "epsilons", "prior": "priors"}
_ON_REQUEST = {"ppv": "prior", "delta": "epsilon"}
"""Measures that are in every document, and in a table where somebody asks, by what asks for them."""


@dataclass(frozen=True, kw_only=True)
class Asking(Request):
    """What may be asked about any release."""

    selection: Runs | None = asked(SELECTION, "The best of several runs of it is released: how many.", None)
    adversary: Attackers = asked(ATTACKERS, "Who attacks; default: the worst case.", USUAL)
    neighbouring: Neighbouring | None = asked(RELATION, BETWEEN, None)
    method: Method | None = asked(METHOD, HOW, None)
    fpr: tuple[float, ...] | None = asked(NUMBERS, "False positive rate at which the TPR is reported.", None)
    delta: tuple[float, ...] | None = asked(NUMBERS, "Delta at which epsilon is reported.", None)
    epsilon: tuple[float, ...] | None = asked(NUMBERS, "Epsilon at which delta is reported.", None)
    prior: tuple[float, ...] | None = asked(
        NUMBERS,
        "Prior at which right guesses, and the worth of an accusation (PPV) at each fpr, are reported.",
        None,
    )
    secret_bits: tuple[float, ...] = asked(NUMBERS, OF_SECRETS, ())
    guesses: tuple[float, ...] = asked(NUMBERS, "Guesses of that secret; default: 1.", (1,))
    baseline: tuple[float, ...] = asked(NUMBERS, OF_BASELINES, ())

    def __post_init__(self) -> None:
        _ = self.questions  # a number outside of its domain is refused

    @property
    def questions(self) -> Questions:
        """Where the curves are read: the usual places where none is said."""
        said = {many: at for one, many in _PLACES.items() if (at := getattr(self, one)) is not None}
        return Questions(**said, secret_bits=self.secret_bits, guesses=self.guesses, baselines=self.baseline)

    @property
    def asks_for(self) -> list[str]:
        """Measures that a table shows because somebody asked, by name."""
        return [name for name, by in _ON_REQUEST.items() if getattr(self, by) is not None]

    def shown(self) -> list[tuple[str, tuple[float, ...]]]:
        """What a table shows: measures by name, each with a place. Of the usual rates of false positives the first."""
        where = self.questions if self.fpr is not None else replace(self.questions, fprs=self.questions.fprs[:1])
        shown = ("advantage", "tpr", *self.asks_for, "epsilon", "secret", "recovered")
        return [(name, at) for name in shown for at in MEASURES[name].asked(where)]


@dataclass(frozen=True, kw_only=True)
class Assess(Asking):
    """What each attacker can learn from a release; the worst case is always among the answers."""

    verb = "assess"
    release: Release = asked(RELEASE, "What was released: a mechanism, an event or a ledger, or the path of its file.")

    @classmethod
    def about(cls, release: Release, asking: Asking) -> Assess:
        """The same question about this release."""
        return cls(release=release, **{one.name: getattr(asking, one.name) for one in fields(Asking)})

    @property
    def mechanism(self) -> Mechanism:
        """What was released."""
        return self.release.best_of(self.selection)

    def answer(self, progress: Callable[[str], None] | None = None) -> Assessments:
        """Each attacker against the release; it is there before a word about progress could be read.

        Raises:
            UnsupportedError: nothing is proven for somebody who was named.
        """
        if self.adversary.everybody:
            return self.answerable()
        asked = (self.mechanism, self.adversary.each, self.neighbouring, self.method, self.release.ledger)
        return Assessments(self, assess_named(*asked), {})

    def answerable(self, ask: Ask = assess_seen) -> Assessments:
        """The same, but whoever cannot be answered is left out, with the reason.

        Args:
            ask: answers for one attacker; who is asked again and again keeps what was said.
        """
        asked = (self.mechanism, self.adversary.each, self.neighbouring, self.method, self.release.ledger)
        return Assessments(self, *assess_answerable(*asked, ask=ask))


class Assessments(Curves[Assessment]):
    """Assessments of one release: a sequence, and a table of the numbers that people ask for.

    ``result["relaxed"]`` is the first assessment of that attacker; ``result[0]`` the first of all.

    Attributes:
        request: what was asked.
        assessments: in the order asked for; the worst case of each relation is among them.
        skipped: attackers that could not be answered, with the reason.
    """

    _leading, _claim = 2, 2

    def __init__(self, request: Assess, assessments: Sequence[Assessment], skipped: Mapping[str, str]) -> None:
        self.request, self.assessments, self.skipped = request, tuple(assessments), dict(skipped)

    @property
    def mechanism(self) -> Mechanism:
        """What was released."""
        return self.request.mechanism

    @property
    def questions(self) -> Questions:
        """Where the curves are read."""
        return self.request.questions

    def _each(self) -> Sequence[Assessment]:
        return self.assessments

    _curves = _each

    @overload
    def __getitem__(self, index: int | str) -> Assessment: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Assessment]: ...

    def __getitem__(self, index: int | str | slice) -> Assessment | Sequence[Assessment]:
        if not isinstance(index, str):
            return super().__getitem__(index)
        for assessment in self.assessments:
            if assessment.adversary.name == index:
                return assessment
        raise ParameterError("attacker", index, one_of(index, [a.adversary.name for a in self.assessments]))

    @cached_property
    def document(self) -> RiskDocument:
        """Every number with its enclosure, as ``reticent risk --json`` prints it."""
        from reticent.adversaries.report import risk_document

        warnings = self.request.release.warnings
        return risk_document(self.mechanism, self.assessments, self.questions, self.skipped, warnings)

    def title(self) -> str:
        from reticent.mechanisms.short import in_short

        return in_short(self.mechanism)

    def columns(self) -> tuple[str, ...]:
        """Who attacks under which relation, how strong the claim is, and the numbers."""
        return ("attacker", "neighbouring", "claim", *(MEASURES[name].at(*at) for name, at in self.request.shown()))

    def rows(self) -> list[tuple[Cell, ...]]:
        """One row for each assessment; ``inf`` where no finite number is proven."""
        names = [(one.adversary.label, one.neighbouring.value, one.claim.value) for one in self.assessments]
        values = ([None if number is None else number.value for number in row] for row in self._numbers())
        return [(*name, *row) for name, row in zip(names, values, strict=True)]

    def _numbers(self) -> list[list[Interval | None]]:
        asked = [(MEASURES[name], at) for name, at in self.request.shown()]
        return [
            [one.measure(m.read, *at) if m.answers(one.adversary.every_test) else None for m, at in asked]
            for one in self.assessments
        ]

    def notes(self) -> list[str]:
        """Who was left out and why, and the warnings of the ledger."""
        left_out = (f"{name} left out: {reason}" for name, reason in self.skipped.items())
        return [*left_out, *(f"! {key}: {text}" for key, text in self.request.release.warnings.items())]

    def conditions(self) -> list[str]:
        """What the numbers rest on, worst status first, and what else to know: one sentence each."""
        return [*super().conditions(), *by_whom((one.adversary.name, one.notes) for one in self.assessments)]

    def _repr_html_(self) -> str:
        """The table, with the conditions folded away below."""
        lines = "".join(f"<li>{escaped(line)}</li>" for line in self.conditions())
        return f"{super()._repr_html_()}<details><summary>Conditions</summary><ul>{lines}</ul></details>"

    def to_latex(self, *, interval: bool = False) -> str:
        """As of other tables; with ``interval``, each number has behind it both ends of what is proven about it."""
        return self._tabular(self._numbers() if interval else ())

    def theorems(self) -> list[str]:
        return [key for one in self.document.assessments for key in one.theorems]


@hinting
def assess(
    mechanism: Mechanism | RunLedger | Path | str | Any,
    adversary: Who | Sequence[Who] | None = None,
    *,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str | None = None,
    fpr: float | Sequence[float] | None = None,
    delta: float | Sequence[float] | None = None,
    epsilon: float | Sequence[float] | None = None,
    prior: float | Sequence[float] | None = None,
    secret_bits: float | Sequence[float] | None = None,
    guesses: float | Sequence[float] | None = None,
    baseline: float | Sequence[float] | None = None,
) -> Assessments:
    """What each attacker can learn from ``mechanism``; the worst case is always among the answers.

    Args:
        mechanism: what was released, or anything with a method ``mechanism()``: a watched run, a ledger; or the path
            of a run, or of a file with a ledger, a certificate (which is not verified), a mechanism or a DpEvent.
        adversary: an adversary, its name, a list of both, or ``"all"``; None means the worst case alone.
            Of ``"all"``, those that cannot be answered are listed with the reason.
        neighbouring: between which data sets; None means each adversary's own ``relation``.
        method: how curves are evaluated; None means each adversary's own.
        fpr: false positive rates, in [0, 1], at which the table shows the true positive rate; None means 0.001, and
            0.01 in the document as well.
        delta: deltas, in (0, 1], at which the table shows epsilon; None means 1e-5.
        epsilon: epsilons, >= 0, at which the table then shows delta.
        prior: shares of the people that are in the data, independently of each other, in (0, 1): the table then shows
            how likely a flagged person is one of them, at each ``fpr``.
        secret_bits: min-entropies of secrets in one person's records, in bits, > 0: the table then shows how likely
            such a secret is guessed (docs/theory/secrets.md).
        guesses: in how many guesses; None means 1.
        baseline: best guesses, without the model, of what somebody tries to recover about one person, in (0, 1): the
            table then shows how likely it is recovered (docs/theory/recovery.md).

    Raises:
        ParameterError: a name is unknown (the message has the nearest), or a number outside its domain.
        UnsupportedError: nothing is proven for one of the combinations.

    Example:
        >>> import reticent as rt
        >>> print(rt.assess(rt.Gaussian(2.0), "relaxed"))
        Gaussian: noise multiplier 2, 1 release
        attacker    neighbouring  claim  advantage  TPR@0.001  epsilon@1e-05
        relaxed       add-remove  bound    0.05806   0.002707          1.313
        worst-case    add-remove  bound     0.1975   0.004796          1.994
    """
    said = dict(locals())
    return Assess.of(release=Release.of(said.pop("mechanism")), **said).answer()
