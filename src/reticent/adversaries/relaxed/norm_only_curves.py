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
from reticent.mechanisms import Mechanism
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
    above, below = Lattice().answer([_step(part) for part in mechanism.parts]).sides
    return Enclosure(pessimistic=above, optimistic=below)


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
    curve = subsampled(RelaxedGaussianTradeOff(run.noise_multiplier**-2.0, run.num_parameters or 1), run.sample_rate)
    return Step(CurvePair(curve), run.steps)


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
