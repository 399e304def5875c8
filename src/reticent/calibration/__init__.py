"""Calibration: how much noise (or how little data, how few steps) keeps an attacker below a target.

A file here searches for a number of ``reticent.risk`` under an attacker. No curve is made here.
"""

from reticent.calibration.samplers import Choice, LeftOut, Plan, calibrate_samplers, largest_batch
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
from reticent.calibration.unknowns import (
    BatchSize,
    MeanRuns,
    NoiseMultiplier,
    SampleRate,
    Steps,
    Unknown,
    of_release,
    unknowns_of,
)

__all__ = [
    "Advantage",
    "BatchSize",
    "BayesSecurity",
    "Calibration",
    "Choice",
    "EpsilonAtDelta",
    "LeftOut",
    "MeanRuns",
    "Mu",
    "NoiseMultiplier",
    "NoiseScale",
    "Plan",
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
    "calibrate_samplers",
    "largest_batch",
    "of_release",
    "unknowns_of",
]
