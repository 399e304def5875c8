"""The attacker of the published relaxed pipeline, who sees one norm per release: amplify each norm test, then compose.

It is the exact optimum of an attacker who keeps only the norm ||y_i - q_i(D)|| of each release, or who
faces a fresh random direction in each. For the attacker of the papers, whose direction is the same in all
releases, it is too optimistic: KAISSIS2022:G16 and KAISSIS2023:R11 (at the parameters of their Figure 7 by a factor of
24,000 in delta, and below a provable floor). Kept for reproduction; ``Relaxed`` is what to use.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reticent import curves
from reticent.kernel import checks
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.steps import Step
from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.curves import subsampled
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.curves.polygon import Sides, hull
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import CurvePair, Neighbouring
from reticent.kernel.proofs import Proof
from reticent.kernel.registry import described
from reticent.kernel.styles import Style

_TOO_WEAK = (
    "This attacker looks at nothing but one norm per release. The direction of a record's effect is the same in all "
    "releases, and simple attackers who use that gain more (KAISSIS2022:G16): no bound for anybody else. Use relaxed."
)


@dataclass(frozen=True, slots=True)
class NormOnly(Adversary):
    """Keeps only the norm of each release: the pipeline that the papers on relaxed attackers publish.

    Knows: every other record, the noise-free result without the target, how far the target moves it.
    Does not know: the direction of that move, and looks for none.
    Claim: an estimate. The enclosure is that of the restricted attacker.

    Attributes:
        dimension: of each release; None means its number of coordinates, 1 where that is not known. In a ledger each
            release keeps its own.

    Raises:
        ParameterError: ``dimension`` is not a whole number >= 1.
    """

    dimension: int | None = field(default=None, metadata=described("Dimensions of each release."))

    name: ClassVar[str] = "norm-only"
    title: ClassVar[Message | str] = Message("attacker.norm-only")
    style: ClassVar[Style] = Style("#c44a55", (5, 2), "#a3202f", "#ff8f98")
    averaged: ClassVar[bool] = True
    methods: ClassVar[tuple[Method, ...]] = (Method.PUBLISHED,)
    knows: ClassVar[Message | str] = Message("knows.others-norms")
    lacks: ClassVar[Message | str] = Message("lacks.direction")
    infers: ClassVar[Message | str] = Message("infers.used-all-directions")
    by_name_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.dimension is not None:
            checks.count(dimension=self.dimension)

    def assess(
        self,
        mechanism: Mechanism,
        neighbouring: Neighbouring = Neighbouring.ADD_REMOVE,
        method: Method = Method.PUBLISHED,
    ) -> Assessment:
        """The composed norm tests, in both directions.

        Args:
            neighbouring: ``add-remove`` or ``zero-out``.
            method: any; the answer is that of ``published``.

        Raises:
            UnsupportedError: replacement; or see ``norm_only``.
        """
        if neighbouring is Neighbouring.REPLACE:
            raise UnsupportedError("the norm test is known for adding, removing and zeroing a record only")
        run = None if self.dimension is None else mechanism.sums
        add = norm_only(mechanism if run is None else replace(run, num_parameters=self.dimension))
        above, below = (hull([curve, curve.reversed]) for curve in add)
        proof = Proof(
            Enclosure(above, below),
            theorems=("KAISSIS2022:Theorem 1",),
            conditions=mechanism.conditions_under(neighbouring),
            notes=(_TOO_WEAK, *mechanism.notes),
        )
        return Assessment(self, neighbouring, Method.PUBLISHED, (proof,), proof.as_estimate())


def norm_only(mechanism: Mechanism) -> Sides:
    """Around the add-direction curve of an attacker restricted to per-release norms.

    Valid only for attackers who use nothing but the norms; no guarantee for a common direction.

    Args:
        mechanism: Poisson-sampled DP-SGD or plain Gaussian releases with noise, under add/remove; or a ledger of
            these, each with its own noise, rate and dimension.

    Raises:
        UnsupportedError: another release or sampler, several records per person, or no noise.
    """
    return Lattice().answer([_step(part) for part in mechanism.parts]).sides


def _step(part: Mechanism) -> Step:
    """The norm test of one release, and how often it ran."""
    run = part.sums
    if run is None:
        raise UnsupportedError("the norm test is known for Gaussian noise only")
    run.one_record("the norm test")
    if not run.sampler.independent:
        raise UnsupportedError("the norm test is amplified under Poisson sampling only")
    if run.noise_multiplier == 0.0:
        raise UnsupportedError("the norm test needs noise_multiplier > 0")
    step = curves.RelaxedGaussianTradeOff(run.noise_multiplier**-2.0, run.num_parameters or 1)
    curve = subsampled(step, run.sample_rate)
    return Step(CurvePair(curve), run.steps)
