"""The certificate as one HTML file: no script, no external request, everything escaped, the document inside.

The page is a pure function of the document that it embeds, so ``verify`` renders it again and compares.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from reticent.adversaries import ADVERSARIES
from reticent.certificates import curves, words
from reticent.certificates.schema import Certificate, CertifiedAssessment, Edition
from reticent.certificates.sentences import about, even_guess, found_at, parts_in, percent, persons, right_guess, wanted
from reticent.certificates.signature import false_signatures
from reticent.errors import ArtifactError
from reticent.io.strict import loads
from reticent.mechanisms import MECHANISMS, Neighbouring
from reticent.proofs import Claim
from reticent.records.watched_run import WATCH_SCHEMA
from reticent.registry import parameters_of
from reticent.risk.report import MEASURES, Number
from reticent.text import digits, printable

_OPEN, _CLOSE = '<template id="certificate">', "</template>"
FILE_NAMES = {Edition.COMPLETE: "certificate.json", Edition.PUBLIC: "certificate.public.json"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the answer: an attacker, and from where to where the guess goes.

    Attributes:
        record: the assessment; its attacker has the same name in every table, picture and note.
        title: that attacker in people's words.
        guesses: pairs (blind guess, with the model), in the order of the columns.
    """

    record: CertifiedAssessment
    title: str
    guesses: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NumberTable:
    """One question, one small table: rows of (attackers, cells).

    Attributes:
        title: the question.
        columns: headings of the cells.
        rows: attackers, and one cell for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def render_html(certificate: Certificate) -> str:
    """The page of exactly this document; give ``public(certificate)`` for a page to hand on.

    All text in the document is escaped and safe to show.
    """
    records = persons(certificate.mechanism)
    usual = certificate.assessments[0].neighbouring
    names = [record.label + _relation(record, usual) for record in certificate.assessments]
    return template("certificate.html.j2").render(
        c=certificate,
        private=bool(certificate.do_not_publish),
        groups=_groups(certificate),
        columns=_columns(certificate),
        left_out=[
            (n, kind.title, certificate.skipped[n]) for n, kind in ADVERSARIES.items() if n in certificate.skipped
        ],
        words=words,
        persons=records,
        about=lambda text: about(text, records),
        wanted=lambda record: wanted(record, records),
        not_covered=words.not_covered(certificate),
        people=words.people(certificate),
        conditions=words.conditions(certificate),
        drawn=any(one.key == "hidden-draws" for one in certificate.assessments[0].conditions),
        lines=curves.lines(certificate.assessments, names),
        curves=curves,
        tables=_tables(certificate),
        notes=[(words.of_clients(certificate, note), who) for note, who in _notes(certificate)],
        declarations=_declarations(certificate),
        facts=_facts(certificate),
        commitment=_commitment(certificate),
        accuracy=_accuracy(certificate) is not None,
        signers=[] if false_signatures(certificate) else [one.keyid for one in certificate.signatures],
        theorems=[(key, certificate.theorems[key]) for key in sorted(certificate.theorems)],
        file_name=FILE_NAMES[certificate.edition],
        file_hash=hashlib.sha256(certificate.to_json().encode()).hexdigest(),
        data=Markup(_OPEN + html.escape(_compact(certificate)) + _CLOSE),  # noqa: S704
    )


def template(name: str) -> Template:
    """A page of this package; whatever it is given is made inert and escaped."""
    environment = Environment(
        loader=PackageLoader("reticent.certificates", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_inert,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    return environment.get_template(name)


def is_page(text: str) -> bool:
    """Whether a file is a page and not a JSON document."""
    return text.lstrip()[:1] == "<"


def embedded(text: str, where: str) -> Certificate:
    """The document that a page holds as data.

    Raises:
        ArtifactError: there is none, or more than one.
    """
    parts = text.split(_OPEN)
    if len(parts) != 2 or _CLOSE not in parts[1]:
        raise ArtifactError(f"{where}: no certificate page: it embeds no document, or several")
    return Certificate.parse(loads(html.unescape(parts[1].split(_CLOSE)[0]), where), where)


def first_difference(page: str, certificate: Certificate) -> str | None:
    """Where a page differs from what its document renders to, in one line, or None where it does not."""
    again = render_html(certificate)
    if page == again:
        return None
    at = next((i for i, (a, b) in enumerate(zip(page, again, strict=False)) if a != b), min(len(page), len(again)))
    shown = [printable(text[max(0, at - 20) : at + 30]) for text in (page, again)]
    return f"line {page.count(chr(10), 0, at) + 1}: the page shows {shown[0]!r}, the document renders to {shown[1]!r}"


def _compact(certificate: Certificate) -> str:
    """The document as JSON with sorted keys and no spaces."""
    document = certificate.model_dump(mode="json", by_alias=True)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _inert(value: Any) -> Any:
    """Foreign text is made inert before it is escaped; markup of our own passes."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _columns(certificate: Certificate) -> list[tuple[str, str]]:
    """Heading and explanation of each column of the answer."""
    q = certificate.questions
    found = [("Coin flip", "both answers equally likely")]
    found += [(f"1 in {1 / p:.3g}", f"the secret holds with {percent(p)}") for p in q.priors if p < 0.5][:1]
    found += [(f"{percent(f)} false alarms", "share of insiders found") for f in q.fprs if f == 0.01]
    return found


