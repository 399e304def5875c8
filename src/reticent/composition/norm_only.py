"""The published pipeline for the relaxed adversary: amplify each release's norm test, then compose.

It is the exact optimum of an attacker who keeps only the norm ||y_i - q_i(D)|| of each release, or who
faces a fresh random direction in each. For the attacker of the papers, whose direction is the same in all
releases, it is too optimistic: KAISSIS2022:G16 and KAISSIS2023:R11 (at the parameters of their Figure 7 by a factor of
24,000 in delta, and below a provable floor). Kept for reproduction; ``relaxed_dpsgd`` is what to use.
"""

from __future__ import annotations

from reticent.composition.bracket import Bracket
from reticent.composition.lattice import compose_lattice
from reticent.composition.polygon import hull
from reticent.errors import UnsupportedError
from reticent.mechanism import DPSGD, Gaussian, Sampler
from reticent.mechanism.dpsgd import one_record
from reticent.tradeoff import RelaxedGaussianTradeOff, Subsampled, TradeOff


def norm_only(mechanism: DPSGD | Gaussian) -> Bracket:
    """Enclosure of the add-direction curve of an attacker restricted to per-release norms.

    Valid only for attackers who use nothing but the norms; no guarantee for a common direction.

    Args:
        mechanism: Poisson-sampled DP-SGD or plain Gaussian releases with noise, under add/remove.

    Raises:
        UnsupportedError: another sampler, or no noise.
    """
    if mechanism.noise_multiplier == 0.0:
        raise UnsupportedError("the norm test needs noise_multiplier > 0")
    if isinstance(mechanism, DPSGD):
        one_record(mechanism, "the norm test")
        if mechanism.sampler is not Sampler.POISSON:
            raise UnsupportedError("the norm test is amplified under Poisson sampling only")
        rate, count, dimension = mechanism.sample_rate, mechanism.steps, mechanism.num_parameters or 1
    else:
        rate, count, dimension = 1.0, mechanism.releases, mechanism.dimension
    release: TradeOff = RelaxedGaussianTradeOff(mechanism.noise_multiplier**-2.0, dimension)
    step = Subsampled(release, rate) if rate < 1.0 else release
    above, below = compose_lattice([(step, count)])
    return Bracket(pessimistic=above, optimistic=below)


def norm_only_both(mechanism: DPSGD | Gaussian) -> Bracket:
    """``norm_only`` in both directions, symmetrised: lower convex envelope of each curve and its inverse."""
    add = norm_only(mechanism)
    above, below = (hull([c, c.reversed]) for c in (add.pessimistic, add.optimistic))  # type: ignore[list-item]
    return Bracket(pessimistic=above, optimistic=below)
