"""Nobody can forge a certificate: each forgery that once passed, and every leaf, sealed again by the forger."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from reticent.adversaries import Attribute, Mixed, Relaxed
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.certificates.build import certify, public
from reticent.certificates.document.rounding import leaves, settled
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.verify import State, verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.messages import said, to_json
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import Laplace
from tests.certificates.forging import DECLARED, Document, document_of, refused, resealed, set_at, small_certificate

pytestmark = pytest.mark.usefixtures("quick")


def drop_other_attackers(d: Document) -> None:
    d["assessments"] = [a for a in d["assessments"] if a["adversary"] == "relaxed"]


def replace_the_curve(d: Document) -> None:
    d["assessments"][0]["curve"] = copy.deepcopy(d["assessments"][1]["curve"])


def hide_behind_do_not_publish(d: Document) -> None:
    d["assessments"][0]["do_not_publish"] = True
    d["assessments"][0]["advantage"]["value"] = 0.01
    d["do_not_publish"].insert(0, "assessments[0]")


def shuffle_the_ledger(d: Document) -> None:
    passes = {"drawn": "shuffled", "name": "shuffled", "batches_per_epoch": 4, "times_per_epoch": 1}
    d["ledger"]["sampler"].update(passes)
    d["ledger"]["config"]["sampler"] = "shuffled"


def text(english: str) -> Document:
    return to_json(said(english))


FORGERIES: dict[str, Callable[[Document], None]] = {
    "sentence": set_at("assessments.0.sentence", text("An attacker can raise a 50% guess to at most 51.8%.")),
    "headline": set_at("headline", text("A coin flip becomes at most 51.8%, against any attacker.")),
    "headline without a key": set_at("headline", "A coin flip becomes at most 51.8%, against any attacker."),
    "number of the headline": set_at("headline.values.says.0.values.share.number", "50.1"),
    "question of the headline": set_at("headline.values.says.0.values.question.key", "asked.zero-out"),
    "unit of the headline": lambda d: d["headline"]["values"]["says"][0]["values"]["share"].pop("unit"),
    "about somebody else": lambda d: d["headline"]["values"].update(whom="client"),
    "number of a sentence": set_at("assessments.0.sentence.values.reach.values.share.number", "50.1"),
    "another attacker's knowledge": set_at("assessments.0.knows.key", "knows.others"),
    "what a condition says": set_at("conditions.clipped.says", text("Nothing moves.")),
    "what a warning says": lambda d: d["warnings"][0].update(text=text("All is well.")),
    "every attacker but the relaxed one deleted": drop_other_attackers,
    "one attacker deleted": lambda d: d["assessments"].pop(3),
    "worst case under replacement deleted": lambda d: d["assessments"].pop(5),
    "no assessments": lambda d: d["assessments"].clear(),
    "warnings removed": lambda d: d["warnings"].clear(),
    "what a warning follows from removed too": lambda d: (
        d["warnings"].clear(),
        d["ledger"]["config"].update(divisor=100.0, sample_rate=0.25, batch_size=None),
    ),
    "curve replaced": replace_the_curve,
    "conditions set to none": lambda d: d["theorems"]["DONG2022:Theorem 3.2"].update(conditions="none"),
    "estimate relabelled as bound": set_at("assessments.6.claim", "bound"),
    "bound relabelled as estimate": set_at("assessments.0.claim", "estimate"),
    "ledger shuffled beside a Poisson mechanism": shuffle_the_ledger,
    "do_not_publish skips the check": hide_behind_do_not_publish,
    "number alone": set_at("assessments.0.advantage.value", 0.01),
    "number and sentence": lambda d: [a["advantage"].update(value=0.01) for a in d["assessments"]],
    "order": lambda d: d["assessments"].reverse(),
    "notes removed": lambda d: d["assessments"][1]["notes"].clear(),
    "note added": lambda d: d["assessments"][0]["notes"].append(text("Audited by everybody.")),
    "theorem removed": lambda d: d["theorems"].pop("DONG2022:Theorem 3.2"),
    "reason for leaving out invented": lambda d: (
        d["assessments"].pop(3),
        d["skipped"].update(membership=text("it is safe")),
    ),
    "public by name only": set_at("edition", "public"),
    "do_not_publish emptied": lambda d: d["do_not_publish"].clear(),
    "more noise": set_at("mechanism.noise_multiplier", 30),
    "more noise in mechanism and ledger": lambda d: (
        d["mechanism"].update(noise_multiplier=30),
        d["ledger"]["segments"][0].update(noise_multiplier=30),
    ),
    "asked for other noise than what ran": set_at("ledger.config.noise_multiplier", 30),
    "an older version claimed": set_at("reticent_version", "0.0.1"),
    "created is no date": set_at("declared.created", "yesterday"),
    "key repeated by another adversary": lambda d: d["assessments"].append(copy.deepcopy(d["assessments"][0])),
    "method": set_at("assessments.0.method", "clt"),
    "question added": lambda d: d["questions"]["priors"].append(0.3),
    "attribute parameter": set_at("assessments.6.parameters.gradient_change.squared_change", 0.1),
}


LONG = {"more noise in mechanism and ledger", "ledger shuffled beside a Poisson mechanism"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in FORGERIES]
)
def test_a_forgery_is_refused(certificate: Certificate, name: str) -> None:
    document = document_of(certificate)
    FORGERIES[name](document)
    assert document != document_of(certificate)
    assert refused(document)


def test_a_measurement_that_is_called_public_is_named() -> None:
    law = DirectionLaw(0.8 * np.eye(8) + 0.2, public=True)  # whatever somebody writes down
    declared = Declaration(subject="a plan", created="2026-11-22")
    stated = certify(DPSGD(3.0, 0.2, 8), declared, adversaries=[Relaxed(directions=law), Relaxed()])
    outcome = verify(public(stated))
    assert outcome.accepted
    assert outcome.private == ()
    assert outcome.measured == ("relaxed (add-remove)",)


def test_an_honest_document_is_accepted_in_both_editions(certificate: Certificate) -> None:
    complete, handed_on = verify(certificate), verify(public(certificate))
    assert complete.accepted
    assert complete.differences == ()
    assert complete.private == ("attribute (replace)",)
    assert complete.assessments == 7
    assert handed_on.accepted
    assert handed_on.private == ()
    assert "private data" in str(public(certificate).skipped["attribute"])


def test_a_content_hash_that_is_not_that_of_the_document_is_refused(certificate: Certificate) -> None:
    """Nothing else differs, and no signature hides it: the hash alone must be seen."""
    for document in (certificate, public(certificate)):
        for other in ("0" * 64, document.content_sha256[::-1], ""):
            outcome = verify(document.model_copy(update={"content_sha256": other}))
            assert not outcome.accepted
            assert [d.leaf for d in outcome.differences] == ["content_sha256"]


def test_leaving_an_attacker_out_is_said(certificate: Certificate) -> None:
    document = document_of(certificate)
    document["assessments"] = [a for a in document["assessments"] if a["adversary"] != "membership"]
    document["skipped"] = {"membership": {"key": "refused.not-asked"}}
    document["do_not_publish"][0] = "assessments[5]"
    unused = {k for k in document["theorems"] if not any(k in a["theorems"] for a in document["assessments"])}
    for key in unused:
        del document["theorems"][key]
    assert verify(resealed(document)).accepted


@pytest.mark.parametrize(
    "mechanism",
    [
        pytest.param(Gaussian(2.0, releases=3), marks=pytest.mark.slow),
        Laplace(1.5),
        Ledger((Gaussian(2.0), Gaussian(3.0))),
        Gaussian(0.0),
    ],
    ids=lambda m: type(m).__name__ + str(getattr(m, "noise_multiplier", "")),
)
@pytest.mark.parametrize(
    "relation", [Neighbouring.ADD_REMOVE, pytest.param(Neighbouring.REPLACE, marks=pytest.mark.slow)]
)
def test_what_certify_writes_is_accepted(mechanism, relation: Neighbouring) -> None:
    adversaries = (WorstCase(), Relaxed(), Mixed(0.25), Attribute(0.5))
    certificate = certify(mechanism, DECLARED, adversaries=adversaries, neighbouring=relation)
    again = Certificate.parse(document_of(certificate))
    assert verify(again).differences == ()


def test_two_strengths_of_one_attacker_are_both_kept() -> None:
    certificate = certify(Gaussian(2.0), DECLARED, adversaries=(Mixed(0.25), Mixed(0.75)))
    shares = [a.parameters.get("relaxed_probability") for a in certificate.assessments if a.adversary == "mixed"]
    assert shares == [0.25, 0.75]


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


def other_values(value: Any) -> Iterator[Any]:
    """Values of every kind that a forger could write instead."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        for factor in (0.5, 2.0, 1.001, 0.9):
            yield value * factor if value else factor
        yield -value if value else 1
    elif isinstance(value, str):
        yield value + " "
        yield value[:-1]
        yield value.swapcase() if value.swapcase() != value else "x" + value
        for kind in "0aZ-\u202e":
            middle = len(value) // 2
            if value[middle : middle + 1] != kind:
                yield value[:middle] + kind + value[middle + 1 :]
    else:
        yield "something"
    if value is not None:
        yield None


