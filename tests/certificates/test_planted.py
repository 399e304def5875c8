"""What was once planted and not seen: reasons, dominance, digits. Each test fails on the bug that it is named for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reticent.adversaries import MembershipGame, Relaxed
from reticent.certificates.build import certify
from reticent.certificates.document.derive import PRIVATE, Inputs, derive
from reticent.certificates.document.rounding import agrees, leaves, settled
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.store import write_certificate
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, DominanceError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import Questions
from tests.certificates.forging import document_of, refused, set_at

DECLARED = Declaration(subject="a release", created="2026-11-22")


@pytest.fixture(scope="module")
def small() -> Certificate:
    return certify(Gaussian(2.0), DECLARED, adversaries=(WorstCase(),))


@pytest.mark.parametrize("name", ["relaxed", "mixed", "membership", "membership-game", "attribute"])
@pytest.mark.parametrize(
    "reason",
    [
        "it was answered elsewhere",
        "",
        "it was not asked for ",
        PRIVATE,
    ],
)
def test_an_attacker_is_left_out_for_a_reason_that_can_be_true(small: Certificate, name: str, reason: str) -> None:
    document = document_of(small)
    assert name in document["skipped"]
    set_at(f"skipped.{name}", reason)(document)
    assert refused(document)


def test_a_reason_is_that_of_this_attacker_and_this_release() -> None:
    asked = certify(DPSGD(3.0, 1.0, 10), DECLARED, adversaries=(WorstCase(), MembershipGame()))
    reason = asked.skipped["membership-game"]
    assert reason != "it was not asked for"
    document = document_of(asked)
    assert not refused(document)
    set_at("skipped.relaxed", reason)(document)
    assert refused(document)


def test_nobody_exceeds_the_worst_case(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = Inputs(DECLARED, Gaussian(2.125), ((Relaxed(), Neighbouring.ADD_REMOVE),), Questions())
    stronger = WorstCase().assess(Gaussian(1.9), Neighbouring.ADD_REMOVE, WorstCase.methods[0])
    own = Relaxed.assess

    def as_if(self: Relaxed, *asked: object) -> object:
        return replace(own(self, *asked), proofs=stronger.proofs)  # type: ignore[arg-type]

    monkeypatch.setattr(Relaxed, "assess", as_if)
    with pytest.raises(DominanceError, match="exceeds the worst case"):
        derive(inputs)


PATHS = [("advantage", "value"), ("mu", "upper"), ("delta_at_epsilon", "1.0", "lower"), ("bayes_security", "value")]


@pytest.mark.parametrize("path", PATHS)
def test_more_digits_than_a_certificate_states_are_no_rounding(path: tuple[str, ...]) -> None:
    found = 0.123456789012
    assert agrees(path, settled(path, found), found)
    assert not agrees(path, found, found)
    assert not agrees(path, found, found, tolerance=1e-5)
    assert not agrees(path, float(f"{found:.9g}"), found)


@pytest.mark.parametrize("path", PATHS)
def test_the_next_number_is_another(path: tuple[str, ...]) -> None:
    found, digits = 0.5, {"mu": 4, "delta_at_epsilon": 5}.get(path[0], 8)
    for nearby in (0.5 + 3 * 10.0**-digits, 0.5 - 3 * 10.0**-digits):
        assert not agrees(path, float(f"{nearby:.{digits}g}"), found)


def test_numbers_are_rounded_to_the_safe_side() -> None:
    found = 0.1234567890123
    assert settled(("advantage", "upper"), found) > found > settled(("advantage", "lower"), found)
    assert settled(("bayes_security", "value"), found) < found < settled(("advantage", "value"), found)
    assert settled(("curve", "fnr", "0"), found) < found < settled(("curve", "tpr", "0"), found)


@pytest.mark.parametrize("name", ["certificate.public.json", "certificate.html", "certificate.public.dsse.json"])
def test_files_of_somebody_else_beside_a_certificate_stay(small: Certificate, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(ArtifactError, match="nothing is overwritten"):
        write_certificate(small, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"mine"


def test_every_computed_number_has_the_digits_that_do_not_depend_on_the_machine(small: Certificate) -> None:
    """The curve, too: whatever is a number of an assessment, and is not what the issuer asked for."""
    stated = leaves(small.assessments[0].model_dump(exclude={"parameters"}))
    numbers = {path: x for path, x in stated.items() if isinstance(x, float)}
    assert {"advantage", "mu", "curve"} <= {path[0] for path in numbers}
    for path, number in numbers.items():
        assert number == settled(path, number), path
