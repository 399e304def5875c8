"""One step of each block: numbers against quadrature and against all draws of small cases, and the law of the draws.

Theorem: RETICENT:block-allocation.
"""

from __future__ import annotations

import pytest

import reticent as rt
from reticent.certificates.page.facts import facts
from reticent.kernel.accountants import compose
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import GaussianPair, Neighbouring
from reticent.pairs import AllocatedPersonPair
from reticent.samplers import BlockAllocation, RandomAllocation
from tests.pairs.allocation import of_blocks

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE


def run_of(steps: int, uses: int, epochs: int = 1, noise: float = 1.2, **more: int) -> DPSGD:
    return DPSGD(noise, 1.0 / steps, epochs * steps, sampler=BlockAllocation(steps, uses_per_epoch=uses), **more)


@pytest.mark.parametrize("blocks", [[3, 3], [3, 2], [2, 1, 1], [1, 1, 1]])
def test_the_ends_enclose_the_law_and_are_close(blocks: list[int]) -> None:
    """Lemma 3.2 would take the shortest block for all; here blocks of two lengths are exact as well."""
    found = compose(run_of(sum(blocks), len(blocks)), ADD)
    for epsilon in (0.0, 1.0):
        truth = max(of_blocks(1.2, blocks, epsilon))  # a record may be added or removed
        below, above = (float(curve.delta(epsilon)) for curve in (found.optimistic, found.pessimistic))
        assert below * (1.0 - 1e-8) <= truth <= above * (1.0 + 1e-8)
        assert above == pytest.approx(below, rel=3e-5, abs=0)


def test_equal_blocks_are_shorter_epochs() -> None:
    blocks, epochs = run_of(6, 2, epochs=4), DPSGD(1.2, 1 / 3, 24, sampler=RandomAllocation(3))
    for relation in Neighbouring:
        (mine,), (other,) = blocks.parts_under(relation), epochs.parts_under(relation)
        assert (mine.pair, mine.count) == (other.pair, other.count)
    assert epochs.sampler.releases(epochs) == blocks.sampler.releases(blocks) == 8


def test_blocks_of_two_lengths_are_two_parts_and_persons_chains() -> None:
    longer, shorter = run_of(8, 3, epochs=5, records_per_user=2).parts_under(ADD)
    assert (longer.pair, longer.count) == (AllocatedPersonPair(1.2, 3, 2, False), 10)
    assert (shorter.pair, shorter.count) == (AllocatedPersonPair(1.2, 2, 2, False), 5)
    (part,) = run_of(3, 3).parts_under(REPLACE)
    assert (part.pair, part.count) == (GaussianPair(1.2, 1.0, 2.0), 3)
    assert part.theorems[-1] == "RETICENT:block-allocation"


def test_an_unknown_number_of_steps_is_safe_on_both_sides() -> None:
    """Rate .22 makes 4 steps, or 5; epochs that were begun count above, those that ended below."""
    unknown = DPSGD(1.2, 0.22, 23, sampler=BlockAllocation(uses_per_epoch=2))
    parts = {attained: unknown.parts_under(ADD, attained=attained) for attained in (False, True)}
    assert [(part.pair.bins, part.count) for part in parts[False]] == [(2, 12)]
    assert [(part.pair.bins, part.count) for part in parts[True]] == [(3, 4), (2, 4)]
    with pytest.raises(ParameterError, match="uses_per_epoch must be at most the steps of an epoch"):
        DPSGD(1.2, 0.22, 23, sampler=BlockAllocation(uses_per_epoch=5))
    for wrong in (None, 0, 1.5):
        with pytest.raises(ParameterError, match="uses_per_epoch"):
            BlockAllocation(uses_per_epoch=wrong)


def test_what_is_said_of_it() -> None:
    run = run_of(12, 3)
    assert "12 steps per epoch" in run.notes[0]
    shown = facts(rt.certify(run, adversary="worst-case").certificate)
    said = {str(label): str(value) for _, (label, value) in shown}
    assert (said["how records are drawn"], said["Uses of a record per pass, for allocation"]) == (run.sampler.name, "3")
    assert said["sample rate"] == "0.25"  # the share of the records that a step has
    assert "block-allocation-draws" in {one.key for one in run.conditions}
    found = rt.calibrate_samplers(mu=1, dataset_size=60, epochs=2, batch_size=6, sampler="block-allocation")
    assert found.notes() == ["block-allocation at batches of 6 left out: no plan states uses_per_epoch"]
