"""The certificate as one HTML file: no script, no external request, everything escaped."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent.certificate.build import public
from reticent.certificate.figures import curves_figure, svg
from reticent.certificate.numbers import Number
from reticent.certificate.schema import Certificate
from reticent.certificate.sentences import percent


def render_html(certificate: Certificate, *, include_private: bool = False) -> str:
    """The page; what depends on private data is left out unless ``include_private``.

    Args:
        certificate: what to show. All its text is escaped, whoever wrote it.
        include_private: show data-dependent assessments and training diagnostics, marked as such.
    """
    shown = certificate if include_private else public(certificate)
    environment = Environment(
        loader=PackageLoader("reticent.certificate", "templates"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["number"] = _number
    environment.filters["percent"] = lambda x: percent(float(x))
    template = environment.get_template("certificate.html.j2")
    figure = Markup(svg(curves_figure(shown.assessments)))  # noqa: S704 (matplotlib escapes its labels)
    hidden = len(certificate.assessments) - len(shown.assessments)
    return template.render(c=shown, figure=figure, facts=_facts(shown), include_private=include_private, hidden=hidden)


def _number(number: Number) -> str:
    """The claimed value; the enclosure follows where there is one and it is wider than the digits shown."""
    value = _shown(number.value)
    if number.lower is None and number.upper is None:
        return value if number.value is None else f"{value} (no enclosure is known)"
    low, high = _shown(number.lower), _shown(number.upper)
    return value if low == high == value else f"{value} [{low}, {high}]"


def _shown(x: float | None) -> str:
    return "no finite value" if x is None else f"{x:.4g}"


def _facts(certificate: Certificate) -> list[tuple[str, Any]]:
    """What was run, as labelled lines; the ledger's words where there is one."""
    names = {
        "kind": "mechanism",
        "noise_multiplier": "noise multiplier (noise over clip norm, on the sum)",
        "sample_rate": "sample rate",
        "steps": "noisy steps",
        "max_grad_norm": "clip norm",
        "num_parameters": "trained parameters",
        "batch_size": "expected batch size",
        "dataset_size": "training records",
        "sampler": "sampler",
        "releases": "releases",
        "dimension": "released coordinates",
    }
    facts = [(names.get(k, k), v) for k, v in certificate.mechanism.items() if v is not None]
    if certificate.ledger:
        ledger = certificate.ledger
        facts += [
            ("data set", f"{ledger['data']['name']} (SHA-256 {ledger['data']['content_hash'][:16]}…)"),
            ("source of randomness", ledger["randomness"]),
            ("versions", ", ".join(f"{k} {v}" for k, v in ledger["versions"].items())),
        ]
        if ledger["utility"]["test_accuracy"] is not None:
            facts.append(("accuracy on test records", f"{ledger['utility']['test_accuracy']:.1%}"))
    return facts
