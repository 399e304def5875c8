"""The published pipeline for the relaxed adversary: amplify each release's norm test, then compose.

It is the exact optimum of an attacker who keeps only the norm ||y_i - q_i(D)|| of each release, or who
faces a fresh random direction in each. For the attacker of the papers, whose direction is the same in all
releases, it is too optimistic: KAISSIS2022:G16 and KAISSIS2023:R11 (at the parameters of their Figure 7 by a factor of
24,000 in delta, and below a provable floor). Kept for reproduction; ``relaxed_dpsgd`` is what to use.
"""

from __future__ import annotations

from reticent.accountants.lattice import Lattice
from reticent.accountants.steps import Step
from reticent.curves import RelaxedGaussianTradeOff, subsampled
from reticent.curves.enclosure import Enclosure
from reticent.curves.polygon import hull
from reticent.errors import UnsupportedError
from reticent.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.mechanisms.dpsgd import one_record
from reticent.mechanisms.ledger import parts_of
from reticent.pairs import CurvePair


def norm_only(mechanism: Mechanism) -> Enclosure:
    """Enclosure of the add-direction curve of an attacker restricted to per-release norms.

    Valid only for attackers who use nothing but the norms; no guarantee for a common direction.

    Args:
        mechanism: Poisson-sampled DP-SGD or plain Gaussian releases with noise, under add/remove; or a ledger of
            these, each with its own noise, rate and dimension.

    Raises:
        UnsupportedError: another release or sampler, several records per person, or no noise.
    """
    above, below = Lattice().answer([_step(part) for part in parts_of(mechanism)]).sides
    return Enclosure(pessimistic=above, optimistic=below)


def _step(part: Mechanism) -> Step:
    """The norm test of one release, and how often it ran."""
    if isinstance(part, DPSGD):
        one_record(part, "the norm test")
        if not part.sampler.independent:
            raise UnsupportedError("the norm test is amplified under Poisson sampling only")
        rate, count, dimension = part.sample_rate, part.steps, part.num_parameters or 1
    elif isinstance(part, Gaussian):
        rate, count, dimension = 1.0, part.releases, part.dimension
    else:
        raise UnsupportedError("the norm test is known for Gaussian noise only")
    if part.noise_multiplier == 0.0:
        raise UnsupportedError("the norm test needs noise_multiplier > 0")
    curve = subsampled(RelaxedGaussianTradeOff(part.noise_multiplier**-2.0, dimension), rate)
    return Step(CurvePair(curve), count)


def norm_only_both(mechanism: Mechanism) -> Enclosure:
    """``norm_only`` in both directions, symmetrised: lower convex envelope of each curve and its inverse.

    Args:
        mechanism: as for ``norm_only``.

    Raises:
        UnsupportedError: as for ``norm_only``.
    """
    add = norm_only(mechanism)
    above, below = (hull([c, c.reversed]) for c in (add.pessimistic, add.optimistic))  # type: ignore[list-item]
    return Enclosure(pessimistic=above, optimistic=below)
