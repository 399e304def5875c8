"""Nobody can forge a certificate: whatever is written into one, sealed again by the forger, is refused or declared."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent.adversaries import Attribute, MembershipGame, Mixed, Relaxed
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.certificates.build import certify_run, public
from reticent.certificates.check import Checked, check
from reticent.certificates.document.derive import PRIVATE, derive
from reticent.certificates.document.inputs import inputs_of
from reticent.certificates.document.rounding import leaves, settled
from reticent.certificates.document.schema import Certificate, content_hash
from reticent.certificates.gate import check as gate
from reticent.certificates.gate_report import junit
from reticent.certificates.page.page import first_difference, render_html
from reticent.certificates.verify import State, verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, ParameterError, ReticentError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.messages import said, to_json
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS
from reticent.mechanisms import Laplace
from tests.certificates.edits import (
    GONE,
    Document,
    Edit,
    Edits,
    document_of,
    edited,
    forged,
    other_value,
    refused,
    resealed,
)
from tests.certificates.ledgers import poisson, shuffled
from tests.certificates.making import MOST, of, policy, small_certificate
from tests.fuzz.hostile import damaged


def text(english: str) -> Document:
    return to_json(said(english))


def first(**changes: Any) -> Callable[[list[Document]], list[Document]]:
    return lambda listed: [listed[0] | changes, *listed[1:]]


def game() -> Certificate:
    """Of an attacker who cannot be answered, for a reason of its own."""
    return of(DPSGD(3.0, 1.0, 10), WorstCase(), MembershipGame())


THEOREM = "DONG2022:Theorem 3.2"
FALSE = text("A coin flip becomes at most 51.8%, against any attacker.")
OTHER_MODEL = {"config.divisor": 100.0, "config.sample_rate": 0.25, "config.batch_size": None}
IN_PASSES = {"drawn": "shuffled", "name": "shuffled", "batches_per_epoch": 4, "times_per_epoch": 1}
FORGERIES: dict[str, Edits] = {
    "sentence": {"assessments.0.sentence": text("An attacker can raise a 50% guess to at most 51.8%.")},
    "headline": {"headline": FALSE},
    "headline without a key": {"headline": str(FALSE)},
    "number of the headline": {"headline.values.says.0.values.share.number": "50.1"},
    "unit of the headline": {"headline.values.says.0.values.share.unit": GONE},
    "about somebody else": {"headline.values.whom": "client"},
    "what a condition says": {"conditions.clipped.says": text("Nothing moves.")},
    "what a warning says": {"warnings.0.text": text("All is well.")},
    "every attacker but the relaxed one deleted": {
        "assessments": lambda listed: [one for one in listed if one["adversary"] == "relaxed"]
    },
    "one attacker deleted": {"assessments.3": GONE},
    "worst case under replacement deleted": {"assessments.5": GONE},
    "warnings removed": {"warnings": []},
    "what a warning follows from removed too": {
        "warnings": [],
        **{f"ledger.{path}": value for path, value in OTHER_MODEL.items()},
    },
    "curve replaced": {"assessments": lambda listed: first(curve=listed[1]["curve"])(listed)},
    "conditions set to none": {"theorems": lambda known: known | {THEOREM: known[THEOREM] | {"conditions": "none"}}},
    "bound relabelled as estimate": {"assessments.0.claim": "estimate"},
    "ledger shuffled beside a Poisson mechanism": {
        "ledger.sampler": lambda sampler: sampler | IN_PASSES,
        "ledger.config.sampler": "shuffled",
    },
    "do_not_publish skips the check": {
        "assessments.0.do_not_publish": True,
        "assessments.0.advantage.value": 0.01,
        "do_not_publish": lambda listed: ["assessments[0]", *listed],
    },
    "number alone": {"assessments.0.advantage.value": 0.01},
    "order": {"assessments": lambda listed: listed[::-1]},
    "note added": {"assessments.0.notes": [text("Audited by everybody.")]},
    "reason for leaving out invented": {"assessments.3": GONE, "skipped.membership": text("it is safe")},
    "public by name only": {"edition": "public"},
    "do_not_publish emptied": {"do_not_publish": []},
    "more noise": {"mechanism.noise_multiplier": 30},
    "more noise in mechanism and ledger": {
        "mechanism.noise_multiplier": 30,
        "ledger.segments.0.noise_multiplier": 30,
    },
    "asked for other noise than what ran": {"ledger.config.noise_multiplier": 30},
    "an older version claimed": {"reticent_version": "0.0.1"},
    "key repeated by another adversary": {"assessments": lambda listed: [*listed, listed[0]]},
    "question added": {"questions.priors": lambda asked: [*asked, 0.3]},
    "attribute parameter": {"assessments.6.parameters.gradient_change.squared_change": 0.1},
}
LONG = {"more noise in mechanism and ledger", "ledger shuffled beside a Poisson mechanism"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in FORGERIES]
)
def test_a_forgery_is_refused(certificate: Certificate, name: str) -> None:
    document = document_of(certificate)
    changed = forged(document, FORGERIES[name])
    assert changed != document
    assert refused(changed)


@pytest.mark.parametrize("name", ["relaxed", "membership", "membership-game", "attribute"])
@pytest.mark.parametrize("reason", [said("it was answered elsewhere"), said(""), PRIVATE], ids=str)
def test_an_attacker_is_left_out_for_a_reason_that_can_be_true(name: str, reason: Any) -> None:
    document = document_of(of(Gaussian(2.0)))
    assert name in document["skipped"]
    assert refused(forged(document, {f"skipped.{name}": to_json(reason)}))


def test_a_reason_is_that_of_this_attacker_and_this_release() -> None:
    document = document_of(game())
    assert not refused(document)
    assert refused(forged(document, {"skipped.relaxed": document["skipped"]["membership-game"]}))


def test_leaving_an_attacker_out_is_said(certificate: Certificate) -> None:
    document = document_of(certificate)
    kept = [one for one in document["assessments"] if one["adversary"] != "membership"]
    cited = {key for one in kept for key in one["theorems"]}
    edits = {
        "assessments": kept,
        "skipped": {"membership": {"key": "refused.not-asked"}},
        "do_not_publish.0": "assessments[5]",
        "theorems": lambda known: {key: known[key] for key in known if key in cited},
    }
    assert verify(resealed(forged(document, edits))).accepted


def test_yes_and_one_are_two_values() -> None:
    document = document_of(certify_run(shuffled(records_per_user=None)))
    assert not refused(document)
    assert document["ledger"]["sampler"]["drop_last"] is False
    assert refused(forged(document, {"ledger.sampler.drop_last": 0}))
    assert refused(forged(document_of(of(Gaussian(2.0))), {"mechanism.releases": True}))


def test_no_public_document_holds_what_rests_on_private_data(certificate: Certificate) -> None:
    """A forger puts the assessment of the complete document into the public one, and derives the rest."""
    (private,) = [one for one in document_of(certificate)["assessments"] if one["do_not_publish"]]
    edits = {"assessments": lambda listed: [*listed, private], f"skipped.{private['adversary']}": GONE}
    changed = resealed(forged(document_of(public(certificate)), edits))
    assert private["adversary"] not in {one.adversary for one in derive(inputs_of(changed)).assessments}
    assert not verify(changed).accepted


def test_a_measurement_that_is_called_public_is_named() -> None:
    law = DirectionLaw(0.8 * np.eye(8) + 0.2, public=True)  # whatever somebody writes down
    stated = of(DPSGD(3.0, 0.2, 8), Relaxed(directions=law), Relaxed(), WorstCase())
    outcome = verify(public(stated))
    assert outcome.accepted
    assert (outcome.private, outcome.measured) == ((), ("relaxed (add-remove)",))
    told = [one for one in check(stated).reservations() if "measurements of public records" in one]
    assert [one.endswith("nobody derived: relaxed (add-remove).") for one in told] == [True]


def test_an_honest_document_is_accepted_in_both_editions(certificate: Certificate) -> None:
    complete, handed_on = verify(certificate), verify(public(certificate))
    assert complete.accepted
    assert (complete.differences, complete.private, complete.assessments) == ((), ("attribute (replace)",), 7)
    assert handed_on.accepted
    assert handed_on.private == ()
    assert "private data" in str(public(certificate).skipped["attribute"])
    assert complete.declared["declared.issuer"] == "A clinic"
    assert complete.declared["declared.weights_sha256"] == "cd" * 32
    assert "ledger.utility.test_accuracy" in complete.declared
    assert "mechanism.noise_multiplier" in verify(of(Gaussian(2.0))).declared


def test_a_content_hash_that_is_not_that_of_the_document_is_refused(certificate: Certificate) -> None:
    """Nothing else differs, and no signature hides it: the hash alone must be seen."""
    document = public(certificate)
    for other in ("0" * 64, document.content_sha256[::-1], ""):
        outcome = verify(document.model_copy(update={"content_sha256": other}))
        assert [one.leaf for one in outcome.differences if outcome.refuses(one)] == ["content_sha256"]


@pytest.mark.parametrize("pages", [{"en": "ab" * 32}, {"xx": "ab" * 32}])
def test_pages_that_were_not_made_from_a_document_are_refused(certificate: Certificate, pages: dict[str, str]) -> None:
    shown = public(certificate)
    changed = shown.model_copy(update={"pages": shown.pages | pages})
    changed = changed.model_copy(update={"content_sha256": content_hash(changed)})
    assert [one.leaf for one in verify(changed).differences] == [f"pages.{code}" for code in pages]


@pytest.mark.parametrize(
    ("mechanism", "relation"),
    [
        (Laplace(1.5), Neighbouring.REPLACE),
        (Ledger((Gaussian(2.0), Gaussian(3.0))), Neighbouring.ADD_REMOVE),
        (Gaussian(0.0), Neighbouring.ADD_REMOVE),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_what_certify_writes_is_accepted(mechanism: Any, relation: Neighbouring) -> None:
    stated = of(mechanism, WorstCase(), Relaxed(), Mixed(0.25), Mixed(0.75), Attribute(0.5), neighbouring=relation)
    assert verify(Certificate.parse(document_of(stated))).differences == ()
    shares = [one.parameters.get("relaxed_probability") for one in stated.assessments if one.adversary == "mixed"]
    assert shares in ([0.25, 0.75], [])


# What the issuer or the run declares: nobody can derive it, so a change is listed and breaks the signature.
DECLARED_LEAVES = (
    "declared.",
    "content_sha256",
    "signature",
    "ledger.created",
    "ledger.config.",
    "ledger.data.",
    "ledger.parameters.",
    "ledger.environment.optimiser.",
    "ledger.environment.device",
    "ledger.divisor",
    "ledger.environment.seeds.initialisation",
    "ledger.environment.seeds.split",
    "ledger.utility.",
    "ledger.diagnostics.",
    "ledger.environment.versions.",
    "assessments.6.parameters.gradient_change.",
)


def refused_changes(certificate: Certificate, each: int, share: float = 1.0) -> int:
    """How many changes of leaves were tried, so many of each; all must be refused."""
    document, choice, tried = document_of(certificate), random.Random(1), 0  # noqa: S311
    for path, value in leaves(document).items():
        if not ".".join(path).startswith(DECLARED_LEAVES) and choice.random() < share:
            for _ in range(each):
                changed = edited(document, [Edit(path, other_value(value, choice))])
                tried += changed != document
                assert changed == document or refused(changed), path
    return tried


def test_no_derived_leaf_can_be_changed() -> None:
    assert refused_changes(small_certificate(), 1, share=0.012) > 5


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_derived_leaf_can_be_changed_in_any_way(certificate: Certificate) -> None:
    assert refused_changes(small_certificate(), 8) > 3_000
    assert refused_changes(certificate, 1) > 2_000
    assert refused_changes(public(certificate), 1) > 1_500


def nudged(factor: float) -> Certificate:
    other = {"assessments.0.advantage.value": lambda x: settled(("advantage", "value"), x * factor)}
    return resealed(forged(document_of(small_certificate()), other))


def test_rounding_of_another_machine_needs_a_named_tolerance() -> None:
    certificate = nudged(1.0 - 7e-6)
    strict = verify(certificate)
    assert not strict.accepted
    assert [d.state for d in strict.differences] == [State.ROUNDED]
    assert verify(certificate, tolerance=1e-5).accepted
    assert not verify(certificate, tolerance=1e-6).accepted
    assert not verify(nudged(1.0 - 2e-5), tolerance=1e-5).accepted
    with pytest.raises(ParameterError, match="tolerance"):
        verify(certificate, tolerance=0.5)


PART = {"kind": "gaussian", "noise_multiplier": 2, "releases": 1, "dimension": 1}
REFUSED: dict[str, tuple[Edits, str]] = {
    "another version": ({"reticent_version": "0.0.9"}, "does not know: check it with that one"),
    "many questions": ({"questions.fprs": [0.5] * 100_000}, "fprs"),
    "many attackers": ({"assessments": lambda listed: listed[:1] * 2000}, "assessments"),
    "many parts": ({"mechanism": {"kind": "ledger", "parts": [PART] * 5000}, "ledger": None}, "parts"),
    "many steps": ({"mechanism.steps": 10**15, "ledger": None}, "steps"),
    "a long subject": ({"declared.subject": "x" * 1_000_000}, "subject"),
    "no prior": ({"questions.priors": []}, "priors"),
    "nobody": ({"assessments.0.adversary": "omniscient"}, "omniscient"),
    "a number for a law": (
        {"assessments.1.adversary": "relaxed", "assessments.1.parameters": {"directions": 1}},
        "what was measured",
    ),
    "noise below 0": ({"mechanism.noise_multiplier": -1, "ledger": None}, "noise_multiplier"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_a_line(name: str) -> None:
    edits, complaint = REFUSED[name]
    with pytest.raises(ArtifactError, match=complaint) as caught:
        verify(resealed(forged(document_of(small_certificate()), edits)))
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


HOSTILE = ("<script>alert(1)</script>", "\x00\x1b[2J\x07", "\u202egnp.exe", "\ud800", "W" * 1_000_000, "{{ 7*7 }}")
FREE = "declared.subject", "ledger.config.data.name"
LEAVES = *FREE, *(pytest.param(x, marks=pytest.mark.slow) for x in ("ledger.data.name", "headline", "reticent_version"))


@pytest.mark.parametrize("text", HOSTILE, ids=["tags", "control", "right to left", "surrogate", "megabyte", "template"])
@pytest.mark.parametrize("leaf", LEAVES)
def test_hostile_text_is_refused_in_a_line_or_declared(text: str, leaf: str) -> None:
    try:
        changed = resealed(forged(document_of(small_certificate()), {leaf: text}))
        outcome = verify(changed)
    except ArtifactError as error:
        complaint = str(error)
    else:
        complaint = ""
        assert outcome.accepted == (leaf == "declared.subject"), "one line of visible letters may be declared"
        before = render_html(changed).partition("<template")[0]
        assert text not in before or text == HOSTILE[5]
        assert len(before) < 100_000
    assert "\n" not in complaint
    assert len(complaint) < 1000


EASY = policy(
    MOST,
    {"measure": "epsilon", "at": 1e-5, "at_most": 1e6, "adversary": "attribute", "claim": "any"},
    per="record",
    accept_conditions=list(CONDITIONS),
)


@cache
def sources() -> list[Document]:
    """The complete and the public document, and both without their ledger."""
    both = [document_of(one) for one in (small_certificate(), public(small_certificate()))]
    return [*both, *(one | {"ledger": None} for one in both)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [30, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_damage_is_no_crash(count: int) -> None:
    page = render_html(small_certificate())

    @settings(max_examples=count, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(drawn: st.DataObject) -> None:
        changed = drawn.draw(damaged(drawn.draw(st.sampled_from(sources()))))
        try:
            document = resealed(changed) if drawn.draw(st.booleans()) else Certificate.parse(changed)
            outcome = verify(document)
        except ReticentError as error:
            complaint = str(error)
        else:  # whatever is wrong is a breach that every report can show
            complaint = ""
            breaches = gate(document, outcome, EASY, now=datetime.now(UTC))
            assert outcome.accepted or not all(one.passed for one in breaches)
            same = document_of(document) == sources()[0]  # as where the damage is what stood there
            assert (first_difference(page, document) is None) == same
            assert junit(document, breaches, tuple(Checked(document, outcome, (), (), False).reservations()))
        assert "\n" not in complaint
        assert len(complaint) <= 2000

    holds()


def test_a_unit_that_was_not_counted_is_refused_and_no_crash() -> None:
    changed = resealed(forged(document_of(certify_run(poisson())), {"ledger.unit": "client"}))
    assert {"ledger.digest", "headline"} <= {one.leaf for one in verify(changed).differences}
