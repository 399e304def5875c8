"""Pieces of the page that are made of words and numbers: cards, tables, lists of what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import html

from reticent.adversaries import Assessment
from reticent.adversaries.report import AssessmentRecord, Number
from reticent.adversaries.screen import ACCURACY, ROUGH
from reticent.calibration import Target
from reticent.certificates.declared_text import inert
from reticent.certificates.sentences import Protected, even_guess, headline, percent
from reticent.certificates.words import claim as in_words
from reticent.dashboard.catalogue import ATTACKERS, PARAMETERS, TARGETS
from reticent.dashboard.explaining import anchor
from reticent.dashboard.layout import swatch
from reticent.dashboard.pieces import table
from reticent.dashboard.readings import record, summary, told
from reticent.errors import ParameterError, ReticentError
from reticent.proofs import Claim
from reticent.risk.questions import MEASURES
from reticent.text import digits

_LONGEST = 500
_SECURITY = "Bayes security"  # of which more is better
_LABELS = {name: a.label for name, a in ATTACKERS.items()}


def one_line(error: BaseException) -> str:
    """An error as one line that names the field."""
    if isinstance(error, ParameterError):
        shown = inert(str(error.value), 80) or "nothing"
        return f"{_field(error.name)} must be {error.allowed}, got {shown}."
    if isinstance(error, ReticentError):
        return inert(" ".join(str(error).split()), _LONGEST)
    return f"These numbers are too extreme to compute with ({type(error).__name__})."


def _field(name: str) -> str:
    """A field as the page calls it."""
    if name in PARAMETERS:
        return PARAMETERS[name].label
    known = {"goal": "The target", **{target.replace("-", "_"): label for target, (label, *_) in TARGETS.items()}}
    return known.get(name, name.replace("_", " ").capitalize())


def answer_line(assessments: Sequence[Assessment], records: Protected = None) -> str:
    """The answer of the worst case, one sentence for each question that somebody asks; an estimate says *about*."""
    return str(headline([summary(one) for one in assessments if one.adversary.strongest], records))


def number_line(assessments: Sequence[Assessment]) -> list[Any]:
    """What a guess becomes under the worst case: the number in large, beside that of a guess without the release."""
    found: list[Any] = [html.Span(["50%", html.Small("blind guessing")], className="blind")]
    for one in (one for one in assessments if one.adversary.strongest):
        strength = "at most" if one.claim.proven else "about"
        share = str(percent(even_guess(summary(one)), up=one.claim.proven))
        found.append(html.Span([html.Strong(share), html.Small(f"{strength}, {one.neighbouring.value}")]))
    return found


def accuracy(assessments: Sequence[Assessment], waiting: Sequence[str] = ()) -> str:
    """How exact the drawn curves are, the worst case first; nobody is called proven for those still ``waiting``."""
    line = _accuracy(assessments)
    if not waiting:
        return line
    return f"The worst case is there. Still computing: {', '.join(waiting)}." if assessments[0].claim.proven else line


def _accuracy(assessments: Sequence[Assessment]) -> str:
    worst = assessments[0]
    if not worst.claim.proven:
        others = any(a.adversary.hidden for a in assessments)
        within = f"{ACCURACY:g}" + (f", of the unknown direction {ROUGH:g}" if others else "")
        return f"Screen accuracy: an estimate within {within}. The proven curves follow."
    number = summary(worst).advantage
    if number.lower is None or number.upper is None:
        return "Certificate accuracy: proven. How far the truth lies below is not known."
    most = digits(number.upper, up=True)
    within = (
        ""
        if number.lower in (0.0, number.upper)
        else f", known within {digits(number.upper - number.lower, 1, up=True)}"
    )
    return f"Certificate accuracy: proven; the advantage is at most {most}{within}. The table has every number."


def cards(
    assessments: Sequence[Assessment],
    waiting: Sequence[str],
    verdicts: Mapping[tuple[str, str], Any] | None = None,
    records: Protected = None,
) -> list[Any]:
    """One card for each attacker: who, from where to where, how strong the claim is, and the ``verdicts`` on it."""
    said = verdicts or {}
    found = [_card(a, said.get((a.adversary.name, a.neighbouring.value)), records) for a in assessments]
    return found + [_waiting(name) for name in waiting]


def _card(assessment: Assessment, verdict: Any, records: Protected) -> html.Article:
    name, read = assessment.adversary.name, summary(assessment)
    bound = assessment.claim.proven
    strength = "at most" if bound else "about"
    return html.Article(
        [
            _heading(name),
            html.P(
                ["50% → ", strength, " ", html.Strong(str(percent(even_guess(read), up=bound)))],
                className="guess",
            ),
            *([] if verdict is None else [verdict]),
            html.P([claim_badge(assessment), html.Span(assessment.neighbouring.value, className="tag")]),
            html.P(told(assessment, records), className="quiet"),
            html.P(html.A("Explain this number", href=f"#{anchor(assessment)}"), className="why"),
        ],
        className="card",
    )


def _heading(name: str) -> html.H2:
    """The name that tables, the command line and Python use, and what it means."""
    return html.H2([swatch(name), html.Span([name, html.Small(_LABELS[name])])])


def _waiting(name: str) -> html.Article:
    return html.Article(
        [
            _heading(name),
            html.P(["50% → ", html.Strong("…")], className="guess"),
            html.P("computing; the faint line is the one before", className="quiet"),
        ],
        className="card waiting",
    )


def claim_badge(assessment: Assessment) -> html.Span:
    """The strength of a claim in people's words; what a conditional one needs is its title."""
    claim = assessment.claim
    needs = [str(one.says) for one in assessment.conditions if one.weakens]
    title = " ".join([f"claim: {claim.value}.", *(["Nobody checked:", *needs] if needs else [])])
    return html.Span(str(in_words(summary(assessment))), className=f"claim {claim.value}", title=title)