def _relation(record: CertifiedAssessment, usual: str) -> str:
    """What follows the name of an attacker where the relation is not the usual one of the page."""
    return "" if record.neighbouring == usual else f" ({record.neighbouring})"


def _groups(certificate: Certificate) -> list[tuple[str, str, list[Row]]]:
    """The rows of the answer by relation: its question, its name, the rows."""
    records = persons(certificate.mechanism)
    found: dict[str, list[Row]] = {}
    for record in certificate.assessments:
        row = Row(record, ADVERSARIES[record.adversary].title, _guesses(certificate, record))
        found.setdefault(record.neighbouring, []).append(row)
    return [(words.relation(Neighbouring(name), records), name, rows) for name, rows in found.items()]


def _guesses(certificate: Certificate, record: CertifiedAssessment) -> tuple[tuple[str, str], ...]:
    q = certificate.questions
    claim = Claim(record.claim)
    strength = "at most" if claim.proven else "about" if claim is Claim.ESTIMATE else "measured"
    even = (percent(0.5), f"{strength} {percent(even_guess(record), up=claim.proven)}")
    rare = [right_guess(record, p) for p in q.priors if p < 0.5][:1]
    return (even, *rare, *(found_at(record, f) for f in q.fprs if f == 0.01))


_BY_PLACE: dict[str, tuple[str, Callable[[float], str]]] = {
    "success": ("Right guess, by prior", percent),
    "tpr": ("TPR, by FPR", "{:g}".format),
    "epsilon": ("ε, by δ", "{:g}".format),
    "delta": ("δ, by ε", "{:g}".format),
}


def _tables(certificate: Certificate) -> list[NumberTable]:
    records = certificate.assessments
    alone = [[MEASURES[name].of(record) for name in ("advantage", "bayes_security", "mu")] for record in records]
    found = [NumberTable("In one number", ("advantage", "Bayes security", "μ"), _merged(records, alone))]
    for name, (title, label) in _BY_PLACE.items():
        one = MEASURES[name]
        places = getattr(certificate.questions, one.asked)
        rows = [[one.of(record, place) for place in places] for record in records]
        found += [NumberTable(title, tuple(map(label, places)), _merged(records, rows))] if places else []
    return found


