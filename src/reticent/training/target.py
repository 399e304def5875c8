"""The least noise that keeps an attacker below a target, for the run that is about to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.mechanisms import Ledger, Mechanism
from reticent.training.config import TargetConfig

if TYPE_CHECKING:
    from reticent.calibration import Target


def calibrated_noise(config: TargetConfig, run: Mechanism, contraction: float | None = None) -> float:
    """Noise of the first step at which the attacker that ``config`` names, by default the worst case, meets the target.

    Args:
        config: the target.
        contraction: by which factor updates contract, for the attacker who sees the final model only.
        run: the planned run. Of one whose steps are equal the noise does not matter; in a ledger the noise of each
            part is in proportion to that of the first step.

    Raises:
        UnreachableError: no noise in the searched range meets the target.
        ParameterError: the target's value is outside its domain.
    """
    from reticent.adversaries import ADVERSARIES, FinalModel
    from reticent.calibration import NoiseMultiplier, NoiseScale
    from reticent.calibration.solve import calibrate

    who = FinalModel(contraction) if config.adversary == FinalModel.name else ADVERSARIES[config.adversary]()
    searched = NoiseScale() if isinstance(run, Ledger) else NoiseMultiplier()
    return calibrate(run, searched, target_of(config), who, config.neighbouring).value


def target_of(config: TargetConfig) -> Target:
    """The target as ``reticent.calibration`` spells it."""
    from reticent.calibration.targets import TARGETS

    (name,) = (known for known in TARGETS if getattr(config, known.replace("-", "_")) is not None)
    kind = TARGETS[name]
    stated = (name.replace("-", "_"), *(place for place, _ in kind.places))
    found: Target = kind(*(getattr(config, field) for field in stated))
    return found
