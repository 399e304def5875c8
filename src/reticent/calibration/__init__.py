"""Calibration: how much noise (or how little data, how few steps) keeps an attacker below a target.

A file here searches for a number of ``reticent.risk`` under an attacker. No curve is made here.
"""

from reticent.calibration.samplers import Choice as Choice
from reticent.calibration.samplers import LeftOut as LeftOut
from reticent.calibration.samplers import Plan as Plan
from reticent.calibration.samplers import calibrate_samplers as calibrate_samplers
from reticent.calibration.scale import NoiseScale as NoiseScale
from reticent.calibration.solve import Calibration as Calibration
from reticent.calibration.solve import UnreachableError as UnreachableError
from reticent.calibration.solve import calibrate as calibrate
from reticent.calibration.targets import Advantage as Advantage
from reticent.calibration.targets import BayesSecurity as BayesSecurity
from reticent.calibration.targets import EpsilonAtDelta as EpsilonAtDelta
from reticent.calibration.targets import Mu as Mu
from reticent.calibration.targets import Ppv as Ppv
from reticent.calibration.targets import Reconstruction as Reconstruction
from reticent.calibration.targets import Secret as Secret
from reticent.calibration.targets import Success as Success
from reticent.calibration.targets import Target as Target
from reticent.calibration.targets import TprAtFpr as TprAtFpr
from reticent.calibration.unknowns import BatchSize as BatchSize
from reticent.calibration.unknowns import MeanRuns as MeanRuns
from reticent.calibration.unknowns import NoiseMultiplier as NoiseMultiplier
from reticent.calibration.unknowns import SampleRate as SampleRate
from reticent.calibration.unknowns import Steps as Steps
from reticent.calibration.unknowns import Unknown as Unknown
from reticent.calibration.unknowns import of_release as of_release
from reticent.calibration.unknowns import unknowns_of as unknowns_of