def _merged(
    records: Sequence[CertifiedAssessment], rows: Sequence[Sequence[Number]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """One row for all attackers of one relation who have the same numbers."""
    found: dict[tuple[str, str, tuple[str, ...]], list[CertifiedAssessment]] = {}
    for record, numbers in zip(records, rows, strict=True):
        cells = tuple(_number(number, _way(record, number)) for number in numbers)
        found.setdefault((record.neighbouring, record.claim, cells), []).append(record)
    usual = records[0].neighbouring
    return tuple(
        (", ".join(record.label for record in same) + _relation(same[0], usual), cells)
        for (_, _, cells), same in found.items()
    )


def _way(record: CertifiedAssessment, number: Number) -> bool | None:
    """Which way the digits of a bound are rounded: a security down, all else up."""
    return number is not record.bayes_security if Claim(record.claim).proven else None


def _number(number: Number, up: bool | None) -> str:
    """The claimed value; the enclosure follows where it is wider than a thousandth of the value."""
    value = _shown(number.value, up)
    if number.lower is None and number.upper is None:
        return value if number.value is None else f"{value} (no enclosure)"
    if number.lower is not None and number.upper is not None and number.upper - number.lower <= 1e-3 * number.upper:
        return value
    return f"{value} [{_shown(number.lower, False)}, {_shown(number.upper, True)}]"


def _shown(x: float | None, up: bool | None) -> str:
    return "no finite value" if x is None else digits(x, up=up)


def _notes(certificate: Certificate) -> list[tuple[str, str]]:
    """Each note once, with the attackers that it is about."""
    found: dict[str, list[str]] = {}
    for record in certificate.assessments:
        for note in record.notes:
            names = found.setdefault(note, [])
            if record.adversary not in names:
                names.append(record.adversary)
    everybody = {record.adversary for record in certificate.assessments}
    return [(note, "all attackers" if set(names) == everybody else ", ".join(names)) for note, names in found.items()]


_FACTS = {
    "kind": "mechanism",
    "noise_multiplier": "noise multiplier (noise over clip norm, on the sum)",
    "sample_rate": "sample rate",
    "steps": "noisy steps",
    "max_grad_norm": "clip norm",
    "num_parameters": "trained parameters",
    "batch_size": "expected records per step",
    "dataset_size": "training records",
    "sampler": "how records were drawn",
    "releases": "releases",
    "dimension": "released coordinates",
}


def _facts(certificate: Certificate) -> list[tuple[str, str]]:
    """What was run, as labelled lines; the ledger's words where there is one."""
    parts = parts_in(certificate.mechanism)
    found = list(_selections(certificate.mechanism))
    for place, part in enumerate(parts, 1):
        before = f"{place}: " if len(parts) > 1 else ""
        for key, label in _labels(part):
            if part.get(key) is not None:
                found.append((before + words.of_clients(certificate, label), _plain(part[key])))
    if certificate.ledger is not None:
        ledger = certificate.ledger
        if ledger.get("schema") == WATCH_SCHEMA:
            return found + _seen(ledger)
        found.append(("data set", str(ledger["data"]["name"] or "not named")))
        found.append(("source of randomness", str(ledger["randomness"])))
        found.append(("versions", ", ".join(f"{key} {ledger['versions'][key]}" for key in sorted(ledger["versions"]))))
    accuracy = _accuracy(certificate)
    return found if accuracy is None else [*found, ("accuracy on test records", f"{accuracy:.0%}")]


def _selections(mechanism: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How many runs each selection chose from; what follows is one of these runs."""
    for part in mechanism.get("parts", [mechanism]):
        if "runs" in part:
            law, mean = part["runs"]["kind"].replace("-", " "), _plain(float(part["runs"]["mean"]))
            yield "released", f"the best of several runs: {law}, {mean} on average"


def _declarations(certificate: Certificate) -> list[tuple[str, str]]:
    """What the issuer says in words of their own: shown as theirs, never as ours."""
    said = certificate.declared
    known = (("subject", said.subject), ("issuer", said.issuer), ("purpose", said.purpose))
    return [(name, text) for name, text in known if text is not None]


def _commitment(certificate: Certificate) -> str | None:
    data = (certificate.ledger or {}).get("data")
    found = data.get("commitment") if isinstance(data, dict) else None
    return None if found is None else str(found)


def _accuracy(certificate: Certificate) -> float | None:
    utility = (certificate.ledger or {}).get("utility")
    found = utility.get("test_accuracy") if isinstance(utility, dict) else None
    return None if found is None else float(found)


def _labels(part: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What to call the facts of one mechanism: our words, or the help text of the parameter."""
    own = [(p.name, p.help.rstrip(".")) for p in parameters_of(MECHANISMS[part["kind"]]) if p.name not in _FACTS]
    return [*_FACTS.items(), *own]


def _seen(ledger: dict[str, Any]) -> list[tuple[str, str]]:
    """What was seen of a watched loop, as labelled lines."""
    sampler, clipping = ledger["sampler"], ledger["clipping"]
    norms = dict.fromkeys(_plain(x) for x in (clipping["smallest"], clipping["largest"]) if x is not None)
    return [
        ("batches", f"{sampler['drawn']} ({sampler['source']}: {sampler['name']})"),
        ("clipping", f"{clipping['kind']} ({clipping['source']}), norm {' to '.join(norms) or 'unknown'}"),
        *([] if ledger.get("planned") is None else [("planned steps", _plan(ledger["planned"]))]),
        ("divisor of the noisy sum", "unknown" if ledger["divisor"] is None else _plain(ledger["divisor"])),
        ("optimizer", " around ".join(ledger["optimiser"]) or "unknown"),
        ("source of randomness", str(ledger["randomness"])),
        ("device", str(ledger["device"])),
        ("versions", ", ".join(f"{key} {ledger['versions'][key]}" for key in sorted(ledger["versions"]))),
    ]


def _plan(planned: dict[str, Any]) -> str:
    stop = planned.get("stop_at")
    return f"at most {planned['steps']}" + ("" if stop is None else f", where the watch stops at {stop}")


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
