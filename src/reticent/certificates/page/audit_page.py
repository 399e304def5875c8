"""The report of an audit as one HTML file, with its pictures next to it; no script, no external request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from reticent.auditing import AuditReport, ConfidenceInterval, Design, Finding
from reticent.certificates.document.sentences import percent
from reticent.certificates.page.audit_power import POWER, Detectable, detectable
from reticent.certificates.page.figures import audit_figure, histogram_figure, on_the_page, png, svg
from reticent.certificates.page.page import template
from reticent.io.files import refuse_folder
from reticent.io.outputs import refuse_existing, refuse_foreign, write_together
from reticent.kernel.curves import TradeOff
from reticent.kernel.errors import ArtifactError
from reticent.kernel.text import by_whom, digits

_MARK = "<title>Privacy audit: "
"""How a page of ours begins."""
_FINDINGS = {
    Finding.CONSISTENT: "holds up",
    Finding.INCONSISTENT: "is refuted",
    Finding.NO_POWER: "was not tested",
}
_DESIGNS = {
    Design.INDEPENDENT: "independent scores: one training run, or one draw of the noise, for each",
    Design.ONE_RUN: "one run with canaries, each included by its own fair coin",
    Design.POPULATION: "records of one trained model: their scores may depend on each other",
}


@dataclass(frozen=True, slots=True)
class AuditFiles:
    """Where the report of an audit was written.

    Attributes:
        page: the report, HTML.
        svg: the picture of the curves.
        png: the same picture.
    """

    page: Path
    svg: Path
    png: Path


def audit_files(path: Path) -> AuditFiles:
    """Where the report goes: to be asked before an audit, which may take hours.

    Raises:
        ArtifactError: something lies there that is no older report of an audit, or there is no such folder.
    """
    refuse_folder(path)
    files = AuditFiles(path, path.with_suffix(".svg"), path.with_suffix(".png"))
    if path in (files.svg, files.png):
        raise ArtifactError(f"{path}: a page has its pictures next to it as .svg and .png: name it .html")
    refuse_foreign(path, _MARK)
    if not path.exists():
        for picture in (files.svg, files.png):
            refuse_existing(picture)
    return files


def write_audit_page(
    path: Path, report: AuditReport, claims: Mapping[str, TradeOff], *, rule: object = None, private: bool = False
) -> AuditFiles:
    """Write the page to ``path``, and the picture of the curves next to it as ``.svg`` and ``.png``.

    Args:
        rule: how thresholds were chosen, for the power.
        private: also show how the scores of the records are distributed; not for publication.

    Raises:
        ArtifactError: a file cannot be written, or something else lies there.
    """
    files = audit_files(path)
    figure = audit_figure(report, claims)
    drawn = svg(figure)
    page = render_audit(report, drawn, rule=rule, private=private)
    write_together({files.page: page.encode(), files.svg: drawn.encode(), files.png: png(figure)})
    return files


def render_audit(report: AuditReport, drawn: str, *, rule: object = None, private: bool = False) -> str:
    """The page alone, around the picture of the curves as SVG; the other arguments as for ``write_audit_page``."""
    histogram = Markup(on_the_page(svg(histogram_figure(report)))) if private else None  # noqa: S704 (numbers only)
    bounds = [(b.title, digits(b.value, up=False), digits(b.ceiling, up=True), b.rule) for b in report.bounds]
    rates = [("AUC", report.auc)] + [(f"TPR at FPR {fpr:g}", interval) for fpr, interval in report.tpr.items()]
    return template("audit.html.j2").render(
        report=report,
        headline=headline(report),
        power=power_sentence(detectable(report.scores, report.confidence, rule), report.scores.design),
        findings=_FINDINGS,
        figure=Markup(on_the_page(drawn)),  # noqa: S704 (matplotlib escapes its labels)
        histogram=histogram,
        bounds=bounds,
        rates=[(name, f"{i.value:.4g}", _ends(i), i.method) for name, i in rates],
        notes=_notes(report),
        design=_DESIGNS[report.scores.design],
        settings=sorted(report.scores.meta.items()),
    )


def headline(report: AuditReport) -> str:
    """The verdict in a sentence."""
    findings = [verdict.finding for verdict in report.verdicts.values()]
    if not findings:
        return f"The attack got {percent(report.auc.value)} of all pairs right (AUC); no claim was tested."
    refuted = findings.count(Finding.INCONSISTENT)
    if refuted:
        be = "is" if refuted == 1 else "are"
        what = "The claim is" if len(findings) == 1 else f"{refuted} of {len(findings)} claims {be}"
        return f"{what} refuted: the attack does better than {'it' if refuted == 1 else 'they'} would allow."
    if Finding.CONSISTENT in findings:
        return "The attack works, and no better than claimed. A better attack may still do more."
    return "This audit does not test the claim. Its silence is not safety."


def power_sentence(power: Detectable | None, design: Design) -> str:
    """How strong an attacker this audit could have found."""
    if power is not None:
        return (
            f"This audit could have found an attacker of advantage {digits(power.advantage, 2, up=True)} or more "
            "(a coin flip becomes "
            f"{percent(0.5 + 0.5 * power.advantage, up=True)}): {percent(POWER)} of audits of this size tell such an "
            "attacker from guessing. Weaker attackers may have gone unseen."
        )
    if design is Design.ONE_RUN:
        return "The power of an audit of one run is not computed here; reticent plan-audit sizes such an audit."
    return "With so few scores not even the strongest attacker would have been found."


def _ends(interval: ConfidenceInterval) -> str:
    return f"{digits(interval.lower, up=False)} to {digits(interval.upper, up=True)}"


def _notes(report: AuditReport) -> list[str]:
    found = by_whom((bound.title, bound.notes) for bound in report.bounds)
    found += [note for verdict in report.verdicts.values() for note in verdict.notes]
    return list(dict.fromkeys(found))
