"""Pieces of the page that are made of words and numbers: cards, tables, lists of what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import html

from reticent.adversaries.report import AssessmentRecord, Number
from reticent.adversaries.screen import ACCURACY, ROUGH
from reticent.calibration import Target
from reticent.certificates.document.declared_text import inert
from reticent.certificates.document.sentences import Protected, even_guess, headline, percent
from reticent.certificates.page.words import claim as in_words
from reticent.dashboard.catalogue import ATTACKERS, PARAMETERS
from reticent.dashboard.explaining import anchor
from reticent.dashboard.layout import swatch
from reticent.dashboard.pieces import table
from reticent.dashboard.readings import record, summary, told
from reticent.dashboard.requests import usual
from reticent.kernel.adversaries import Assessment
from reticent.kernel.errors import ParameterError, ReticentError
from reticent.kernel.proofs import Claim
from reticent.kernel.risk.questions import MEASURES
from reticent.kernel.text import digits
from reticent.verbs import Assessments

_LONGEST = 500
Place = tuple[str, tuple[str, ...]]
"""A measure by its name, and where it is read."""


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
    return "The target" if name == "goal" else name.replace("_", " ").capitalize()


def answer_line(assessments: Sequence[Assessment], records: Protected = None) -> str:
    """The answer of the worst case, one sentence for each question that somebody asks; an estimate says *about*."""
    return str(headline([summary(one) for one in assessments if one.adversary.strongest], records))


def number_line(assessments: Sequence[Assessment]) -> list[Any]:
    """What a guess becomes under the worst case: the number in large, beside that of a guess without the release."""
    found: list[Any] = [html.Span(["50%", html.Small("blind guessing")], className="blind")]
    for one in (one for one in assessments if one.adversary.strongest):
        strength, share = _guess(one)
        found.append(html.Span([share, html.Small(f"{strength}, {one.neighbouring.value}")]))
    return found


def _guess(assessment: Assessment) -> tuple[str, html.Strong]:
    """How often an even guess is right with the release."""
    bound = assessment.claim.proven
    return "at most" if bound else "about", html.Strong(str(percent(even_guess(summary(assessment)), up=bound)))


def accuracy(assessments: Sequence[Assessment], waiting: Sequence[str] = ()) -> str:
    """How exact the drawn curves are, the worst case first; nobody is called proven for those still ``waiting``."""
    worst = assessments[0]
    if not worst.claim.proven:
        others = any(a.adversary.hidden for a in assessments)
        within = f"{ACCURACY:g}" + (f", of the unknown direction {ROUGH:g}" if others else "")
        return f"Screen accuracy: an estimate within {within}. The proven curves follow."
    if waiting:
        return f"The worst case is there. Still computing: {', '.join(waiting)}."
    number = summary(worst).advantage
    if number.lower is None or number.upper is None:
        return "Certificate accuracy: proven. How far the truth lies below is not known."
    gap = "" if number.lower in (0.0, number.upper) else digits(number.upper - number.lower, 1, up=True)
    within = f", known within {gap}" if gap else ""
    most = digits(number.upper, up=True)
    return f"Certificate accuracy: proven; the advantage is at most {most}{within}. The table has every number."


def cards(
    found: Assessments,
    waiting: Sequence[str],
    verdicts: Mapping[tuple[str, str], Any],
    records: Protected = None,
    *,
    whole: bool = True,
) -> list[Any]:
    """One card for each attacker: who, from where to where, how strong the claim is, and the ``verdicts`` on it.

    Args:
        whole: every number is there: what somebody asked for is on the cards, too.
    """
    said = [verdicts.get((one.adversary.name, one.neighbouring.value), "") for one in found]
    more = [_asked(found, one) if whole else [] for one in found]
    made = [_card(*about, records) for about in zip(found, said, more, strict=True)]
    return made + [_waiting(name) for name in waiting]


def _asked(found: Assessments, one: Assessment) -> list[html.P]:
    """The numbers of an attacker that are not those of a page that nobody has set."""
    usually = {(name, at) for name, known in MEASURES.items() for at in known.asked(usual())}
    if found.questions == usual():
        return []
    numbers = columns(record(one, found.questions))
    asked = [(place, number) for place, number in numbers if (place[0], tuple(map(float, place[1]))) not in usually]
    return [html.P([f"{title_of(*place)}: ", *_number(number, place[0], one.claim)]) for place, number in asked]


def _card(assessment: Assessment, verdict: Any, more: Sequence[html.P], records: Protected) -> html.Article:
    strength, share = _guess(assessment)
    return html.Article(
        [
            _heading(assessment.adversary.name),
            html.P(["50% → ", strength, " ", share], className="guess"),
            verdict,
            html.P([claim_badge(assessment), html.Span(assessment.neighbouring.value, className="tag")]),
            *more,
            html.P(told(assessment, records), className="quiet"),
            html.P(html.A("Explain this number", href=f"#{anchor(assessment)}"), className="why"),
        ],
        className="card",
    )


def _heading(name: str) -> html.H2:
    """The name that tables, the command line and Python use, and what it means."""
    return html.H2([swatch(name), html.Span([name, html.Small(ATTACKERS[name].label)])])


def _waiting(name: str) -> html.Article:
    said = html.P("computing; the faint line is the one before", className="quiet")
    return html.Article([_heading(name), html.P("50% → …", className="guess"), said], className="card waiting")


def claim_badge(assessment: Assessment) -> html.Span:
    """The strength of a claim in people's words; what a conditional one needs is its title."""
    claim = assessment.claim
    needs = [str(one.says) for one in assessment.conditions if one.weakens]
    title = " ".join([f"claim: {claim.value}.", *(["Nobody checked:", *needs] if needs else [])])
    return html.Span(str(in_words(summary(assessment))), className=f"claim {claim.value}", title=title)


