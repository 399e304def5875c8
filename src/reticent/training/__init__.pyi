"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.training.config import TrainConfig as TrainConfig
from reticent.training.config import load_config as load_config
from reticent.training.config import parse_config as parse_config
from reticent.training.hooks import RunContext as RunContext
from reticent.training.hooks import Step as Step
from reticent.training.hooks import StepHook as StepHook
from reticent.training.hooks import StopTraining as StopTraining
from reticent.training.hooks import Update as Update
from reticent.training.loop import FitRecord as FitRecord
from reticent.training.loop import fit as fit
from reticent.training.run import train as train
from reticent.training.rundir import Run as Run
from reticent.training.rundir import load_run as load_run
from reticent.training.settings import Settings as Settings
from reticent.training.trace import Trace as Trace
from reticent.training.trace import TraceShard as TraceShard
