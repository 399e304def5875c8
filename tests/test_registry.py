"""One list: a mechanism or an attacker that is added to it appears everywhere by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from reticent.accountants import compose
from reticent.adversaries import ADVERSARIES, Adversary, Assessment, Method
from reticent.adversaries.base import adversaries_named
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.certificates.build import certify
from reticent.certificates.page import render_html
from reticent.certificates.schema import Certificate, Declaration
from reticent.certificates.verify import verify
from reticent.cli import main
from reticent.curves import GaussianTradeOff, Mixture
from reticent.curves.enclosure import Enclosure
from reticent.errors import ParameterError
from reticent.mechanisms import MECHANISMS, Gaussian, Laplace, Mechanism, Neighbouring
from reticent.proofs import Proof
from reticent.registry import described, parameters_of

pytestmark = pytest.mark.usefixtures("coarse_signs")


@dataclass(frozen=True, slots=True)
class Sleepy(Adversary):
    """Looks at the release with some probability only.

    Knows: everything but this record.
    Claim: a bound.
    """

    awake: float = field(default=0.5, metadata=described("Probability of looking at all."))

    name: ClassVar[str] = "sleepy"
    title: ClassVar[str] = "Attacker who sleeps now and then"
    relation: ClassVar[Neighbouring] = Neighbouring.ZERO_OUT
    knows: ClassVar[str] = "everything but this record, when awake"
    lacks: ClassVar[str] = "the noise"
    infers: ClassVar[str] = "whether this record was used"

    def assess(self, mechanism: Mechanism, neighbouring: Neighbouring, method: Method = Method.EXACT) -> Assessment:
        truth = compose(mechanism, neighbouring)
        curve = Mixture([truth.pessimistic, GaussianTradeOff(0.0)], [self.awake, 1.0 - self.awake])
        proof = Proof(Enclosure.from_above(curve), theorems=("RETICENT:public-coin",))
        return Assessment(self, neighbouring, method, (proof,))


@pytest.fixture
def sleepy() -> Iterator[type[Adversary]]:
    yield ADVERSARIES.add(Sleepy)
    ADVERSARIES.remove("sleepy")


def said(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    output = capsys.readouterr()
    assert ended.value.code == 0, output.err
    return " ".join(output.out.split())


def test_help_names_it_with_its_parameter(capsys) -> None:
    """Also where the file of a verb was read before the attacker was listed, and no longer afterwards."""
    verbs = ("risk", "dpsgd"), ("calibrate", "laplace"), ("compare", "gaussian"), ("compare", "run"), ("audit",)
    for verb in verbs:
        assert "sleepy" not in said(capsys, *verb, "--help"), verb
    ADVERSARIES.add(Sleepy)
    try:
        _named(verbs, capsys)
    finally:
        ADVERSARIES.remove("sleepy")
    assert "sleepy" not in said(capsys, "audit", "--help")


def _named(verbs, capsys) -> None:
    for verb in verbs:
        shown = said(capsys, *verb, "--help")
        assert "attribute, sleepy" in shown, verb
        assert "--awake FLOAT Probability of looking at all, for sleepy. Default: 0.5." in shown, verb
        assert "and zero-out for sleepy" in shown, verb


def test_risk_and_calibrate_answer_for_it(sleepy, capsys) -> None:
    words = ("risk", "gaussian", "--noise-multiplier", "2", "--adversary", "sleepy", "--awake", "0.25", "--json")
    found = {a["adversary"]: a for a in json.loads(said(capsys, *words))["assessments"]}
    assert found["sleepy"]["neighbouring"] == "zero-out"
    assert found["sleepy"]["parameters"] == {"awake": 0.25}
    mine, worst = (found[name]["advantage"]["value"] for name in ("sleepy", "worst-case"))
    assert mine == pytest.approx(0.25 * worst, rel=1e-9, abs=0)
    everybody = said(capsys, "risk", "laplace", "--noise-multiplier", "2", "--adversary", "all")
    assert "sleepy bound" in everybody
    answer = calibrate(Gaussian(1.0), NoiseMultiplier(), Advantage(0.1), Sleepy())
    assert answer.achieved.value <= 0.1 < 1.001 * answer.achieved.value
    assert "sleepy (zero-out, exact, bound)" in said(
        capsys, "calibrate", "gaussian", "--target", "advantage=0.1", "--adversary", "sleepy"
    )


def test_a_parameter_of_somebody_else_is_refused(sleepy, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["risk", "gaussian", "--noise-multiplier", "2", "--awake", "0.2"])
    assert "--awake must be left out unless --adversary sleepy is asked for" in capsys.readouterr().err


def test_certificates_hold_it_and_verify_derives_it_again(sleepy) -> None:
    document = certify(Gaussian(2.0), Declaration(subject="s", created="2026-01-01"), adversaries=(Sleepy(),))
    assert "sleepy" in {record.adversary for record in document.assessments}
    assert Sleepy.title in render_html(document)
    assert verify(document).accepted
    forged = document.model_dump(mode="json", by_alias=True)
    place = next(i for i, a in enumerate(forged["assessments"]) if a["adversary"] == "sleepy")
    forged["assessments"][place]["parameters"]["awake"] = 0.4
    assert not verify(Certificate.parse(forged)).accepted


def test_the_dashboard_asks_for_it(sleepy) -> None:
    app = pytest.importorskip("reticent.dashboard.app")
    assert "attacker-awake" in {known.key for known in app.fields()}
    message, sentences, table, *_ = app.answer(
        {"mechanism": "gaussian", "neighbouring": "replace", "gaussian-noise_multiplier": 2}
    )
    assert "sleepy" in str(table), message
    assert len(sentences) == 6


def test_names_are_taken_once_and_wrong_ones_are_answered_with_the_nearest(sleepy) -> None:
    with pytest.raises(ParameterError, match="no other attacker"):
        ADVERSARIES.add(type("Other", (), {"name": "sleepy"}))
    with pytest.raises(ParameterError, match=r"did you mean relaxed\?"):
        ADVERSARIES.find("relax", "adversary")


def test_no_option_means_two_things() -> None:
    own = {p.name for kind in MECHANISMS.values() for p in (*parameters_of(kind), *kind.extras)}
    both = own & {p.name for kind in ADVERSARIES.values() for p in parameters_of(kind)}
    assert both == {"dimension"}  # of a release, and in which the direction is unknown: the first comes first


def test_parameters_come_from_fields() -> None:
    noise, releases, rate = parameters_of(Laplace)
    assert (noise.name, noise.kind, noise.required) == ("noise_multiplier", float, True)
    assert (releases.kind, releases.default) == (int, 1)
    assert rate.option == "sample-rate"


def test_the_relaxed_attacker_composes_the_worst_case_once(capsys) -> None:
    compose.cache_clear()
    words = "risk dpsgd --noise-multiplier 6 --sample-rate 0.2 --steps 100 --adversary relaxed"  # others have its sign
    said(capsys, *words.split(" "))
    assert compose.cache_info().misses == 1


def test_all_leaves_out_what_is_kept_for_reproduction() -> None:
    """A published curve that errs on the unsafe side appears where it is named, and nowhere else."""
    everyone, _ = adversaries_named(["all"])
    assert "norm-only" not in {who.name for who in everyone}
    named, _ = adversaries_named(["all", "norm-only"])
    assert [who.name for who in named] == [*(who.name for who in everyone), "norm-only"]
