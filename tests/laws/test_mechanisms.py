"""Laws of mechanisms, over the list and over what they are put together to; each is certified and verified."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import reticent as rt
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Declaration
from reticent.certificates.verify import verify
from reticent.kernel.mechanisms import Gaussian, Mechanism
from reticent.kernel.pairs import GaussianPair, Part
from reticent.testing import laws
from tests.laws.leaves import LISTED, RELEASES

pytestmark = pytest.mark.usefixtures("coarse")


@pytest.mark.parametrize("one", RELEASES, ids=lambda one: type(one).__name__)
def test_laws(one: Mechanism) -> None:
    laws.mechanism(one)


@pytest.mark.parametrize("one", RELEASES, ids=lambda one: type(one).__name__)
def test_it_is_certified_and_verified(one: Mechanism) -> None:
    document = certify(one, Declaration(subject="an example", created="2026-01-01"), adversaries=[rt.WorstCase()])
    assert verify(document).accepted


@pytest.mark.parametrize("kind", LISTED)
def test_every_leaf_is_asked(kind: str) -> None:
    listed, asked = LISTED[kind]
    assert listed <= asked


@dataclass(frozen=True)
class Amplified(Gaussian):
    """Attains more than dominates."""

    def parts_under(self, neighbouring, *, attained=False):
        return (Part(GaussianPair(1.0 if attained else 2.0, 1.0, 1.0), 1, ("DONG2022:Definition 2.3",)),)


def test_a_mechanism_that_breaks_a_law_is_seen() -> None:
    with pytest.raises(AssertionError):
        laws.mechanism(Amplified(2.0))