def every_change(
    document: Document, *, curve_step: int, one_each: random.Random | None = None
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for path, value in leaves(document).items():
        if "curve" in path and int(path[-1]) % curve_step:
            continue
        others = list(other_values(value))
        for new in others if one_each is None else [one_each.choice(others)]:
            yield path, new


def with_change(document: Any, path: tuple[str, ...], value: Any) -> Any:
    """The document with another leaf; what the path does not touch is shared."""
    if not path:
        return value
    changed = copy.copy(document)
    at: Any = int(path[0]) if isinstance(document, list) else path[0]
    changed[at] = with_change(document[at], path[1:], value)
    return changed


def check_every_change(certificate: Certificate, *, curve_step: int, share: float = 1.0, one_each: bool = False) -> int:
    choice, tried, document = random.Random(1), 0, document_of(certificate)  # noqa: S311
    for path, new in every_change(document, curve_step=curve_step, one_each=choice if one_each else None):
        leaf = ".".join(path)
        if leaf.startswith(DECLARED_LEAVES) or choice.random() > share:
            continue
        tried += 1
        assert refused(with_change(document, path, new)), leaf
    return tried


def test_no_derived_leaf_can_be_changed() -> None:
    assert check_every_change(small_certificate(), curve_step=20, share=0.008) > 10


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_derived_leaf_can_be_changed_in_any_way() -> None:
    assert check_every_change(small_certificate(), curve_step=1) > 3_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_derived_leaf_of_a_whole_run_can_be_changed(certificate: Certificate) -> None:
    assert check_every_change(certificate, curve_step=1, one_each=True) > 2_000
    assert check_every_change(public(certificate), curve_step=1, one_each=True) > 1_500


def test_each_digit_of_a_number_counts() -> None:
    certificate = small_certificate()
    document = document_of(certificate)
    for measure in ("advantage", "mu", "bayes_security"):
        stated = document["assessments"][0][measure]["value"]
        digits = repr(stated)
        for place in (i for i, c in enumerate(digits) if c.isdigit()):
            changed = copy.deepcopy(document)
            new = digits[:place] + str((int(digits[place]) + 3) % 10) + digits[place + 1 :]
            changed["assessments"][0][measure]["value"] = float(new)
            assert refused(changed), (measure, digits, new)


def test_declared_leaves_are_listed(certificate: Certificate) -> None:
    outcome = verify(certificate)
    assert outcome.declared["declared.issuer"] == "A clinic"
    assert outcome.declared["declared.weights_sha256"] == "cd" * 32
    assert "ledger.utility.test_accuracy" in outcome.declared
    assert "mechanism.noise_multiplier" in verify(certify(Gaussian(2.0), DECLARED)).declared


def nudged(certificate: Certificate, factor: float) -> Certificate:
    document = document_of(certificate)
    number = document["assessments"][0]["advantage"]
    number["value"] = settled(("advantage", "value"), number["value"] * factor)
    return resealed(document)


def test_rounding_of_another_machine_needs_a_named_tolerance() -> None:
    certificate = nudged(small_certificate(), 1.0 - 7e-6)
    strict, lenient = verify(certificate), verify(certificate, tolerance=1e-5)
    assert not strict.accepted
    assert [d.state for d in strict.differences] == [State.ROUNDED]
    assert lenient.accepted
    assert not verify(certificate, tolerance=1e-6).accepted
    assert not verify(nudged(small_certificate(), 1.0 - 2e-5), tolerance=1e-5).accepted
    with pytest.raises(ParameterError, match="tolerance"):
        verify(certificate, tolerance=0.5)


def test_a_document_of_another_version_is_for_that_version() -> None:
    document = document_of(small_certificate())
    document["reticent_version"] = "0.0.9"
    with pytest.raises(ArtifactError, match="does not know: check it with that one"):
        verify(resealed(document))
