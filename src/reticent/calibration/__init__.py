"""Calibration: how much noise (or how little data, how few steps) keeps an attacker below a target.

A file here searches for a number of ``reticent.risk`` under an attacker. No curve is made here.
"""

from reticent.calibration.scale import NoiseScale
from reticent.calibration.solve import Calibration, UnreachableError, calibrate
from reticent.calibration.targets import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Mu,
    Ppv,
    Reconstruction,
    Secret,
    Success,
    Target,
    TprAtFpr,
)
from reticent.calibration.unknowns import BatchSize, NoiseMultiplier, SampleRate, Steps, Unknown, unknowns_of

__all__ = [
    "Advantage",
    "BatchSize",
    "BayesSecurity",
    "Calibration",
    "EpsilonAtDelta",
    "Mu",
    "NoiseMultiplier",
    "NoiseScale",
    "Ppv",
    "Reconstruction",
    "SampleRate",
    "Secret",
    "Steps",
    "Success",
    "Target",
    "TprAtFpr",
    "Unknown",
    "UnreachableError",
    "calibrate",
    "unknowns_of",
]
