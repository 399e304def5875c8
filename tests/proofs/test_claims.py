"""What may be claimed follows from conditions and from who vouches for them."""

from __future__ import annotations

import itertools

import pytest

from reticent.kernel.errors import ParameterError
from reticent.kernel.proofs import (
    CONDITIONS,
    Basis,
    Bearing,
    Claim,
    Status,
    claim_of,
    condition,
    conditions_by_whom,
    vouched,
    worst_first,
)

GENERAL, DATA, RELEASE = "hidden-draws", "fixed-length", "one-direction"


def test_only_an_unchecked_condition_on_data_or_attacker_makes_a_proof_conditional() -> None:
    assert claim_of(Basis.PROOF, ()) is Claim.BOUND
    for statuses in itertools.product(Status, repeat=3):
        conditions = [condition(key, status) for key, status in zip((GENERAL, DATA, RELEASE), statuses, strict=True)]
        proven = Claim.BOUND if statuses[1] is Status.CHECKED else Claim.CONDITIONAL
        assert [claim_of(basis, conditions) for basis in (Basis.PROOF, Basis.APPROXIMATION, Basis.MEASUREMENT)] == [
            proven, Claim.ESTIMATE, Claim.EMPIRICAL
        ]  # fmt: skip
        assert proven.proven
    assert not Claim.ESTIMATE.proven
    assert not Claim.EMPIRICAL.proven


def test_every_condition_about_data_or_attacker_weakens_until_it_is_checked() -> None:
    for key, kind in CONDITIONS.items():
        weakens = kind.bearing in (Bearing.DATA, Bearing.ATTACKER)
        for status in Status:
            unchecked = status is not Status.CHECKED
            assert condition(key, status).weakens == (weakens and unchecked)
            assert condition(key, status).open == (kind.bearing is not Bearing.GENERAL and unchecked)
        assert str(kind.says).endswith(".")
        assert len(str(kind.says)) > 20
        assert key == key.lower()
    assert {CONDITIONS[key].bearing for key in (GENERAL, DATA, RELEASE)} == {
        Bearing.GENERAL, Bearing.DATA, Bearing.RELEASE
    }  # fmt: skip


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ParameterError, match="condition"):
        condition("fixed-lenght")


def test_whoever_looked_replaces_a_status_and_adds_nothing() -> None:
    before = (condition(GENERAL), condition(DATA))
    after = vouched(before, {DATA: Status.CHECKED, RELEASE: Status.CHECKED})
    assert [(one.key, one.status) for one in after] == [(GENERAL, Status.ASSUMED), (DATA, Status.CHECKED)]


def test_what_makes_a_claim_conditional_comes_first_then_what_nobody_looked_at() -> None:
    several = [condition(GENERAL), condition(RELEASE, Status.CHECKED), condition(DATA, Status.DECLARED)]
    assert [one.key for one in worst_first([*several, *several])] == [DATA, GENERAL, RELEASE]


def test_a_condition_of_all_names_nobody() -> None:
    lines = conditions_by_whom([("a", [condition(GENERAL)]), ("b", [condition(GENERAL), condition(DATA)])])
    assert lines[0].startswith("assumed (b): ")
    assert lines[1].startswith("assumed: ")
