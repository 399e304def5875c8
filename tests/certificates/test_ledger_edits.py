"""Whoever edits a document and seals it again is refused, or has written what follows from its own ledger."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from reticent.certificates.build import run_declaration
from reticent.certificates.document.derive import Inputs, derive
from reticent.certificates.document.schema import Certificate, Edition
from reticent.certificates.gate import check
from reticent.certificates.verify import Verification, verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ReticentError
from reticent.kernel.proofs import CONDITIONS
from reticent.kernel.risk.questions import Questions
from reticent.records import ledger as of_ledgers
from reticent.records.ledger import RunLedger, ledger_of
from reticent.records.publication import published
from reticent.samplers import Shuffled
from tests.certificates.conftest import in_stages, make_ledger
from tests.certificates.edits import (
    Document,
    document_of,
    edited,
    parsed,
    random_edit,
    read,
    resealed,
    sealed_again,
    some_edits,
)
from tests.certificates.ledgers import chain, poisson, shuffled
from tests.certificates.making import MOST, policy

LEDGERS: dict[str, Callable[[], RunLedger]] = {
    "run": make_ledger,
    "shuffled run": lambda: make_ledger(sampler=Shuffled()),
    "run in stages": in_stages,
    "public run": lambda: published(make_ledger()),
    "opacus": poisson,
    "public opacus": lambda: published(poisson()),
    "plain loop": shuffled,
    "accumulation": lambda: shuffled(segments=[{"noise_multiplier": 1.1, "steps": 9, "batches": 2, "passes": 3}]),
    "weighted": lambda: shuffled(
        sampler={"drawn": "weighted", "source": "seen", "name": "W", "batch_size": 10, "dataset_size": 60},
        segments=[{"noise_multiplier": 1.1, "steps": 18}],
    ),
    "chain": chain,
}
FEW = Questions(fprs=(0.01,), deltas=(1e-5,), epsilons=(1.0,), priors=(0.5,))
FOLLOWS = ("headline", "mechanism", "assessments", "warnings", "theorems", "conditions", "do_not_publish")
"""Parts of a document that follow from its ledger."""
EASY = policy(MOST, accept_conditions=[*CONDITIONS])


def derived(ledger: RunLedger, edition: Edition | None = None) -> Certificate:
    """The certificate of a ledger: what it says of the worst case."""
    asked = ((WorstCase(), WorstCase.relation),)
    edition = edition or (Edition.PUBLIC if ledger.diagnostics is None else Edition.COMPLETE)
    return derive(Inputs(run_declaration(ledger), ledger.mechanism(), asked, FEW, edition=edition, ledger=ledger))


@cache
def genuine(name: str) -> Document:
    return document_of(derived(LEDGERS[name]()))


def forged(honest: Document, choice: random.Random) -> Document:
    """Facts of the ledger are edited, or numbers and words, or facts together with some of what follows from them."""
    document, kind = copy.deepcopy(honest), choice.random()
    if kind < 0.2:
        part = choice.choice(FOLLOWS)
        return document | edited({part: honest[part]}, [random_edit({part: document.pop(part)}, choice)])
    document["ledger"] = edited(document["ledger"], some_edits(document["ledger"], choice))
    ledger = parsed(document["ledger"])
    if ledger is not None:
        document["ledger"] = sealed_again(ledger).model_dump(mode="json", by_alias=True)
        if kind > 0.8:
            followed(document, sealed_again(ledger), choice)
    return document


def followed(document: Document, ledger: RunLedger, choice: random.Random) -> None:
    """Some of the parts become those of the edited ledger, as far as it has a certificate."""
    try:
        other = document_of(derived(ledger, Edition(document["edition"])))
    except (ReticentError, ArithmeticError, ValueError):
        return
    for here, there in ((document, other), *zip(document["assessments"], other["assessments"], strict=False)):
        for part in here.keys() & there.keys() - {"ledger", "declared", "edition"}:
            if choice.random() < 0.5:
                here[part] = there[part]


def what_does_not_follow(document: Document) -> list[str] | None:
    """The parts of a document that are not those of its own ledger; None where it is refused."""
    try:
        certificate = resealed(document)
        outcome = verify(certificate)
    except ReticentError:
        return None
    judged = check(certificate, outcome, EASY, now=datetime.now(UTC))
    assert outcome.accepted or not all(one.passed for one in judged)
    if not outcome.accepted:
        return None
    anew = document_of(derived(ledger_of(document["ledger"], "ledger"), certificate.edition))
    return [part for part in FOLLOWS if document.get(part) != anew.get(part)]


def told(name: str, count: int, seed: int) -> Iterator[tuple[Document, list[str] | None]]:
    """Forged documents, and what became of them."""
    honest, choice = genuine(name), random.Random(f"{name} {seed}")  # noqa: S311
    for _ in range(count):
        document = forged(honest, choice)
        yield document, what_does_not_follow(document)


def unsealed(name: str, count: int, seed: int) -> Iterator[RunLedger]:
    """Edited ledgers that are accepted with the digest of the honest one."""
    document, choice = genuine(name)["ledger"], random.Random(f"{name} {seed}")  # noqa: S311
    honest = parsed(document)
    for _ in range(count):
        found = read(edited(document, some_edits(document, choice)), complete="diagnostics" in document, sealed=False)
        if found is not None and found != honest:
            yield found


@pytest.mark.parametrize("name", LEDGERS)
def test_what_is_edited_is_refused_or_follows_from_its_own_ledger(name: str) -> None:
    assert what_does_not_follow(genuine(name)) == []
    assert [wrong for _, wrong in told(name, 12, seed=1) if wrong] == []
    assert list(unsealed(name, 60, seed=1)) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", LEDGERS)
def test_so_are_ten_thousand_edits(name: str) -> None:
    assert [wrong for _, wrong in told(name, 1_000, seed=2) if wrong] == []
    assert list(unsealed(name, 10_000, seed=2)) == []


def test_the_edits_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every document is accepted, and where no digest is looked at, they get through."""

    def numbers() -> list[Any]:
        return [wrong for _, wrong in told("opacus", 40, seed=1) if wrong]

    assert not numbers()
    with monkeypatch.context() as planted:
        planted.setattr(Verification, "accepted", True)
        assert len(numbers()) > 3
    monkeypatch.setattr(of_ledgers, "digest_of", lambda ledger: ledger.digest)
    for name in ("run", "opacus"):
        assert len(list(unsealed(name, 100, seed=1))) > 5
