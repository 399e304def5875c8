"""``assess``: each attacker against one release, and the worst case, as a table that plots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from reticent import _check
from reticent.adversaries import Adversary, Assessment, Method, assess_answerable
from reticent.adversaries import assess as assess_each
from reticent.adversaries.from_ledger import witness_of
from reticent.adversaries.witness import Witness
from reticent.errors import ParameterError
from reticent.keywords import hinting
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.pairs.neighbouring import relation_of
from reticent.proofs import conditions_by_whom
from reticent.risk.report import MEASURES, SPOKEN, Questions, RiskDocument
from reticent.text import by_whom, escaped, one_of
from reticent.verbs.names import Who, adversaries, asks_for_all, several
from reticent.verbs.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reticent.records.ledger import RunLedger

DEFAULT_FPR, DEFAULT_DELTA = 0.001, 1e-5


class Assessments(Table, Sequence[Assessment]):
    """Assessments of one release: a sequence, and a table of the numbers that people ask for.

    ``result["relaxed"]`` is the first assessment of that attacker; ``result[0]`` the first of all.

    Attributes:
        mechanism: what was released.
        assessments: in the order asked for; the worst case of each relation is among them.
        questions: where the curves are read.
        skipped: attackers that could not be answered, with the reason.

    ``more`` names measures that the table shows besides.
    """

    _leading, _claim = 2, 2

    def __init__(
        self,
        mechanism: Mechanism,
        assessments: Sequence[Assessment],
        questions: Questions,
        skipped: dict[str, str] | None = None,
        more: Sequence[str] = (),
    ) -> None:
        self.mechanism, self.questions = mechanism, questions
        self.assessments, self.skipped = tuple(assessments), dict(skipped or {})
        self._measures = ("advantage", "tpr", *more, "epsilon", "secret")

    @overload
    def __getitem__(self, index: int | str) -> Assessment: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Assessment, ...]: ...

    def __getitem__(self, index: int | str | slice) -> Assessment | tuple[Assessment, ...]:
        if not isinstance(index, str):
            return self.assessments[index]
        for assessment in self.assessments:
            if assessment.adversary.name == index:
                return assessment
        raise ParameterError("attacker", index, one_of(index, [a.adversary.name for a in self.assessments]))

    def __len__(self) -> int:
        return len(self.assessments)

    @cached_property
    def document(self) -> RiskDocument:
        """Every number with its enclosure, as ``reticent risk --json`` prints it."""
        from reticent.adversaries.report import risk_document

        return risk_document(self.mechanism, self.assessments, self.questions, self.skipped)

    def title(self) -> str:
        from reticent.mechanisms.short import in_short

        return in_short(self.mechanism)

    def columns(self) -> tuple[str, ...]:
        """Who attacks under which relation, how strong the claim is, and the numbers."""
        return ("attacker", "neighbouring", "claim", *(MEASURES[name].at(*at) for name, at in self._asked()))

    def rows(self) -> list[tuple[Cell, ...]]:
        """One row for each assessment; ``inf`` where no finite number is proven."""
        asked = [(MEASURES[name], at) for name, at in self._asked()]
        return [
            (
                one.adversary.label,
                one.neighbouring.value,
                one.claim.value,
                *(one.measure(m.read, *x).value if m.answers(one.adversary.every_test) else None for m, x in asked),
            )
            for one in self.assessments
        ]

    def _asked(self) -> list[tuple[str, tuple[float, ...]]]:
        return [(name, at) for name in self._measures for at in MEASURES[name].asked(self.questions)]

    def notes(self) -> list[str]:
        return [f"{name} left out: {reason}" for name, reason in self.skipped.items()]

    def conditions(self) -> list[str]:
        """What the numbers rest on, worst status first, and what else to know: one sentence each."""
        rests = conditions_by_whom((one.adversary.name, one.conditions) for one in self.assessments)
        return [*rests, *by_whom((one.adversary.name, one.notes) for one in self.assessments)]

    def _repr_html_(self) -> str:
        """The table, with the conditions folded away below."""
        lines = "".join(f"<li>{escaped(line)}</li>" for line in self.conditions())
        return f"{super()._repr_html_()}<details><summary>Conditions</summary><ul>{lines}</ul></details>"

    def to_json(self) -> str:
        """The document ``reticent.risk/2`` as strict JSON text; null is an infinite number."""
        return self.document.model_dump_json(by_alias=True, indent=2, context=SPOKEN)

    def plot(self, axes: Sequence[Axes] | Axes | None = None, panels: Sequence[str] | str | None = None) -> Any:
        """Draw the curves; see ``reticent.verbs.plots.plot``."""
        from reticent.verbs.plots import plot

        return plot(self.assessments, axes, panels)


@hinting
def assess(
    mechanism: Mechanism | RunLedger | Path | str | Any,
    adversary: Who | Sequence[Who] | None = None,
    *,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str = Method.EXACT,
    fpr: float | Sequence[float] = DEFAULT_FPR,
    delta: float | Sequence[float] = DEFAULT_DELTA,
    prior: float | Sequence[float] | None = None,
    secret_bits: float | Sequence[float] = (),
    guesses: float | Sequence[float] = 1,
) -> Assessments:
    """What each attacker can learn from ``mechanism``; the worst case is always among the answers.

    Args:
        mechanism: what was released, or anything with a method ``mechanism()``: a watched run, a ledger; or the path
            of a run, or of a file with a ledger, a certificate (which is not verified), a mechanism or a DpEvent.
        adversary: an adversary, its name, a list of both, or ``"all"``; None means the worst case alone.
            Of ``"all"``, those that cannot be answered are listed with the reason.
        neighbouring: between which data sets; None means each adversary's own ``relation``.
        method: how curves are evaluated.
        fpr: false positive rates, in [0, 1], at which the table shows the true positive rate.
        delta: deltas, in (0, 1], at which the table shows epsilon.
        prior: shares of the people that are in the data, independently of each other, in (0, 1): the table then shows
            how likely a flagged person is one of them, at each ``fpr``.
        secret_bits: min-entropies of secrets in one person's records, in bits, > 0: the table then shows how likely
            such a secret is guessed (docs/theory/secrets.md).
        guesses: in how many guesses.

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
    who = adversaries(adversary)
    how = _check.member(Method, method=method)
    release, witness = released(mechanism)
    between = relation_of(neighbouring)
    asked = Questions(
        fprs=several(fpr=fpr),
        deltas=several(delta=delta),
        priors=(0.5,) if prior is None else several(prior=prior),
        secret_bits=several(secret_bits=secret_bits),
        guesses=several(guesses=guesses),
    )
    found, skipped = answered(release, who, asks_for_all(adversary), between, how, witness)
    return Assessments(release, found, asked, skipped, () if prior is None else ("ppv",))