def number_table(found: Assessments, marks: Mapping[tuple[str, str, str], Any]) -> html.Table:
    """Every number of every attacker, as ``reticent risk`` prints them, with enclosures and ``marks`` below."""
    rows = [record(assessment, found.questions) for assessment in found]
    titles = ["attacker", *(title_of(*place) for place, _ in columns(rows[0]))]
    return table(titles, [(attacker(r.adversary, r.neighbouring, r.claim), _cells(r, marks)) for r in rows])


def _cells(r: AssessmentRecord, marks: Mapping[tuple[str, str, str], Any]) -> list[html.Td]:
    cells = []
    for (name, at), number in columns(r):
        mark = marks.get((r.adversary, r.neighbouring, title_of(name, at)), "")
        cells.append(html.Td([*_number(number, name, Claim(r.claim)), mark], className="n"))
    return cells


def columns(r: AssessmentRecord) -> list[tuple[Place, Number]]:
    """Every number of one attacker, with where it is read."""
    return [((name, at), one.of(r, *at)) for name, one in MEASURES.items() for at in one.stated(r)]


def title_of(measure: str, places: Sequence[float | str]) -> str:
    """What a number is called, with where it is read, as policies and targets spell it."""
    at = (f"{name} {float(place):g}" for (name, _), place in zip(MEASURES[measure].places, places, strict=True))
    return f"{measure}{' at ' if places else ''}{', '.join(at)}".replace("_", " ")


def attacker(name: str, *said: str) -> list[Any]:
    """The line of an attacker, the name, and what is said about it."""
    return [swatch(name), name, *([html.Small(", ".join(said))] if said else [])]


def _number(number: Number, measure: str, claim: Claim) -> list[Any]:
    """A number, a bound rounded to its safe side, and both ends of what is proven where they differ from it."""
    up = measure != "bayes_security" if claim.proven else None
    ends = {shown(end) for end in (number.lower, number.value, number.upper)}
    around = f"{shown(number.lower, up=False)} to {shown(number.upper, up=True)}"
    enclosed = None not in (number.lower, number.upper) and len(ends) > 1
    return [shown(number.value, up=up), *([html.Small(around)] if enclosed else [])]


def shown(value: float | None, *, up: bool | None = None) -> str:
    """Four digits, to the nearest or to one side (``digits``); null is infinite."""
    return "∞" if value is None else digits(value, up=up)


def left_out(skipped: Mapping[str, str]) -> list[Any]:
    """Who could not be answered, and why."""
    each = ((name, ATTACKERS[name].label, reason) for name, reason in skipped.items())
    return [html.P([html.Strong(name), f" ({label}) is left out: ", reason]) for name, label, reason in each]


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
