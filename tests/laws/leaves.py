"""Leaves of each kind, with all that they need: one that is missing here is named by ``test_every_leaf_is_asked``."""

from __future__ import annotations

import reticent as rt
from reticent.kernel.adversaries import Adversary
from reticent.kernel.adversaries.base import ADVERSARIES
from reticent.kernel.mechanisms import DPSGD, MECHANISMS, Mechanism
from reticent.kernel.pairs import (
    AntipodalGaussianPair,
    CurvePair,
    Disclosure,
    GaussianPair,
    Pair,
    Part,
    SymmetrisedGaussianPair,
    WholeUserGaussianPair,
)
from reticent.kernel.registry import parameters_of
from reticent.kernel.samplers import SAMPLERS, Sampler
from reticent.mechanisms import MatrixMechanism, OneOf
from reticent.pairs import AllocatedGaussianPair, AllocatedPersonPair, LaplacePair, MixedPair, OneOfPairs, SelectedPair

STATED = {"draws_per_step": 2, "max_batch_size": 4, "batches_per_epoch": 5, "uses_per_epoch": 2}
"""Fields of samplers."""


def needed(kind: type[Sampler]) -> dict[str, int]:
    """The fields without which there is none."""
    return {p.name: STATED[p.name] for p in parameters_of(kind) if p.required}


def full(kind: type[Sampler]) -> Sampler:
    """With every field stated."""
    return kind(**{p.name: STATED[p.name] for p in parameters_of(kind)})


def run_of(sampler: Sampler, steps: int = 10) -> DPSGD:
    """20 records in batches of four."""
    return DPSGD(2.0, 0.2, steps, batch_size=4, dataset_size=20, sampler=sampler)


BY_NAME = [kind for kind in SAMPLERS.values() if not needed(kind)]
"""Samplers of which a name says all."""

RUN = DPSGD(2.0, 0.1, 12, num_parameters=7)
RUNS = [
    DPSGD(2.0, 0.2, 10, batch_size=4, dataset_size=20, num_parameters=30, sampler=full(k)) for k in SAMPLERS.values()
]
RELEASES: list[Mechanism] = [
    RUN,
    rt.Gaussian(2.0, 3, 5),
    rt.Laplace(2.0, 4, 0.5),
    rt.Laplace(1.5),
    rt.RandomisedResponse(0.3, 3),
    MatrixMechanism(2.0, 8, "prefix", bands=2, separation=4),
    MatrixMechanism(2.0, 103, "1,0.5,0.25", separation=4, sample_rate=0.1),
    MatrixMechanism(2.0, 8, "bisr", bands=3, participations=3, separation=2),
    MatrixMechanism(2.0, 8, "lambda-cgd=0.75", participations=2, separation=3),
    MatrixMechanism(2.0, 8, "banded=2:1x6,0.5x2", participations=2, separation=3),
    MatrixMechanism(2.0, 8, "1,0.5", bins=4),
    rt.Guarantee(1.0, 1e-3),
    rt.ZCDP(0.1, 2),
    rt.RDP([2, 8, 32], [0.1, 0.4, 2.0]),
    rt.PrivacyProfile([0.5, 1.0], [1e-3, 1e-6]),
    rt.FilteredGaussian(0.25),
    DPSGD(3.0, 0.2, 4, records_per_user=2),
    rt.Selection(rt.Gaussian(4.0), rt.Geometric(10)),
    OneOf((RUN, rt.Gaussian(2.0)), (1, 3)),
    rt.Ledger((RUN, rt.Gaussian(2.0, 3, 5), rt.Laplace(2.0))),
]
"""Of every mechanism of the list, and what they are put together to."""

PAIRS: list[Pair] = [
    GaussianPair(1.3, 0.2, 1.0),
    GaussianPair(0.8, 0.3, 2.0),
    GaussianPair(2.0, 1.0, 1.0),
    SymmetrisedGaussianPair(1.5, 0.25, 1.0),
    AntipodalGaussianPair(0.7, 0.2),
    AntipodalGaussianPair(2.0, 1.0),
    LaplacePair(1.5, 0.3, 1.0),
    LaplacePair(2.0, 1.0, 1.0),
    WholeUserGaussianPair(1.3, 0.2, 1),
    WholeUserGaussianPair(1.5, 0.3, 3),
    WholeUserGaussianPair(2.0, 0.2, 2, antipodal=True),
    MixedPair(GaussianPair(1.0, 0.5, 1.0), AntipodalGaussianPair(1.0, 0.4), 0.3),
    AllocatedGaussianPair(1.5, 2),
    AllocatedPersonPair(2.0, 10, 2, False),
    Disclosure(0.3),
    CurvePair(rt.RandomisedResponse(0.3).parts_under(rt.Neighbouring.REPLACE)[0].pair.curve, (0.8473, 0.8473)),
    SelectedPair((Part(GaussianPair(4.0, 1.0, 1.0), 1, ()),), rt.Geometric(4)),
    OneOfPairs(((Part(GaussianPair(2.0, 1.0, 1.0), 1, ()),), (Part(GaussianPair(4.0, 1.0, 1.0), 1, ()),)), (1, 3)),
]


def attackers() -> list[Adversary]:
    """Each of the list, with what it needs."""
    return [kind.knowing(contraction=0.9, gradient_change=0.4) for kind in ADVERSARIES.values()]


LISTED = {
    "mechanisms": (set(MECHANISMS.values()), {type(one) for one in RELEASES}),
    "samplers": (set(SAMPLERS.values()), {type(run.sampler) for run in RUNS}),
}
"""Of each kind what is listed, and what is asked."""
