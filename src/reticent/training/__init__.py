"""DP-SGD runs and the ledger of what really ran.

A file here trains. How loops of others are seen is in ``reticent.watching``; how far a record can move a gradient is in
``reticent.sensitivity``.
"""

from reticent.training.config import TrainConfig, load_config, parse_config
from reticent.training.hooks import RunContext, Step, StepHook, StopTraining, Update
from reticent.training.loop import FitRecord, Settings, fit
from reticent.training.run import train
from reticent.training.rundir import Run, load_run
from reticent.training.trace import Trace, TraceShard

__all__ = [
    "FitRecord",
    "Run",
    "RunContext",
    "Settings",
    "Step",
    "StepHook",
    "StopTraining",
    "Trace",
    "TraceShard",
    "TrainConfig",
    "Update",
    "fit",
    "load_config",
    "load_run",
    "parse_config",
    "train",
]
