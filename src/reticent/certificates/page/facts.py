"""What was run and what the issuer declares, as labelled lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from reticent.certificates.document.schema import OWN_WORDS, Certificate
from reticent.certificates.document.sentences import parts_in
from reticent.certificates.page import words
from reticent.facts import known
from reticent.io.strict import portable
from reticent.kernel.mechanisms import MECHANISMS
from reticent.kernel.messages import Figure, Message, said
from reticent.kernel.registry import parameters_of

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

FIRST = (
    "kind", "noise_multiplier", "sample_rate", "steps", "max_grad_norm", "num_parameters", "batch_size",
    "dataset_size", "sampler", "records_per_user", "copies", "releases", "dimension",
)  # fmt: skip
"""Parameters that stand before those of one mechanism."""
Fact = tuple[Message, str | Figure | Message]
"""A label, and what stands there: a name, a number or a sentence."""


def facts(certificate: Certificate) -> list[tuple[str, Fact]]:
    """What was run, as labelled lines; the ledger's words where there is one.

    Each with the number of its release before it, where there are several.
    """
    parts = parts_in(certificate.mechanism)
    found = [("", one) for one in _selections(certificate.mechanism)]
    for place, part in enumerate(parts, 1):
        before = f"{place}: " if len(parts) > 1 else ""
        for key, label in _labels(part):
            if part.get(key) is not None:
                named = label if key == "unit" else words.of_clients(certificate, label)
                often = part.get("uses_per_epoch") or 1 if key in ("batch_size", "sample_rate") else 1
                value = Message(f"word.{part[key]}") if key == "unit" else _plain(part[key] * often)
                found.append((before, (named, value)))
    return found + [("", one) for one in (*_cited(certificate), *_of_the_ledger(certificate))]


def _of_the_ledger(certificate: Certificate) -> Iterator[Fact]:
    ledger = certificate.ledger
    if ledger is None:
        return
    if ledger.data is None:
        yield from _seen(ledger)
        return
    yield Message("fact.data-set"), ledger.data.name or Message("page.not-named")
    yield Message("fact.randomness"), _randomness(ledger)
    yield Message("fact.versions"), _versions(ledger)
    shares = {"fact.accuracy": ledger.utility.test_accuracy, "fact.largest-class": ledger.utility.largest_class}
    for key, share in shares.items():
        if share is not None:
            yield Message(key), Figure(f"{share:.0%}".removesuffix("%"), "%")


def declarations(certificate: Certificate) -> list[tuple[str, str | None]]:
    """What the issuer says in words of their own, None where nothing is said: shown as theirs, never as ours."""
    return [(name, getattr(certificate.declared, name)) for name in OWN_WORDS]


def unsupported(certificate: Certificate) -> str:
    """What a reader must know of a document that holds no ledger."""
    cited = certificate.declared.releases
    if not cited:
        return "The mechanism is declared: no ledger of a run supports it."
    runs = "Several releases, and not all are of recorded runs" if None in cited else "Several recorded runs"
    return f"{runs}: ledgers are named and not shown, so check the certificate of each run."


def commitment(certificate: Certificate) -> str | None:
    """The salted commitment to the data, if the ledger has one."""
    data = None if certificate.ledger is None else certificate.ledger.data
    return getattr(data, "commitment", None)


def _cited(certificate: Certificate) -> Iterator[Fact]:
    """The ledgers of several releases, as their own public certificates show them."""
    for place, cited in enumerate(certificate.declared.releases, 1):
        label = Message("fact.release", place=Figure(str(place)))
        if cited is None:
            yield label, Message("fact.stated")
        elif cited.warnings:
            yield label, Message("fact.cited-warned", digest=cited.ledger, names=", ".join(cited.warnings))
        else:
            yield label, Message("fact.cited", digest=cited.ledger)


def _selections(mechanism: Mapping[str, Any]) -> Iterator[Fact]:
    """How many runs each selection chose from; what follows is one of these runs."""
    for part in mechanism.get("parts", [mechanism]):
        if "runs" in part:
            law, mean = part["runs"]["kind"].replace("-", " "), _plain(float(part["runs"]["mean"]))
            yield Message("fact.released"), Message("fact.best-of", law=law, mean=mean)
            if "weights" in part["base"]:
                weights = part["base"]["weights"]
                counts = {"count": Figure(str(sum(weights))), "kinds": Figure(str(len(weights)))}
                yield Message("fact.settings"), Message("fact.drawn-from", **counts)


def _labels(part: Mapping[str, Any]) -> list[tuple[str, Message]]:
    """What to call the facts of one mechanism: words of the catalogues, or the help text of the parameter."""
    helped = {p.name: p.help.rstrip(".") for p in parameters_of(MECHANISMS[part["kind"]]) if p.name not in FIRST}
    known = [(name, Message(f"fact.{name}")) for name in (*FIRST, *helped)]
    return [(name, label if label.known else said(helped[name])) for name, label in known]


def _seen(ledger: RunLedger) -> Iterator[Fact]:
    """What was seen of a watched loop, as labelled lines."""
    sampler, clipping, where = ledger.sampler, ledger.clipping, ledger.environment
    norms = tuple(dict.fromkeys(_plain(portable(x)) for x in (clipping.smallest, clipping.largest) if x is not None))
    unknown = Message("unknown")
    seen: dict[str, str | Message] = {"source": Message(f"source.{sampler.source}"), "name": sampler.name}
    yield Message("fact.batches"), Message("fact.batches.drawn", how=Message(f"drawn.{sampler.drawn}"), **seen)
    source = Message(f"source.{clipping.source}")
    norm = Message("fact.norms", least=norms[0], most=norms[-1]) if len(norms) > 1 else (*norms, unknown)[0]
    yield Message("fact.clipping"), Message("fact.clipping.seen", kind=clipping.kind, source=source, norm=norm)
    for key, value in ledger.facts.items():
        yield from known(key).shows(value)
    yield Message("fact.divisor"), unknown if ledger.divisor is None else _plain(portable(ledger.divisor))
    yield Message("fact.optimizer"), ", ".join(where.optimiser) or unknown
    yield Message("fact.randomness"), _randomness(ledger)
    yield Message("fact.device"), where.device
    yield Message("fact.versions"), _versions(ledger)


def _randomness(ledger: RunLedger) -> Message:
    return Message(f"randomness.{ledger.environment.randomness.name.lower().replace('_', '-')}")


def _versions(ledger: RunLedger) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(ledger.environment.versions.items()))


def _plain(value: Any) -> str | Figure:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return Figure(f"{value:.6g}" if isinstance(value, float) else str(value))
    return str(value)
