"""What theorems need of a training: every theorem says it, and what people see beside a number is that."""

from __future__ import annotations

import pytest

from reticent.adversaries import Attribute, Relaxed
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS, Bearing
from reticent.kernel.proofs.references import THEOREMS
from reticent.kernel.samplers import SAMPLERS
from reticent.mechanisms import FilteredGaussian, Laplace, MatrixMechanism, OneOf, RandomisedResponse, Selection
from reticent.pairs import Geometric
from reticent.samplers import AllocatedOnce, FixedSize, Shuffled
from tests.laws.leaves import needed

pytestmark = pytest.mark.usefixtures("coarse")

ROWS = {key: set(theorem.needs) for key, theorem in THEOREMS.items()}
EVERYWHERE = {
    "unpredictable-noise",
    "real-numbers",
    "used-once",
    "public-preparation",
    "public-divisor",
    "start-weights",
    "base-model",
}


def test_every_theorem_says_what_it_assumes() -> None:
    assert all(theorem.assumes.endswith(".") for theorem in THEOREMS.values())


def test_every_condition_of_a_row_exists_and_every_condition_is_in_a_row() -> None:
    named = set().union(*ROWS.values()) | EVERYWHERE
    assert named == set(CONDITIONS)
    assert all(ROWS.values())


CASES: list[tuple[object, Mechanism, Neighbouring]] = [
    (WorstCase(), DPSGD(2.0, 0.1, 5), Neighbouring.ADD_REMOVE),
    (WorstCase(), DPSGD(2.0, 0.1, 5, sampler=FixedSize()), Neighbouring.REPLACE),
    (WorstCase(), DPSGD(2.0, 0.1, 5, sampler=Shuffled()), Neighbouring.ADD_REMOVE),
    (WorstCase(), DPSGD(2.0, 0.1, 5, records_per_user=3), Neighbouring.ADD_REMOVE),
    (WorstCase(), Gaussian(2.0), Neighbouring.ADD_REMOVE),
    (WorstCase(), Laplace(2.0, sample_rate=0.1), Neighbouring.ADD_REMOVE),
    (Relaxed(), DPSGD(2.0, 0.1, 5), Neighbouring.ADD_REMOVE),
    (Relaxed(30), DPSGD(2.0, 0.1, 5, records_per_user=3), Neighbouring.ADD_REMOVE),
    (Attribute(0.3), DPSGD(2.0, 0.1, 5), Neighbouring.REPLACE),
]


@pytest.mark.parametrize(("who", "mechanism", "neighbouring"), CASES, ids=lambda x: repr(x)[:50])
def test_what_people_see_beside_a_number_is_what_its_theorems_need(who, mechanism, neighbouring) -> None:
    """No condition beside the number is one that no cited theorem names; what weakens a claim is never left out."""
    found = who.assess(mechanism, neighbouring)
    seen = {one.key for one in found.conditions}
    needed = set().union(*(ROWS[key] for key in found.theorems))
    assert seen <= needed | EVERYWHERE | {"planned-steps"}
    weakening = {key for key in needed if CONDITIONS[key].bearing in (Bearing.DATA, Bearing.ATTACKER)}
    assert weakening - seen <= {"audited-record", "same-stop"}  # of a filter that measured private gradients


RELEASES: list[Mechanism] = [  # only of three runs that keep their steps is something asked that is not of one
    *(
        DPSGD(2.0, 0.1, 5, dataset_size=20, sampler=one(**needed(one)))
        for one in SAMPLERS.values()
        if one is not AllocatedOnce
    ),
    DPSGD(2.0, 0.1, 5, records_per_user=3),
    Gaussian(2.0),
    Laplace(2.0, sample_rate=0.1),
    RandomisedResponse(0.3),
    FilteredGaussian(0.5),
    MatrixMechanism(2.0, 4),
    MatrixMechanism(2.0, 4, sample_rate=0.1),
    Selection(Gaussian(2.0), Geometric(4)),
    OneOf((Gaussian(2.0), Gaussian(3.0)), (1, 1)),
]


@pytest.mark.parametrize("release", RELEASES, ids=lambda x: repr(x)[:50])
def test_what_the_theorems_of_a_release_need_is_beside_its_numbers(release: Mechanism) -> None:
    """Blocks, the draw of a setting and the noise under a filter were not."""
    needed = set().union(*(ROWS[key] for part in release.parts_under(Neighbouring.ADD_REMOVE) for key in part.theorems))
    of_release = {key for key in needed if CONDITIONS[key].bearing in (Bearing.RELEASE, Bearing.GENERAL)}
    if isinstance(release, DPSGD):  # a sampler's own condition stands for those of what its theorem is made from
        of_release = of_release - {one.condition.key for one in SAMPLERS.values()} | {release.sampler.condition.key}
    assert of_release | {"unpredictable-noise"} <= {one.key for one in release.conditions}
