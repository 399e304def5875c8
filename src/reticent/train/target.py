"""The least noise that keeps the worst-case attacker below a target, for the run that is about to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.mechanism import DPSGD
from reticent.train.config import TargetConfig

if TYPE_CHECKING:
    from reticent.calibrate import Target


def calibrated_noise(config: TargetConfig, run: DPSGD) -> float:
    """Noise multiplier at which the certified worst case of ``run`` meets the target.

    Args:
        config: the target.
        run: rate, steps and sampler of the planned run; its noise does not matter.

    Raises:
        UnreachableError: no noise in the searched range meets the target.
        ParameterError: the target's value is outside its domain.
    """
    from reticent.calibrate import NoiseMultiplier, calibrate

    return calibrate(run, NoiseMultiplier(), target_of(config), neighbouring=config.neighbouring).value


def target_of(config: TargetConfig) -> Target:
    """The target as ``reticent.calibrate`` spells it."""
    import reticent.calibrate as calibrate

    match config:
        case TargetConfig(advantage=float(value)):
            return calibrate.Advantage(value)
        case TargetConfig(bayes_security=float(value)):
            return calibrate.BayesSecurity(value)
        case TargetConfig(mu=float(value)):
            return calibrate.Mu(value)
        case TargetConfig(success=float(value), prior=float(prior)):
            return calibrate.Success(value, prior)
        case TargetConfig(tpr=float(value), fpr=float(fpr)):
            return calibrate.TprAtFpr(value, fpr)
        case TargetConfig(epsilon=float(value), delta=float(delta)):
            return calibrate.EpsilonAtDelta(value, delta)
        case TargetConfig(reconstruction=float(value), baseline=float(baseline)):
            return calibrate.Reconstruction(value, baseline)
    raise AssertionError("TargetConfig holds exactly one target")