def answered(
    release: Mechanism,
    who: Sequence[Adversary],
    everybody: bool,
    between: Neighbouring | None,
    how: Method | None,
    witness: Witness | None = None,
) -> tuple[tuple[Assessment, ...], dict[str, str]]:
    """The assessments, and who was left out and why: that may be somebody only where ``everybody`` was asked for.

    Raises:
        UnsupportedError: nothing is proven for somebody who was named.
    """
    if everybody:
        return assess_answerable(release, who, between, how, witness)
    return assess_each(release, who, between, how, witness), {}


def released(what: Any) -> tuple[Mechanism, Witness | None]:
    """What was released, and the ledger that saw it, where there is one.

    Raises:
        ArtifactError, ParameterError: as for ``mechanism_of``.
    """
    if isinstance(what, (str, Path)):
        from reticent.verbs.documents import release_in

        found = release_in(what)
        return found.mechanism, found.ledger
    return mechanism_of(what), witness_of(what)


def mechanism_of(what: Any) -> Mechanism:
    """A mechanism, or that of a ledger, a run or a watched loop, or of a file that holds one.

    Raises:
        ArtifactError: it is a path, and no ledger, certificate, mechanism or DpEvent lies there.
        ParameterError: it is none of these.
    """
    if isinstance(what, Mechanism):
        return what
    if isinstance(what, (str, Path)):
        return released(what)[0]
    for known in (what, getattr(what, "ledger", None)):
        found = getattr(known, "mechanism", None)
        if callable(found):
            return mechanism_of(found())
    hint = "a mechanism such as rt.dpsgd(...), or a ledger of one"
    if isinstance(what, (list, tuple)):
        hint = "one release: rt.Ledger((a, b)) is several together, and rt.assess_each([a, b]) each by itself"
    raise ParameterError("mechanism", None if what is None else type(what).__name__, hint)
