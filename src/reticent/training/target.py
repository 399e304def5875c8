"""The least noise that keeps an attacker below a target, for the run that is about to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.mechanisms import Ledger, Mechanism
from reticent.training.config import TargetConfig

if TYPE_CHECKING:
    from reticent.calibration import Target


def calibrated_noise(config: TargetConfig, run: Mechanism) -> float:
    """Noise of the first step at which the attacker that ``config`` names, by default the worst case, meets the target.

    Args:
        config: the target.
        run: the planned run. Of one whose steps are equal the noise does not matter; in a ledger the noise of each
            part is in proportion to that of the first step.

    Raises:
        UnreachableError: no noise in the searched range meets the target.
        ParameterError: the target's value is outside its domain.
    """
    from reticent.adversaries import ADVERSARIES
    from reticent.calibration import NoiseMultiplier, NoiseScale
    from reticent.calibration.solve import calibrate

    who = ADVERSARIES[config.adversary]()
    searched = NoiseScale() if isinstance(run, Ledger) else NoiseMultiplier()
    return calibrate(run, searched, target_of(config), who, config.neighbouring).value


def target_of(config: TargetConfig) -> Target:
    """The target as ``reticent.calibration`` spells it."""
    import reticent.calibration as calibrate

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
