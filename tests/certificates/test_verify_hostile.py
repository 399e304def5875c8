"""Whatever a stranger writes into a certificate is refused in a line, or declared and shown as text."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reticent.certificates.build import certify_run, public
from reticent.certificates.check import Checked
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.rounding import leaves
from reticent.certificates.document.schema import Certificate
from reticent.certificates.gate import check
from reticent.certificates.gate_report import junit
from reticent.certificates.page.page import first_difference, render_html
from reticent.certificates.verify import verify
from reticent.facts import PERSONS
from reticent.kernel.errors import ArtifactError, ReticentError
from reticent.kernel.proofs import CONDITIONS
from reticent.records import ledger as ledgers_of_reticent
from tests.certificates.forging import Document, document_of, resealed, set_at, small_certificate
from tests.certificates.ledgers import poisson

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d["questions"].update(fprs=[0.5] * 100_000), "fprs"),
        (lambda d: d.update(assessments=d["assessments"][:1] * 2000), "assessments"),
        (lambda d: d.update(mechanism={"kind": "ledger", "parts": [d["mechanism"]] * 5000}, ledger=None), "parts"),
        (lambda d: d["mechanism"].update(steps=10**15) or d.update(ledger=None), "steps"),
        (lambda d: d["declared"].update(subject="x" * 1_000_000), "subject"),
        (lambda d: d["questions"].update(priors=[]), "priors"),
        (lambda d: d["assessments"][0].update(adversary="omniscient"), "omniscient"),
        (lambda d: d["assessments"][1].update(adversary="relaxed", parameters={"directions": 1}), "what was measured"),
        (lambda d: d["mechanism"].update(noise_multiplier=-1) or d.update(ledger=None), "noise_multiplier"),
    ],
)
def test_what_is_too_large_or_unknown_is_refused_in_a_line(change, complaint: str) -> None:
    document = document_of(small_certificate())
    change(document)
    with pytest.raises(ArtifactError, match=complaint) as caught:
        verify(resealed(document))
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


HOSTILE = ("<script>alert(1)</script>", "\x00\x1b[2J\x07", "\u202egnp.exe", "\ud800", "W" * 1_000_000, "{{ 7*7 }}")
FREE = "declared.subject", "ledger.config.data.name"
LEAVES = *FREE, *(pytest.param(x, marks=pytest.mark.slow) for x in ("ledger.data.name", "headline", "reticent_version"))


@pytest.mark.parametrize("text", HOSTILE, ids=["tags", "control", "right to left", "surrogate", "megabyte", "template"])
@pytest.mark.parametrize("leaf", LEAVES)
def test_hostile_text_is_refused_in_a_line_or_declared(text: str, leaf: str) -> None:
    document = document_of(small_certificate())
    set_at(leaf, text)(document)
    try:
        changed = resealed(document)
        outcome = verify(changed)
    except ArtifactError as error:
        said = str(error)
    else:
        assert outcome.accepted == (leaf == "declared.subject"), "one line of visible letters may be declared"
        page = render_html(changed)
        before = page[: page.index("<template")]
        assert text not in before or text == HOSTILE[5]
        assert len(before) < 100_000
        said = ""
    assert "\n" not in said
    assert len(said) < 1000


def mutated(document: Document, choice: random.Random) -> Any:
    """A document with a few random wounds: values of other types, keys lost, moved, added, lists grown."""
    strange = [None, True, -1, 0, 1e308, -1e-308, 10**30, "", "NaN", "\x00\u202e<script>", [], {}, [[]], {"kind": "x"}]
    paths = list(leaves(document))
    for _ in range(choice.randint(1, 4)):
        path = choice.choice(paths)
        depth = choice.randint(1, len(path))
        target: Any = document
        try:
            for part in path[: depth - 1]:
                target = target[int(part)] if isinstance(target, list) else target[part]
            key: Any = int(path[depth - 1]) if isinstance(target, list) else path[depth - 1]
            match choice.randint(0, 4):
                case 0:
                    del target[key]
                case 1 if isinstance(target, dict):
                    target[choice.choice(["kind", "x", "__proto__", "parts"])] = choice.choice(strange)
                case 2 if isinstance(target[key], (int, float)) and not isinstance(target[key], bool):
                    target[key] *= choice.choice([-1, 0, 1e-300, 1e300, 1 + 1e-12, 10**20])
                case 3 if isinstance(target, list):
                    target.append(copy.deepcopy(choice.choice(target)))
                case _:
                    target[key] = choice.choice(strange)
        except (KeyError, IndexError, TypeError, ValueError):
            continue
    return document


EASY = Policy.model_validate(
    {
        "schema": "reticent.policy/1",
        "per": "record",
        "accept_conditions": list(CONDITIONS),
        "limits": [
            {"measure": "advantage", "at_most": 0.999},
            {"measure": "epsilon", "at": 1e-5, "at_most": 1e6, "adversary": "attribute", "claim": "any"},
        ],
    }
)


def check_random_mutations(count: int, seed: int) -> None:
    sources = [document_of(small_certificate()), document_of(public(small_certificate()))]
    for source in (0, 1):
        unrun = copy.deepcopy(sources[source])
        unrun["ledger"] = None
        sources.append(unrun)
    choice, page = random.Random(seed), render_html(small_certificate())  # noqa: S311
    for _ in range(count):
        changed = mutated(copy.deepcopy(choice.choice(sources)), choice)
        try:
            document = resealed(changed) if choice.random() < 0.5 else Certificate.parse(changed)
            outcome = verify(document)
        except ReticentError as error:
            said = str(error)
        else:  # whatever is wrong is a breach that every report can show
            said = ""
            breaches = check(document, outcome, EASY, now=datetime.now(UTC))
            assert outcome.accepted or not all(one.passed for one in breaches)
            same = document_of(document) == sources[0]  # as where a wound put in what stood there
            assert (first_difference(page, document) is None) == same
            assert junit(document, breaches, tuple(Checked(document, outcome, (), (), False).reservations()))
        assert "\n" not in said
        assert len(said) < 2000


def test_a_unit_that_was_not_counted_is_refused_and_no_crash() -> None:
    document = document_of(certify_run(poisson()))
    document["ledger"]["unit"] = "client"
    assert {"ledger.digest", "headline"} <= {one.leaf for one in verify(resealed(document)).differences}


@pytest.mark.parametrize("error", [OverflowError, TypeError, ValueError, KeyError, AttributeError])
def test_a_rule_that_facts_break_off_is_broken(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a length of 1e300 that is squared, a fingerprint that is none, a text where a number stands."""

    def breaks_off(_: object) -> Any:
        raise error

    fact = replace(PERSONS, watched=(breaks_off,))
    monkeypatch.setattr(ledgers_of_reticent, "all_facts", lambda: {fact.key: fact})
    assert [where for where, _ in poisson().contradictions()] == [fact.key]


