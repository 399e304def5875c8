"""The attacker of the published relaxed pipeline: sees one norm per release."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reticent import _check
from reticent.adversaries.base import Adversary, Assessment, Method
from reticent.adversaries.relaxed.norm_only_curves import norm_only_both
from reticent.errors import UnsupportedError
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.proofs import Proof
from reticent.registry import described
from reticent.styles import Style

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
    title: ClassVar[str] = "Attacker who looks at norms only (published)"
    style: ClassVar[Style] = Style("#c44a55", (5, 2), "#a3202f", "#ff8f98")
    averaged: ClassVar[bool] = True
    methods: ClassVar[tuple[Method, ...]] = (Method.PUBLISHED,)
    knows: ClassVar[str] = "all other records and how far this one can move the result, but looks at norms only,"
    lacks: ClassVar[str] = "which way this record moves the result"
    infers: ClassVar[str] = "whether this record was used, on average over all directions,"
    by_name_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.dimension is not None:
            _check.count(dimension=self.dimension)

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
            UnsupportedError: replacement; or see ``reticent.adversaries.relaxed.norm_only_curves``.
        """
        if neighbouring is Neighbouring.REPLACE:
            raise UnsupportedError("the norm test is known for adding, removing and zeroing a record only")
        run = None if self.dimension is None else mechanism.sums
        truth = norm_only_both(mechanism if run is None else replace(run, num_parameters=self.dimension))
        proof = Proof(
            truth,
            theorems=("KAISSIS2022:Theorem 1",),
            conditions=mechanism.conditions_under(neighbouring),
            notes=(_TOO_WEAK, *mechanism.notes),
        )
        return Assessment(self, neighbouring, Method.PUBLISHED, (proof,), proof.as_estimate())
