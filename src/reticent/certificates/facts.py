"""What was run and what the issuer declares, as labelled lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reticent.certificates import words
from reticent.certificates.schema import Certificate
from reticent.certificates.sentences import parts_in
from reticent.facts import all_facts
from reticent.mechanisms import MECHANISMS
from reticent.registry import parameters_of

LABELS = {
    "kind": "mechanism",
    "noise_multiplier": "noise multiplier",
    "sample_rate": "sample rate",
    "steps": "noisy steps",
    "max_grad_norm": "clip norm",
    "num_parameters": "trained parameters",
    "batch_size": "expected records per step",
    "dataset_size": "training records",
    "sampler": "how records are drawn",
    "records_per_user": "most records per person",
    "copies": "copies of a record in the data",
    "releases": "releases",
    "dimension": "released coordinates",
}
"""Names of parameters in the words of the page."""


def facts(certificate: Certificate) -> list[tuple[str, str]]:
    """What was run, as labelled lines; the ledger's words where there is one."""
    parts = parts_in(certificate.mechanism)
    found = list(_selections(certificate.mechanism))
    for place, part in enumerate(parts, 1):
        before = f"{place}: " if len(parts) > 1 else ""
        for key, label in _labels(part):
            if part.get(key) is not None:
                named = label if key == "unit" else words.of_clients(certificate, label)
                found.append((before + named, _plain(part[key])))
    found += list(_cited(certificate))
    if certificate.ledger is not None:
        ledger = certificate.ledger
        if ledger.get("config") is None:
            return found + _seen(ledger)
        found.append(("data set", str(ledger["data"]["name"] or "not named")))
        found += _environment(ledger, "source of randomness", "versions")
    shares = {"accuracy on test records": accuracy(certificate)}
    shares["share of their largest class"] = _utility(certificate, "largest_class")
    return found + [(name, f"{share:.0%}") for name, share in shares.items() if share is not None]


def declarations(certificate: Certificate) -> list[tuple[str, str | None]]:
    """What the issuer says in words of their own, None where nothing is said: shown as theirs, never as ours."""
    said = certificate.declared
    return [("Subject", said.subject), ("Issuer", said.issuer), ("Purpose", said.purpose)]


def unsupported(certificate: Certificate) -> str:
    """What a reader must know of a document that holds no ledger."""
    cited = certificate.declared.releases
    if not cited:
        return "The mechanism is declared: no ledger of a run supports it."
    runs = "Several releases, and not all are of recorded runs" if None in cited else "Several recorded runs"
    return f"{runs}: ledgers are named and not shown, so check the certificate of each run."


def commitment(certificate: Certificate) -> str | None:
    """The salted commitment to the data, if the ledger has one."""
    data = (certificate.ledger or {}).get("data")
    found = data.get("commitment") if isinstance(data, dict) else None
    return None if found is None else str(found)


def accuracy(certificate: Certificate) -> float | None:
    """Accuracy on test records, if it may be shown."""
    return _utility(certificate, "test_accuracy")


def _utility(certificate: Certificate, name: str) -> float | None:
    utility = (certificate.ledger or {}).get("utility")
    found = utility.get(name) if isinstance(utility, dict) else None
    return None if found is None else float(found)


def records(certificate: Certificate) -> int | None:
    """How many training records the page prints, if it does."""
    found = {part["dataset_size"] for part in parts_in(certificate.mechanism) if part.get("dataset_size") is not None}
    return int(found.pop()) if len(found) == 1 else None


def _cited(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """The ledgers of several releases, as their own public certificates show them."""
    for place, cited in enumerate(certificate.declared.releases, 1):
        if cited is None:
            yield f"release {place}", "stated: no ledger of a run was read"
            continue
        warned = f"; warnings: {', '.join(cited.warnings)}" if cited.warnings else ""
        yield f"release {place}", f"declared to have the ledger with the public digest {cited.ledger}{warned}"


def _selections(mechanism: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How many runs each selection chose from; what follows is one of these runs."""
    for part in mechanism.get("parts", [mechanism]):
        if "runs" in part:
            law, mean = part["runs"]["kind"].replace("-", " "), _plain(float(part["runs"]["mean"]))
            yield "released", f"the best of several runs: {law}, {mean} on average"
            if part["base"].get("kind") == "one-of":
                weights = part["base"]["weights"]
                yield "settings", f"drawn from a list of {sum(weights)}; of {len(weights)} kinds, which follow"


def _labels(part: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What to call the facts of one mechanism: our words, or the help text of the parameter."""
    own = [(p.name, p.help.rstrip(".")) for p in parameters_of(MECHANISMS[part["kind"]]) if p.name not in LABELS]
    return [*LABELS.items(), *own]


def _seen(ledger: dict[str, Any]) -> list[tuple[str, str]]:
    """What was seen of a watched loop, as labelled lines."""
    sampler, clipping = ledger["sampler"], ledger["clipping"]
    norms = dict.fromkeys(_plain(x) for x in (clipping["smallest"], clipping["largest"]) if x is not None)
    return [
        ("batches", f"{sampler['drawn']} ({sampler['source']}: {sampler['name']})"),
        ("clipping", f"{clipping['kind']} ({clipping['source']}), norm {' to '.join(norms) or 'unknown'}"),
        *_stated(ledger.get("facts", {})),
        ("divisor of the noisy sum", "unknown" if ledger["divisor"] is None else _plain(ledger["divisor"])),
        *_environment(ledger, "optimizer", "source of randomness", "device", "versions"),
    ]


def _environment(ledger: dict[str, Any], *labels: str) -> list[tuple[str, str]]:
    """Where and with what it ran."""
    where = ledger["environment"]
    versions = where["versions"]
    said = {
        "optimizer": " around ".join(where["optimiser"]) or "unknown",
        "source of randomness": str(where["randomness"]),
        "device": str(where["device"]),
        "versions": ", ".join(f"{key} {versions[key]}" for key in sorted(versions)),
    }
    return [(label, said[label]) for label in labels]


def _stated(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What facts say beyond that they were found."""
    for key, value in found.items():
        if isinstance(value, dict) and key in all_facts():
            yield key.replace("-", " "), all_facts()[key].value(value).told


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
