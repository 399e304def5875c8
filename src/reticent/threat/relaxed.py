"""The relaxed adversary: does not know the direction in which the target moves the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reticent.composition import Bracket, common_direction, compose, mu_limits, relaxed_dpsgd
from reticent.mechanism import DPSGD, Gaussian, Laplace, Ledger, Mechanism, Neighbouring, Sampler
from reticent.mechanism.dpsgd import attained_shift
from reticent.references import cite
from reticent.threat.base import Adversary, Assessment, Claim, Method
from reticent.threat.registry import ADVERSARIES
from reticent.threat.worst_case import worst_case_theorems
from reticent.tradeoff import GaussianTradeOff, RelaxedGaussianTradeOff, RelaxedLaplaceTradeOff, symmetrised

_MEANING = (
    "The guarantee is over a direction that is unknown to the attacker and common to all releases; "
    "a record whose direction can be guessed gets no relief.",
    "For scalar releases, and under subsampling, the relief is at most log 2 in epsilon.",
)

_SUBSAMPLED = "One unknown sign shared by all steps, composed and enclosed; safe for any number of parameters."


@ADVERSARIES.add
@dataclass(frozen=True, slots=True)
class Relaxed(Adversary):
    """Knows the training data and the size of the target's effect, not its direction (GLRT, maximin).

    Knows: every other record, the noise-free result without the target, how far the target moves it.
    Does not know: the direction of that move (for scalars: its sign), which is one and the same in all
    releases; which records were sampled; the noise.
    Claim: a bound on the power averaged over a uniform direction. The power against one fixed record can
    be that of the worst case: the one-sided test needs no magnitude.
    """

    name: ClassVar[str] = "relaxed"
    title: ClassVar[str] = "Attacker who cannot tell the direction"
    knows: ClassVar[str] = "all other records and how far this one can move the result, but not which way,"
    lacks: ClassVar[str] = "which way this record moves the result, which records each step drew, and the noise"
    infers: ClassVar[str] = "whether this record was used, on average over all directions,"

    def assess(
        self, mechanism: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, method: Method = Method.EXACT
    ) -> Assessment:
        """The maximin curve over a common unknown direction, or the worst case where none is proven."""
        truth, keys, notes = _curve(mechanism, neighbouring)
        lower, upper = mu_limits(mechanism, neighbouring)  # the direction does not matter where errors are rare
        return Assessment(
            adversary=self,
            neighbouring=neighbouring,
            method=Method.EXACT,
            claim=Claim.BOUND,
            curve=truth.pessimistic,
            truth=truth,
            theorems=cite(*keys),
            notes=_MEANING + notes + mechanism.notes,
            mu_limits=(0.0 if isinstance(mechanism, Laplace) else lower, upper),
        )


def _curve(mechanism: Mechanism, neighbouring: Neighbouring) -> tuple[Bracket, tuple[str, ...], tuple[str, ...]]:
    size = neighbouring.sensitivity
    match mechanism:
        case Gaussian(noise_multiplier=sigma, releases=n, dimension=d) if sigma > 0.0:
            return _gaussian(n * (size / sigma) ** 2, d)
        case DPSGD(sampler=Sampler.FIXED_SIZE):  # the target displaces a record whose direction is known
            return _worst_case(mechanism, neighbouring)
        case DPSGD(noise_multiplier=sigma, sample_rate=1.0, steps=n) if sigma > 0.0:
            return _gaussian(n * (size / sigma) ** 2, mechanism.num_parameters or 1)
        case Ledger(parts=parts) if _one_direction(parts):
            return _common(common_direction(mechanism, neighbouring))
        case Laplace(noise_multiplier=b, releases=1, sample_rate=1.0) if b > 0.0:
            curve = symmetrised(RelaxedLaplaceTradeOff(size / b))
            return Bracket.exact(curve), ("KAISSIS2023:Theorem 1", "RETICENT:relaxed-meaning"), ()
        case DPSGD(noise_multiplier=sigma) if sigma > 0.0 and size == 1.0:
            truth = relaxed_dpsgd(mechanism)
            if attained_shift(mechanism, neighbouring) == 0.0:
                truth = Bracket(pessimistic=truth.pessimistic, optimistic=GaussianTradeOff(0.0))
            return truth, ("RETICENT:common-sign", "RETICENT:relaxed-meaning"), (_SUBSAMPLED,)
        case _:
            return _worst_case(mechanism, neighbouring)


def _gaussian(noncentrality: float, dimension: int) -> tuple[Bracket, tuple[str, ...], tuple[str, ...]]:
    return _common(RelaxedGaussianTradeOff(noncentrality, dimension))


def _common(curve: RelaxedGaussianTradeOff) -> tuple[Bracket, tuple[str, ...], tuple[str, ...]]:
    keys = ("KAISSIS2022:Theorem 1", "KAISSIS2022:Theorem 2", "RETICENT:relaxed-meaning")
    return Bracket.exact(symmetrised(curve)), keys, ()


def _one_direction(parts: tuple[Mechanism, ...]) -> bool:
    """Whether all parts are noisy Gaussian releases of vectors of one dimension."""
    gaussian = [part for part in parts if isinstance(part, Gaussian) and part.noise_multiplier > 0.0]
    return len(gaussian) == len(parts) and len({part.dimension for part in gaussian}) == 1


def _worst_case(mechanism: Mechanism, neighbouring: Neighbouring) -> tuple[Bracket, tuple[str, ...], tuple[str, ...]]:
    what = "a ledger of several mechanisms" if isinstance(mechanism, Ledger) else "this release and relation"
    note = f"No relaxed curve is proven for {what}: the answer is the worst case, which is always safe."
    return compose(mechanism, neighbouring), worst_case_theorems(mechanism, neighbouring), (note,)