def test_random_mutations_never_crash() -> None:
    check_random_mutations(80, seed=5)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_random_mutations_never_crash() -> None:
    check_random_mutations(10_000, seed=6)


CITED = {"ledger": "ab" * 32}


@pytest.mark.parametrize(
    ("kept", "releases", "complaint"),
    [
        ("plan", [CITED], "1 releases do not fit the mechanisms, which are 2"),
        ("plan", [CITED, {"ledger": "cd" * 32}, None], "3 releases do not fit"),
        ("plan", [None, None], "must name the ledger of a run"),
        ("plan", [CITED, CITED], "each ledger once"),
        ("run", [CITED, None], "must be empty where the document holds the ledger of one run"),
    ],
)
def test_a_plan_does_not_name_recorded_runs_that_it_cannot_have(kept: str, releases: list[Any], complaint: str) -> None:
    """Who names ledgers, which nobody can see, has no *plan* on the page: as many as there are, and each once."""
    document = document_of(small_certificate())
    if kept == "plan":
        part = {"kind": "gaussian", "noise_multiplier": 2, "releases": 1, "dimension": 1}
        document.update(mechanism={"kind": "ledger", "parts": [part, part]}, ledger=None)
    document["declared"]["releases"] = releases
    with pytest.raises(ArtifactError, match=complaint):
        verify(resealed(document))