def number_table(
    assessments: Sequence[Assessment], marks: Mapping[tuple[str, str, str], Any] | None = None
) -> html.Table:
    """Every number of every attacker, as ``reticent risk`` prints them, with enclosures and ``marks`` below."""
    rows = [record(assessment) for assessment in assessments]
    titles = ["attacker", *(title for title, _ in columns(rows[0]))]
    said = marks or {}
    return table(titles, [(attacker(r.adversary, r.neighbouring, r.claim), cells(r, said)) for r in rows])


def cells(r: AssessmentRecord, marks: Mapping[tuple[str, str, str], Any]) -> list[html.Td]:
    """Every number of one attacker, with the ``marks`` on it."""
    return [
        _cell(number, _way(title, Claim(r.claim)), marks.get((r.adversary, r.neighbouring, title)))
        for title, number in columns(r)
    ]


def columns(r: AssessmentRecord) -> list[tuple[str, Number]]:
    """Every number of one attacker, with what it is called."""
    every = ((name, one, at) for name, one in MEASURES.items() for at in one.stated(r))
    return [(title_of(name, at), one.of(r, *at)) for name, one, at in every]


def title_of(measure: str, places: Sequence[float | str]) -> str:
    """What a number is called, with where it is read."""
    return _TITLES[measure].format(*map(float, places))


_TITLES = {
    "advantage": "advantage",
    "bayes_security": _SECURITY,
    "success": "right at prior {:g}",
    "tpr": "TPR at FPR {:g}",
    "ppv": "PPV at prior {:g} and FPR {:g}",
    "epsilon": "epsilon at delta {:g}",
    "delta": "delta at epsilon {:g}",
    "secret": "secret of {:g} bits in {:g} guesses",
    "mu": "mu",
}


def _way(title: str, claim: Claim) -> bool | None:
    """Which way the digits of a number are rounded: a bound to its safe side, anything else to the nearest."""
    return title != _SECURITY if claim.proven else None


def attacker(name: str, *said: str) -> list[Any]:
    """The line of an attacker, the name, and what is said about it."""
    return [swatch(name), name, *([html.Small(", ".join(said))] if said else [])]


def _cell(number: Number, up: bool | None, mark: Any = None) -> html.Td:
    ends = (number.lower, number.upper)
    enclosed = None not in ends and ends != (number.value, number.value)
    same = shown(number.lower) == shown(number.value) == shown(number.upper)
    around = f"{shown(number.lower, up=False)} to {shown(number.upper, up=True)}"
    small = [] if not enclosed or same else [html.Small(around)]
    return html.Td([shown(number.value, up=up), *small, *([] if mark is None else [mark])], className="n")


def shown(value: float | None, *, up: bool | None = None) -> str:
    """Four digits, to the nearest or to one side (``digits``); null is infinite."""
    return "∞" if value is None else digits(value, up=up)


def left_out(skipped: Mapping[str, str]) -> list[Any]:
    """Who could not be answered, and why."""
    return [
        html.P([html.Strong(name), f" ({_LABELS[name]}) is left out: ", reason]) for name, reason in skipped.items()
    ]


def goal(target: Target) -> str:
    """The target in words, such as *advantage at most 0.1*."""
    limit = "at most" if target.grows_with_risk else "at least"
    return f"{risk_of(target)} {limit} {target.value:g}"


def risk_of(target: Target) -> str:
    """The number that a target limits, as tables call it."""
    return title_of(target.name.replace("-", "_"), [getattr(target, name) for name, _ in target.places])


def pairs(rows: Sequence[tuple[str, str]]) -> html.Dl:
    """Facts, name by name."""
    return html.Dl([html.Div([html.Dt(name), html.Dd(value)]) for name, value in rows], className="facts")
